/* Leaf clusters of aggregates end to end, over real sockets (kits/mesh.h): rejected, unresolved, changed and shared
 * leaves.
 *
 * Each test has a mesh of four backends (setup) and the aggregate "agg" over one or two leaves. The listener "svc"
 * leads to "agg", in one test also to the leaf itself. The tests assert which backend gets the RPCs of `ch`, the test's
 * one channel, or with which status the RPCs fail; shared_with_a_route also counts subscriptions. The test's thread
 * makes the RPCs; only on_result runs on the runtime's thread. teardown frees the channel and the mesh. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"
#include "support/net/wire_proxy.h"

#include "base/mem.h"

#define ROUND_ROBIN "lb_policy: ROUND_ROBIN"
/* Endpoints that are rejected, because priority 0 is missing. */
#define REFUSED "1/a: 0"

static struct kit_mesh *k;
static torc_channel *ch;

static int setup(void **state)
{
    (void)state;
    k = kit_mesh_new(4);
    ch = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    torc_channel_free(ch);
    kit_mesh_free(k);
    return 0;
}

static void put_eds(const char *name, const char *endpoints)
{
    kit_mesh_put_endpoints(k, name, endpoints, NULL);
    kit_mesh_put_cluster(k, name, ROUND_ROBIN);
}

static void open_channel(const char *cluster)
{
    kit_mesh_put_listener(k, "svc", cluster, NULL);
    ch = kit_mesh_channel(k, "svc", NULL);
}

static void refused_and_never_good(void **state)
{
    TC_CASE(AG05);
    (void)state;
    put_eds("c1", REFUSED);
    put_eds("c2", "0/a: 1");
    kit_mesh_put_aggregate(k, "agg", "c1, c2");
    open_channel("agg");
    kit_mesh_calls(ch, NULL, 10);
    assert_int_equal(kit_mesh_take(k, 1), 10);
    kit_mesh_wait_request(k, "NACK");
    kit_mesh_put_endpoints(k, "c1", "0/a: 0", NULL);
    kit_mesh_wait_backend(k, ch, NULL, 0);
}

static void refused_after_a_good_one(void **state)
{
    TC_CASE(AG06);
    (void)state;
    put_eds("c1", "0/a: 0");
    put_eds("c2", "0/a: 1");
    kit_mesh_put_aggregate(k, "agg", "c1, c2");
    open_channel("agg");
    kit_mesh_calls(ch, NULL, 10);
    kit_mesh_put_endpoints(k, "c1", REFUSED, NULL);
    kit_mesh_wait_request(k, "NACK");
    kit_mesh_calls(ch, NULL, 10);
    assert_int_equal(kit_mesh_take(k, 0), 20);
    assert_int_equal(kit_mesh_take(k, 1), 0);
}

/* When a leaf's name cannot be resolved, the next leaf serves. When no leaf serves, RPCs fail with the error of the
 * last one. */
static void dns_without_an_answer(void **state)
{
    TC_CASE(AG08);
    (void)state;
    kit_mesh_put_dns(k, "dns", "bad..name", "443", "RING_HASH");
    put_eds("c1", "0/a: 0");
    kit_mesh_put_aggregate(k, "agg", "dns, c1");
    open_channel("agg");
    kit_mesh_calls(ch, NULL, 10);
    assert_int_equal(kit_mesh_take(k, 0), 10);
    kit_mesh_stop(k, 0);
    kit_mesh_put_aggregate(k, "agg", "c1, dns");
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE,
                          "empty address list: DNS resolution failed for bad..name:443: UNAVAILABLE:");
}

/* The first leaf's endpoints change while the second leaf's name cannot be resolved. */
static void reconfigured_while_dns_fails(void **state)
{
    TC_CASE(AG18);
    (void)state;
    put_eds("c1", "0/a: 3");
    kit_mesh_stop(k, 3);
    kit_mesh_put_dns(k, "dns", "bad..name", "443", "RING_HASH");
    kit_mesh_put_aggregate(k, "agg", "c1, dns");
    open_channel("agg");
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "DNS resolution failed for bad..name:443");
    kit_mesh_put_endpoints(k, "c1", "0/a: 0", NULL);
    kit_mesh_wait_backend(k, ch, NULL, 0);
    kit_mesh_put_endpoints(k, "c1", "0/b: 1; 1/a: 0", NULL);
    kit_mesh_wait_backend(k, ch, NULL, 1);
    kit_mesh_calls(ch, NULL, 5);
}

static void another_eds_name(void **state)
{
    TC_CASE(AG17);
    (void)state;
    put_eds("c1", "0/a: 0");
    kit_mesh_put_aggregate(k, "agg", "c1");
    kit_mesh_put_endpoints(k, "other", "0/a: 1", NULL);
    open_channel("agg");
    kit_mesh_calls(ch, NULL, 5);
    assert_int_equal(kit_mesh_take(k, 0), 5);
    kit_mesh_put(k, "resources:\n- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: c1\n"
                    "  type: EDS\n  " ROUND_ROBIN "\n"
                    "  eds_cluster_config: {eds_config: {ads: {}}, service_name: other}\n");
    kit_mesh_wait_backend(k, ch, NULL, 1);
    kit_mesh_take(k, 1);
    kit_mesh_calls(ch, NULL, 5);
    assert_int_equal(kit_mesh_take(k, 1), 5);
}

/* Returns how often the name appears in the last request of that type. `type` ends with a blank. */
static unsigned asked_for(const char *requests, const char *type, const char *name)
{
    unsigned n = 0;
    for (const char *at = requests; (at = strstr(at, type)); at++) {
        n = 0;
        const char *end = strchr(at, '\n');
        for (const char *word = at; (word = strstr(word, name)) && word < end; word++)
            n += word[-1] == ' ' && (word[strlen(name)] == ' ' || word + strlen(name) == end);
    }
    return n;
}

/* A route and an aggregate name the same cluster: it has one subscription of each type, and one count of calls. */
static void shared_with_a_route(void **state)
{
    TC_CASE(AG21);
    (void)state;
    kit_mesh_put_endpoints(k, "c1", "0/a: 0", NULL);
    kit_mesh_put_cluster(k, "c1", ROUND_ROBIN "\n  circuit_breakers: {thresholds: [{max_requests: 1}]}");
    kit_mesh_put_aggregate(k, "agg", "c1");
    kit_mesh_put_routes(k, "svc",
                        "{match: {prefix: /torc.test.Backend/}, route: {cluster: c1}}, "
                        "{match: {prefix: \"\"}, route: {cluster: agg}}");
    ch = kit_mesh_channel(k, "svc", NULL);
    kit_mesh_calls(ch, NULL, 3);
    char *requests = kit_mesh_requests(k);
    assert_int_equal(asked_for(requests, "Cluster ", "c1"), 1);
    assert_int_equal(asked_for(requests, "ClusterLoadAssignment ", "c1"), 1);
    tc_free(requests);
    torc_error *error = NULL;
    uint64_t before = kit_mesh_handled(k, 0);
    torc_stream *call = torc_stream_open(ch, "/torc.test.Backend/Hang", NULL, &error);
    assert_non_null(call);
    assert_int_equal(torc_stream_send(call, "x", 1, TORC_SEND_LAST, -1), 0);
    while (kit_mesh_handled(k, 0) == before)
        ;
    torc_result *r = kit_mesh_call(ch, NULL, false, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_string_equal(
        torc_result_text(r),
        "circuit breaker drop: cluster \"c1\" is at its limit of 1 concurrent requests (node ID:test-node)");
    torc_result_free(r);
    torc_stream_cancel(call);
    r = torc_stream_finish(call);
    torc_result_free(r);
    torc_stream_free(call);
    kit_mesh_wait_backend(k, ch, NULL, 0);
}

/* The outcome of a call, which the runtime's thread stores. */
struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    int code;
    char text[256];
};

static void on_result(const torc_result *r, void *arg)
{
    struct waiting *w = arg;
    pthread_mutex_lock(&w->lock);
    w->done = true;
    w->code = torc_result_code(r);
    snprintf(w->text, sizeof(w->text), "%s", torc_result_text(r));
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

/* Both priorities of an EDS cluster with ring_hash are down, and the connection to the LOGICAL_DNS cluster is slow. A
 * call waits for that connection and does not fail. */
static void slow_dns_after_dead_ring(void **state)
{
    TC_CASE(RH50);
    (void)state;
    struct wire_proxy *proxy = wire_proxy_new(kit_mesh_address(k, 0));
    wire_proxy_hold(proxy, true);
    kit_mesh_put_endpoints(k, "c1", "0/a: 2; 1/b: 3", NULL);
    kit_mesh_put_cluster(k, "c1", NULL);
    kit_mesh_stop(k, 2);
    kit_mesh_stop(k, 3);
    kit_mesh_put_dns(k, "dns", "localhost", strchr(wire_proxy_address(proxy), ':') + 1, "ROUND_ROBIN");
    kit_mesh_put_aggregate(k, "agg", "c1, dns");
    open_channel("agg");
    struct waiting w = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 60000};
    assert_int_equal(torc_unary_async(ch, "/test.Service/Method", "x", 1, &o, on_result, &w, NULL, NULL), 0);
    wire_proxy_wait_connections(proxy, 1);
    pthread_mutex_lock(&w.lock);
    assert_false(w.done);
    pthread_mutex_unlock(&w.lock);
    wire_proxy_hold(proxy, false);
    pthread_mutex_lock(&w.lock);
    while (!w.done)
        pthread_cond_wait(&w.cond, &w.lock);
    pthread_mutex_unlock(&w.lock);
    assert_string_equal(w.text, "");
    assert_int_equal(w.code, TORC_STATUS_OK);
    assert_int_equal(kit_mesh_take(k, 0), 1);
    torc_channel_free(ch);
    ch = NULL;
    wire_proxy_free(proxy);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(refused_and_never_good),       TEST(refused_after_a_good_one), TEST(dns_without_an_answer),
        TEST(reconfigured_while_dns_fails), TEST(another_eds_name),         TEST(shared_with_a_route),
        TEST(slow_dns_after_dead_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
