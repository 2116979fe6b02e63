/* A control plane that misbehaves: invalid resources, restarts, streams that end, hostile messages. Also which channels
 * share an xDS client, a runtime that ends before its channels, and the memory that ten thousand calls take.
 *
 * Each test makes a mesh with a channel to the listener "svc" (struct kit_mesh_world of kits/mesh.h);
 * clients_of_targets and runtime_ends_first open more channels. The test's thread changes the mesh and makes RPCs. The
 * client runs on the thread of the mesh's runtime, and so does on_call_done, which starts most RPCs of
 * ten_thousand_calls. Functions given to kit_mesh_do run on the servers' thread. Memory is that of the whole process,
 * with the client, the control plane and the backends. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/case.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"
#include "support/sanitizer.h"

#include "base/mem.h"
#include "proto/wire.h"

#define ROUND_ROBIN "lb_policy: ROUND_ROBIN"
#define EDS_TYPE "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

static size_t occurrences(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

static void cluster_with_two_faults(void **state)
{
    TC_CASE(AD03);
    TC_CASE(CD03);
    TC_CASE(CD07);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(2, "0/a: 0", ROUND_ROBIN, NULL);
    kit_mesh_calls(w.ch, NULL, 10);
    tc_free(kit_mesh_requests(w.k));
    kit_mesh_put(w.k, "resources:\n"
                      "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                      "  name: c\n"
                      "  type: EDS\n"
                      "  lb_policy: RANDOM\n"
                      "  eds_cluster_config: {eds_config: {path: /x}}\n");
    char *refusal = kit_mesh_requests_until(w.k, "NACK");
    kit_mesh_calls(w.ch, NULL, 200);
    char *more = kit_mesh_requests(w.k), *text = tc_asprintf("%s%s", refusal, more);
    tc_free(refusal);
    tc_free(more);
    assert_int_equal(occurrences(text, "NACK 3"), 1);
    assert_non_null(strstr(text, "Cluster 1 c NACK 3"));
    assert_non_null(strstr(text, "lb_policy"));
    assert_non_null(strstr(text, "RANDOM"));
    assert_non_null(strstr(text, "eds_cluster_config.eds_config"));
    tc_free(text);
    /* The error is added to the status of RPCs that fail for another reason. */
    kit_mesh_stop(w.k, 0);
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "CDS resource \"c\": ");
    kit_mesh_put_endpoints(w.k, "c", "0/a: 1", NULL);
    kit_mesh_put_cluster(w.k, "c", ROUND_ROBIN);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    kit_mesh_world_close(&w);
}

static void restart(void **state)
{
    TC_CASE(AD22);
    TC_CASE(AD24);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(2, "0/a: 0", ROUND_ROBIN, NULL);
    kit_mesh_calls(w.ch, NULL, 10);
    kit_mesh_stop_control_plane(w.k);
    kit_mesh_calls(w.ch, NULL, 500);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 1", NULL);
    kit_mesh_calls(w.ch, NULL, 10);
    assert_int_equal(kit_mesh_take(w.k, 1), 0);
    kit_mesh_start_control_plane(w.k);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    kit_mesh_calls(w.ch, NULL, 10);
    kit_mesh_world_close(&w);
}

static void down_from_the_start(void **state)
{
    TC_CASE(AD13);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(1, "0/a: 0", ROUND_ROBIN, NULL);
    kit_mesh_stop_control_plane(w.k);
    char *text = tc_asprintf("xDS channel for server %s: ", kit_mesh_control_plane(w.k));
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, text);
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "(node ID:test-node)");
    tc_free(text);
    kit_mesh_start_control_plane(w.k);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_world_close(&w);
}

/* The status of an RPC that no endpoint serves names the control plane's failure (A88). */
static void endpoints_and_control_plane_down(void **state)
{
    TC_CASE(AD23);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(1, "0/a: 0", ROUND_ROBIN, NULL);
    kit_mesh_calls(w.ch, NULL, 1);
    kit_mesh_stop_control_plane(w.k);
    kit_mesh_stop(w.k, 0);
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, "LDS resource \"svc\": xDS channel for server ");
    kit_mesh_start_control_plane(w.k);
    kit_mesh_start(w.k, 0);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_world_close(&w);
}

static void end_streams(struct tc_control_plane *cp, void *arg)
{
    (void)arg;
    tc_control_plane_end_streams(cp, TORC_STATUS_RESOURCE_EXHAUSTED, "enough");
}

static void stream_ends(void **state)
{
    TC_CASE(AD20);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(2, "0/a: 0", ROUND_ROBIN, NULL);
    kit_mesh_calls(w.ch, NULL, 10);
    for (int i = 0; i < 3; i++) {
        kit_mesh_do(w.k, end_streams, NULL);
        kit_mesh_calls(w.ch, NULL, 50);
    }
    kit_mesh_put_endpoints(w.k, "c", "0/a: 1", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    kit_mesh_world_close(&w);
}

static void count_streams(struct tc_control_plane *cp, void *arg)
{
    *(size_t *)arg = tc_control_plane_streams(cp);
}

static size_t streams(struct kit_mesh *k)
{
    size_t n;
    kit_mesh_do(k, count_streams, &n);
    return n;
}

/* Channels of one target share an xDS client. Without a fallback server another target shares this client too, unless
 * the bootstrap has torc.share_client false: then each target has its own client, as with fallback (A71). */
static void clients_of_targets(void **state)
{
    TC_CASE(AD28);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(1, "0/a: 0", ROUND_ROBIN, NULL);
    kit_mesh_put_listener(w.k, "other", "c", NULL);
    torc_channel *same = kit_mesh_channel(w.k, "svc", NULL), *other = kit_mesh_channel(w.k, "other", NULL);
    kit_mesh_calls(w.ch, NULL, 1);
    kit_mesh_calls(same, NULL, 1);
    assert_int_equal(streams(w.k), 1);
    kit_mesh_calls(other, NULL, 1);
    assert_int_equal(streams(w.k), 1);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    char *bootstrap = tc_asprintf("{\"torc.share_client\": false, %s", kit_mesh_bootstrap(w.k) + 1);
    o.xds_bootstrap_json = bootstrap;
    torc_channel *alone[] = {kit_mesh_channel(w.k, "svc", &o), kit_mesh_channel(w.k, "svc", &o),
                             kit_mesh_channel(w.k, "other", &o)};
    for (size_t i = 0; i < TC_ARRAY_LEN(alone); i++)
        kit_mesh_calls(alone[i], NULL, 1);
    assert_int_equal(streams(w.k), 3);
    /* The channels share the connection to the backend. */
    assert_int_equal(kit_mesh_connections(w.k, 0), 1);
    torc_channel_free(same);
    kit_mesh_calls(w.ch, NULL, 10);
    torc_channel_free(other);
    for (size_t i = 0; i < TC_ARRAY_LEN(alone); i++)
        torc_channel_free(alone[i]);
    tc_free(bootstrap);
    /* The two streams of `alone` end; the timeout of ctest bounds the wait. */
    while (streams(w.k) != 1)
        kit_mesh_calls(w.ch, NULL, 1);
    kit_mesh_world_close(&w);
}

/* The runtime ends before its channels: one works, one still waits for its resources. */
static void runtime_ends_first(void **state)
{
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(1, "0/a: 0", ROUND_ROBIN, NULL);
    torc_channel *waits = kit_mesh_channel(w.k, "nowhere", NULL);
    torc_channel_state(waits, true);
    kit_mesh_calls(w.ch, NULL, 3);
    kit_mesh_free(w.k);
    torc_channel_free(w.ch);
    torc_channel_free(waits);
}

/* --- hostile messages --- */

/* Returns a message that has `name` in field 1 (NULL: it has no such field) and `inner` in field `field`. Frees
 * `inner`; the caller frees the result. */
static struct tc_buf wrap(struct tc_buf inner, const char *name, unsigned field)
{
    struct tc_buf out = {0};
    if (name)
        tc_wire_append(&out, 1, tc_slice_str(name));
    tc_wire_append(&out, field, tc_buf_slice(&inner));
    tc_buf_fini(&inner);
    return out;
}

/* Returns a ClusterLoadAssignment of "c" whose endpoint has a metadata Value nested n deep. The caller frees it. */
static struct tc_buf nested_values(size_t n)
{
    /* Built from the innermost, in a buffer filled from its end. */
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

/* Returns a ClusterLoadAssignment of "c" with this many bytes of unknown fields, about. The caller frees it. */
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

/* Returns a ClusterLoadAssignment of "c" with n empty localities. The caller frees it. */
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

/* Has the allocator give back what is free. Returns the resident memory of the process in kB. */
static long resident_kb(void)
{
    long pages = 0, total = 0;
    malloc_trim(0);
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &total, &pages), 2);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

#if SANITIZER_ADDRESS || SANITIZER_THREAD
#define MEMORY_COUNTS 0 /* sanitizers retain freed memory */
#else
#define MEMORY_COUNTS 1
#endif

/* Sends this resource in an EDS response, and frees the resource. Asserts that the client sends a NACK, that RPCs go
 * on, and, without a sanitizer, that resident memory is at most 20 MiB above before_kb. */
static void expect_refused(struct kit_mesh_world *w, struct tc_buf message, long before_kb)
{
    tc_free(kit_mesh_requests(w->k));
    kit_mesh_do(w->k, send_eds, &message);
    tc_buf_fini(&message);
    kit_mesh_wait_request(w->k, "NACK 3");
    kit_mesh_calls(w->ch, NULL, 10);
    long grown_kb = resident_kb() - before_kb;
    if (MEMORY_COUNTS && grown_kb > 20 * 1024)
        fail_msg("resident memory grew by %ld kB", grown_kb);
}

static void hostile_messages(void **state)
{
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(1, "0/a: 0", ROUND_ROBIN, NULL);
    kit_mesh_calls(w.ch, NULL, 100);
    long before_kb = resident_kb();
    expect_refused(&w, nested_values(20000), before_kb);
    expect_refused(&w, unknown_fields(8u << 20), before_kb);
    expect_refused(&w, empty_entries(1000000), before_kb);
    kit_mesh_world_close(&w);
}

/* --- many calls --- */

#define OUTSTANDING 64
#define CALLS 10000
#define WARM 2000

/* Calls of which at most OUTSTANDING run at once. */
struct load {
    torc_channel *ch;
    pthread_mutex_t lock;
    pthread_cond_t done_cond; /* `target` calls have finished */
    /* Counts of calls, under the lock. failed: of those that finished. target: how many to make in all. */
    size_t started, finished, failed, target;
};

static void next_call(struct load *l);

/* Starts the next call, if `target` calls have not been started yet. */
static void on_call_done(const torc_result *result, void *arg)
{
    struct load *l = arg;
    pthread_mutex_lock(&l->lock);
    l->finished++;
    l->failed += torc_result_code(result) != TORC_STATUS_OK;
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
    CHECK(torc_unary_async(l->ch, "/a.B/C", "hello", 5, NULL, on_call_done, l, NULL, NULL) == 0);
}

/* Makes calls until `target` have finished, with those of earlier run_calls. */
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
    struct kit_mesh_world w = kit_mesh_world_open(3, "0/a: 0, 1, 2", ROUND_ROBIN, NULL);
    kit_mesh_put_cluster(w.k, "c", NULL);
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
        sum += kit_mesh_take(w.k, i);
    assert_int_equal(sum, CALLS);
    if (MEMORY_COUNTS && grown_kb > 512)
        fail_msg("resident memory grew by %ld kB over %d calls", grown_kb, CALLS - WARM);
    pthread_mutex_destroy(&l.lock);
    pthread_cond_destroy(&l.done_cond);
    kit_mesh_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cluster_with_two_faults),
        cmocka_unit_test(restart),
        cmocka_unit_test(down_from_the_start),
        cmocka_unit_test(endpoints_and_control_plane_down),
        cmocka_unit_test(stream_ends),
        cmocka_unit_test(clients_of_targets),
        cmocka_unit_test(runtime_ends_first),
        cmocka_unit_test(hostile_messages),
        cmocka_unit_test(ten_thousand_calls),
    };
    /* One arena and a fixed mmap threshold: resident_kb then counts little memory that the allocator retains. */
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
