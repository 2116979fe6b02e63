/* The dependency manager (A74): which resources are asked for, and which configs, errors and notes come of them. The
 * manager and the xDS client are real, and run on a manual loop in one thread (kits/dependency). The test plays the
 * control plane. No test has LOGICAL_DNS clusters. */
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/dependency.h"

#include "base/mem.h"

#define AGGREGATE(name, list)                                                                                          \
    "{'@type': '" KIT_CDS "', 'name': '" name "', 'clusterType': {'name': 'a', 'typedConfig': {'@type': "              \
    "'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig', 'clusters': [" list "]}}}"

static void one_cluster(struct kit_dependency *w)
{
    kit_dependency_answer(w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_answer(w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("c")));
    kit_dependency_answer(w, KIT_CDS, KIT_CLUSTER("c"));
    kit_dependency_answer(w, KIT_EDS, KIT_ENDPOINTS("c", "1"));
    assert_int_equal(w->configs, 1);
}

/* Each resource is requested when it is known to be needed; nothing is published before all are there. */
static void whole_or_nothing(void **state)
{
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    assert_string_equal(kit_dependency_asked(&w, KIT_LDS), "l");
    kit_dependency_assert_pending(&w, "LDS resource \"l\"");
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    assert_string_equal(kit_dependency_asked(&w, KIT_RDS), "r");
    kit_dependency_assert_pending(&w, "RDS resource \"r\"");
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("a") ", " KIT_TO("b")));
    assert_string_equal(kit_dependency_asked(&w, KIT_CDS), "a,b");
    kit_dependency_assert_pending(&w, "CDS resource \"a\", CDS resource \"b\"");
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("a") ", " KIT_CLUSTER("b"));
    assert_string_equal(kit_dependency_asked(&w, KIT_EDS), "a,b");
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("a", "1"));
    assert_int_equal(w.configs, 0);
    kit_dependency_assert_pending(&w, "EDS resource \"b\"");
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("a", "1") ", " KIT_ENDPOINTS("b", "2"));
    kit_dependency_assert_pending(&w, "");
    assert_int_equal(w.configs, 1);
    assert_int_equal(w.config->n_clusters, 2);
    assert_string_equal(w.config->vhost->name.data, "v");
    assert_string_equal(kit_dependency_cluster(&w, "b")->resolution_note->data, "xDS node ID:n1");
    assert_int_equal(kit_dependency_cluster(&w, "b")->eds->priorities[0].localities[0].n, 1);
    kit_dependency_close(&w);
}

static void only_what_changed_is_new(void **state)
{
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("a") ", " KIT_TO("b")));
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("a") ", " KIT_CLUSTER("b"));
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("a", "1") ", " KIT_ENDPOINTS("b", "2"));
    struct tc_cluster_config *a = tc_cluster_config_ref(kit_dependency_cluster(&w, "a"));
    struct tc_cluster_config *b = tc_cluster_config_ref(kit_dependency_cluster(&w, "b"));
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("b", "3"));
    assert_int_equal(w.configs, 2);
    assert_ptr_equal(kit_dependency_cluster(&w, "a"), a);
    assert_ptr_not_equal(kit_dependency_cluster(&w, "b"), b);
    /* An equal resource notifies nobody. */
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("b", "3"));
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    assert_int_equal(w.configs, 2);
    tc_cluster_config_unref(a);
    tc_cluster_config_unref(b);
    kit_dependency_close(&w);
}

/* A mesh of two thousand clusters: one endpoint changes, and nothing else is new. */
static void two_thousand_clusters(void **state)
{
    enum { N = 2000, CHANGED = 777 };
    (void)state;
    struct kit_dependency w;
    struct tc_buf routes = {0}, clusters = {0}, endpoints = {0}, changed = {0};
    struct tc_cluster_config **before = tc_calloc(N, sizeof(*before));
    for (size_t i = 0; i < N; i++) {
        const char *comma = i ? ", " : "";
        tc_buf_printf(&routes, "%s" KIT_TO("c%zu"), comma, i, i);
        tc_buf_printf(&clusters, "%s" KIT_CLUSTER("c%zu"), comma, i);
        tc_buf_printf(&endpoints, "%s" KIT_ENDPOINTS("c%zu", "%zu"), comma, i, i + 1);
        tc_buf_printf(&changed, "%s" KIT_ENDPOINTS("c%zu", "%zu"), comma, i, i == CHANGED ? N + 1 : i + 1);
    }
    kit_dependency_open(&w, NULL, NULL);
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    char *table = tc_asprintf(KIT_ROUTES("r", "*", "%s"), tc_buf_cstr(&routes));
    kit_dependency_answer(&w, KIT_RDS, table);
    kit_dependency_assert_pending(
        &w, "CDS resource \"c0\", CDS resource \"c1\", CDS resource \"c2\", CDS resource \"c3\" and 1996 "
            "more");
    kit_dependency_answer(&w, KIT_CDS, tc_buf_cstr(&clusters));
    kit_dependency_answer(&w, KIT_EDS, tc_buf_cstr(&endpoints));
    assert_int_equal(w.configs, 1);
    assert_int_equal(w.config->n_clusters, N);
    for (size_t i = 0; i < N; i++)
        before[i] = tc_cluster_config_ref(w.config->clusters[i]);
    /* The server sends all EDS and CDS resources again, as in state of the world. One EDS resource differs. */
    kit_dependency_answer(&w, KIT_EDS, tc_buf_cstr(&changed));
    kit_dependency_answer(&w, KIT_CDS, tc_buf_cstr(&clusters));
    assert_int_equal(w.configs, 2);
    assert_int_equal(w.config->n_clusters, N);
    size_t fresh = 0;
    for (size_t i = 0; i < N; i++) {
        const struct tc_cluster_config *now = w.config->clusters[i];
        assert_ptr_equal(now->cluster, before[i]->cluster);
        if (now == before[i])
            continue;
        fresh++;
        assert_string_equal(now->name->data, "c777");
        assert_ptr_not_equal(now->eds, before[i]->eds);
    }
    assert_int_equal(fresh, 1);
    for (size_t i = 0; i < N; i++)
        tc_cluster_config_unref(before[i]);
    tc_free(before);
    tc_free(table);
    tc_buf_fini(&routes);
    tc_buf_fini(&clusters);
    tc_buf_fini(&endpoints);
    tc_buf_fini(&changed);
    kit_dependency_close(&w);
}

/* The old route serves until the new route's cluster and endpoints are there. */
static void new_route_waits_for_its_cluster(void **state)
{
    TC_CASE(CM02);
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    one_cluster(&w);
    tc_dependency_manager_subscribe(w.manager, tc_slice_str("c"));
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("d")));
    assert_string_equal(kit_dependency_asked(&w, KIT_CDS), "c,d");
    assert_int_equal(w.configs, 1);
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c") ", " KIT_CLUSTER("d"));
    assert_int_equal(w.configs, 1);
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("d", "4"));
    assert_int_equal(w.configs, 2);
    /* The subscription still holds "c". */
    assert_int_equal(w.config->n_clusters, 2);
    assert_string_equal(kit_dependency_asked(&w, KIT_CDS), "c,d");
    tc_dependency_manager_unsubscribe(w.manager, tc_slice_str("c"));
    tc_loop_drain(w.loop);
    assert_int_equal(w.configs, 3);
    assert_int_equal(w.config->n_clusters, 1);
    assert_string_equal(kit_dependency_asked(&w, KIT_CDS), "d");
    kit_dependency_close(&w);
}

static void missing_cluster_fails_alone(void **state)
{
    TC_CASE(CD21);
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("a") ", " KIT_TO("b")));
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("a"));
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("a", "1"));
    assert_int_equal(w.configs, 0);
    tc_loop_advance(w.loop, 15000);
    assert_int_equal(w.configs, 1);
    assert_true(tc_status_ok(&kit_dependency_cluster(&w, "a")->status));
    assert_int_equal(kit_dependency_cluster(&w, "b")->status.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(tc_status_text(&kit_dependency_cluster(&w, "b")->status),
                        "CDS resource \"b\" does not exist (node ID:n1)");
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("a") ", " KIT_CLUSTER("b"));
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("a", "1") ", " KIT_ENDPOINTS("b", "2"));
    assert_true(tc_status_ok(&kit_dependency_cluster(&w, "b")->status));
    kit_dependency_close(&w);
}

/* A31: a cluster is `dropped` while there is no data of it and only RPCs hold it. */
static void cluster_that_only_rpcs_have(void **state)
{
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    one_cluster(&w);
    assert_false(kit_dependency_cluster(&w, "c")->dropped);
    tc_dependency_manager_subscribe(w.manager, tc_slice_str("c"));
    tc_dependency_manager_subscribe(w.manager, tc_slice_str("b"));
    tc_loop_drain(w.loop);
    tc_loop_advance(w.loop, 15000);
    assert_true(kit_dependency_cluster(&w, "b")->dropped);
    assert_false(kit_dependency_cluster(&w, "c")->dropped);
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("b")));
    assert_false(kit_dependency_cluster(&w, "b")->dropped);
    assert_false(kit_dependency_cluster(&w, "c")->dropped);
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("c")));
    assert_true(kit_dependency_cluster(&w, "b")->dropped);
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c") ", " KIT_CLUSTER("b"));
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("c", "1") ", " KIT_ENDPOINTS("b", "2"));
    assert_true(tc_status_ok(&kit_dependency_cluster(&w, "b")->status));
    assert_false(kit_dependency_cluster(&w, "b")->dropped);
    /* A cluster that was refused has no data, either. */
    tc_dependency_manager_subscribe(w.manager, tc_slice_str("d"));
    tc_loop_drain(w.loop);
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c") ", {'@type': '" KIT_CDS "', 'name': 'd', 'type': 'STATIC'}");
    assert_int_equal(kit_dependency_cluster(&w, "d")->status.code, TORC_STATUS_UNAVAILABLE);
    assert_true(kit_dependency_cluster(&w, "d")->dropped);
    tc_dependency_manager_unsubscribe(w.manager, tc_slice_str("b"));
    tc_dependency_manager_unsubscribe(w.manager, tc_slice_str("d"));
    tc_loop_drain(w.loop);
    assert_int_equal(w.config->n_clusters, 1);
    kit_dependency_close(&w);
}

static void notes_on_endpoints(void **state)
{
    TC_CASE(ED14);
    TC_CASE(ED15);
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("c")));
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c"));
    tc_loop_advance(w.loop, 15000);
    assert_string_equal(kit_dependency_cluster(&w, "c")->resolution_note->data,
                        "EDS resource c does not exist (node ID:n1)");
    assert_null(kit_dependency_cluster(&w, "c")->eds);
    kit_dependency_answer(&w, KIT_EDS, "{'@type': '" KIT_EDS "', 'clusterName': 'c'}");
    assert_string_equal(kit_dependency_cluster(&w, "c")->resolution_note->data,
                        "EDS resource c contains no localities (node ID:n1)");
    kit_dependency_answer(&w, KIT_EDS,
                          "{'@type': '" KIT_EDS "', 'clusterName': 'c', 'endpoints': [{'locality': {'region': 'r'}}]}");
    assert_string_equal(kit_dependency_cluster(&w, "c")->resolution_note->data,
                        "EDS resource c contains no localities: 1 has no load_balancing_weight, which leaves it out "
                        "(node ID:n1)");
    kit_dependency_answer(&w, KIT_EDS,
                          "{'@type': '" KIT_EDS
                          "', 'clusterName': 'c', 'endpoints': [{'loadBalancingWeight': 1, 'locality': "
                          "{'region': 'r', 'zone': 'z', 'subZone': 's'}}]}");
    assert_string_equal(kit_dependency_cluster(&w, "c")->resolution_note->data,
                        "EDS resource c contains empty localities: [{region=\"r\", zone=\"z\", sub_zone=\"s\"}] "
                        "(node ID:n1)");
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("c", "1"));
    assert_string_equal(kit_dependency_cluster(&w, "c")->resolution_note->data, "xDS node ID:n1");
    kit_dependency_close(&w);
}

/* A88: errors beside values go into the notes of the clusters that they concern. */
static void ambient_errors(void **state)
{
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    one_cluster(&w);
    kit_dependency_answer(&w, KIT_CDS,
                          "{'@type': '" KIT_CDS
                          "', 'name': 'c', 'type': 'EDS', 'lbPolicy': 'RANDOM', 'edsClusterConfig': "
                          "{'edsConfig': {'ads': {}}}}");
    assert_int_equal(w.configs, 2);
    const char *note = kit_dependency_cluster(&w, "c")->resolution_note->data;
    assert_non_null(strstr(note, "CDS resource \"c\": "));
    assert_non_null(strstr(note, "RANDOM"));
    assert_non_null(strstr(note, "node ID:n1"));
    assert_non_null(kit_dependency_cluster(&w, "c")->cluster);
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c"));
    assert_int_equal(w.configs, 3);
    assert_string_equal(kit_dependency_cluster(&w, "c")->resolution_note->data, "xDS node ID:n1");
    /* A deleted resource stays in use (A88): no text says "does not exist". */
    kit_dependency_answer(&w, KIT_CDS, "");
    note = kit_dependency_cluster(&w, "c")->resolution_note->data;
    assert_non_null(strstr(note, "CDS resource \"c\": xDS Cluster resource was deleted by server "));
    assert_non_null(kit_dependency_cluster(&w, "c")->cluster);
    kit_dependency_close(&w);
}

static void nothing_to_route_by(void **state)
{
    TC_CASE(AD12);
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    tc_loop_advance(w.loop, 15000);
    assert_int_equal(w.errors, 1);
    assert_int_equal(w.error.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(tc_status_text(&w.error), "LDS resource \"l\" does not exist (node ID:n1)");
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    tc_loop_advance(w.loop, 15000);
    assert_string_equal(tc_status_text(&w.error), "RDS resource \"r\" does not exist (node ID:n1)");
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "elsewhere", KIT_TO("c")));
    assert_string_equal(tc_status_text(&w.error),
                        "no virtual host for \"svc\" in route configuration \"r\" (node ID:n1)");
    assert_int_equal(w.configs, 0);
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "svc", KIT_TO("c")));
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c"));
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("c", "1"));
    assert_int_equal(w.configs, 1);
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "elsewhere", KIT_TO("c")));
    assert_int_equal(w.errors, 4);
    assert_string_equal(kit_dependency_asked(&w, KIT_CDS), "");
    kit_dependency_close(&w);
}

/* The service is removed: its routes become empty, and its Listener is deleted but stays in use (A88). */
static void empty_routes(void **state)
{
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    one_cluster(&w);
    kit_dependency_answer(&w, KIT_RDS, "{'@type': '" KIT_RDS "', 'name': 'r'}");
    assert_string_equal(tc_status_text(&w.error),
                        "no virtual host for \"svc\" in route configuration \"r\", which has no virtual hosts at all "
                        "(node ID:n1)");
    kit_dependency_answer(&w, KIT_LDS, "");
    assert_string_equal(tc_status_text(&w.error),
                        "no virtual host for \"svc\" in route configuration \"r\", which has no virtual hosts at all; "
                        "LDS resource \"l\": xDS Listener resource was deleted by server s1 (node ID:n1)");
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("c")));
    assert_string_equal(kit_dependency_asked(&w, KIT_CDS), "c");
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c"));
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("c", "1"));
    assert_int_equal(w.configs, 2);
    kit_dependency_close(&w);
}

/* The Listener names two other route configurations in turn, which do not come yet, and then the first one again.
 * Meanwhile the client refuses an update of the first one, and the server deletes the cluster that it names. The last
 * good values of that route configuration and cluster are in use all the time. */
static void routes_of_the_config_in_use_are_kept(void **state)
{
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    one_cluster(&w);
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("other"));
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("third"));
    kit_dependency_assert_pending(&w, "RDS resource \"third\"");
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "a*b", KIT_TO("c"))); /* refused: invalid domain */
    kit_dependency_answer(&w, KIT_CDS, "");
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_assert_pending(&w, "");
    assert_int_equal(w.errors, 0);
    assert_string_equal(w.config->routes->name->data, "r");
    assert_non_null(strstr(kit_dependency_cluster(&w, "c")->resolution_note->data, "RDS resource \"r\": invalid"));
    assert_non_null(strstr(kit_dependency_cluster(&w, "c")->resolution_note->data, "was deleted by server"));
    assert_int_equal(kit_dependency_cluster(&w, "c")->eds->priorities[0].localities[0].n, 1);
    /* Once the other routes come, the config uses them and the first routes are unsubscribed. */
    while (*kit_dependency_asked(&w, KIT_RDS))
        ;
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("other"));
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("other", "*", KIT_TO("c")));
    assert_string_equal(w.config->routes->name->data, "other");
    assert_string_equal(kit_dependency_asked(&w, KIT_RDS), "other");
    kit_dependency_close(&w);
}

static void socket_listener(void **state)
{
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    kit_dependency_answer(&w, KIT_LDS,
                          "{'@type': '" KIT_LDS "', 'name': 'l', 'address': {'socketAddress': {'address': '1.1.1.1', "
                          "'portValue': 1}}}");
    assert_int_equal(w.errors, 1);
    assert_non_null(strstr(tc_status_text(&w.error), "socket listener"));
    kit_dependency_close(&w);
}

static void inline_routes(void **state)
{
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    kit_dependency_answer(
        &w, KIT_LDS,
        KIT_LISTENER(
            "'routeConfig': {'name': 'in', 'virtualHosts': [{'name': 'v', 'domains': ['*'], 'routes': [" KIT_TO(
                "c") "]}]}"));
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c"));
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("c", "1"));
    assert_int_equal(w.configs, 1);
    assert_null(w.config->routes);
    assert_string_equal(kit_dependency_asked(&w, KIT_RDS), "");
    kit_dependency_close(&w);
}

/* --- aggregate clusters --- */

static void expect_leaves(const struct kit_dependency *w, const char *name, const char *want)
{
    struct tc_buf got = {0};
    const struct tc_cluster_config *c = kit_dependency_cluster(w, name);
    for (size_t i = 0; i < c->n_leaf_clusters; i++)
        tc_buf_printf(&got, "%s%s", i ? "," : "", c->leaf_clusters[i]->data);
    assert_string_equal(tc_buf_cstr(&got), want);
    tc_buf_fini(&got);
}

static void route_to(struct kit_dependency *w, const char *clusters, const char *endpoints)
{
    kit_dependency_answer(w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_answer(w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("A")));
    kit_dependency_answer(w, KIT_CDS, clusters);
    if (endpoints)
        kit_dependency_answer(w, KIT_EDS, endpoints);
}

static void aggregate_graphs(void **state)
{
    TC_CASE(AG10);
    TC_CASE(AG11);
    TC_CASE(AG12);
    TC_CASE(AG13);
    TC_CASE(AG22);
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    route_to(&w, AGGREGATE("A", "'B', 'C'"), NULL);
    assert_string_equal(kit_dependency_asked(&w, KIT_CDS), "A,B,C");
    /* A diamond: D once, at its earliest place. */
    kit_dependency_answer(&w, KIT_CDS,
                          AGGREGATE("A", "'B', 'C'") ", " AGGREGATE("B", "'D'") ", " AGGREGATE("C", "'D', 'E'"));
    kit_dependency_answer(&w, KIT_CDS,
                          AGGREGATE("A", "'B', 'C'") ", " AGGREGATE("B", "'D'") ", " AGGREGATE(
                              "C", "'D', 'E'") ", " KIT_CLUSTER("D") ", " KIT_CLUSTER("E"));
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("D", "1") ", " KIT_ENDPOINTS("E", "2"));
    assert_int_equal(w.configs, 1);
    expect_leaves(&w, "A", "D,E");
    assert_int_equal(w.config->n_clusters, 5);
    /* C is twice in the tree: its earliest place, before D, counts. */
    kit_dependency_answer(
        &w, KIT_CDS,
        AGGREGATE("A", "'B', 'C'") ", " AGGREGATE("B", "'C', 'D'") ", " KIT_CLUSTER("C") ", " KIT_CLUSTER("D"));
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("D", "1") ", " KIT_ENDPOINTS("C", "2"));
    expect_leaves(&w, "A", "C,D");
    assert_string_equal(kit_dependency_asked(&w, KIT_EDS), "C,D");
    /* Loops. */
    kit_dependency_answer(&w, KIT_CDS, AGGREGATE("A", "'A', 'D'") ", " KIT_CLUSTER("D"));
    expect_leaves(&w, "A", "D");
    assert_string_equal(kit_dependency_asked(&w, KIT_CDS), "A,D"); /* no longer B and C */
    kit_dependency_answer(&w, KIT_CDS, AGGREGATE("A", "'B'") ", " AGGREGATE("B", "'A'"));
    /* When A's new list came, the client was not subscribed to B. Now it is, and the server sends both again. */
    kit_dependency_answer(&w, KIT_CDS, AGGREGATE("A", "'B'") ", " AGGREGATE("B", "'A'"));
    expect_leaves(&w, "A", "");
    assert_string_equal(tc_status_text(&kit_dependency_cluster(&w, "A")->leaf_error),
                        "aggregate cluster dependency graph for A has no leaf clusters (node ID:n1)");
    kit_dependency_close(&w);
}

/* Sends a chain of n aggregates above a leaf. */
static void send_chain(struct kit_dependency *w, int n)
{
    struct tc_buf b = {0};
    for (int i = 0; i < n; i++) {
        char name[8], child[8];
        snprintf(name, sizeof(name), i ? "x%d" : "A", i);
        snprintf(child, sizeof(child), i == n - 1 ? "leaf" : "x%d", i + 1);
        tc_buf_printf(&b, AGGREGATE("%s", "'%s'") ", ", name, child);
    }
    tc_buf_append_str(&b, KIT_CLUSTER("leaf"));
    /* Each level of clusters is asked for once the level above is known. */
    for (int i = 0; i <= n; i++)
        kit_dependency_answer(w, KIT_CDS, tc_buf_cstr(&b));
    kit_dependency_answer(w, KIT_EDS, KIT_ENDPOINTS("leaf", "1"));
    tc_buf_fini(&b);
}

static void aggregate_depth(void **state)
{
    TC_CASE(AG14);
    TC_CASE(AG15);
    TC_CASE(AG16);
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("A")));
    send_chain(&w, 16);
    assert_int_equal(w.configs, 1);
    assert_string_equal(tc_status_text(&kit_dependency_cluster(&w, "A")->leaf_error),
                        "aggregate cluster graph exceeds max depth (16) (node ID:n1)");
    send_chain(&w, 15);
    expect_leaves(&w, "A", "leaf");
    assert_true(tc_status_ok(&kit_dependency_cluster(&w, "A")->leaf_error));
    kit_dependency_close(&w);
}

/* A74: a leaf cluster that does not exist does not fail the other ones. */
static void missing_leaf(void **state)
{
    TC_CASE(AG07);
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    route_to(&w, AGGREGATE("A", "'B', 'C'"), NULL);
    kit_dependency_answer(&w, KIT_CDS, AGGREGATE("A", "'B', 'C'") ", " KIT_CLUSTER("C"));
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("C", "1"));
    assert_int_equal(w.configs, 0);
    tc_loop_advance(w.loop, 15000);
    assert_int_equal(w.configs, 1);
    expect_leaves(&w, "A", "B,C");
    assert_false(tc_status_ok(&kit_dependency_cluster(&w, "B")->status));
    assert_true(tc_status_ok(&kit_dependency_cluster(&w, "C")->status));
    kit_dependency_close(&w);
}

/* A88: an aggregate cluster with an error beside its value keeps the leaves of that value. */
static void ambient_errors_of_an_aggregate(void **state)
{
    (void)state;
    struct kit_dependency w;
    const char *good = AGGREGATE("A", "'B', 'C'") ", " KIT_CLUSTER("B") ", " KIT_CLUSTER("C");
    kit_dependency_open(&w, NULL, NULL);
    route_to(&w, good, NULL);
    kit_dependency_answer(&w, KIT_CDS, good); /* by now the client asks for B and C, too */
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("B", "1") ", " KIT_ENDPOINTS("C", "2"));
    expect_leaves(&w, "A", "B,C");
    kit_dependency_answer(
        &w, KIT_CDS, AGGREGATE("A", "") ", " KIT_CLUSTER("B") ", " KIT_CLUSTER("C")); /* refused: it names no cluster */
    expect_leaves(&w, "A", "B,C");
    assert_non_null(strstr(kit_dependency_cluster(&w, "A")->resolution_note->data, "CDS resource \"A\": "));
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("B") ", " KIT_CLUSTER("C")); /* deleted */
    expect_leaves(&w, "A", "B,C");
    kit_dependency_answer(&w, KIT_CDS, good); /* restored */
    expect_leaves(&w, "A", "B,C");
    assert_string_equal(kit_dependency_cluster(&w, "A")->resolution_note->data, "xDS node ID:n1");
    fake_xds_fail(w.server, "connection refused");
    tc_loop_drain(w.loop);
    expect_leaves(&w, "A", "B,C");
    kit_dependency_close(&w);
}

/* Notes are bounded, since they are repeated: the note of an EDS resource by each cluster that uses it, the errors of
 * the listener and of the routes by every cluster. */
static void notes_are_short(void **state)
{
    (void)state;
    enum { LONG = 20000, SHORT = 16 * 300 };
    struct kit_dependency w;
    char *name = tc_calloc(LONG + 1, 1);
    kit_dependency_open(&w, NULL, NULL);
    one_cluster(&w);
    memset(name, 'x', LONG);
    struct tc_buf text = {0};
    tc_buf_append_str(&text, "{'@type': '" KIT_EDS "', 'clusterName': 'c', 'endpoints': [");
    for (int i = 0; i < 20; i++)
        tc_buf_printf(&text, "%s{'loadBalancingWeight': 1, 'locality': {'region': '%d%s'}}", i ? ", " : "", i, name);
    tc_buf_append_str(&text, "]}");
    kit_dependency_answer(&w, KIT_EDS, tc_buf_cstr(&text));
    const struct tc_rstr *note = kit_dependency_cluster(&w, "c")->resolution_note;
    assert_true(tc_slice_find(tc_rstr_slice(note), tc_slice_str("x..., {region=\"1")) > 0);
    assert_true(tc_slice_find(tc_rstr_slice(note), tc_slice_str(", and 4 more]")) > 0);
    assert_true(note->len < SHORT);
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("c", "1"));
    /* Routes with many errors, which are refused. */
    tc_buf_clear(&text);
    tc_buf_append_str(&text, "{'@type': '" KIT_RDS "', 'name': 'r', 'virtualHosts': [{}");
    for (int i = 0; i < 100; i++)
        tc_buf_append_str(&text, ", {}");
    tc_buf_append_str(&text, "]}");
    kit_dependency_answer(&w, KIT_RDS, tc_buf_cstr(&text));
    note = kit_dependency_cluster(&w, "c")->resolution_note;
    assert_true(tc_slice_find(tc_rstr_slice(note), tc_slice_str("... (node ID:n1)")) > 0);
    assert_true(note->len < 1200);
    tc_buf_fini(&text);
    tc_free(name);
    kit_dependency_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_or_nothing),
        cmocka_unit_test(only_what_changed_is_new),
        cmocka_unit_test(two_thousand_clusters),
        cmocka_unit_test(new_route_waits_for_its_cluster),
        cmocka_unit_test(missing_cluster_fails_alone),
        cmocka_unit_test(cluster_that_only_rpcs_have),
        cmocka_unit_test(notes_on_endpoints),
        cmocka_unit_test(ambient_errors),
        cmocka_unit_test(notes_are_short),
        cmocka_unit_test(nothing_to_route_by),
        cmocka_unit_test(empty_routes),
        cmocka_unit_test(routes_of_the_config_in_use_are_kept),
        cmocka_unit_test(socket_listener),
        cmocka_unit_test(inline_routes),
        cmocka_unit_test(aggregate_graphs),
        cmocka_unit_test(aggregate_depth),
        cmocka_unit_test(missing_leaf),
        cmocka_unit_test(ambient_errors_of_an_aggregate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
