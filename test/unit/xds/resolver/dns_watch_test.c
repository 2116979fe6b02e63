/* The addresses of a LOGICAL_DNS cluster (tc_dns_watch). Each test has a new watch as *state, whose target is
 * server.example.com:443. The test plays the dns resolver, since the linker wraps tc_resolver_find: answers are calls
 * of the watch's on_result. No test turns the loop. */
#include "xds/resolver/dns_watch.h"

#include "base/mem.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/fakes/lb.h"

static struct tc_loop *loop;
static struct tc_resolver *resolver; /* the watch's; NULL: none, or it has ended */
static char *name;                   /* the target of the last resolver */
static unsigned started, refreshed, changes;

static void on_start(struct tc_resolver *r)
{
    assert_ptr_equal(r, resolver);
    started++;
}

static void on_refresh(struct tc_resolver *r)
{
    assert_ptr_equal(r, resolver);
    refreshed++;
}

static void on_shutdown(struct tc_resolver *r)
{
    assert_ptr_equal(r, resolver);
    tc_free(resolver);
    resolver = NULL;
}

static struct tc_resolver *create(const struct tc_resolver_class *cls, const struct tc_target *target,
                                  const struct tc_resolver_env *env)
{
    static const struct tc_resolver_ops ops = {
        .start = on_start, .request_reresolution = on_refresh, .shutdown = on_shutdown};
    (void)cls;
    assert_null(resolver);
    resolver = TC_NEW(struct tc_resolver);
    *resolver = (struct tc_resolver){&ops, env};
    tc_free(name);
    name = tc_strdup(target->text);
    return resolver;
}

static bool authority(const struct tc_resolver_class *cls, const struct tc_target *target, struct tc_buf *out,
                      char **why)
{
    (void)cls, (void)target, (void)out;
    *why = NULL;
    return true;
}

const struct tc_resolver_class *__wrap_tc_resolver_find(struct tc_slice scheme);

const struct tc_resolver_class *__wrap_tc_resolver_find(struct tc_slice scheme)
{
    static const struct tc_resolver_class cls = {.scheme = "dns", .authority = authority, .create = create};
    assert_true(tc_slice_eq_str(scheme, "dns"));
    return &cls;
}

static void on_change(void *arg)
{
    (void)arg;
    changes++;
}

static void answer(const char *addresses)
{
    struct tc_resolver_result result = {.endpoints = fake_lb_endpoints(addresses)};
    assert_true(resolver->env->on_result(resolver->env->arg, &result));
}

static void answer_error(const char *why)
{
    struct tc_resolver_result result = {.status = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "%s", why)};
    assert_true(resolver->env->on_result(resolver->env->arg, &result));
}

static int setup(void **state)
{
    static struct tc_resolver_env env;
    loop = tc_loop_new(&(struct tc_loop_opts){.manual = true});
    env = (struct tc_resolver_env){.loop = loop};
    started = refreshed = changes = 0;
    *state = tc_dns_watch_new(&env, "server.example.com:443", on_change, NULL);
    return 0;
}

static int teardown(void **state)
{
    tc_dns_watch_free(*state);
    assert_null(resolver);
    tc_loop_free(loop);
    tc_free(name);
    name = NULL;
    return 0;
}

static void all_addresses_are_one_endpoint(void **state)
{
    TC_CASE(DN02);
    struct tc_dns_watch *w = *state;
    assert_string_equal(name, "dns:///server.example.com:443");
    assert_int_equal(started, 1);
    assert_null(tc_dns_watch_endpoints(w));
    answer("1.1.1.1:443 2.2.2.2:443 3.3.3.3:443");
    const struct tc_endpoints *list = tc_dns_watch_endpoints(w);
    assert_int_equal(list->n, 1);
    assert_int_equal(list->at[0]->n_addrs, 3);
    assert_int_equal(changes, 1);
    answer("1.1.1.1:443 2.2.2.2:443 3.3.3.3:443");
    assert_ptr_equal(tc_dns_watch_endpoints(w), list);
    tc_dns_watch_refresh(w);
    assert_int_equal(refreshed, 1);
}

static void an_error_before_any_answer(void **state)
{
    struct tc_dns_watch *w = *state;
    answer_error("injected error");
    assert_null(tc_dns_watch_endpoints(w));
    assert_string_equal(tc_status_text(tc_dns_watch_error(w)),
                        "DNS resolution failed for server.example.com:443: UNAVAILABLE: injected error");
    assert_int_equal(changes, 1);
    answer("1.1.1.1:443");
    assert_true(tc_status_ok(tc_dns_watch_error(w)));
    assert_int_equal(tc_dns_watch_endpoints(w)->n, 1);
}

static void the_last_good_answer_stays(void **state)
{
    TC_CASE(AG09);
    struct tc_dns_watch *w = *state;
    answer("1.1.1.1:443");
    const struct tc_endpoints *list = tc_dns_watch_endpoints(w);
    answer_error("injected error");
    assert_ptr_equal(tc_dns_watch_endpoints(w), list);
    assert_false(tc_status_ok(tc_dns_watch_error(w)));
    answer("2.2.2.2:443");
    assert_ptr_not_equal(tc_dns_watch_endpoints(w), list);
    assert_true(tc_status_ok(tc_dns_watch_error(w)));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(all_addresses_are_one_endpoint),
        TEST(an_error_before_any_answer),
        TEST(the_last_good_answer_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
