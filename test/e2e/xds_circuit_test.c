/* Circuit breakers end to end (A32): calls that stay open are counted by the client, across channels. */
#include <poll.h>
#include <stdatomic.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/mesh_kit.h"

#include "base/clock.h"
#include "base/mem.h"

#define HANG "/torc.test.Backend/Hang"
#define DROPPED "circuit breaker drop (node ID:test-node)"
#define MOST 1000
#define WAIT_NS UINT64_C(10000000000)

/* Calls that the backend does not answer. */
struct open_calls {
    struct mesh_kit *k;
    torc_call *calls[MOST];
    size_t n;
    uint64_t reached;      /* the backend */
    atomic_size_t dropped; /* ended at once */
    atomic_size_t ended;
};

static void on_end(const struct torc_result *r, void *arg)
{
    struct open_calls *o = arg;
    if (r->code == TORC_STATUS_UNAVAILABLE && strcmp(r->message, DROPPED) == 0)
        atomic_fetch_add(&o->dropped, 1);
    atomic_fetch_add(&o->ended, 1);
}

/* Starts n calls and waits until each is at the backend or was dropped. */
static void open_more(struct open_calls *o, torc_channel *ch, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(torc_call_unary_async(ch, HANG, "", 0, NULL, on_end, o, &o->calls[o->n++]), 0);
    uint64_t until = tc_system_clock.monotonic_ns(NULL) + WAIT_NS;
    while ((o->reached += mesh_kit_take(o->k, 0)) + atomic_load(&o->dropped) < o->n) {
        if (tc_system_clock.monotonic_ns(NULL) > until)
            fail_msg("of %zu calls %zu reached the backend, %zu were dropped", o->n, (size_t)o->reached,
                     atomic_load(&o->dropped));
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(o->reached + atomic_load(&o->dropped), o->n);
    assert_int_equal(atomic_load(&o->ended), atomic_load(&o->dropped));
}

static void cancel_all(struct open_calls *o)
{
    for (size_t i = 0; i < o->n; i++)
        torc_call_cancel(o->calls[i]);
    while (atomic_load(&o->ended) < o->n)
        (void)poll(NULL, 0, 1);
    for (size_t i = 0; i < o->n; i++)
        torc_call_free(o->calls[i]);
    o->n = 0;
    o->reached = 0;
    atomic_store(&o->dropped, 0);
    atomic_store(&o->ended, 0);
}

static struct open_calls calls;

static void put_limit(const char *limit)
{
    char *more = tc_asprintf("lb_policy: ROUND_ROBIN%s%s%s", limit ? "\n  circuit_breakers: {thresholds: [{" : "",
                             limit ? limit : "", limit ? "}]}" : "");
    mesh_kit_put_cluster(calls.k, "c", more);
    tc_free(more);
}

static int open_world(void **state)
{
    (void)state;
    calls.k = mesh_kit_new(1);
    mesh_kit_put_endpoints(calls.k, "c", "0/a: 0", NULL);
    mesh_kit_put_listener(calls.k, "svc", "c", NULL);
    mesh_kit_put_listener(calls.k, "other", "c", NULL);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    mesh_kit_free(calls.k);
    return 0;
}

/* Until a call gets through. */
static void wait_ok(torc_channel *ch)
{
    uint64_t until = tc_system_clock.monotonic_ns(NULL) + WAIT_NS;
    for (;;) {
        struct torc_result r = mesh_kit_call(ch, NULL, true, 5000);
        int code = r.code;
        torc_result_fini(&r);
        if (code == TORC_STATUS_OK)
            return;
        assert_true(tc_system_clock.monotonic_ns(NULL) < until);
    }
}

static void shared_and_lowered(void **state)
{
    (void)state;
    put_limit("max_requests: 2");
    torc_channel *a = mesh_kit_channel(calls.k, "svc", NULL), *b = mesh_kit_channel(calls.k, "other", NULL);
    wait_ok(a);
    wait_ok(b);
    mesh_kit_take(calls.k, 0);
    open_more(&calls, a, 1);
    wait_ok(b); /* one is left */
    mesh_kit_take(calls.k, 0);
    open_more(&calls, b, 1);
    mesh_kit_wait_failure(a, TORC_STATUS_UNAVAILABLE, DROPPED);
    mesh_kit_wait_failure(b, TORC_STATUS_UNAVAILABLE, DROPPED);
    TC_CASE(CB02);
    /* Raised, filled up, and lowered below what is open: nothing of that ends, nothing new begins until it is under. */
    put_limit("max_requests: 4");
    wait_ok(a);
    mesh_kit_take(calls.k, 0);
    open_more(&calls, a, 1);
    put_limit("max_requests: 2");
    mesh_kit_wait_failure(a, TORC_STATUS_UNAVAILABLE, DROPPED);
    assert_int_equal(atomic_load(&calls.ended), 0);
    torc_call_cancel(calls.calls[2]);
    while (atomic_load(&calls.ended) == 0)
        (void)poll(NULL, 0, 1);
    mesh_kit_wait_failure(a, TORC_STATUS_UNAVAILABLE, DROPPED); /* two are open */
    torc_call_cancel(calls.calls[1]);
    wait_ok(a);
    TC_CASE(CB03);
    cancel_all(&calls);
    torc_channel_free(a);
    torc_channel_free(b);
}

/* Opens calls, of which so many get through, and the others are dropped. */
static void expect(torc_channel *ch, size_t tried, size_t through)
{
    uint64_t reached = calls.reached;
    size_t dropped = atomic_load(&calls.dropped);
    mesh_kit_take(calls.k, 0);
    open_more(&calls, ch, tried);
    assert_int_equal(calls.reached - reached, through);
    assert_int_equal(atomic_load(&calls.dropped) - dropped, tried - through);
}

static void raised_under_load(void **state)
{
    (void)state;
    put_limit("max_requests: 500");
    torc_channel *ch = mesh_kit_channel(calls.k, "svc", NULL);
    wait_ok(ch);
    expect(ch, 520, 500);
    put_limit("max_requests: 800");
    wait_ok(ch);
    expect(ch, 400, 300);
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, DROPPED);
    TC_CASE(CB05);
    cancel_all(&calls);
    torc_channel_free(ch);
}

static void least_and_most(void **state)
{
    (void)state;
    put_limit("max_requests: 0");
    torc_channel *ch = mesh_kit_channel(calls.k, "svc", NULL);
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, DROPPED);
    expect(ch, 20, 0);
    put_limit("max_requests: 4294967295");
    wait_ok(ch);
    expect(ch, 800, 800);
    put_limit("max_requests: 0");
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, DROPPED);
    /* Unset is 1,024; the thresholds of another priority do not count. */
    put_limit("priority: HIGH, max_requests: 0");
    wait_ok(ch);
    expect(ch, 100, 100);
    TC_CASE(CB04);
    cancel_all(&calls);
    torc_channel_free(ch);
}

/* A drop is final: it is neither retried nor waited out, and reaches no backend. */
static void not_retried(void **state)
{
    (void)state;
    put_limit("max_requests: 0");
    mesh_kit_put_routes(
        calls.k, "retried",
        "{match: {prefix: \"\"}, route: {cluster: c, retry_policy: {retry_on: unavailable, num_retries: 3, "
        "retry_back_off: {base_interval: 0.001s}}}}");
    torc_channel *ch = mesh_kit_channel(calls.k, "retried", NULL);
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, DROPPED);
    mesh_kit_take(calls.k, 0);
    for (int wait_for_ready = 0; wait_for_ready < 2; wait_for_ready++) {
        struct torc_result r = mesh_kit_call(ch, NULL, wait_for_ready, 10000);
        assert_int_equal(r.code, TORC_STATUS_UNAVAILABLE);
        assert_string_equal(r.message, DROPPED);
        assert_int_equal(r.attempts, 0);
        torc_result_fini(&r);
    }
    assert_int_equal(mesh_kit_take(calls.k, 0), 0);
    TC_CASE(CB06);
    torc_channel_free(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shared_and_lowered, open_world, close_world),
        cmocka_unit_test_setup_teardown(raised_under_load, open_world, close_world),
        cmocka_unit_test_setup_teardown(least_and_most, open_world, close_world),
        cmocka_unit_test_setup_teardown(not_retried, open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
