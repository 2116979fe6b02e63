/* A75's picture as a whole: an aggregate over an EDS cluster with ring_hash ("near") and a LOGICAL_DNS cluster with
 * pick_first ("far"), with outlier detection, stateful sessions and circuit breakers. The one test shows what happens
 * to RPCs and sessions while parts fail and return.
 *
 * The events follow one another in one mesh. Each event function leaves the mesh as it was, but for `dies`, whose
 * failures `returns` repairs. Most RPCs have the key of a backend (`keys`), for ring_hash, or a session at a backend
 * (`cookies`). The test's thread makes the RPCs, but for those of `torc call`, a process (explain_by_command). Only
 * on_hung runs on the runtime's thread. Read the_whole_picture first. */
#include <jansson.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/session.h"

#include "base/clock.h"
#include "base/mem.h"

/* Backends 0 to 3 belong to near (3 to the lower priority, by default), 4 to far. */
enum { N = 5, FAR = 4 };

#define OUTLIERS                                                                                                       \
    "  outlier_detection: {interval: 0.5s, base_ejection_time: 1.5s, success_rate_stdev_factor: 100, "                 \
    "success_rate_minimum_hosts: 1, success_rate_request_volume: 1}\n"
#define BREAKERS "  circuit_breakers: {thresholds: [{max_requests: 3}]}\n"
#define WAIT_NS UINT64_C(60000000000)

static uint64_t connections[N]; /* that each backend had accepted before the first event */
static char *keys[N];           /* headers that hash to each backend */
static char *cookies[N];        /* of sessions at each backend */

static void put_far(struct kit_mesh *k)
{
    kit_mesh_put(k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                 "  name: far\n"
                 "  type: LOGICAL_DNS\n" OUTLIERS BREAKERS
                 "  load_balancing_policy: {policies: [{typed_extension_config: {name: pf, typed_config: {\"@type\": "
                 "type.googleapis.com/envoy.extensions.load_balancing_policies.pick_first.v3.PickFirst}}}]}\n"
                 "  load_assignment:\n"
                 "    endpoints:\n"
                 "    - lb_endpoints:\n"
                 "      - endpoint: {address: {socket_address: {address: localhost, port_value: %s}}}\n",
                 strchr(kit_mesh_address(k, FAR), ':') + 1);
}

static void put_mesh(struct kit_mesh *k)
{
    kit_mesh_put_endpoints(k, "near", "0/a: 0, 1, 2; 1/b: 3", NULL);
    kit_mesh_put_cluster(k, "near", "lb_policy: RING_HASH\n" OUTLIERS BREAKERS);
    put_far(k);
    kit_mesh_put(k, "resources:\n"
                    "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                    "  name: agg\n"
                    "  lb_policy: CLUSTER_PROVIDED\n"
                    "  cluster_type:\n"
                    "    name: envoy.clusters.aggregate\n"
                    "    typed_config:\n"
                    "      \"@type\": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig\n"
                    "      clusters: [near, far]\n");
    kit_mesh_put_filtered(k, "svc", SESSION("name: s"),
                          "{match: {prefix: \"\"}, route: {cluster: agg, hash_policy: "
                          "[{header: {header_name: address_hash}}]}}");
}

static struct kit_mesh_world open_world(void)
{
    struct kit_mesh_world w = {.k = kit_mesh_new(N)};
    put_mesh(w.k);
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    for (size_t i = 0; i < N; i++) {
        char *value = kit_session_cookie("%s;cluster:agg", kit_mesh_address(w.k, i));
        keys[i] = tc_asprintf("address_hash: %s_0", kit_mesh_address(w.k, i));
        cookies[i] = tc_asprintf("cookie: %s", value);
        tc_free(value);
    }
    return w;
}

static void close_world(struct kit_mesh_world *w)
{
    for (size_t i = 0; i < N; i++) {
        tc_free(keys[i]);
        tc_free(cookies[i]);
    }
    torc_channel_free(w->ch);
    kit_mesh_free(w->k);
}

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

/* --- the tree --- */

/* Returns the child node, which must be of that policy; borrowed from `node`. */
static const json_t *below(const json_t *node, const char *policy)
{
    const json_t *child = json_object_get(node, "child");
    const char *name = json_string_value(json_object_get(child, "policy"));
    if (!name || strcmp(name, policy) != 0)
        fail_msg("%s in the place of %s", name ? name : "nothing", policy);
    return child;
}

/* Checks the policies of a leaf cluster, from the aggregate's child `node` down to `priority`. Returns the node of
 * `priority`. */
static const json_t *check_leaf(const json_t *node, const char *cluster)
{
    const json_t *cds = below(node, "cds_experimental");
    assert_string_equal(json_string_value(json_object_get(cds, "cluster")), cluster);
    const json_t *impl = below(below(cds, "outlier_detection"), "xds_cluster_impl_experimental");
    assert_int_equal(json_integer_value(json_object_get(impl, "max_calls")), 3);
    const json_t *override = below(impl, "xds_override_host_experimental");
    assert_true(json_is_true(json_object_get(override, "sessions")));
    return below(override, "priority");
}

/* Returns the node of priority i, which must exist; borrowed from `node`. */
static const json_t *priority(const json_t *node, size_t i)
{
    const json_t *p = json_array_get(json_object_get(node, "priorities"), i);
    assert_non_null(p);
    return p;
}

/* Returns the node of the aggregate's policy, borrowed from the description of the channel. */
static const json_t *aggregate_of(const json_t *channel)
{
    const json_t *manager = below(channel, "xds_cluster_manager_experimental");
    const json_t *cds = below(json_array_get(json_object_get(manager, "clusters"), 0), "cds_experimental");
    assert_string_equal(json_string_value(json_object_get(cds, "cluster")), "agg");
    return below(cds, "priority");
}

static void check_whole_tree(const json_t *channel)
{
    const json_t *aggregate = aggregate_of(channel);
    const json_t *near = check_leaf(priority(aggregate, 0), "near");
    below(priority(near, 0), "ring_hash");
    below(priority(near, 1), "ring_hash");
    const json_t *far = check_leaf(priority(aggregate, 1), "far");
    below(priority(far, 0), "pick_first");
}

/* Runs `torc call --explain`, a separate process with its own channel. Returns the first member of that name in its
 * output; the caller frees it with json_decref. */
static json_t *explain_by_command(struct kit_mesh_world *w, const char *member)
{
    const char *directory = getenv("TORC_BINARY_DIR");
    assert_non_null(directory);
    setenv("GRPC_XDS_BOOTSTRAP_CONFIG", kit_mesh_bootstrap(w->k), 1);
    unsetenv("GRPC_XDS_BOOTSTRAP");
    char *command =
        tc_asprintf("%s/torc call -o json --explain --wait-for-ready xds:///svc test.Service/Method", directory);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    json_t *found = NULL;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, out) > 0) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        if (!found)
            found = json_incref(json_object_get(object, member));
        json_decref(object);
    }
    free(line);
    assert_int_equal(pclose(out), 0);
    tc_free(command);
    assert_non_null(found);
    return found;
}

/* Returns the description of the channel; the caller frees it with json_decref. */
static json_t *describe(struct kit_mesh_world *w)
{
    char *text = NULL;
    assert_int_equal(torc_channel_describe(w->ch, &text), 0);
    json_t *channel = json_loads(text, 0, NULL);
    assert_non_null(channel);
    torc_free(text);
    return channel;
}

/* Returns whether near's outlier detection has ejected the backend. */
static bool ejected(struct kit_mesh_world *w, size_t i)
{
    json_t *channel = describe(w);
    const json_t *cds = below(priority(aggregate_of(channel), 0), "cds_experimental");
    const json_t *list = json_object_get(below(cds, "outlier_detection"), "ejected");
    bool found = false;
    for (size_t k = 0; k < json_array_size(list); k++)
        found |= strcmp(json_string_value(json_array_get(list, k)), kit_mesh_address(w->k, i)) == 0;
    json_decref(channel);
    return found;
}

/* --- RPCs --- */

/* Makes an RPC, which waits for ready and must succeed. Returns the number of the backend that answered. */
static size_t reached(struct kit_mesh_world *w, const char *headers)
{
    torc_result *r = kit_mesh_call(w->ch, headers, true, 60000);
    size_t at = N;
    if (torc_result_code(r) != TORC_STATUS_OK)
        fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    for (size_t i = 0; i < N; i++)
        at = strcmp(torc_result_peer(r), kit_mesh_address(w->k, i)) == 0 ? i : at;
    torc_result_free(r);
    return at;
}

/* Makes an RPC with the key of backend i that ends with INTERNAL. */
static void fail_once(struct kit_mesh_world *w, size_t i)
{
    torc_result *r;
    struct torc_call_options o = {TORC_SIZE(torc_call_options)};
    torc_metadata *md = torc_metadata_new();
    assert_int_equal(torc_metadata_add_string(md, "address_hash", keys[i] + strlen("address_hash: ")), 0);
    o.metadata = md;
    o.timeout_ms = 60000;
    r = torc_unary(w->ch, "/torc.test.Backend/Fail", "13", 2, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_INTERNAL);
    torc_result_free(r);
    torc_metadata_free(md);
}

/* --- events --- */

static atomic_size_t hung; /* RPCs of breaks_the_circuit that have ended */

static void on_hung(const torc_result *r, void *arg)
{
    (void)r;
    (void)arg;
    atomic_fetch_add(&hung, 1);
}

/* While three RPCs are open, a fourth is dropped, with or without a session. */
static void breaks_the_circuit(struct kit_mesh_world *w)
{
    torc_stream *calls[3];
    for (size_t i = 0; i < N; i++)
        kit_mesh_take(w->k, i);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            torc_unary_async(w->ch, "/torc.test.Backend/Hang", "", 0, NULL, on_hung, NULL, &calls[i], NULL), 0);
    for (uint64_t n = 0, until = now_ns() + WAIT_NS; n < 3;) {
        for (size_t i = 0; i < N; i++)
            n += kit_mesh_take(w->k, i);
        assert_true(now_ns() < until);
        (void)poll(NULL, 0, 1);
    }
    const char *const headers[] = {NULL, cookies[0]};
    for (size_t i = 0; i < 2; i++) {
        torc_result *r = kit_mesh_call(w->ch, headers[i], false, 60000);
        assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
        assert_non_null(strstr(torc_result_text(r), "circuit breaker drop"));
        torc_result_free(r);
    }
    for (size_t i = 0; i < 3; i++)
        torc_stream_cancel(calls[i]);
    for (uint64_t until = now_ns() + WAIT_NS; atomic_load(&hung) < 3;) {
        assert_true(now_ns() < until);
        (void)poll(NULL, 0, 1);
    }
    for (size_t i = 0; i < 3; i++)
        torc_stream_free(calls[i]);
}

/* Makes backend 0 fail RPCs until it is ejected, at most 60 s. Meanwhile RPCs with the keys 0 to 2 reach the
 * first priority. */
static void eject(struct kit_mesh_world *w)
{
    for (uint64_t until = now_ns() + WAIT_NS; !ejected(w, 0);) {
        assert_true(now_ns() < until);
        for (size_t i = 0; i < 3; i++)
            assert_true(reached(w, keys[i]) < 3);
        if (reached(w, keys[0]) == 0)
            fail_once(w, 0);
    }
}

/* A backend that fails RPCs is ejected and returns, on the same connection; its session stays. There are several tries:
 * if the machine stalls, the backend may be back before a call is made. */
static void ejects_and_returns(struct kit_mesh_world *w)
{
    bool away = false;
    for (int tries = 0; tries < 5 && !away; tries++) {
        eject(w);
        while (ejected(w, 0)) {
            away |= reached(w, keys[0]) != 0;
            assert_int_equal(reached(w, cookies[0]), 0);
        }
    }
    assert_true(away);
    kit_mesh_wait_backend(w->k, w->ch, keys[0], 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(kit_mesh_connections(w->k, i), connections[i]);
}

/* The endpoint of a session moves to the lower priority and back. */
static void moves(struct kit_mesh_world *w)
{
    assert_int_equal(reached(w, cookies[1]), 1);
    kit_mesh_put_endpoints(w->k, "near", "0/a: 0, 2; 1/b: 3, 1", NULL);
    for (uint64_t until = now_ns() + WAIT_NS; reached(w, keys[1]) == 1;)
        assert_true(now_ns() < until);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(reached(w, cookies[1]), 1);
        assert_int_not_equal(reached(w, keys[1]), 1);
    }
    kit_mesh_put_endpoints(w->k, "near", "0/a: 0, 1, 2; 1/b: 3", NULL);
    kit_mesh_wait_backend(w->k, w->ch, keys[1], 1);
    assert_int_equal(reached(w, cookies[1]), 1);
    assert_int_equal(kit_mesh_connections(w->k, 1), connections[1]);
}

/* All of near fails: far takes over, with its own policy and sessions. */
static void dies(struct kit_mesh_world *w)
{
    for (size_t i = 0; i < FAR; i++)
        kit_mesh_stop(w->k, i);
    kit_mesh_wait_backend(w->k, w->ch, keys[0], FAR);
    for (size_t i = 0; i < FAR; i++) {
        assert_int_equal(reached(w, keys[i]), FAR);
        assert_int_equal(reached(w, cookies[i]), FAR);
    }
    struct kit_session_answer a = kit_session_call(w, cookies[FAR] + strlen("cookie: "));
    assert_int_equal(a.backend, FAR);
    char *fresh = NULL, *plain = a.set_cookie ? kit_session_read_cookie(a.set_cookie, &fresh) : NULL;
    /* If a cookie is set, because "localhost" has further addresses, it begins with the address in use. */
    if (plain)
        assert_int_equal(strncmp(plain, kit_mesh_address(w->k, FAR), strlen(kit_mesh_address(w->k, FAR))), 0);
    tc_free(plain);
    tc_free(fresh);
    kit_session_answer_fini(&a);
    json_t *channel = describe(w);
    check_whole_tree(channel);
    json_decref(channel);
    channel = explain_by_command(w, "channel");
    check_whole_tree(channel);
    json_decref(channel);
}

/* near is back, and so are its keys and its sessions. */
static void returns(struct kit_mesh_world *w)
{
    for (size_t i = 0; i < FAR; i++)
        kit_mesh_start(w->k, i);
    kit_mesh_wait_backend(w->k, w->ch, keys[2], 2);
    for (size_t i = 0; i < 3; i++) {
        kit_mesh_wait_backend(w->k, w->ch, keys[i], i);
        kit_mesh_wait_backend(w->k, w->ch, cookies[i], i);
    }
    /* A session in the lower priority. */
    kit_mesh_wait_backend(w->k, w->ch, cookies[3], 3);
    /* A session of far has no endpoint in near, and goes where RPCs without a session go. */
    assert_true(reached(w, cookies[FAR]) < 3);
}

static void the_whole_picture(void **state)
{
    TC_CASE(AG23);
    TC_CASE(SS13);
    (void)state;
    struct kit_mesh_world w = open_world();
    for (size_t i = 0; i < 3; i++)
        kit_mesh_wait_backend(w.k, w.ch, keys[i], i);
    json_t *call = explain_by_command(&w, "call");
    const json_t *explain = json_object_get(call, "explain");
    assert_string_equal(json_string_value(json_object_get(explain, "policy")), "ring_hash");
    json_decref(call);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(reached(&w, cookies[i]), i);
    for (size_t i = 0; i < N; i++)
        connections[i] = kit_mesh_connections(w.k, i);
    breaks_the_circuit(&w);
    moves(&w);
    ejects_and_returns(&w);
    dies(&w);
    returns(&w);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_whole_picture)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
