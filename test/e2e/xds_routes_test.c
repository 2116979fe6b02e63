/* Listeners, routes and clusters end to end, over real sockets: which cluster an RPC goes to, and its status if there
 * is none. Read kits/mesh.h first.
 *
 * Each cluster "cN" has backend N alone, so the peer of an RPC tells its cluster. The listener "svc" has the test's
 * routes inline, as the route configuration "svc-routes", except in no_virtual_host. The requests that the control
 * plane got (kit_mesh_requests) tell which clusters the client is subscribed to.
 *
 * While a resource is on its way, RPCs that need the resource wait. It counts as absent after 60 s in the world's
 * channel, and after 1 s in a channel of short_timeout. Then RPCs that do not wait for ready fail, and their text names
 * the resource.
 *
 * The tests run on one thread. Control plane and backends have their own thread, and so has the channels' runtime. */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"

#include "base/clock.h"
#include "base/mem.h"

#define SAMPLE 3500
#define ROUND_ROBIN "lb_policy: ROUND_ROBIN"

/* Makes clusters "c0", "c1", ... with one backend each, a listener "svc" with these routes (NULL: no listener), and a
 * channel to "svc". kit_mesh_world_close frees all. */
static struct kit_mesh_world open_world(size_t clusters, const char *routes)
{
    struct kit_mesh_world w = kit_mesh_world_open_clusters(clusters);
    if (routes)
        kit_mesh_put_routes(w.k, "svc", routes);
    return w;
}

/* Makes one RPC with a deadline of 60 s. The caller frees the result. */
static torc_result *call_method(torc_channel *ch, const char *method, bool explain)
{
    torc_result *r;
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 60000, .explain = explain};
    r = torc_unary(ch, method, "x", 1, &o);
    return r;
}

/* Expects that an RPC of the method succeeds on this backend. */
static void expect_method(struct kit_mesh_world *w, const char *method, size_t backend)
{
    torc_result *r = call_method(w->ch, method, false);
    assert_string_equal(torc_result_text(r), "");
    assert_string_equal(torc_result_peer(r), kit_mesh_address(w->k, backend));
    torc_result_free(r);
}

/* Calls the method until it succeeds, without a limit. */
static void wait_method(torc_channel *ch, const char *method)
{
    for (int code = -1; code != TORC_STATUS_OK;) {
        torc_result *r = call_method(ch, method, false);
        code = torc_result_code(r);
        torc_result_free(r);
    }
}

/* Returns true if one of the requests (text of kit_mesh_requests) asks for cluster c1 and not for c0. */
static bool asks_for_c1_only(const char *requests)
{
    for (const char *at = strstr(requests, "Cluster "); at; at = strstr(at + 1, "Cluster ")) {
        const char *end = strchr(at, '\n'), *c0 = strstr(at, " c0");
        if (end && strncmp(end - 3, " c1", 3) == 0 && (!c0 || c0 > end))
            return true;
    }
    return false;
}

/* Takes requests until one asks for c1 and not for c0: at most 60 s. */
static void wait_for_c1_only(struct kit_mesh *k)
{
    uint64_t until = tc_system_clock.monotonic_ns(tc_system_clock.arg) + 60 * TC_NS_PER_S;
    bool there = false;
    while (!there && tc_system_clock.monotonic_ns(tc_system_clock.arg) < until) {
        char *requests = kit_mesh_requests(k);
        there = asks_for_c1_only(requests);
        tc_free(requests);
    }
    assert_true(there);
}

static void paths(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(4, "{match: {path: /a.B/C}, route: {cluster: c0}}, "
                                            "{match: {prefix: /a.B/}, route: {cluster: c1}}, "
                                            "{match: {safe_regex: {regex: \"/x[.]Y/.*\"}}, route: {cluster: c2}}, "
                                            "{match: {prefix: \"\"}, route: {cluster: c3}}");
    expect_method(&w, "/a.B/C", 0);
    expect_method(&w, "/a.B/D", 1);
    expect_method(&w, "/x.Y/Z", 2);
    expect_method(&w, "/x.Yy/Z", 3);
    kit_mesh_world_close(&w);
}

static void headers(void **state)
{
    TC_CASE(CM01);
    (void)state;
    struct kit_mesh_world w = open_world(
        2, "{match: {prefix: \"\", headers: [{name: tier, string_match: {exact: gold}}]}, route: {cluster: c1}}, "
           "{match: {prefix: \"\"}, route: {cluster: c0}}");
    kit_mesh_calls(w.ch, "tier: gold", 5);
    kit_mesh_calls(w.ch, "tier: tin", 3);
    kit_mesh_calls(w.ch, NULL, 1);
    assert_int_equal(kit_mesh_take(w.k, 1), 5);
    assert_int_equal(kit_mesh_take(w.k, 0), 4);
    kit_mesh_world_close(&w);
}

static void weighted_clusters(void **state)
{
    TC_CASE(LR17);
    (void)state;
    struct kit_mesh_world w = open_world(2, "{match: {prefix: \"\"}, route: {weighted_clusters: {clusters: "
                                            "[{name: c0, weight: 25}, {name: c1, weight: 75}]}}}");
    double shares[] = {0.25, 0.75};
    kit_mesh_expect_shares(w.k, w.ch, NULL, SAMPLE, shares, 2);
    kit_mesh_world_close(&w);
}

/* Expects that an RPC of the method fails with UNAVAILABLE and exactly this text. */
static void expect_text(torc_channel *ch, const char *method, const char *text)
{
    torc_result *r = call_method(ch, method, false);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_string_equal(torc_result_text(r), text);
    torc_result_free(r);
}

static void no_route(void **state)
{
    TC_CASE(LR20);
    TC_CASE(LR21);
    (void)state;
    struct kit_mesh_world w = open_world(1, "{match: {path: /a.B/C}, route: {cluster: c0}}, "
                                            "{match: {path: /a.B/D}, non_forwarding_action: {}}");
    expect_method(&w, "/a.B/C", 0);
    expect_text(w.ch, "/a.B/X",
                "No matching route found in xDS route config \"svc-routes\" for method \"/a.B/X\" (node ID:test-node)");
    expect_text(w.ch, "/a.B/D", "Matching route has inappropriate action (node ID:test-node)");
    kit_mesh_world_close(&w);
}

/* A74: a config is complete or absent, so RPCs wait for a missing cluster. The status of an RPC whose deadline expires
 * meanwhile names the cluster. */
static void waits_for_a_cluster(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(0, "{match: {prefix: \"\"}, route: {cluster: missing}}");
    torc_result *r = kit_mesh_call(w.ch, NULL, false, 10); /* makes the channel ask for the cluster */
    torc_result_free(r);
    kit_mesh_wait_request(w.k, "Cluster  missing");
    r = kit_mesh_call(w.ch, NULL, false, 200);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(torc_result_text(r),
                           "while waiting for the name resolution of xds:///svc, which waits for CDS "
                           "resource \"missing\""));
    torc_result_free(r);
    kit_mesh_world_close(&w);
}

static void explains_itself(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(1, "{match: {prefix: /a.B/}, route: {cluster: c0}}");
    torc_result *r = call_method(w.ch, "/a.B/C", true);
    assert_non_null(torc_result_explain(r));
    assert_non_null(strstr(torc_result_explain(r), "\"cluster\":\"c0\""));
    assert_non_null(strstr(torc_result_explain(r), "prefix \\\"/a.B/\\\""));
    torc_result_free(r);
    kit_mesh_world_close(&w);
}

/* RPCs never fail while the route moves between clusters; a stream on the old cluster goes on. */
static void routes_switch_under_load(void **state)
{
    TC_CASE(CM02);
    TC_CASE(LR22);
    (void)state;
    struct kit_mesh_world w = open_world(2, "{match: {prefix: \"\"}, route: {cluster: c0}}");
    torc_error *error = NULL;
    kit_mesh_calls(w.ch, NULL, 5);
    torc_stream *stream = torc_stream_open(w.ch, "/a.B/C", NULL, &error);
    const torc_message *m = NULL;
    assert_int_equal(torc_stream_send(stream, "1", 1, 0, -1), 0);
    assert_int_equal(torc_stream_receive(stream, -1, &m), 1);
    for (int i = 1; i <= 20; i++) {
        kit_mesh_put_routes(w.k, "svc",
                            i % 2 ? "{match: {prefix: \"\"}, route: {cluster: c1}}"
                                  : "{match: {prefix: \"\"}, route: {cluster: c0}}");
        kit_mesh_calls(w.ch, NULL, 20);
    }
    kit_mesh_wait_accepted(w.k, "Listener", "svc", "c0"); /* the loop's last listener */
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    tc_free(kit_mesh_requests(w.k));
    kit_mesh_put_routes(w.k, "svc", "{match: {prefix: \"\"}, route: {cluster: c1}}");
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    kit_mesh_calls(w.ch, NULL, 50);
    /* The stream holds its cluster, which stays subscribed and connected. */
    char *requests = kit_mesh_requests(w.k);
    assert_non_null(strstr(requests, " c0 c1\n"));
    assert_false(asks_for_c1_only(requests));
    tc_free(requests);
    torc_result *r;
    assert_int_equal(torc_stream_send(stream, "2", 1, TORC_SEND_LAST, -1), 0);
    assert_int_equal(torc_stream_receive(stream, -1, &m), 1);
    r = torc_stream_finish(stream);
    assert_string_equal(torc_result_text(r), "");
    assert_string_equal(torc_result_peer(r), kit_mesh_address(w.k, 0));
    torc_result_free(r);
    torc_stream_free(stream);
    wait_for_c1_only(w.k);
    kit_mesh_world_close(&w);
}

/* A cluster that no route names is unsubscribed once nothing holds it. */
static void unused_clusters_go(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(2, "{match: {prefix: \"\"}, route: {cluster: c0}}");
    kit_mesh_calls(w.ch, NULL, 1);
    tc_free(kit_mesh_requests(w.k));
    kit_mesh_put_routes(w.k, "svc", "{match: {prefix: \"\"}, route: {cluster: c1}}");
    wait_for_c1_only(w.k);
    kit_mesh_world_close(&w);
}

/* Makes a channel to "xds:///NAME" for which a resource counts as absent after 1 s. The caller frees the channel. */
static torc_channel *short_timeout(struct kit_mesh *k, const char *name)
{
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_resource_timeout_ms = 1000};
    return kit_mesh_channel(k, name, &o);
}

static void missing_listener(void **state)
{
    TC_CASE(AD12);
    (void)state;
    struct kit_mesh_world w = open_world(1, NULL);
    torc_channel *ch = short_timeout(w.k, "svc");
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "LDS resource \"svc\" does not exist (node ID:test-node)");
    assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    kit_mesh_put_routes(w.k, "svc", "{match: {prefix: \"\"}, route: {cluster: c0}}");
    kit_mesh_wait_backend(w.k, ch, NULL, 0);
    torc_channel_free(ch);
    kit_mesh_world_close(&w);
}

static void missing_cluster(void **state)
{
    TC_CASE(CD21);
    (void)state;
    struct kit_mesh_world w = open_world(1, "{match: {path: /a.B/C}, route: {cluster: c0}}, "
                                            "{match: {prefix: \"\"}, route: {cluster: nowhere}}");
    torc_channel *ch = short_timeout(w.k, "svc");
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "CDS resource \"nowhere\" does not exist (node ID:test-node)");
    wait_method(ch, "/a.B/C"); /* on a slow machine c0 may come later than after 1 s */
    struct kit_mesh_world only = {w.k, ch};
    expect_method(&only, "/a.B/C", 0);
    torc_channel_free(ch);
    kit_mesh_world_close(&w);
}

/* An RPC whose end the test awaits. on_over, on the runtime's thread, sets code and text and then posts `over`. */
struct waiting {
    sem_t over;
    int code;
    char text[256];
};

static void on_over(const torc_result *r, void *arg)
{
    struct waiting *w = arg;
    w->code = torc_result_code(r);
    snprintf(w->text, sizeof(w->text), "%s", torc_result_text(r));
    sem_post(&w->over);
}

/* A31: an RPC waiting for a cluster that does not exist ends when no route has the cluster. */
static void waits_for_a_deleted_cluster(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(1, "{match: {prefix: \"\"}, route: {cluster: nowhere}}");
    struct waiting rpc = {.code = -1};
    char *json = NULL;
    torc_channel *ch = short_timeout(w.k, "svc");
    sem_init(&rpc.over, 0, 0);
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "CDS resource \"nowhere\" does not exist (node ID:test-node)");
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .wait_for_ready = TORC_ON, .timeout_ms = 60000};
    assert_int_equal(torc_unary_async(ch, "/a.B/C", "x", 1, &o, on_over, &rpc, NULL, NULL), 0);
    /* The runtime's loop runs its tasks in order, so the RPC has its cluster when torc_channel_describe returns. */
    assert_int_equal(torc_channel_describe(ch, &json), 0);
    torc_free(json);
    kit_mesh_put_routes(w.k, "svc", "{match: {prefix: \"\"}, route: {cluster: c0}}");
    while (sem_wait(&rpc.over) != 0)
        ;
    assert_string_equal(rpc.text, "CDS resource \"nowhere\" does not exist (node ID:test-node)");
    assert_int_equal(rpc.code, TORC_STATUS_UNAVAILABLE);
    kit_mesh_wait_backend(w.k, ch, NULL, 0);
    torc_channel_free(ch);
    sem_destroy(&rpc.over);
    kit_mesh_world_close(&w);
}

static void missing_endpoints(void **state)
{
    (void)state;
    struct kit_mesh_world w = open_world(1, "{match: {prefix: \"\"}, route: {cluster: lonely}}");
    kit_mesh_put_cluster(w.k, "lonely", ROUND_ROBIN);
    torc_channel *ch = short_timeout(w.k, "svc");
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE,
                          "no children in weighted_target policy: EDS resource lonely does not exist");
    torc_channel_free(ch);
    kit_mesh_world_close(&w);
}

static void no_virtual_host(void **state)
{
    TC_CASE(LR10);
    (void)state;
    struct kit_mesh_world w = open_world(1, NULL);
    kit_mesh_put(w.k, "resources:\n"
                      "- \"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\n"
                      "  name: svc\n"
                      "  api_listener:\n"
                      "    api_listener:\n"
                      "      \"@type\": type.googleapis.com/"
                      "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager\n"
                      "      http_filters:\n"
                      "      - name: router\n"
                      "        typed_config:\n"
                      "          \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router\n"
                      "      rds: {route_config_name: routes, config_source: {ads: {}}}\n"
                      "- \"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n"
                      "  name: routes\n"
                      "  virtual_hosts: [{name: v, domains: [\"other\"], routes: "
                      "[{match: {prefix: \"\"}, route: {cluster: c0}}]}]\n");
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE,
                          "no virtual host for \"svc\" in route configuration \"routes\" (node ID:test-node)");
    kit_mesh_put(w.k, "resources:\n"
                      "- \"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n"
                      "  name: routes\n"
                      "  virtual_hosts: [{name: v, domains: [\"SVC\"], routes: "
                      "[{match: {prefix: \"\"}, route: {cluster: c0}}]}]\n");
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_world_close(&w);
}

static void unknown_authority(void **state)
{
    TC_CASE(AD30);
    (void)state;
    struct kit_mesh_world w = open_world(1, NULL);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = kit_mesh_bootstrap(w.k)};
    torc_channel *ch = torc_channel_new(kit_mesh_runtime(w.k), "xds://nobody/svc", &o, NULL);
    expect_text(ch, "/a.B/C",
                "target \"xds://nobody/svc\": authority \"nobody\" is not in the xDS bootstrap (node ID:test-node)");
    torc_channel_free(ch);
    /* A bootstrap that cannot be used fails RPCs with its error. */
    o.xds_bootstrap_json = "{\"xds_servers\": 3}";
    ch = torc_channel_new(kit_mesh_runtime(w.k), "xds:///svc", &o, NULL);
    torc_result *r = call_method(ch, "/a.B/C", false);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(torc_result_text(r), "xds_servers"));
    torc_result_free(r);
    torc_channel_free(ch);
    kit_mesh_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),
        cmocka_unit_test(headers),
        cmocka_unit_test(weighted_clusters),
        cmocka_unit_test(no_route),
        cmocka_unit_test(waits_for_a_cluster),
        cmocka_unit_test(explains_itself),
        cmocka_unit_test(routes_switch_under_load),
        cmocka_unit_test(unused_clusters_go),
        cmocka_unit_test(missing_listener),
        cmocka_unit_test(missing_cluster),
        cmocka_unit_test(waits_for_a_deleted_cluster),
        cmocka_unit_test(missing_endpoints),
        cmocka_unit_test(no_virtual_host),
        cmocka_unit_test(unknown_authority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
