/* Several runtimes of a process, on real sockets (kits/mesh.h).
 *
 * - Runtimes with one xDS domain share an ADS stream and an LRS stream. Updates reach all of them, also under load, and
 *   they go on when one of them ends.
 * - All runtimes of the process share a circuit breaker's count, with and without a domain (A32).
 * - A runtime that its application does not drive does not hold up the others of its domain.
 * - In a child of fork the parent's domain and runtimes answer TORC_EFORK; a new domain works.
 *
 * A world has a mesh and n runtimes, each with its own thread and one channel. The ring_hash cluster "c" places an RPC
 * by its header x-user. Some tests make further runtimes, and test_bad_bootstrap has no world. A runtime of mode
 * TORC_RUNTIME_CALLER runs only inside calls on its channel. The tests call from one thread, those with racers also
 * from one thread for each channel of the world. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/kits/mesh.h"
#include "support/sanitizer.h"

#include "base/clock.h"

#include "pb/envoy/service/status/v3/csds.pb-c.h"

enum { MAX_RUNTIMES = 4 };

#define WAIT_NS (60 * TC_NS_PER_S)

/* Owns what it points to; close_world frees it. */
struct world {
    struct kit_mesh *k;
    size_t n;
    torc_runtime *rt[MAX_RUNTIMES]; /* NULL: `end` has freed it */
    torc_channel *ch[MAX_RUNTIMES]; /* to xds:///svc, each on its runtime */
};

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

/* The caller frees the channel. */
static torc_channel *channel_on(struct kit_mesh *k, torc_runtime *rt, const char *target)
{
    torc_error *error = NULL;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = kit_mesh_bootstrap(k)};
    o.xds_resource_timeout_ms = 60000; /* on a slow machine no resource counts as absent */
    o.backoff_initial_ms = 50;
    o.backoff_max_ms = 200;
    torc_channel *ch = torc_channel_new(rt, target, &o, &error);
    if (!ch)
        fail_msg("%s", torc_error_text(error));
    return ch;
}

/* Makes a runtime in the domain (NULL: in none). The caller frees the runtime. */
static torc_runtime *runtime_in(torc_xds_domain *domain, enum torc_runtime_mode mode)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = mode, .xds_domain = domain};
    torc_runtime *rt = torc_runtime_new(&o, NULL);
    assert_non_null(rt);
    return rt;
}

/* Makes a mesh with that many backends, and n runtimes (MAX_RUNTIMES at most) in the domain (NULL: in none), each with
 * a channel to xds:///svc. The cluster's endpoint is backend 0. cluster: the `more` of kit_mesh_put_cluster. */
static struct world open_world_in(torc_xds_domain *domain, size_t n, size_t backends, const char *cluster)
{
    struct world w = {.k = kit_mesh_new(backends), .n = n};
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0", NULL);
    kit_mesh_put_cluster(w.k, "c", cluster);
    kit_mesh_put_listener(w.k, "svc", "c", "[{header: {header_name: x-user}}]");
    for (size_t i = 0; i < n; i++) {
        w.rt[i] = runtime_in(domain, TORC_RUNTIME_THREAD);
        w.ch[i] = channel_on(w.k, w.rt[i], "xds:///svc");
    }
    return w;
}

/* Makes a world whose runtimes have one domain. Then releases the domain: the runtimes keep it. */
static struct world open_world(size_t n, size_t backends, const char *cluster)
{
    torc_xds_domain *domain = torc_xds_domain_new(NULL);
    assert_non_null(domain);
    struct world w = open_world_in(domain, n, backends, cluster);
    assert_int_equal(torc_xds_domain_free(domain), 0);
    return w;
}

/* Frees runtime i and its channel. */
static void end(struct world *w, size_t i)
{
    torc_channel_free(w->ch[i]);
    assert_int_equal(torc_runtime_free(w->rt[i]), 0);
    w->ch[i] = NULL;
    w->rt[i] = NULL;
}

static void close_world(struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->rt[i])
            end(w, i);
    kit_mesh_free(w->k);
}

static void read_streams(struct tc_control_plane *cp, void *arg)
{
    *(size_t *)arg = tc_control_plane_streams(cp);
}

/* Returns the number of ADS streams at the control plane. */
static size_t streams(struct world *w)
{
    size_t n = 0;
    kit_mesh_do(w->k, read_streams, &n);
    return n;
}

/* One ADS stream serves all runtimes; an update reaches all. The runtimes end one by one, the first one first: the
 * others go on, and the stream ends with the last. */
static void share_and_end(size_t n)
{
    struct world w = open_world(n, 2, NULL);
    for (size_t i = 0; i < n; i++)
        kit_mesh_calls(w.ch[i], "x-user: a", 10);
    assert_int_equal(streams(&w), 1);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 1", NULL);
    for (size_t i = 0; i < n; i++)
        kit_mesh_wait_backend(w.k, w.ch[i], "x-user: a", 1);
    for (size_t gone = 0; gone + 1 < n; gone++) {
        end(&w, gone);
        size_t next = gone % 2 == 0 ? 0 : 1;
        kit_mesh_put_endpoints(w.k, "c", next ? "0/a: 1" : "0/a: 0", NULL);
        for (size_t i = gone + 1; i < n; i++)
            kit_mesh_wait_backend(w.k, w.ch[i], "x-user: a", next);
        assert_int_equal(streams(&w), 1);
    }
    end(&w, n - 1);
    uint64_t until = now_ns() + WAIT_NS;
    while (streams(&w) && now_ns() < until)
        sched_yield();
    assert_int_equal(streams(&w), 0);
    close_world(&w);
}

static void test_two(void **state)
{
    (void)state;
    share_and_end(2);
}

static void test_four(void **state)
{
    (void)state;
    share_and_end(4);
}

/* Any runtime shows the resources of the domain, once. */
static void test_dump(void **state)
{
    (void)state;
    struct world w = open_world(2, 1, NULL);
    for (size_t i = 0; i < w.n; i++) {
        void *bytes = NULL;
        size_t size = 0;
        kit_mesh_calls(w.ch[i], "x-user: a", 1);
        assert_int_equal(torc_csds_dump(w.rt[i], true, &bytes, &size), 0);
        Envoy__Service__Status__V3__ClientStatusResponse *r =
            envoy__service__status__v3__client_status_response__unpack(NULL, size, bytes);
        assert_non_null(r);
        assert_int_equal(r->n_config, 1);
        assert_int_equal(r->config[0]->n_generic_xds_configs, 3);
        envoy__service__status__v3__client_status_response__free_unpacked(r, NULL);
        torc_free(bytes);
    }
    close_world(&w);
}

/* --- circuit breaking --- */

/* Makes an RPC that stays open until let_go, which frees it. */
static torc_stream *hold(torc_channel *ch)
{
    torc_error *error = NULL;
    const torc_message *m = NULL;
    struct torc_call_options o = {TORC_SIZE(torc_call_options)};
    torc_metadata *md = torc_metadata_new();
    assert_int_equal(torc_metadata_add_string(md, "x-user", "a"), 0);
    o.metadata = md;
    torc_stream *call = torc_stream_open(ch, "/test.Service/Stream", &o, &error);
    torc_metadata_free(md);
    assert_non_null(call);
    assert_int_equal(torc_stream_send(call, "x", 1, 0, -1), 0);
    assert_int_equal(torc_stream_receive(call, -1, &m), 1);
    return call;
}

static void let_go(torc_stream *call)
{
    torc_result *r = torc_stream_finish(call);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    torc_stream_free(call);
}

static void expect_drop(torc_channel *ch)
{
    torc_result *r = kit_mesh_call(ch, "x-user: a", false, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(torc_result_text(r), "circuit breaker drop"));
    torc_result_free(r);
}

/* A32: RPCs are counted over the whole process, whatever else runtimes share. The limit of the world's cluster is three
 * RPCs. Closes the world. */
static void break_circuits(struct world w)
{
    torc_stream *calls[] = {hold(w.ch[0]), hold(w.ch[0]), hold(w.ch[1])};
    expect_drop(w.ch[0]);
    expect_drop(w.ch[1]);
    let_go(calls[0]);
    kit_mesh_calls(w.ch[1], "x-user: a", 5);
    calls[0] = hold(w.ch[1]);
    expect_drop(w.ch[0]);
    for (size_t i = 0; i < 3; i++)
        let_go(calls[i]);
    kit_mesh_calls(w.ch[0], "x-user: a", 3);
    close_world(&w);
}

#define THREE "lb_policy: RING_HASH\n  circuit_breakers: {thresholds: [{max_requests: 3}]}"

static void test_circuit_breaking(void **state)
{
    (void)state;
    break_circuits(open_world(2, 1, THREE));
}

static void test_circuit_breaking_without_a_domain(void **state)
{
    (void)state;
    break_circuits(open_world_in(NULL, 2, 1, THREE));
}

enum { RACERS = 4, RACES = 300, LIMIT = 2 };

/* A thread that calls. `passed` counts its RPCs that succeeded; `dropped` those that the circuit breaker dropped
 * (race), or all that failed (call_on). The counts are the thread's own until it is joined. */
struct racer {
    torc_channel *ch;
    unsigned passed, dropped;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    for (unsigned i = 0; i < RACES; i++) {
        torc_result *result = kit_mesh_call(r->ch, "x-user: a", false, 60000);
        if (torc_result_code(result) == TORC_STATUS_OK)
            r->passed++;
        else if (strstr(torc_result_text(result), "circuit breaker drop"))
            r->dropped++;
        torc_result_free(result);
    }
    return NULL;
}

/* The count stays right when runtimes race for it: afterwards the whole limit is free, and no more than that. */
static void test_circuit_breaking_race(void **state)
{
    (void)state;
    struct world w = open_world(4, 1, "lb_policy: RING_HASH\n  circuit_breakers: {thresholds: [{max_requests: 2}]}");
    struct racer racers[RACERS] = {0};
    pthread_t threads[RACERS];
    for (size_t i = 0; i < RACERS; i++)
        kit_mesh_calls(w.ch[i], "x-user: a", 1);
    for (size_t i = 0; i < RACERS; i++) {
        racers[i].ch = w.ch[i];
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    unsigned passed = 0, dropped = 0;
    for (size_t i = 0; i < RACERS; i++) {
        pthread_join(threads[i], NULL);
        passed += racers[i].passed;
        dropped += racers[i].dropped;
    }
    assert_int_equal(passed + dropped, RACERS * RACES);
    assert_true(passed > 0);
    torc_stream *calls[LIMIT];
    for (size_t i = 0; i < LIMIT; i++)
        calls[i] = hold(w.ch[i]);
    for (size_t i = 0; i < w.n; i++)
        expect_drop(w.ch[i]);
    for (size_t i = 0; i < LIMIT; i++)
        let_go(calls[i]);
    close_world(&w);
}

/* --- updates under load --- */

enum { UPDATES = 20 };

static atomic_bool updated; /* set after the last update, to end the threads of call_on */

static void *call_on(void *arg)
{
    struct racer *r = arg;
    do { /* at least once, however late the thread begins */
        torc_result *result = kit_mesh_call(r->ch, "x-user: a", true, 60000);
        r->passed += torc_result_code(result) == TORC_STATUS_OK;
        r->dropped += torc_result_code(result) != TORC_STATUS_OK;
        torc_result_free(result);
    } while (!atomic_load(&updated));
    return NULL;
}

/* Endpoints, and rings with them, change while all runtimes use them. No RPC fails. */
static void test_updates_under_load(void **state)
{
    (void)state;
    struct world w = open_world(4, 3, NULL);
    struct racer racers[RACERS] = {0};
    pthread_t threads[RACERS];
    atomic_store(&updated, false);
    for (size_t i = 0; i < RACERS; i++) {
        racers[i].ch = w.ch[i];
        assert_int_equal(pthread_create(&threads[i], NULL, call_on, &racers[i]), 0);
    }
    torc_channel *probe = channel_on(w.k, w.rt[0], "xds:///svc");
    for (size_t i = 0; i < UPDATES; i++) {
        kit_mesh_put_endpoints(w.k, "c", i % 2 ? "0/a: 0, 2*2; 0/b: 1" : "0/a: 1", NULL);
        if (i % 2 == 0)
            kit_mesh_wait_backend(w.k, probe, "x-user: a", 1);
    }
    atomic_store(&updated, true);
    for (size_t i = 0; i < RACERS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(racers[i].passed > 0);
        assert_int_equal(racers[i].dropped, 0);
    }
    torc_channel_free(probe);
    close_world(&w);
}

/* --- load reports --- */

/* The sums of all load reports so far; `streams` is the highest number of a stream. on_report adds on the servers'
 * thread. `mutex` protects the other members. */
struct tally {
    pthread_mutex_t mutex;
    uint64_t succeeded, issued, streams;
};

static void on_report(void *arg, const struct tc_lrs_report *report)
{
    struct tally *t = arg;
    pthread_mutex_lock(&t->mutex);
    t->streams = TC_MAX(t->streams, report->stream);
    for (size_t i = 0; i < report->request->n_cluster_stats; i++) {
        const Envoy__Config__Endpoint__V3__ClusterStats *c = report->request->cluster_stats[i];
        for (size_t j = 0; j < c->n_upstream_locality_stats; j++) {
            t->succeeded += c->upstream_locality_stats[j]->total_successful_requests;
            t->issued += c->upstream_locality_stats[j]->total_issued_requests;
        }
    }
    pthread_mutex_unlock(&t->mutex);
}

/* Has the LRS server ask for a report every 100 ms, and pass the reports to the tally. `arg` has the LRS server and the
 * tally. On the servers' thread. */
static void observe(struct tc_control_plane *cp, void *arg)
{
    (void)cp;
    struct {
        struct tc_lrs *lrs;
        struct tally *tally;
    } *o = arg;
    tc_lrs_set(o->lrs, &(struct tc_lrs_config){.interval_ms = 100, .send_all_clusters = true});
    tc_lrs_observe(o->lrs, on_report, o->tally);
}

/* Waits until n successful RPCs were reported, at most 60 s. Does not fail if they were not. */
static void wait_tally(struct tally *t, uint64_t n)
{
    uint64_t until = now_ns() + WAIT_NS;
    bool there = false;
    while (!there && now_ns() < until) {
        pthread_mutex_lock(&t->mutex);
        there = t->succeeded >= n;
        pthread_mutex_unlock(&t->mutex);
        sched_yield();
    }
}

static void test_load_reports(void **state)
{
    (void)state;
    struct tally t = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct world w = open_world(2, 1, "lb_policy: RING_HASH\n  lrs_server: {self: {}}");
    struct {
        struct tc_lrs *lrs;
        struct tally *tally;
    } o = {kit_mesh_lrs(w.k), &t};
    kit_mesh_do(w.k, observe, &o);
    kit_mesh_calls(w.ch[0], "x-user: a", 30);
    kit_mesh_calls(w.ch[1], "x-user: a", 12);
    wait_tally(&t, 42);
    /* A runtime's last counts are reported although it ends. */
    kit_mesh_calls(w.ch[1], "x-user: a", 3);
    end(&w, 1);
    kit_mesh_calls(w.ch[0], "x-user: a", 5);
    wait_tally(&t, 50);
    pthread_mutex_lock(&t.mutex);
    assert_int_equal(t.succeeded, 50);
    assert_int_equal(t.issued, 50);
    assert_int_equal(t.streams, 1);
    pthread_mutex_unlock(&t.mutex);
    close_world(&w);
}

/* --- runtimes that are not driven, fork, a bad bootstrap --- */

/* A runtime whose application does not drive it does not block the others. */
static void test_idle_caller(void **state)
{
    (void)state;
    struct world w = open_world(1, 2, NULL);
    torc_xds_domain *domain = torc_xds_domain_new(NULL);
    torc_runtime *busy = runtime_in(domain, TORC_RUNTIME_CALLER), *other = runtime_in(domain, TORC_RUNTIME_CALLER);
    torc_channel *slow = channel_on(w.k, busy, "xds:///svc"), *fast = channel_on(w.k, other, "xds:///svc");
    kit_mesh_calls(slow, "x-user: a", 1);
    kit_mesh_calls(fast, "x-user: a", 1);
    for (size_t i = 0; i < 6; i++) {
        kit_mesh_put_endpoints(w.k, "c", i % 2 ? "0/a: 0" : "0/a: 1", NULL);
        kit_mesh_wait_backend(w.k, fast, "x-user: a", i % 2 ? 0 : 1);
    }
    kit_mesh_put_endpoints(w.k, "c", "0/a: 1", NULL);
    kit_mesh_wait_backend(w.k, slow, "x-user: a", 1);
    torc_channel_free(slow);
    torc_channel_free(fast);
    assert_int_equal(torc_runtime_free(busy), 0);
    assert_int_equal(torc_xds_domain_free(domain), 0);
    assert_int_equal(torc_runtime_free(other), 0);
    close_world(&w);
}

/* The parent's domain and runtime answer TORC_EFORK in the child, and go on in the parent. The child's exit status has
 * a bit for each check that failed. */
static void test_fork(void **state)
{
    (void)state;
    struct world w = open_world(1, 1, NULL);
    torc_xds_domain *domain = torc_xds_domain_new(NULL);
    torc_runtime *rt = runtime_in(domain, TORC_RUNTIME_THREAD);
    torc_channel *ch = channel_on(w.k, rt, "xds:///svc");
    kit_mesh_calls(ch, "x-user: a", 1);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER,
                                         .xds_domain = domain};
        torc_error *error = NULL;
        int bad = torc_runtime_new(&o, &error) != NULL || torc_error_code(error) != TORC_EFORK;
        torc_error_free(error);
        bad |= (torc_xds_domain_free(domain) != TORC_EFORK) << 1;
        bad |= (torc_runtime_free(rt) != TORC_EFORK) << 2;
#if SANITIZER_THREAD
        _exit(bad); /* under ThreadSanitizer a forked child must not start threads */
#endif
        /* A new domain works in the child. */
        o.xds_domain = torc_xds_domain_new(NULL);
        torc_runtime *own = torc_runtime_new(&o, NULL);
        torc_channel *other = channel_on(w.k, own, "xds:///svc");
        torc_result *r = kit_mesh_call(other, "x-user: a", true, 60000);
        bad |= (torc_result_code(r) != TORC_STATUS_OK) << 3;
        torc_result_free(r);
        torc_channel_free(other);
        bad |= (torc_xds_domain_free(o.xds_domain) != 0) << 4;
        bad |= (torc_runtime_free(own) != 0) << 5;
        _exit(bad);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    kit_mesh_calls(ch, "x-user: a", 3);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
    assert_int_equal(torc_xds_domain_free(domain), 0);
    close_world(&w);
}

/* A bootstrap without servers fails the RPCs of its channel; runtime and domain end as usual. */
static void test_bad_bootstrap(void **state)
{
    (void)state;
    torc_xds_domain *domain = torc_xds_domain_new(NULL);
    torc_runtime *rt = runtime_in(domain, TORC_RUNTIME_CALLER);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = "{}"};
    torc_channel *ch = torc_channel_new(rt, "xds:///svc", &o, NULL);
    assert_non_null(ch);
    torc_result *r = kit_mesh_call(ch, NULL, false, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(torc_result_text(r), "xds_servers"));
    torc_result_free(r);
    torc_channel_free(ch);
    assert_int_equal(torc_runtime_free(rt), 0);
    assert_int_equal(torc_xds_domain_free(domain), 0);
    assert_int_equal(torc_xds_domain_free(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two),
        cmocka_unit_test(test_four),
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_circuit_breaking),
        cmocka_unit_test(test_circuit_breaking_without_a_domain),
        cmocka_unit_test(test_circuit_breaking_race),
        cmocka_unit_test(test_updates_under_load),
        cmocka_unit_test(test_load_reports),
        cmocka_unit_test(test_idle_caller),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_bad_bootstrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
