/* The leaves of aggregate clusters end to end: what is refused, missing, changed or shared. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/mesh_kit.h"
#include "support/wire_proxy.h"

#include "base/mem.h"

#define ROUND_ROBIN "lb_policy: ROUND_ROBIN"
/* A priority is missing: refused. */
#define REFUSED "1/a: 0"

static struct mesh_kit *k;
static torc_channel *ch;

static int setup(void **state)
{
    (void)state;
    k = mesh_kit_new(4);
    ch = NULL;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    torc_channel_free(ch);
    mesh_kit_free(k);
    return 0;
}

static void put_eds(const char *name, const char *endpoints)
{
    mesh_kit_put_endpoints(k, name, endpoints, NULL);
    mesh_kit_put_cluster(k, name, ROUND_ROBIN);
}

static void open_channel(const char *cluster)
{
    mesh_kit_put_listener(k, "svc", cluster, NULL);
    ch = mesh_kit_channel(k, "svc", NULL);
}

static void refused_and_never_good(void **state)
{
    (void)state;
    put_eds("c1", REFUSED);
    put_eds("c2", "0/a: 1");
    mesh_kit_put_aggregate(k, "agg", "c1, c2");
    open_channel("agg");
    mesh_kit_calls(ch, NULL, 10);
    assert_int_equal(mesh_kit_take(k, 1), 10);
    mesh_kit_wait_request(k, "NACK");
    /* It is mended. */
    mesh_kit_put_endpoints(k, "c1", "0/a: 0", NULL);
    mesh_kit_wait_backend(k, ch, NULL, 0);
    TC_CASE(AG05);
}

static void refused_after_a_good_one(void **state)
{
    (void)state;
    put_eds("c1", "0/a: 0");
    put_eds("c2", "0/a: 1");
    mesh_kit_put_aggregate(k, "agg", "c1, c2");
    open_channel("agg");
    mesh_kit_calls(ch, NULL, 10);
    mesh_kit_put_endpoints(k, "c1", REFUSED, NULL);
    mesh_kit_wait_request(k, "NACK");
    mesh_kit_calls(ch, NULL, 10);
    assert_int_equal(mesh_kit_take(k, 0), 20);
    assert_int_equal(mesh_kit_take(k, 1), 0);
    TC_CASE(AG06);
}

/* A name that cannot be resolved: the next leaf; as the last one its error is the calls'. */
static void dns_without_an_answer(void **state)
{
    (void)state;
    mesh_kit_put_dns(k, "dns", "bad..name", "443", "RING_HASH");
    put_eds("c1", "0/a: 0");
    mesh_kit_put_aggregate(k, "agg", "dns, c1");
    open_channel("agg");
    mesh_kit_calls(ch, NULL, 10);
    assert_int_equal(mesh_kit_take(k, 0), 10);
    mesh_kit_stop(k, 0);
    mesh_kit_put_aggregate(k, "agg", "c1, dns");
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE,
                          "empty address list: DNS resolution failed for bad..name:443: UNAVAILABLE:");
    TC_CASE(AG08);
}

/* The first leaf's endpoints change while the other's name has no answer. */
static void reconfigured_while_dns_fails(void **state)
{
    (void)state;
    put_eds("c1", "0/a: 3");
    mesh_kit_stop(k, 3);
    mesh_kit_put_dns(k, "dns", "bad..name", "443", "RING_HASH");
    mesh_kit_put_aggregate(k, "agg", "c1, dns");
    open_channel("agg");
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "DNS resolution failed for bad..name:443");
    mesh_kit_put_endpoints(k, "c1", "0/a: 0", NULL);
    mesh_kit_wait_backend(k, ch, NULL, 0);
    mesh_kit_put_endpoints(k, "c1", "0/b: 1; 1/a: 0", NULL);
    mesh_kit_wait_backend(k, ch, NULL, 1);
    mesh_kit_calls(ch, NULL, 5);
    TC_CASE(AG18);
}

static void another_eds_name(void **state)
{
    (void)state;
    put_eds("c1", "0/a: 0");
    mesh_kit_put_aggregate(k, "agg", "c1");
    mesh_kit_put_endpoints(k, "other", "0/a: 1", NULL);
    open_channel("agg");
    mesh_kit_calls(ch, NULL, 5);
    assert_int_equal(mesh_kit_take(k, 0), 5);
    mesh_kit_put(k, "resources:\n- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: c1\n"
                    "  type: EDS\n  " ROUND_ROBIN "\n"
                    "  eds_cluster_config: {eds_config: {ads: {}}, service_name: other}\n");
    mesh_kit_wait_backend(k, ch, NULL, 1);
    mesh_kit_take(k, 1);
    mesh_kit_calls(ch, NULL, 5);
    assert_int_equal(mesh_kit_take(k, 1), 5);
    TC_CASE(AG17);
}

/* How often the name stands in the last request of that type. */
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

/* A cluster that a route names and an aggregate has: one subscription, one count of calls. */
static void shared_with_a_route(void **state)
{
    (void)state;
    mesh_kit_put_endpoints(k, "c1", "0/a: 0", NULL);
    mesh_kit_put_cluster(k, "c1", ROUND_ROBIN "\n  circuit_breakers: {thresholds: [{max_requests: 1}]}");
    mesh_kit_put_aggregate(k, "agg", "c1");
    mesh_kit_put_routes(k, "svc",
                        "{match: {prefix: /torc.test.Backend/}, route: {cluster: c1}}, "
                        "{match: {prefix: \"\"}, route: {cluster: agg}}");
    ch = mesh_kit_channel(k, "svc", NULL);
    mesh_kit_calls(ch, NULL, 3);
    char *requests = mesh_kit_requests(k);
    assert_int_equal(asked_for(requests, "Cluster ", "c1"), 1);
    assert_int_equal(asked_for(requests, "ClusterLoadAssignment ", "c1"), 1);
    tc_free(requests);
    int error = 0;
    uint64_t before = mesh_kit_handled(k, 0);
    torc_call *call = torc_call_open(ch, "/torc.test.Backend/Hang", NULL, &error);
    assert_non_null(call);
    assert_int_equal(torc_call_send(call, "x", 1, true), 0);
    while (mesh_kit_handled(k, 0) == before)
        ;
    struct torc_result r = mesh_kit_call(ch, NULL, false, 10000);
    assert_int_equal(r.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(r.message, "circuit breaker drop (node ID:test-node)");
    torc_result_fini(&r);
    torc_call_cancel(call);
    assert_int_equal(torc_call_finish(call, &r), 0);
    torc_result_fini(&r);
    torc_call_free(call);
    mesh_kit_wait_backend(k, ch, NULL, 0);
    TC_CASE(AG21);
}

/* A call that waits for its end in another thread's hands. */
struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    int code;
    char text[256];
};

static void on_result(const struct torc_result *r, void *arg)
{
    struct waiting *w = arg;
    pthread_mutex_lock(&w->lock);
    w->done = true;
    w->code = r->code;
    snprintf(w->text, sizeof(w->text), "%s", r->message);
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

/* Both priorities of an EDS cluster under ring_hash are dead, and the connection to the LOGICAL_DNS cluster takes its
 * time: the call waits for it and does not fail. */
static void slow_dns_after_dead_ring(void **state)
{
    (void)state;
    struct wire_proxy *proxy = wire_proxy_new(mesh_kit_address(k, 0));
    wire_proxy_hold(proxy, true);
    mesh_kit_put_endpoints(k, "c1", "0/a: 2; 1/b: 3", NULL);
    mesh_kit_put_cluster(k, "c1", NULL);
    mesh_kit_stop(k, 2);
    mesh_kit_stop(k, 3);
    mesh_kit_put_dns(k, "dns", "localhost", strchr(wire_proxy_address(proxy), ':') + 1, "ROUND_ROBIN");
    mesh_kit_put_aggregate(k, "agg", "c1, dns");
    open_channel("agg");
    struct waiting w = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    struct torc_call_options o;
    torc_call_options_init(&o);
    o.timeout_ms = 20000;
    assert_int_equal(torc_call_unary_async(ch, "/test.Service/Method", "x", 1, &o, on_result, &w, NULL), 0);
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
    assert_int_equal(mesh_kit_take(k, 0), 1);
    torc_channel_free(ch);
    ch = NULL;
    wire_proxy_free(proxy);
    TC_CASE(RH50);
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
