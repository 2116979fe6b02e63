/* A97's rules for the use and the fetching of tokens (creds/call/token_cache.h), on the test's clock.
 *
 * `expect` asks the cache as an RPC does, and checks what the RPC is to do and whether a fetch is to start. `store` and
 * store_failure store the outcome of that fetch. `advance` moves both clocks, monotonic and realtime. A token serves
 * until 30 s before its end. Delays of the backoff are random, up to 20 % shorter or longer: a test that waits for the
 * end of a delay advances by no less than its upper bound. One thread. */
#include "base/mem.h"
#include "creds/call/token_cache.h"
#include "support/cmocka.h"

struct test_clock {
    struct tc_clock clock;
    uint64_t mono_ns;
    int64_t real_ns;
};

static uint64_t monotonic(void *arg)
{
    return ((struct test_clock *)arg)->mono_ns;
}

static int64_t realtime(void *arg)
{
    return ((struct test_clock *)arg)->real_ns;
}

struct fixture {
    struct test_clock clock;
    struct tc_token_cache cache;
};

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    f->clock.clock = (struct tc_clock){.monotonic_ns = monotonic, .realtime_ns = realtime, .arg = &f->clock};
    f->clock.mono_ns = 5 * TC_NS_PER_S;
    f->clock.real_ns = INT64_C(1700000000) * (int64_t)TC_NS_PER_S;
    tc_token_cache_init(&f->cache, &f->clock.clock);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tc_token_cache_fini(&f->cache);
    tc_free(f);
    return 0;
}

static void advance(struct fixture *f, uint64_t s)
{
    f->clock.mono_ns += s * TC_NS_PER_S;
    f->clock.real_ns += (int64_t)(s * TC_NS_PER_S);
}

static void store(struct fixture *f, const char *text, int64_t lives_s)
{
    struct tc_token t = {.metadata = tc_auth_metadata_token("Bearer", tc_slice_str(text)),
                         .expires_ns = f->clock.real_ns + lives_s * (int64_t)TC_NS_PER_S};
    tc_token_cache_store(&f->cache, &t);
}

static void store_failure(struct fixture *f, int code, const char *text)
{
    struct tc_token t = {.error = tc_status_make(code, TORC_LAYER_LB, "%s", text)};
    tc_token_cache_store(&f->cache, &t);
}

static void expect(struct fixture *f, enum tc_token_answer answer, bool fetch)
{
    bool wanted;
    assert_int_equal(tc_token_cache_ask(&f->cache, &wanted), answer);
    assert_int_equal(wanted, fetch);
}

static const char *cached(const struct fixture *f)
{
    return f->cache.metadata->fields[0].value->data;
}

static void test_life_of_a_token(void **state)
{
    struct fixture *f = *state;
    /* The first RPC starts the fetch, the second joins it. */
    expect(f, TC_TOKEN_WAIT, true);
    expect(f, TC_TOKEN_WAIT, false);
    store(f, "one", 3600);
    expect(f, TC_TOKEN_USE, false);
    /* The cache lets a token expire 30 s early. In the minute before that it still uses the token, and one fetch
     * begins. */
    advance(f, 3600 - 30 - 61);
    expect(f, TC_TOKEN_USE, false);
    advance(f, 2);
    expect(f, TC_TOKEN_USE, true);
    expect(f, TC_TOKEN_USE, false);
    assert_string_equal(cached(f), "Bearer one");
    advance(f, 10);
    store(f, "two", 3600);
    expect(f, TC_TOKEN_USE, false);
    assert_string_equal(cached(f), "Bearer two");
    /* No RPC for a day: the next one waits. */
    advance(f, 86400);
    expect(f, TC_TOKEN_WAIT, true);
}

static void test_expires_while_fetching(void **state)
{
    struct fixture *f = *state;
    expect(f, TC_TOKEN_WAIT, true);
    store(f, "one", 32);
    expect(f, TC_TOKEN_USE, true);
    advance(f, 2);
    expect(f, TC_TOKEN_WAIT, false);
    store(f, "two", 3600);
    expect(f, TC_TOKEN_USE, false);
}

static void test_outage_hurts_only_those_without(void **state)
{
    struct fixture *f = *state;
    expect(f, TC_TOKEN_WAIT, true);
    store(f, "one", 30 + 50);
    expect(f, TC_TOKEN_USE, true);
    store_failure(f, TORC_STATUS_UNAVAILABLE, "down");
    /* In backoff, with a token that is valid. */
    for (int i = 0; i < 3; i++)
        expect(f, TC_TOKEN_USE, false);
    advance(f, 2); /* past the first delay, of 0.8 to 1.2 s */
    expect(f, TC_TOKEN_USE, true);
    store_failure(f, TORC_STATUS_UNAVAILABLE, "down again");
    advance(f, 47);
    expect(f, TC_TOKEN_USE, true);
    store_failure(f, TORC_STATUS_UNAUTHENTICATED, "down for long");
    advance(f, 1);
    /* Expired during the backoff: the RPC fails with the last fetch's status. */
    expect(f, TC_TOKEN_FAIL, false);
    assert_int_equal(f->cache.error.code, TORC_STATUS_UNAUTHENTICATED);
    assert_string_equal(tc_status_text(&f->cache.error), "down for long");
    advance(f, 4);
    expect(f, TC_TOKEN_WAIT, true);
    store(f, "two", 3600);
    expect(f, TC_TOKEN_USE, false);
    /* After a success the backoff begins again with the first delay. */
    advance(f, 3600);
    expect(f, TC_TOKEN_WAIT, true);
    store_failure(f, TORC_STATUS_UNAVAILABLE, "down");
    expect(f, TC_TOKEN_FAIL, false);
    advance(f, 2);
    expect(f, TC_TOKEN_WAIT, true);
}

static void test_backoff_grows(void **state)
{
    struct fixture *f = *state;
    uint64_t low = 800, high = 1200;
    for (int i = 0; i < 12; i++) {
        expect(f, TC_TOKEN_WAIT, true);
        store_failure(f, TORC_STATUS_UNAVAILABLE, "down");
        uint64_t ms = (f->cache.retry_ns - f->clock.mono_ns) / TC_NS_PER_MS;
        assert_in_range(ms, low, high);
        low = TC_MIN(low * 16 / 10, 96000 - 1);
        high = TC_MIN(high * 16 / 10 + 1, 144000);
        expect(f, TC_TOKEN_FAIL, false);
        advance(f, 144);
    }
}

static void test_clocks(void **state)
{
    struct fixture *f = *state;
    expect(f, TC_TOKEN_WAIT, true);
    store(f, "one", 3600);
    /* The machine slept for an hour, in which monotonic time stood still. */
    f->clock.real_ns += (int64_t)(3600 * TC_NS_PER_S);
    expect(f, TC_TOKEN_WAIT, true);
    store(f, "two", 3600);
    /* Somebody set the clock back by a day. */
    f->clock.real_ns -= (int64_t)(86400 * TC_NS_PER_S);
    expect(f, TC_TOKEN_USE, false);
    advance(f, 3600);
    expect(f, TC_TOKEN_WAIT, true);
    /* A token that comes in its last 30 s serves only the RPCs that already wait. */
    store(f, "old", 5);
    expect(f, TC_TOKEN_WAIT, true);
}

static void test_expired_when_it_comes(void **state)
{
    struct fixture *f = *state;
    struct tc_token t = {.metadata = tc_auth_metadata_token("Bearer", tc_slice_str("old")),
                         .expires_ns = f->clock.real_ns + 1};
    tc_token_refuse_expired(&t, "/run/jwt", &f->clock.clock);
    assert_non_null(t.metadata);
    expect(f, TC_TOKEN_WAIT, true);
    advance(f, 5);
    tc_token_refuse_expired(&t, "/run/jwt", &f->clock.clock);
    assert_null(t.metadata);
    assert_int_equal(t.error.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(tc_status_text(&t.error), "the token from /run/jwt cannot be used: it expired 5.000 s ago");
    tc_token_refuse_expired(&t, "/run/jwt", &f->clock.clock); /* a failure stays what it is */
    assert_int_equal(t.error.code, TORC_STATUS_UNAVAILABLE);
    /* A token that came expired starts the backoff, as any failure does. The next fetch waits for the backoff's end. */
    tc_token_cache_store(&f->cache, &t);
    expect(f, TC_TOKEN_FAIL, false);
    advance(f, 2);
    expect(f, TC_TOKEN_WAIT, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_life_of_a_token, setup, teardown),
        cmocka_unit_test_setup_teardown(test_expires_while_fetching, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outage_hurts_only_those_without, setup, teardown),
        cmocka_unit_test_setup_teardown(test_backoff_grows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clocks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_expired_when_it_comes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
