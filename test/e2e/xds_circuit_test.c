/* Circuit breakers end to end (A32): the client limits a cluster's open calls, across channels.
 *
 * Each test has a mesh with one backend (kits/mesh.h), the cluster "c", and the listeners "svc" and "other", which lead
 * to "c". All tests but not_retried open calls of the method Hang. Such a call is dropped at once, or it reaches the
 * backend and stays open until it is cancelled; `calls` counts both (struct open_calls). The test's thread makes all
 * calls. on_end runs on the thread of the mesh's runtime. */
#include <poll.h>
#include <stdatomic.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"

#include "base/clock.h"
#include "base/mem.h"

#define HANG "/torc.test.Backend/Hang"
#define DROPPED "circuit breaker drop: cluster \"c\" is at its limit of "
#define MOST 1000
#define WAIT_NS UINT64_C(60000000000)

/* Calls of Hang since the last cancel_all, and what has become of them. */
struct open_calls {
    struct kit_mesh *k;
    torc_stream *calls[MOST]; /* handles of the first n; ended calls keep theirs */
    size_t n;
    uint64_t reached; /* calls that have reached the backend */
    /* A call that ended is in one of these. */
    atomic_size_t dropped; /* by the circuit breaker */
    atomic_size_t others;  /* in another way, such as by a cancellation */
};

static void on_end(const torc_result *r, void *arg)
{
    struct open_calls *o = arg;
    bool dropped =
        torc_result_code(r) == TORC_STATUS_UNAVAILABLE && strncmp(torc_result_text(r), DROPPED, strlen(DROPPED)) == 0;
    atomic_fetch_add(dropped ? &o->dropped : &o->others, 1);
}

/* Starts n calls and waits until each has reached the backend or was dropped. Earlier requests to the backend must have
 * been taken (kit_mesh_take), and no call may have ended in another way. There are at most MOST calls in all. */
static void open_more(struct open_calls *o, torc_channel *ch, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(torc_unary_async(ch, HANG, "", 0, NULL, on_end, o, &o->calls[o->n++], NULL), 0);
    uint64_t until = tc_system_clock.monotonic_ns(NULL) + WAIT_NS;
    while ((o->reached += kit_mesh_take(o->k, 0)) + atomic_load(&o->dropped) < o->n) {
        if (tc_system_clock.monotonic_ns(NULL) > until)
            fail_msg("of %zu calls %zu reached the backend, %zu were dropped", o->n, (size_t)o->reached,
                     atomic_load(&o->dropped));
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(o->reached + atomic_load(&o->dropped), o->n);
    assert_int_equal(atomic_load(&o->others), 0);
}

/* Cancels all calls, waits until they have ended, and frees their handles. */
static void cancel_all(struct open_calls *o)
{
    for (size_t i = 0; i < o->n; i++)
        torc_stream_cancel(o->calls[i]);
    while (atomic_load(&o->dropped) + atomic_load(&o->others) < o->n)
        (void)poll(NULL, 0, 1);
    for (size_t i = 0; i < o->n; i++)
        torc_stream_free(o->calls[i]);
    o->n = 0;
    o->reached = 0;
    atomic_store(&o->dropped, 0);
    atomic_store(&o->others, 0);
}

static struct open_calls calls;

/* Puts the cluster "c" with one threshold of these fields ("max_requests: 2"). */
static void put_limit(const char *limit)
{
    char *more = tc_asprintf("lb_policy: ROUND_ROBIN\n  circuit_breakers: {thresholds: [{%s}]}", limit);
    kit_mesh_put_cluster(calls.k, "c", more);
    tc_free(more);
}

static int open_world(void **state)
{
    (void)state;
    calls.k = kit_mesh_new(1);
    kit_mesh_put_endpoints(calls.k, "c", "0/a: 0", NULL);
    kit_mesh_put_listener(calls.k, "svc", "c", NULL);
    kit_mesh_put_listener(calls.k, "other", "c", NULL);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    kit_mesh_free(calls.k);
    return 0;
}

/* Waits until a call succeeds, at most WAIT_NS. */
static void wait_ok(torc_channel *ch)
{
    uint64_t until = tc_system_clock.monotonic_ns(NULL) + WAIT_NS;
    for (;;) {
        torc_result *r = kit_mesh_call(ch, NULL, true, 5000);
        int code = torc_result_code(r);
        torc_result_free(r);
        if (code == TORC_STATUS_OK)
            return;
        assert_true(tc_system_clock.monotonic_ns(NULL) < until);
    }
}

static void shared_and_lowered(void **state)
{
    TC_CASE(CB02);
    TC_CASE(CB03);
    (void)state;
    put_limit("max_requests: 2");
    torc_channel *a = kit_mesh_channel(calls.k, "svc", NULL), *b = kit_mesh_channel(calls.k, "other", NULL);
    wait_ok(a);
    wait_ok(b);
    kit_mesh_take(calls.k, 0);
    open_more(&calls, a, 1);
    wait_ok(b); /* the limit leaves room for one more call */
    kit_mesh_take(calls.k, 0);
    open_more(&calls, b, 1);
    kit_mesh_wait_failure(a, TORC_STATUS_UNAVAILABLE, DROPPED);
    kit_mesh_wait_failure(b, TORC_STATUS_UNAVAILABLE, DROPPED);
    /* The limit is raised, a third call begins, and the limit is lowered below the open calls: these go on; new calls
     * start only below the limit. */
    put_limit("max_requests: 4");
    wait_ok(a);
    kit_mesh_take(calls.k, 0);
    open_more(&calls, a, 1);
    put_limit("max_requests: 2");
    kit_mesh_wait_failure(a, TORC_STATUS_UNAVAILABLE, DROPPED);
    assert_int_equal(atomic_load(&calls.others), 0);
    torc_stream_cancel(calls.calls[2]);
    while (atomic_load(&calls.others) == 0)
        (void)poll(NULL, 0, 1);
    kit_mesh_wait_failure(a, TORC_STATUS_UNAVAILABLE, DROPPED); /* two are open */
    torc_stream_cancel(calls.calls[1]);
    wait_ok(a);
    cancel_all(&calls);
    torc_channel_free(a);
    torc_channel_free(b);
}

/* Opens `tried` calls. Asserts that `through` of them reach the backend and the others are dropped. */
static void expect(torc_channel *ch, size_t tried, size_t through)
{
    uint64_t reached = calls.reached;
    size_t dropped = atomic_load(&calls.dropped);
    kit_mesh_take(calls.k, 0);
    open_more(&calls, ch, tried);
    assert_int_equal(calls.reached - reached, through);
    assert_int_equal(atomic_load(&calls.dropped) - dropped, tried - through);
}

static void raised_under_load(void **state)
{
    TC_CASE(CB05);
    (void)state;
    put_limit("max_requests: 500");
    torc_channel *ch = kit_mesh_channel(calls.k, "svc", NULL);
    wait_ok(ch);
    expect(ch, 520, 500);
    put_limit("max_requests: 800");
    wait_ok(ch);
    expect(ch, 400, 300);
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, DROPPED);
    cancel_all(&calls);
    torc_channel_free(ch);
}

static void least_and_most(void **state)
{
    TC_CASE(CB04);
    (void)state;
    put_limit("max_requests: 0");
    torc_channel *ch = kit_mesh_channel(calls.k, "svc", NULL);
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, DROPPED);
    expect(ch, 20, 0);
    put_limit("max_requests: 4294967295");
    wait_ok(ch);
    expect(ch, 800, 800);
    put_limit("max_requests: 0");
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, DROPPED);
    /* A threshold of another priority does not count: the limit is the default of 1,024. */
    put_limit("priority: HIGH, max_requests: 0");
    wait_ok(ch);
    expect(ch, 100, 100);
    cancel_all(&calls);
    torc_channel_free(ch);
}

/* A dropped call is not retried, does not wait even with wait_for_ready, and reaches no backend. */
static void not_retried(void **state)
{
    TC_CASE(CB06);
    (void)state;
    put_limit("max_requests: 0");
    kit_mesh_put_routes(
        calls.k, "retried",
        "{match: {prefix: \"\"}, route: {cluster: c, retry_policy: {retry_on: unavailable, num_retries: 3, "
        "retry_back_off: {base_interval: 0.001s}}}}");
    torc_channel *ch = kit_mesh_channel(calls.k, "retried", NULL);
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, DROPPED);
    kit_mesh_take(calls.k, 0);
    for (int wait_for_ready = 0; wait_for_ready < 2; wait_for_ready++) {
        torc_result *r = kit_mesh_call(ch, NULL, wait_for_ready, 60000);
        assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
        assert_string_equal(torc_result_text(r), DROPPED "0 concurrent requests (node ID:test-node)");
        assert_int_equal(torc_result_attempts(r), 0);
        torc_result_free(r);
    }
    assert_int_equal(kit_mesh_take(calls.k, 0), 0);
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
