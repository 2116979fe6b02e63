/* Listeners, routes and clusters end to end: which cluster an RPC goes to, and what it is told when there is none. */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/mesh_kit.h"

#include "base/clock.h"
#include "base/mem.h"

#define SAMPLE 3500
#define ROUND_ROBIN "lb_policy: ROUND_ROBIN"

struct world {
    struct mesh_kit *k;
    torc_channel *ch;
};

/* Clusters "c0", "c1", ... with one backend each. */
static struct world open_world(size_t clusters, const char *routes)
{
    struct world w;
    w.k = mesh_kit_new(clusters);
    for (size_t i = 0; i < clusters; i++) {
        char name[3] = {'c', (char)('0' + i), '\0'}, *localities = tc_asprintf("0/a: %zu", i);
        mesh_kit_put_endpoints(w.k, name, localities, NULL);
        mesh_kit_put_cluster(w.k, name, ROUND_ROBIN);
        tc_free(localities);
    }
    if (routes)
        mesh_kit_put_routes(w.k, "svc", routes);
    w.ch = mesh_kit_channel(w.k, "svc", NULL);
    return w;
}

static void close_world(struct world *w)
{
    torc_channel_free(w->ch);
    mesh_kit_free(w->k);
}

static struct torc_result call_method(torc_channel *ch, const char *method, bool explain)
{
    struct torc_call_options o;
    struct torc_result r;
    torc_call_options_init(&o);
    o.timeout_ms = 10000;
    o.explain = explain;
    assert_int_equal(torc_call_unary(ch, method, "x", 1, &o, &r), 0);
    return r;
}

static void expect_method(struct world *w, const char *method, size_t backend)
{
    struct torc_result r = call_method(w->ch, method, false);
    assert_string_equal(r.message, "");
    assert_string_equal(r.peer, mesh_kit_address(w->k, backend));
    torc_result_fini(&r);
}

/* True when one of the requests asks for cluster c1 and not for c0. */
static bool asks_for_c1_only(const char *requests)
{
    for (const char *at = strstr(requests, "Cluster "); at; at = strstr(at + 1, "Cluster ")) {
        const char *end = strchr(at, '\n'), *c0 = strstr(at, " c0");
        if (end && strncmp(end - 3, " c1", 3) == 0 && (!c0 || c0 > end))
            return true;
    }
    return false;
}

/* Waits until c0 is no longer asked for (at most 10 s). */
static void wait_for_c1_only(struct mesh_kit *k)
{
    uint64_t until = tc_system_clock.monotonic_ns(tc_system_clock.arg) + 10 * TC_NS_PER_S;
    bool there = false;
    while (!there && tc_system_clock.monotonic_ns(tc_system_clock.arg) < until) {
        char *requests = mesh_kit_requests(k);
        there = asks_for_c1_only(requests);
        tc_free(requests);
    }
    assert_true(there);
}

static void paths(void **state)
{
    (void)state;
    struct world w = open_world(4, "{match: {path: /a.B/C}, route: {cluster: c0}}, "
                                   "{match: {prefix: /a.B/}, route: {cluster: c1}}, "
                                   "{match: {safe_regex: {regex: \"/x[.]Y/.*\"}}, route: {cluster: c2}}, "
                                   "{match: {prefix: \"\"}, route: {cluster: c3}}");
    expect_method(&w, "/a.B/C", 0);
    expect_method(&w, "/a.B/D", 1);
    expect_method(&w, "/x.Y/Z", 2);
    expect_method(&w, "/x.Yy/Z", 3);
    close_world(&w);
}

static void headers(void **state)
{
    (void)state;
    struct world w = open_world(
        2, "{match: {prefix: \"\", headers: [{name: tier, string_match: {exact: gold}}]}, route: {cluster: c1}}, "
           "{match: {prefix: \"\"}, route: {cluster: c0}}");
    mesh_kit_calls(w.ch, "tier: gold", 5);
    mesh_kit_calls(w.ch, "tier: tin", 3);
    mesh_kit_calls(w.ch, NULL, 1);
    assert_int_equal(mesh_kit_take(w.k, 1), 5);
    assert_int_equal(mesh_kit_take(w.k, 0), 4);
    close_world(&w);
    TC_CASE(CM01);
}

static void weighted_clusters(void **state)
{
    (void)state;
    struct world w = open_world(2, "{match: {prefix: \"\"}, route: {weighted_clusters: {clusters: "
                                   "[{name: c0, weight: 25}, {name: c1, weight: 75}]}}}");
    double shares[] = {0.25, 0.75};
    mesh_kit_expect_shares(w.k, w.ch, NULL, SAMPLE, shares, 2);
    close_world(&w);
    TC_CASE(LR17);
}

static void expect_text(torc_channel *ch, const char *method, const char *text)
{
    struct torc_result r = call_method(ch, method, false);
    assert_int_equal(r.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(r.message, text);
    torc_result_fini(&r);
}

static void no_route(void **state)
{
    (void)state;
    struct world w = open_world(1, "{match: {path: /a.B/C}, route: {cluster: c0}}, "
                                   "{match: {path: /a.B/D}, non_forwarding_action: {}}");
    expect_method(&w, "/a.B/C", 0);
    expect_text(w.ch, "/a.B/X",
                "No matching route found in xDS route config \"svc-routes\" for method \"/a.B/X\" (node ID:test-node)");
    expect_text(w.ch, "/a.B/D", "Matching route has inappropriate action (node ID:test-node)");
    close_world(&w);
    TC_CASE(LR20);
    TC_CASE(LR21);
}

/* A74: the config is whole or not there. Who gives up before the missing cluster is known to be none reads its name. */
static void waits_for_a_cluster(void **state)
{
    (void)state;
    struct world w = open_world(0, "{match: {prefix: \"\"}, route: {cluster: missing}}");
    struct torc_result r = mesh_kit_call(w.ch, NULL, false, 10); /* asks for it, whatever it ends with */
    torc_result_fini(&r);
    mesh_kit_wait_request(w.k, "Cluster  missing");
    r = mesh_kit_call(w.ch, NULL, false, 200);
    assert_int_equal(r.code, TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(r.message, "while waiting for the name resolution of xds:///svc, which waits for CDS "
                                      "resource \"missing\""));
    torc_result_fini(&r);
    close_world(&w);
}

static void explains_itself(void **state)
{
    (void)state;
    struct world w = open_world(1, "{match: {prefix: /a.B/}, route: {cluster: c0}}");
    struct torc_result r = call_method(w.ch, "/a.B/C", true);
    assert_non_null(r.explain_json);
    assert_non_null(strstr(r.explain_json, "\"cluster\":\"c0\""));
    assert_non_null(strstr(r.explain_json, "prefix \\\"/a.B/\\\""));
    torc_result_fini(&r);
    close_world(&w);
}

/* RPCs never fail while the route moves from cluster to cluster; a stream on the old cluster goes on. */
static void routes_switch_under_load(void **state)
{
    (void)state;
    struct world w = open_world(2, "{match: {prefix: \"\"}, route: {cluster: c0}}");
    int error = 0;
    mesh_kit_calls(w.ch, NULL, 5);
    torc_call *stream = torc_call_open(w.ch, "/a.B/C", NULL, &error);
    torc_message *m = NULL;
    assert_int_equal(torc_call_send(stream, "1", 1, false), 0);
    assert_int_equal(torc_call_receive(stream, &m), 1);
    torc_message_unref(m);
    for (int i = 1; i <= 20; i++) {
        mesh_kit_put_routes(w.k, "svc",
                            i % 2 ? "{match: {prefix: \"\"}, route: {cluster: c1}}"
                                  : "{match: {prefix: \"\"}, route: {cluster: c0}}");
        mesh_kit_calls(w.ch, NULL, 20);
    }
    mesh_kit_wait_backend(w.k, w.ch, NULL, 0);
    tc_free(mesh_kit_requests(w.k));
    mesh_kit_put_routes(w.k, "svc", "{match: {prefix: \"\"}, route: {cluster: c1}}");
    mesh_kit_wait_backend(w.k, w.ch, NULL, 1);
    mesh_kit_calls(w.ch, NULL, 50);
    /* The stream holds its cluster: it stays subscribed, and its connection open. */
    char *requests = mesh_kit_requests(w.k);
    assert_non_null(strstr(requests, " c0 c1\n"));
    assert_false(asks_for_c1_only(requests));
    tc_free(requests);
    struct torc_result r;
    assert_int_equal(torc_call_send(stream, "2", 1, true), 0);
    assert_int_equal(torc_call_receive(stream, &m), 1);
    torc_message_unref(m);
    assert_int_equal(torc_call_finish(stream, &r), 0);
    assert_string_equal(r.message, "");
    assert_string_equal(r.peer, mesh_kit_address(w.k, 0));
    torc_result_fini(&r);
    torc_call_free(stream);
    wait_for_c1_only(w.k);
    close_world(&w);
    TC_CASE(CM02);
    TC_CASE(LR22);
}

/* A cluster that no route names any more is unsubscribed once nothing holds it. */
static void unused_clusters_go(void **state)
{
    (void)state;
    struct world w = open_world(2, "{match: {prefix: \"\"}, route: {cluster: c0}}");
    mesh_kit_calls(w.ch, NULL, 1);
    tc_free(mesh_kit_requests(w.k));
    mesh_kit_put_routes(w.k, "svc", "{match: {prefix: \"\"}, route: {cluster: c1}}");
    wait_for_c1_only(w.k);
    close_world(&w);
}

static torc_channel *short_timeout(struct mesh_kit *k, const char *name)
{
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    o.xds_resource_timeout_ms = 300;
    return mesh_kit_channel(k, name, &o);
}

static void missing_listener(void **state)
{
    (void)state;
    struct world w = open_world(1, NULL);
    torc_channel *ch = short_timeout(w.k, "svc");
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "LDS resource \"svc\" does not exist (node ID:test-node)");
    assert_int_equal(torc_channel_state(ch, false), TORC_TRANSIENT_FAILURE);
    mesh_kit_put_routes(w.k, "svc", "{match: {prefix: \"\"}, route: {cluster: c0}}");
    mesh_kit_wait_backend(w.k, ch, NULL, 0);
    torc_channel_free(ch);
    close_world(&w);
    TC_CASE(AD12);
}

static void missing_cluster(void **state)
{
    (void)state;
    struct world w = open_world(1, "{match: {path: /a.B/C}, route: {cluster: c0}}, "
                                   "{match: {prefix: \"\"}, route: {cluster: nowhere}}");
    torc_channel *ch = short_timeout(w.k, "svc");
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "CDS resource \"nowhere\" does not exist (node ID:test-node)");
    struct world only = {w.k, ch};
    expect_method(&only, "/a.B/C", 0);
    torc_channel_free(ch);
    close_world(&w);
    TC_CASE(CD21);
}

static void missing_endpoints(void **state)
{
    (void)state;
    struct world w = open_world(1, "{match: {prefix: \"\"}, route: {cluster: lonely}}");
    mesh_kit_put_cluster(w.k, "lonely", ROUND_ROBIN);
    torc_channel *ch = short_timeout(w.k, "svc");
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE,
                          "no children in weighted_target policy: EDS resource lonely does not exist");
    torc_channel_free(ch);
    close_world(&w);
}

static void no_virtual_host(void **state)
{
    (void)state;
    struct world w = open_world(1, NULL);
    mesh_kit_put(w.k, "resources:\n"
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
    mesh_kit_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE,
                          "no virtual host for \"svc\" in route configuration \"routes\" (node ID:test-node)");
    mesh_kit_put(w.k, "resources:\n"
                      "- \"@type\": type.googleapis.com/envoy.config.route.v3.RouteConfiguration\n"
                      "  name: routes\n"
                      "  virtual_hosts: [{name: v, domains: [\"SVC\"], routes: "
                      "[{match: {prefix: \"\"}, route: {cluster: c0}}]}]\n");
    mesh_kit_wait_backend(w.k, w.ch, NULL, 0);
    close_world(&w);
    TC_CASE(LR10);
}

static void unknown_authority(void **state)
{
    (void)state;
    struct world w = open_world(1, NULL);
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    o.xds_bootstrap_json = mesh_kit_bootstrap(w.k);
    torc_channel *ch = torc_channel_new(mesh_kit_runtime(w.k), "xds://nobody/svc", &o, NULL);
    expect_text(ch, "/a.B/C",
                "target \"xds://nobody/svc\": authority \"nobody\" is not in the xDS bootstrap (node ID:test-node)");
    torc_channel_free(ch);
    o.xds_bootstrap_json = "{\"xds_servers\": 3}";
    ch = torc_channel_new(mesh_kit_runtime(w.k), "xds:///svc", &o, NULL);
    struct torc_result r = call_method(ch, "/a.B/C", false);
    assert_int_equal(r.code, TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(r.message, "xds_servers"));
    torc_result_fini(&r);
    torc_channel_free(ch);
    close_world(&w);
    TC_CASE(AD30);
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
        cmocka_unit_test(missing_endpoints),
        cmocka_unit_test(no_virtual_host),
        cmocka_unit_test(unknown_authority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
