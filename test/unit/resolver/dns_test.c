/* The times at which the DNS resolver looks up, in virtual time. A manual loop has no network: literals resolve, names
 * fail.
 *
 * Each test makes a fixture: a loop, a resolver of one target that has looked up once, and the counts of its results.
 * on_result stands for the channel and its policy. The resolver points to `env`, so the fixture does not move. `fini`
 * frees all of it. One thread, which turns the loop. */
#include <string.h>

#include "base/mem.h"
#include "resolver/resolver.h"
#include "support/cmocka.h"

struct fixture {
    struct tc_loop *loop;
    struct tc_resolver_env env;
    struct tc_target target;
    struct tc_resolver *resolver;
    int found, failed; /* results with an endpoint, and results without */
    bool refuse;       /* on_result refuses results, as a policy may */
    char *text;        /* of the last result: the address, or the error; NULL: none yet (tc_free) */
};

static bool on_result(void *arg, struct tc_resolver_result *r)
{
    struct fixture *f = arg;
    tc_free(f->text);
    if (r->endpoints) {
        f->found++;
        assert_int_equal(r->endpoints->n, 1);
        f->text = tc_addr_text(&r->endpoints->at[0]->addrs[0]);
    } else {
        f->failed++;
        assert_int_equal(r->status.code, TORC_STATUS_UNAVAILABLE);
        f->text = tc_strdup(tc_status_text(&r->status));
    }
    tc_resolver_result_fini(r);
    return !f->refuse;
}

static bool known(void *arg, struct tc_slice scheme)
{
    (void)arg;
    return tc_resolver_find(scheme) != NULL;
}

/* Starts a resolver of the target and runs what is due, which brings the first result. `refuse`: as in the fixture. */
static void init(struct fixture *f, const char *target, bool refuse)
{
    *f = (struct fixture){.refuse = refuse};
    f->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 7});
    f->env = (struct tc_resolver_env){
        .loop = f->loop, .dns_min_interval_ms = 30000, .backoff = tc_backoff_default, .on_result = on_result, .arg = f};
    assert_int_equal(tc_target_parse(&f->target, target, known, NULL, NULL), 0);
    const struct tc_resolver_class *cls = tc_resolver_find(tc_slice_str("dns"));
    f->resolver = cls->create(cls, &f->target, &f->env);
    f->resolver->ops->start(f->resolver);
    assert_int_equal(f->found + f->failed, 0); /* a result comes in a turn of the loop */
    tc_loop_drain(f->loop);
}

static void fini(struct fixture *f)
{
    f->resolver->ops->shutdown(f->resolver);
    tc_loop_advance(f->loop, 1000000);
    tc_loop_free(f->loop);
    tc_target_fini(&f->target);
    tc_free(f->text);
}

/* Asks for a look-up, as a policy does, and runs what is due. */
static void ask(struct fixture *f)
{
    f->resolver->ops->request_reresolution(f->resolver);
    tc_loop_drain(f->loop);
}

/* At least 30 s lie between a look-up that succeeded and the next one, however many requests come. Without a request
 * nothing is looked up. */
static void test_minimum_interval(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "dns:///192.0.2.1:80", false);
    assert_int_equal(f.found, 1);
    assert_string_equal(f.text, "192.0.2.1:80");
    tc_loop_advance(f.loop, 10000);
    for (int i = 0; i < 100; i++)
        ask(&f);
    assert_int_equal(f.found, 1);
    tc_loop_advance(f.loop, 19999);
    assert_int_equal(f.found, 1);
    tc_loop_advance(f.loop, 1);
    assert_int_equal(f.found, 2);
    ask(&f);
    tc_loop_advance(f.loop, 29999);
    assert_int_equal(f.found, 2);
    tc_loop_advance(f.loop, 1);
    assert_int_equal(f.found, 3);
    tc_loop_advance(f.loop, 1000000);
    assert_int_equal(f.found, 3);
    /* After a long time, a request looks up at once. */
    ask(&f);
    assert_int_equal(f.found, 4);
    fini(&f);
}

/* Returns the time until the next result in milliseconds, rounded up to a multiple of 10. */
static uint64_t until_next(struct fixture *f)
{
    int before = f->found + f->failed;
    uint64_t waited = 0;
    while (f->found + f->failed == before) {
        assert_true(waited < 200000);
        tc_loop_advance(f->loop, 10);
        waited += 10;
    }
    return waited;
}

/* Asserts the next 12 waits: 1 s, then 1.6 times as long each time, 120 s at most. Each wait may be 20 % shorter or
 * longer (jitter), and another 10 ms for the steps of until_next. */
static void expect_backoff(struct fixture *f)
{
    double expected = 1000;
    for (int i = 0; i < 12; i++) {
        double waited = (double)until_next(f);
        assert_true(waited >= expected * 0.8 - 10 && waited <= expected * 1.2 + 10);
        expected = expected * 1.6 > 120000 ? 120000 : expected * 1.6;
    }
}

/* A failed look-up is repeated with backoff. A request does not shorten the wait. reset_backoff looks up at once, and
 * the next wait is the first one of the backoff again. */
static void test_failure_backs_off(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "dns:///shop.test:80", false);
    assert_int_equal(f.failed, 1);
    assert_non_null(strstr(f.text, "name resolution failed for shop.test"));
    ask(&f);
    ask(&f);
    assert_int_equal(f.failed, 1);
    expect_backoff(&f);
    int before = f.failed;
    f.resolver->ops->reset_backoff(f.resolver);
    tc_loop_drain(f.loop);
    assert_int_equal(f.failed, before + 1);
    expect_backoff(&f);
    fini(&f);
}

/* A result that the policy refuses counts as a failure. Once a result is accepted, the minimum interval holds again. */
static void test_refused_result_backs_off(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "dns:///192.0.2.1", true);
    assert_int_equal(f.found, 1);
    assert_string_equal(f.text, "192.0.2.1:443");
    expect_backoff(&f);
    f.refuse = false;
    until_next(&f);
    int before = f.found;
    tc_loop_advance(f.loop, 1000000);
    assert_int_equal(f.found, before);
    ask(&f);
    assert_int_equal(f.found, before + 1);
    ask(&f);
    tc_loop_advance(f.loop, 29999);
    assert_int_equal(f.found, before + 1);
    tc_loop_advance(f.loop, 1);
    assert_int_equal(f.found, before + 2);
    fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minimum_interval),
        cmocka_unit_test(test_failure_backs_off),
        cmocka_unit_test(test_refused_result_backs_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
