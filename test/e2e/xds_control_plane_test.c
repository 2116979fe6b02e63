/* The control plane misbehaves: invalid resources, restarts, hostile messages; and ten thousand calls whose memory
 * stays where it was. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/mesh_kit.h"

#include "base/mem.h"
#include "proto/wire.h"

#define ROUND_ROBIN "lb_policy: ROUND_ROBIN"
#define EDS_TYPE "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

struct world {
    struct mesh_kit *k;
    torc_channel *ch;
};

static struct world open_world(size_t backends, const char *endpoints)
{
    struct world w;
    w.k = mesh_kit_new(backends);
    mesh_kit_put_endpoints(w.k, "c", endpoints, NULL);
    mesh_kit_put_cluster(w.k, "c", ROUND_ROBIN);
    mesh_kit_put_listener(w.k, "svc", "c", NULL);
    w.ch = mesh_kit_channel(w.k, "svc", NULL);
    return w;
}

static void close_world(struct world *w)
{
    torc_channel_free(w->ch);
    mesh_kit_free(w->k);
}

static size_t occurrences(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

static void cluster_with_two_faults(void **state)
{
    (void)state;
    struct world w = open_world(2, "0/a: 0");
    mesh_kit_calls(w.ch, NULL, 10);
    tc_free(mesh_kit_requests(w.k));
    mesh_kit_put(w.k, "resources:\n"
                      "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                      "  name: c\n"
                      "  type: EDS\n"
                      "  lb_policy: MAGLEV\n"
                      "  eds_cluster_config: {eds_config: {path: /x}}\n");
    struct tc_buf seen = {0};
    for (int i = 0; i < 100000 && !strstr(tc_buf_cstr(&seen), "NACK"); i++) {
        char *requests = mesh_kit_requests(w.k);
        tc_buf_append_str(&seen, requests);
        tc_free(requests);
    }
    mesh_kit_calls(w.ch, NULL, 200);
    char *more = mesh_kit_requests(w.k);
    tc_buf_append_str(&seen, more);
    tc_free(more);
    const char *text = tc_buf_cstr(&seen);
    assert_int_equal(occurrences(text, "NACK 3"), 1);
    assert_non_null(strstr(text, "Cluster 1 c NACK 3"));
    assert_non_null(strstr(text, "lb_policy"));
    assert_non_null(strstr(text, "MAGLEV"));
    assert_non_null(strstr(text, "eds_cluster_config.eds_config"));
    tc_buf_fini(&seen);
    /* Its reason is told to those whose RPCs fail for another. */
    mesh_kit_stop(w.k, 0);
    mesh_kit_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "CDS resource \"c\": ");
    mesh_kit_put_endpoints(w.k, "c", "0/a: 1", NULL);
    mesh_kit_put_cluster(w.k, "c", ROUND_ROBIN);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 1);
    close_world(&w);
    TC_CASE(AD03);
    TC_CASE(CD01);
}

static void restart(void **state)
{
    (void)state;
    struct world w = open_world(2, "0/a: 0");
    mesh_kit_calls(w.ch, NULL, 10);
    mesh_kit_stop_control_plane(w.k);
    mesh_kit_calls(w.ch, NULL, 500);
    mesh_kit_put_endpoints(w.k, "c", "0/a: 1", NULL);
    mesh_kit_calls(w.ch, NULL, 10);
    assert_int_equal(mesh_kit_take(w.k, 1), 0);
    mesh_kit_start_control_plane(w.k);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 1);
    mesh_kit_calls(w.ch, NULL, 10);
    close_world(&w);
    TC_CASE(AD22);
    TC_CASE(AD24);
}

static void down_from_the_start(void **state)
{
    (void)state;
    struct world w = open_world(1, "0/a: 0");
    mesh_kit_stop_control_plane(w.k);
    char *text = tc_asprintf("xDS channel for server %s: ", mesh_kit_control_plane(w.k));
    mesh_kit_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, text);
    mesh_kit_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "(node ID:test-node)");
    tc_free(text);
    mesh_kit_start_control_plane(w.k);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 0);
    close_world(&w);
    TC_CASE(AD13);
}

/* What cannot be reached is told together with the control plane's own trouble (A88). */
static void endpoints_and_control_plane_down(void **state)
{
    (void)state;
    struct world w = open_world(1, "0/a: 0");
    mesh_kit_calls(w.ch, NULL, 1);
    mesh_kit_stop_control_plane(w.k);
    mesh_kit_stop(w.k, 0);
    mesh_kit_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "LDS resource \"svc\": xDS channel for server ");
    mesh_kit_start_control_plane(w.k);
    mesh_kit_start(w.k, 0);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 0);
    close_world(&w);
    TC_CASE(AD23);
}

static void end_streams(struct tc_control_plane *cp, void *arg)
{
    (void)arg;
    tc_control_plane_end_streams(cp, TORC_STATUS_RESOURCE_EXHAUSTED, "enough");
}

static void stream_ends(void **state)
{
    (void)state;
    struct world w = open_world(2, "0/a: 0");
    mesh_kit_calls(w.ch, NULL, 10);
    for (int i = 0; i < 3; i++) {
        mesh_kit_do(w.k, end_streams, NULL);
        mesh_kit_calls(w.ch, NULL, 50);
    }
    mesh_kit_put_endpoints(w.k, "c", "0/a: 1", NULL);
    mesh_kit_wait_backend(w.k, w.ch, NULL, 1);
    close_world(&w);
    TC_CASE(AD20);
}

static void count_streams(struct tc_control_plane *cp, void *arg)
{
    *(size_t *)arg = tc_control_plane_streams(cp);
}

static size_t streams(struct mesh_kit *k)
{
    size_t n;
    mesh_kit_do(k, count_streams, &n);
    return n;
}

/* A71: channels of one target share a client, another target has its own. */
static void one_client_for_each_target(void **state)
{
    (void)state;
    struct world w = open_world(1, "0/a: 0");
    mesh_kit_put_listener(w.k, "other", "c", NULL);
    torc_channel *same = mesh_kit_channel(w.k, "svc", NULL), *other = mesh_kit_channel(w.k, "other", NULL);
    mesh_kit_calls(w.ch, NULL, 1);
    mesh_kit_calls(same, NULL, 1);
    assert_int_equal(streams(w.k), 1);
    mesh_kit_calls(other, NULL, 1);
    assert_int_equal(streams(w.k), 2);
    /* The channels share the connection to the backend. */
    assert_int_equal(mesh_kit_connections(w.k, 0), 1);
    torc_channel_free(same);
    mesh_kit_calls(w.ch, NULL, 10);
    torc_channel_free(other);
    for (int i = 0; i < 100000 && streams(w.k) != 1; i++)
        continue;
    assert_int_equal(streams(w.k), 1);
    close_world(&w);
    TC_CASE(AD28);
}

/* The runtime ends under channels: one that works, one that still waits for its resources. */
static void runtime_ends_first(void **state)
{
    (void)state;
    struct world w = open_world(1, "0/a: 0");
    torc_channel *waits = mesh_kit_channel(w.k, "nowhere", NULL);
    torc_channel_state(waits, true);
    mesh_kit_calls(w.ch, NULL, 3);
    mesh_kit_free(w.k);
    torc_channel_free(w.ch);
    torc_channel_free(waits);
}

/* --- hostile messages --- */

/* `inner` inside field `field` of a message that may begin with a name in field 1. */
static struct tc_buf wrap(struct tc_buf inner, const char *name, unsigned field)
{
    struct tc_buf out = {0};
    if (name)
        tc_wire_append(&out, 1, tc_slice_str(name));
    tc_wire_append(&out, field, tc_buf_slice(&inner));
    tc_buf_fini(&inner);
    return out;
}

/* A ClusterLoadAssignment with a metadata Value nested n deep. */
static struct tc_buf nested_values(size_t n)
{
    /* From the inside out, into a buffer that is filled from its end. */
    size_t cap = n * 10 + 16, at = cap;
    char *bytes = tc_malloc(cap);
    for (size_t i = 0; i < 2 * n; i++) {
        struct tc_buf head = {0};
        tc_wire_append_varint(&head, i % 2 ? 6u << 3 | 2 : 1u << 3 | 2); /* Value.list_value, ListValue.values */
        tc_wire_append_varint(&head, cap - at);
        at -= head.len;
        memcpy(bytes + at, head.data, head.len);
        tc_buf_fini(&head);
    }
    struct tc_buf value = {0};
    tc_buf_append(&value, bytes + at, cap - at);
    tc_free(bytes);
    struct tc_buf m = wrap(wrap(value, "k", 2), NULL, 1); /* Struct.fields */
    m = wrap(wrap(m, "envoy.lb", 2), NULL, 1);            /* Metadata.filter_metadata */
    m = wrap(wrap(m, NULL, 3), NULL, 2);                  /* LbEndpoint.metadata, LocalityLbEndpoints.lb_endpoints */
    return wrap(m, "c", 2);
}

static struct tc_buf unknown_fields(size_t bytes)
{
    struct tc_buf m = {0};
    tc_wire_append(&m, 1, tc_slice_str("c"));
    tc_buf_reserve(&m, bytes + 8);
    while (m.len < bytes) {
        tc_wire_append_varint(&m, 1000u << 3);
        tc_buf_append_char(&m, 1);
    }
    return m;
}

static struct tc_buf empty_entries(size_t n)
{
    struct tc_buf m = {0};
    tc_wire_append(&m, 1, tc_slice_str("c"));
    tc_buf_reserve(&m, 2 * n);
    for (size_t i = 0; i < n; i++)
        tc_wire_append(&m, 2, tc_slice_of("", 0));
    return m;
}

static void send_eds(struct tc_control_plane *cp, void *arg)
{
    struct tc_slice bytes = tc_buf_slice(arg);
    tc_control_plane_send(cp, EDS_TYPE, "hostile", &bytes, 1);
}

static long resident_kb(void)
{
    long pages = 0, total = 0;
    malloc_trim(0);
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &total, &pages), 2);
    fclose(f);
    return pages * 4;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY_COUNTS 0 /* sanitizers keep what was freed */
#else
#define MEMORY_COUNTS 1
#endif

static void expect_refused(struct world *w, struct tc_buf message, long before_kb)
{
    tc_free(mesh_kit_requests(w->k));
    mesh_kit_do(w->k, send_eds, &message);
    tc_buf_fini(&message);
    mesh_kit_wait_request(w->k, "NACK 3");
    mesh_kit_calls(w->ch, NULL, 10);
    long grown_kb = resident_kb() - before_kb;
    if (MEMORY_COUNTS && grown_kb > 20 * 1024)
        fail_msg("resident memory grew by %ld kB", grown_kb);
}

static void hostile_messages(void **state)
{
    (void)state;
    struct world w = open_world(1, "0/a: 0");
    mesh_kit_calls(w.ch, NULL, 100);
    long before_kb = resident_kb();
    expect_refused(&w, nested_values(20000), before_kb);
    expect_refused(&w, unknown_fields(8u << 20), before_kb);
    expect_refused(&w, empty_entries(1000000), before_kb);
    close_world(&w);
}

/* --- many calls --- */

#define OUTSTANDING 64
#define CALLS 10000
#define WARM 2000

struct load {
    torc_channel *ch;
    pthread_mutex_t lock;
    pthread_cond_t done_cond;
    size_t started, finished, failed, target;
};

static void next_call(struct load *l);

static void on_call_done(const struct torc_result *result, void *arg)
{
    struct load *l = arg;
    pthread_mutex_lock(&l->lock);
    l->finished++;
    l->failed += result->code != TORC_STATUS_OK;
    bool go_on = l->started < l->target;
    l->started += go_on;
    if (l->finished == l->target)
        pthread_cond_signal(&l->done_cond);
    pthread_mutex_unlock(&l->lock);
    if (go_on)
        next_call(l);
}

static void next_call(struct load *l)
{
    assert_int_equal(torc_call_unary_async(l->ch, "/a.B/C", "hello", 5, NULL, on_call_done, l, NULL), 0);
}

static void run_calls(struct load *l, size_t target)
{
    pthread_mutex_lock(&l->lock);
    l->target = target;
    size_t n = TC_MIN((size_t)OUTSTANDING, target - l->started);
    l->started += n;
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < n; i++)
        next_call(l);
    pthread_mutex_lock(&l->lock);
    while (l->finished < target)
        pthread_cond_wait(&l->done_cond, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

static void ten_thousand_calls(void **state)
{
    (void)state;
    struct world w = open_world(3, "0/a: 0, 1, 2");
    mesh_kit_put_cluster(w.k, "c", NULL);
    struct load l = {.ch = w.ch};
    pthread_mutex_init(&l.lock, NULL);
    pthread_cond_init(&l.done_cond, NULL);
    run_calls(&l, WARM);
    long warm_kb = resident_kb();
    run_calls(&l, CALLS);
    long grown_kb = resident_kb() - warm_kb;
    assert_int_equal(l.failed, 0);
    uint64_t sum = 0;
    for (size_t i = 0; i < 3; i++)
        sum += mesh_kit_take(w.k, i);
    assert_int_equal(sum, CALLS);
    if (MEMORY_COUNTS && grown_kb > 512)
        fail_msg("resident memory grew by %ld kB over %d calls", grown_kb, CALLS - WARM);
    pthread_mutex_destroy(&l.lock);
    pthread_cond_destroy(&l.done_cond);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cluster_with_two_faults),
        cmocka_unit_test(restart),
        cmocka_unit_test(down_from_the_start),
        cmocka_unit_test(endpoints_and_control_plane_down),
        cmocka_unit_test(stream_ends),
        cmocka_unit_test(one_client_for_each_target),
        cmocka_unit_test(runtime_ends_first),
        cmocka_unit_test(hostile_messages),
        cmocka_unit_test(ten_thousand_calls),
    };
    /* What is measured is what Torc holds, client and servers together, not what the allocator keeps for later. */
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
