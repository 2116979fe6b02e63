/* A run under load with drops by category and by the circuit breaker, failures, two localities, and an LRS server that
 * crashes and comes back: the sum of all reports equals what backends and callers counted.
 *
 * One mesh (kits/mesh.h) and one channel. CALLERS threads make calls until `stop`; the test's thread holds HELD calls
 * open over the crash and makes calls during the outage. Each thread has counts of its own, which the test sums up when
 * the callers have ended. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/lrs.h"

#include "base/mem.h"

#define CALLERS 3
#define HELD 2
#define LOCALITIES "0/a=1: 0; 0/b=2: 1"
/* Long enough that no report is in flight when the server crashes, even on a machine that stalls. LRS has no
 * acknowledgement, so a report in flight would be lost. */
#define INTERVAL_MS 3000
#define SOON_MS 200 /* the interval after the crash */

struct caller {
    torc_channel *ch;  /* shared by all callers */
    atomic_bool *stop; /* set by the test's thread */
    pthread_t thread;
    struct kit_lrs_seen seen; /* the thread's alone until it has ended */
};

static void *call_on(void *arg)
{
    struct caller *c = arg;
    while (!atomic_load(c->stop))
        kit_lrs_calls(c->ch, 8, &c->seen);
    return NULL;
}

/* Returns how many RPCs of the cluster have ended or were dropped, as the reports say. */
static uint64_t told_all(const struct kit_lrs_cluster *c)
{
    return c->a.success + c->a.error + c->b.success + c->b.error + c->dropped;
}

/* Asserts that the reports have exactly what the callers have seen, and the calls that the backends of a and b
 * received. */
static void assert_balance(const struct kit_lrs_cluster *c, const struct kit_lrs_seen *seen, uint64_t at_a,
                           uint64_t at_b)
{
    assert_int_equal(c->a.issued, at_a);
    assert_int_equal(c->b.issued, at_b);
    assert_int_equal(c->a.issued, c->a.success + c->a.error);
    assert_int_equal(c->b.issued, c->b.success + c->b.error);
    assert_int_equal(c->a.in_progress + c->b.in_progress, 0);
    assert_int_equal(c->a.success + c->b.success, seen->ok);
    assert_int_equal(c->a.error + c->b.error, seen->failed);
    assert_int_equal(c->dropped_lb, seen->dropped);
    assert_int_equal(c->dropped, seen->dropped + seen->broken);
    assert_int_equal(c->dropped_other + c->none.issued, 0);
}

static void totals_are_exact(void **state)
{
    TC_CASE(LS01);
    TC_CASE(LS04);
    TC_CASE(LS06);
    TC_CASE(LS07);
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    struct kit_lrs *lrs = kit_lrs_new(k, INTERVAL_MS);
    atomic_bool stop = false;
    struct caller callers[CALLERS] = {0};
    torc_stream *held[HELD];
    struct kit_lrs_seen seen = {0};
    kit_mesh_put_listener(k, "svc", "c", NULL);
    kit_mesh_put_endpoints(k, "c", LOCALITIES, NULL);
    kit_mesh_put_cluster(k, "c",
                         "lb_policy: ROUND_ROBIN\n"
                         "  lrs_server: {self: {}}\n"
                         "  circuit_breakers: {thresholds: [{max_requests: 4}]}");
    uint64_t began_ns = kit_lrs_now_ns();
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    /* Calls that stay open over the crash. The circuit breaker leaves room for two more. */
    for (size_t i = 0; i < HELD; i++)
        held[i] = kit_lrs_hang(k, ch);
    kit_mesh_put_endpoints(k, "c", LOCALITIES,
                           "policy: {drop_overloads: [{category: lb, drop_percentage: {numerator: 10}}]}");
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.ch = ch, .stop = &stop};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_on, &callers[i]), 0);
    }
    KIT_LRS_WAIT(lrs, kit_lrs_told_cluster(t, "c")->reports >= 1);
    kit_lrs_crash_after_report(lrs);
    struct kit_lrs_cluster before = *kit_lrs_told_cluster(kit_lrs_look(lrs), "c");
    uint64_t away_ns = kit_lrs_now_ns();
    uint64_t handled = kit_mesh_handled(k, 0) + kit_mesh_handled(k, 1);
    while (kit_mesh_handled(k, 0) + kit_mesh_handled(k, 1) < handled + 200 ||
           kit_lrs_now_ns() < away_ns + INTERVAL_MS * UINT64_C(1100000)) /* longer than an interval */
        kit_lrs_calls(ch, 8, &seen);
    assert_int_equal(told_all(kit_lrs_told_cluster(kit_lrs_look(lrs), "c")), told_all(&before));
    away_ns = kit_lrs_now_ns() - away_ns;
    kit_lrs_ask(lrs, SOON_MS, NULL);
    kit_mesh_start_control_plane(k);
    KIT_LRS_WAIT(lrs, told_all(kit_lrs_told_cluster(t, "c")) > told_all(&before));
    for (size_t i = 0; i < HELD; i++)
        kit_lrs_hang_end(held[i]);
    atomic_store(&stop, true);
    for (size_t i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        seen.ok += callers[i].seen.ok;
        seen.failed += callers[i].seen.failed;
        seen.dropped += callers[i].seen.dropped;
        seen.broken += callers[i].seen.broken;
    }
    seen.failed += HELD; /* they were cancelled */
    uint64_t at_a = kit_mesh_take(k, 0), at_b = kit_mesh_take(k, 1);
    KIT_LRS_WAIT(lrs, told_all(kit_lrs_told_cluster(t, "c")) >= at_a + at_b + seen.dropped + seen.broken);
    const struct kit_lrs_told *t = kit_lrs_look(lrs);
    const struct kit_lrs_cluster *c = kit_lrs_told_cluster(t, "c");
    printf("backends: %llu at a, %llu at b; callers: %llu ok, %llu failed, %llu dropped, %llu broken; "
           "%llu reports on %zu streams\n",
           (unsigned long long)at_a, (unsigned long long)at_b, (unsigned long long)seen.ok,
           (unsigned long long)seen.failed, (unsigned long long)seen.dropped, (unsigned long long)seen.broken,
           (unsigned long long)t->reports, t->streams_so_far);
    assert_true(at_a && at_b && seen.ok && seen.dropped && seen.broken && seen.failed > HELD);
    assert_balance(c, &seen, at_a, at_b);
    assert_int_equal(t->streams_so_far, 2);
    assert_true(c->widest_ns >= away_ns); /* intervals continue over the crash without overlap */
    assert_true(c->interval_ns <= kit_lrs_now_ns() - began_ns);
    torc_channel_free(ch);
    kit_lrs_free(lrs);
    kit_mesh_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(totals_are_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
