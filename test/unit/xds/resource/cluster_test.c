/* Decoding of Cluster resources from proto3 JSON (kits/resource): the values of valid ones, and the errors of refused
 * ones. The validation context is the process's, unless a test has its own. The last test compares resources. */
#include "xds/resource/cluster.h"
#include "xds/resource/registry.h"

#include <stdlib.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/resource.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#define EDS "'name':'c','type':'EDS','eds_cluster_config':{'eds_config':{'ads':{}}}"
#define CLUSTER(more) "{" EDS "," more "}"
#define TYPE "type.googleapis.com/"
#define LB "envoy.extensions.load_balancing_policies."

static struct tc_xds_resource *valid(const char *json)
{
    return kit_resource_valid(&tc_cluster_type, NULL, json);
}

static void refused(const char *json, const char *fault)
{
    kit_resource_refused(&tc_cluster_type, NULL, json, fault);
}

static void check_lb_with(const struct tc_xds_decode_context *ctx, const char *json, const char *expected)
{
    struct tc_xds_resource *r = kit_resource_valid(&tc_cluster_type, ctx, json);
    char *text = tc_json_text(tc_cluster_of(r)->lb_config, false);
    assert_string_equal(text, expected);
    tc_free(text);
    tc_xds_resource_unref(r);
}

static void check_lb(const char *json, const char *expected)
{
    check_lb_with(NULL, json, expected);
}

static void defaults(void **state)
{
    TC_CASE(CD05);
    TC_CASE(CD17);
    (void)state;
    struct tc_xds_resource *r = valid("{" EDS "}");
    const struct tc_cluster *c = tc_cluster_of(r);
    assert_string_equal(c->name->data, "c");
    assert_int_equal(c->kind, TC_CLUSTER_EDS);
    assert_string_equal(c->eds_name->data, "c");
    assert_null(c->eds_service);
    assert_int_equal(c->max_concurrent_requests, 1024);
    assert_int_equal(c->override_host_status, TC_OVERRIDE_HOST_DEFAULT);
    assert_int_equal(c->idle_timeout_ms, 3600000);
    assert_false(c->has_lrs);
    assert_null(c->outlier);
    assert_null(c->tls);
    tc_xds_resource_unref(r);
}

static void type_is_eds_or_dns(void **state)
{
    TC_CASE(CD01);
    (void)state;
    refused("{'name':'c','type':'STATIC'}", "field type: unsupported value STATIC");
    refused("{'name':'c'}", "field type: unsupported value STATIC");
    refused("{'name':'c','type':'ORIGINAL_DST'}", "field type: unsupported value ORIGINAL_DST");
    refused("{'name':'c','type':77}", "field type: unsupported value 77");
    refused("{'type':'EDS','eds_cluster_config':{'eds_config':{'self':{}}}}", "field name: must be non-empty");
}

static void eds_config_is_ads_or_self(void **state)
{
    TC_CASE(CD02);
    TC_CASE(CD03);
    TC_CASE(CD04);
    (void)state;
    refused("{'name':'c','type':'EDS'}", "field eds_cluster_config: field not present");
    refused("{'name':'c','type':'EDS','eds_cluster_config':{}}", "eds_cluster_config.eds_config: field not present");
    refused("{'name':'c','type':'EDS','eds_cluster_config':{'eds_config':{'path':'/x'}}}",
            "field eds_cluster_config.eds_config: must be ads or self");
    refused("{'name':'xdstp://a/envoy.config.cluster.v3.Cluster/c','type':'EDS',"
            "'eds_cluster_config':{'eds_config':{'ads':{}}}}",
            "service_name: must be set if Cluster resource has an xdstp name");
    struct tc_xds_resource *r =
        valid("{'name':'c','type':'EDS','eds_cluster_config':{'eds_config':{'self':{}},'service_name':'s'}}");
    assert_string_equal(tc_cluster_of(r)->eds_name->data, "s");
    assert_string_equal(tc_cluster_of(r)->eds_service->data, "s");
    tc_xds_resource_unref(r);
}

static void every_fault_is_named(void **state)
{
    TC_CASE(CD07);
    (void)state;
    char *errors;
    assert_null(kit_resource_decode(&tc_cluster_type, NULL,
                                    "{'name':'c','type':'EDS','lb_policy':'RANDOM',"
                                    "'eds_cluster_config':{'eds_config':{'path':'x'}}}",
                                    &errors));
    assert_string_equal(errors, "field eds_cluster_config.eds_config: must be ads or self; "
                                "field lb_policy: unsupported value RANDOM");
    tc_free(errors);
}

static void cluster_types(void **state)
{
    TC_CASE(AG20);
    TC_CASE(CD06);
    (void)state;
    refused("{'name':'c','cluster_type':{'name':'x'}}", "field cluster_type.typed_config: field not present");
    refused("{'name':'c','cluster_type':{'typed_config':{'@type':'" TYPE "envoy.config.cluster.v3.Cluster'}}}",
            "unknown cluster_type extension: envoy.config.cluster.v3.Cluster");
#define AGGREGATE_OF(more, clusters)                                                                                   \
    "{'name':'c'," more ",'cluster_type':{'typed_config':{'@type':'" TYPE                                              \
    "envoy.extensions.clusters.aggregate.v3.ClusterConfig','clusters':[" clusters "]}}}"
#define AGGREGATE(clusters) AGGREGATE_OF("'lb_policy':'CLUSTER_PROVIDED'", clusters)
    refused(AGGREGATE(""), "field cluster_type.typed_config.clusters: must be non-empty");
    struct tc_xds_resource *r = valid(AGGREGATE("'a','b'"));
    assert_int_equal(tc_cluster_of(r)->kind, TC_CLUSTER_AGGREGATE);
    assert_int_equal(tc_cluster_of(r)->n_children, 2);
    assert_string_equal(tc_cluster_of(r)->children[1]->data, "b");
    tc_xds_resource_unref(r);
    refused(CLUSTER("'lb_policy':'CLUSTER_PROVIDED'"), "field lb_policy: unsupported value CLUSTER_PROVIDED");
}

/* A75: an aggregate's own LB policy is ignored, whatever it says, unless reg.aggregate_lb is set. */
static void policies_of_aggregates_are_ignored(void **state)
{
    (void)state;
#define AGGREGATE_WITH(more) AGGREGATE_OF(more, "'a'")
#define EXTENSION(type)                                                                                                \
    "'load_balancing_policy':{'policies':[{'typed_extension_config':{'typed_config':{'@type':'" TYPE type "'}}}]}"
    static const char *const policies[] = {
        AGGREGATE_WITH("'lb_policy':'RANDOM'"),
        AGGREGATE_WITH("'lb_policy':'LEAST_REQUEST'"),
        AGGREGATE_WITH("'lb_policy':77"),
        AGGREGATE_WITH("'lb_policy':'RING_HASH','ring_hash_lb_config':{'minimum_ring_size':0}"),
        AGGREGATE_WITH(EXTENSION("envoy.config.cluster.v3.Cluster")),
        AGGREGATE_WITH("'load_balancing_policy':{'policies':[{}]}"),
    };
    struct tc_xds_registries reg;
    tc_xds_registries_init(&reg);
    struct tc_xds_decode_context ctx = {.registries = &reg};
    for (size_t i = 0; i < TC_ARRAY_LEN(policies); i++) {
        reg.aggregate_lb = false;
        struct tc_xds_resource *r = kit_resource_valid(&tc_cluster_type, &ctx, policies[i]);
        assert_null(tc_cluster_of(r)->lb_config);
        tc_xds_resource_unref(r);
        reg.aggregate_lb = true;
        if (!strstr(policies[i], "LEAST_REQUEST")) /* the one valid policy of the list */
            kit_resource_refused(&tc_cluster_type, &ctx, policies[i], "");
    }
    check_lb_with(&ctx, AGGREGATE_WITH("'lb_policy':'CLUSTER_PROVIDED'"),
                  "[{\"xds_wrr_locality_experimental\":{\"childPolicy\":[{\"round_robin\":{}}]}}]");
}

static void aggregates_are_bounded(void **state)
{
    (void)state;
    struct tc_xds_registries reg;
    tc_xds_registries_init(&reg);
    assert_int_equal(reg.limits.aggregate_children, 1024);
    struct tc_xds_bootstrap b = {.limits.aggregate_clusters = 2};
    struct tc_xds_decode_context ctx = {.registries = &reg, .bootstrap = &b};
    tc_xds_resource_unref(kit_resource_valid(&tc_cluster_type, &ctx, AGGREGATE("'a','b'")));
    kit_resource_refused(&tc_cluster_type, &ctx, AGGREGATE("'a','b','c'"),
                         "field cluster_type.typed_config.clusters: 3 clusters, more than 2");
}

static void lb_policy_becomes_json(void **state)
{
    (void)state;
#define RING(sizes) CLUSTER("'lb_policy':'RING_HASH','ring_hash_lb_config':{" sizes "}")
    check_lb("{" EDS "}", "[{\"xds_wrr_locality_experimental\":{\"childPolicy\":[{\"round_robin\":{}}]}}]");
    check_lb(CLUSTER("'lb_policy':'RING_HASH'"),
             "[{\"ring_hash_experimental\":{\"minRingSize\":1024,\"maxRingSize\":8388608}}]");
    check_lb(RING("'minimum_ring_size':1,'maximum_ring_size':8388608"),
             "[{\"ring_hash_experimental\":{\"minRingSize\":1,\"maxRingSize\":8388608}}]");
}

static void ring_sizes_are_checked(void **state)
{
    TC_CASE(CD08);
    TC_CASE(CD09);
    (void)state;
    refused(RING("'minimum_ring_size':0"),
            "field ring_hash_lb_config.minimum_ring_size: must be in the range of 1 to 8388608");
    refused(RING("'minimum_ring_size':8388609"), "minimum_ring_size: must be in the range of 1 to 8388608");
    refused(RING("'maximum_ring_size':8388609"), "maximum_ring_size: must be in the range of 1 to 8388608");
    refused(RING("'maximum_ring_size':0"), "maximum_ring_size: must be in the range of 1 to 8388608");
    refused(RING("'minimum_ring_size':5,'maximum_ring_size':4"), "cannot be greater than maximum_ring_size");
    refused(RING("'hash_function':'MURMUR_HASH_2'"), "field ring_hash_lb_config.hash_function: must be XX_HASH");
}

#define POLICY(type, more) "{'typed_extension_config':{'typed_config':{'@type':'" TYPE type "'" more "}}}"
#define POLICIES(list) CLUSTER("'lb_policy':'RANDOM','load_balancing_policy':{'policies':[" list "]}")
#define ROUND_ROBIN POLICY(LB "round_robin.v3.RoundRobin", "")
#define OVERRIDE_HOST POLICY(LB "override_host.v3.OverrideHost", "") /* not supported */
#define RING_POLICY(more) POLICY(LB "ring_hash.v3.RingHash", more)
#define WRR(list) POLICY(LB "wrr_locality.v3.WrrLocality", ",'endpoint_picking_policy':{'policies':[" list "]}")
#define MAGLEV_POLICY(more) POLICY(LB "maglev.v3.Maglev", more)
#define MAGLEV(more) "[{\"maglev_experimental\":{" more "}}]"
#define HASHING ",'consistent_hashing_lb_config':"

static void maglev_of_the_cluster(void **state)
{
    TC_CASE(CD22);
    (void)state;
    check_lb(CLUSTER("'lb_policy':'MAGLEV'"), MAGLEV("\"tableSize\":65537"));
    check_lb(CLUSTER("'lb_policy':'MAGLEV','maglev_lb_config':{'table_size':'5000011'}"),
             MAGLEV("\"tableSize\":5000011"));
    check_lb(CLUSTER("'lb_policy':'MAGLEV','maglev_lb_config':{},'common_lb_config':{'locality_weighted_lb_config':{},"
                     "'consistent_hashing_lb_config':{'use_hostname_for_hashing':true,'hash_balance_factor':100}}"),
             MAGLEV("\"tableSize\":65537,\"localityWeighted\":true,\"useHostnameForHashing\":true,"
                    "\"hashBalanceFactor\":100"));
    check_lb(CLUSTER("'lb_policy':'RING_HASH','common_lb_config':{'consistent_hashing_lb_config':"
                     "{'use_hostname_for_hashing':true,'hash_balance_factor':4294967295}}"),
             "[{\"ring_hash_experimental\":{\"minRingSize\":1024,\"maxRingSize\":8388608,"
             "\"useHostnameForHashing\":true,\"hashBalanceFactor\":4294967295}}]");
    static const char *const sizes[] = {"0", "1", "4", "8", "5000012", "'18446744073709551615'"};
    for (size_t i = 0; i < TC_ARRAY_LEN(sizes); i++) {
        char *text = tc_asprintf(CLUSTER("'lb_policy':'MAGLEV','maglev_lb_config':{'table_size':%s}"), sizes[i]);
        refused(text, "field maglev_lb_config.table_size: The table size of maglev must be prime number");
        tc_free(text);
    }
    refused(CLUSTER("'lb_policy':'MAGLEV','common_lb_config':{'consistent_hashing_lb_config':"
                    "{'hash_balance_factor':99}}"),
            "field common_lb_config.consistent_hashing_lb_config.hash_balance_factor: value must be greater than or "
            "equal to 100");
    struct tc_xds_registries off = {.ring_hash_off = true};
    struct tc_xds_decode_context ctx = {.registries = &off};
    kit_resource_refused(&tc_cluster_type, &ctx, CLUSTER("'lb_policy':'MAGLEV'"),
                         "field lb_policy: unsupported value MAGLEV");
}

static void maglev_as_an_extension(void **state)
{
    TC_CASE(CD22);
    (void)state;
    check_lb(POLICIES(MAGLEV_POLICY("")), MAGLEV("\"tableSize\":65537"));
    check_lb(POLICIES(MAGLEV_POLICY(",'table_size':7,'locality_weighted_lb_config':{}" HASHING
                                    "{'use_hostname_for_hashing':true,'hash_balance_factor':125}")),
             MAGLEV("\"tableSize\":7,\"localityWeighted\":true,\"useHostnameForHashing\":true,"
                    "\"hashBalanceFactor\":125"));
    check_lb(POLICIES(RING_POLICY(",'use_hostname_for_hashing':true,'hash_balance_factor':200")),
             "[{\"ring_hash_experimental\":{\"minRingSize\":1024,\"maxRingSize\":8388608,"
             "\"useHostnameForHashing\":true,\"hashBalanceFactor\":200}}]");
    check_lb(POLICIES(RING_POLICY(",'use_hostname_for_hashing':true,'hash_balance_factor':200" HASHING "{}")),
             "[{\"ring_hash_experimental\":{\"minRingSize\":1024,\"maxRingSize\":8388608}}]");
    refused(
        POLICIES(RING_POLICY(",'hash_balance_factor':99")),
        "field load_balancing_policy.policies[0].typed_extension_config.typed_config.hash_balance_factor: value must "
        "be greater than or equal to 100");
    refused(POLICIES(MAGLEV_POLICY(",'table_size':9")),
            "field load_balancing_policy.policies[0].typed_extension_config.typed_config.table_size: The table size of "
            "maglev must be prime number");
    refused(POLICIES(MAGLEV_POLICY(HASHING "{'hash_balance_factor':0}")),
            "field load_balancing_policy.policies[0].typed_extension_config.typed_config.consistent_hashing_lb_config."
            "hash_balance_factor: value must be greater than or equal to 100");
}

static void hash_policies_of_the_lb_policy(void **state)
{
    TC_CASE(CD22);
    (void)state;
    const char *const header = "{'header':{'header_name':'X-Key'},'terminal':true}";
    char *text = tc_asprintf(POLICIES(MAGLEV_POLICY(HASHING "{'hash_policy':[%s,{'cookie':{'name':'c'}}]}")), header);
    struct tc_xds_resource *r = valid(text);
    tc_free(text);
    assert_int_equal(tc_cluster_of(r)->n_hash_policies, 1); /* a cookie has no result (A42) */
    assert_true(tc_cluster_of(r)->hash_policies[0].terminal);
    assert_true(tc_slice_eq_str(tc_cluster_of(r)->hash_policies[0].header, "x-key"));
    tc_xds_resource_unref(r);
    r = valid(POLICIES(RING_POLICY(HASHING "{'hash_policy':[{'cookie':{'name':'c'}}]}")));
    assert_int_equal(tc_cluster_of(r)->n_hash_policies, 0);
    assert_non_null(tc_cluster_of(r)->hash_policies); /* an empty list, too, replaces the routes' policies */
    tc_xds_resource_unref(r);
    r = valid(POLICIES(MAGLEV_POLICY(HASHING "{}")));
    assert_null(tc_cluster_of(r)->hash_policies);
    tc_xds_resource_unref(r);
    refused(POLICIES(MAGLEV_POLICY(HASHING "{'hash_policy':[{'header':{}}]}")),
            "field load_balancing_policy.policies[0].typed_extension_config.typed_config.consistent_hashing_lb_config."
            "hash_policy[0].header.header_name: must be non-empty");
}

static void extension_policies(void **state)
{
    TC_CASE(CD10);
    (void)state;
    check_lb(POLICIES(RING_POLICY(",'hash_function':'DEFAULT_HASH','minimum_ring_size':3")),
             "[{\"ring_hash_experimental\":{\"minRingSize\":3,\"maxRingSize\":8388608}}]");
    check_lb(POLICIES(ROUND_ROBIN), "[{\"round_robin\":{}}]");
    check_lb(POLICIES(POLICY(LB "pick_first.v3.PickFirst", ",'shuffle_address_list':true")),
             "[{\"pick_first\":{\"shuffleAddressList\":true}}]");
    check_lb(POLICIES(WRR(ROUND_ROBIN)),
             "[{\"xds_wrr_locality_experimental\":{\"childPolicy\":[{\"round_robin\":{}}]}}]");
    /* Unknown policies are skipped, and the first supported one counts. */
    check_lb(POLICIES(OVERRIDE_HOST "," POLICY("xds.type.v3.TypedStruct",
                                               ",'type_url':'x/no_such_policy','value':{}") "," ROUND_ROBIN
                                                                                            "," RING_POLICY("")),
             "[{\"round_robin\":{}}]");
    check_lb(POLICIES(POLICY("xds.type.v3.TypedStruct", ",'type_url':'x/ring_hash_experimental','value':{"
                                                        "'minRingSize':3,'maxRingSize':7}")),
             "[{\"ring_hash_experimental\":{\"minRingSize\":3,\"maxRingSize\":7}}]");
    check_lb(POLICIES(POLICY("udpa.type.v1.TypedStruct", ",'type_url':'x/round_robin'")), "[{\"round_robin\":{}}]");
    refused(POLICIES(OVERRIDE_HOST), "field load_balancing_policy: no supported load balancing policy config found: "
                                     "envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost");
    refused(POLICIES(POLICY("xds.type.v3.TypedStruct", ",'type_url':'x/no_such_policy','value':{}") "," OVERRIDE_HOST),
            "policy config found: no_such_policy, "
            "envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost");
    refused(POLICIES("{}"), "policies[0].typed_extension_config: field not present");
    refused(
        POLICIES(RING_POLICY(",'hash_function':'MURMUR_HASH_2'")),
        "field load_balancing_policy.policies[0].typed_extension_config.typed_config.hash_function: must be XX_HASH");
    refused(POLICIES(WRR("")), "endpoint_picking_policy: no supported load balancing policy config found");
}

/* A48, and the settings that A48 leaves out: active_request_bias and selection_method. */
static void least_request(void **state)
{
    TC_CASE(LQ09);
    (void)state;
#define LEGACY(config) CLUSTER("'lb_policy':'LEAST_REQUEST'" config)
#define LEGACY_WITH(config) LEGACY(",'least_request_lb_config':{" config "}")
#define LEAST(config) POLICIES(POLICY(LB "least_request.v3.LeastRequest", config))
#define LR_OF(config) "{\"least_request_experimental\":{" config "}}"
    static const struct {
        const char *cluster, *config;
    } taken[] = {
        {LEGACY(""), LR_OF("\"choiceCount\":2")},
        {LEGACY_WITH(""), LR_OF("\"choiceCount\":2")},
        {LEGACY_WITH("'choice_count':3"), LR_OF("\"choiceCount\":3")},
        {LEGACY_WITH("'choice_count':4294967295,'active_request_bias':{'default_value':1.5,'runtime_key':'k'}"),
         LR_OF("\"choiceCount\":4294967295,\"activeRequestBias\":1.5")},
        {LEGACY(",'ring_hash_lb_config':{'minimum_ring_size':0}"), LR_OF("\"choiceCount\":2")},
        {LEAST(""), LR_OF("\"choiceCount\":2")},
        {LEAST(",'choice_count':5,'selection_method':'FULL_SCAN'"),
         LR_OF("\"choiceCount\":5,\"selectionMethod\":\"FULL_SCAN\"")},
        {LEAST(",'active_request_bias':{}"), LR_OF("\"choiceCount\":2,\"activeRequestBias\":0.0")},
        {LEAST(",'active_request_bias':{'default_value':-1}"), LR_OF("\"choiceCount\":2,\"activeRequestBias\":1.0")},
        {LEAST(",'active_request_bias':{'default_value':'NaN'}"), LR_OF("\"choiceCount\":2,\"activeRequestBias\":1.0")},
        {LEAST(",'active_request_bias':{'default_value':'Infinity'}"),
         LR_OF("\"choiceCount\":2,\"activeRequestBias\":1.7976931348623157e308")},
        {LEAST(",'locality_lb_config':{}"), LR_OF("\"choiceCount\":2")},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(taken); i++) {
        char list[256];
        snprintf(list, sizeof(list),
                 strstr(taken[i].cluster, "LEAST_REQUEST")
                     ? "[{\"xds_wrr_locality_experimental\":{\"childPolicy\":[%s]}}]"
                     : "[%s]",
                 taken[i].config);
        check_lb(taken[i].cluster, list);
    }
    refused(LEGACY_WITH("'choice_count':1"),
            "field least_request_lb_config.choice_count: value must be greater than or equal to 2");
    refused(LEAST(",'choice_count':0"), "typed_config.choice_count: value must be greater than or equal to 2");
    refused(LEAST(",'selection_method':2"), "typed_config.selection_method: must be N_CHOICES or FULL_SCAN");
}

/* A68: subset_size and child_policy are required. */
static void random_subsetting(void **state)
{
    TC_CASE(SB08);
    (void)state;
#define SUBSET(config) POLICY(LB "random_subsetting.v3.RandomSubsetting", config)
#define CHILD_OF(child) ",'child_policy':{'policies':[" child "]}"
    check_lb(POLICIES(SUBSET(",'subset_size':7" CHILD_OF(WRR(ROUND_ROBIN)))),
             "[{\"random_subsetting_experimental\":{\"subsetSize\":7,\"childPolicy\":["
             "{\"xds_wrr_locality_experimental\":{\"childPolicy\":[{\"round_robin\":{}}]}}]}}]");
    check_lb(POLICIES(SUBSET(",'subset_size':4294967295" CHILD_OF(POLICY(
                 "xds.type.v3.TypedStruct", ",'type_url':'x/none'") "," POLICY(LB "pick_first.v3.PickFirst", "")))),
             "[{\"random_subsetting_experimental\":{\"subsetSize\":4294967295,\"childPolicy\":["
             "{\"pick_first\":{\"shuffleAddressList\":false}}]}}]");
    refused(POLICIES(SUBSET(CHILD_OF(ROUND_ROBIN))), "typed_config.subset_size: must be greater than 0");
    refused(POLICIES(SUBSET(",'subset_size':0" CHILD_OF(ROUND_ROBIN))),
            "typed_config.subset_size: must be greater than 0");
    refused(POLICIES(SUBSET(",'subset_size':1")),
            "typed_config.child_policy: no supported load balancing policy config found");
    refused(POLICIES(SUBSET(",'subset_size':1" CHILD_OF(OVERRIDE_HOST))),
            "typed_config.child_policy: no supported load balancing policy config found");
}

#define CLIENT_WRR(config) POLICY(LB "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin", config)

/* A58: durations of 0 and a penalty of 0 are kept. Absent fields are left to the policy's defaults. */
static void client_side_weighted_round_robin(void **state)
{
    TC_CASE(WR19);
    (void)state;
    check_lb(POLICIES(CLIENT_WRR("")), "[{\"weighted_round_robin\":{\"metricNamesForComputingUtilization\":[]}}]");
    check_lb(
        POLICIES(WRR(CLIENT_WRR(",'enable_oob_load_report':true,'oob_reporting_period':'0.5s','blackout_period':'0s',"
                                "'weight_expiration_period':'180s','weight_update_period':'0.0001s',"
                                "'error_utilization_penalty':0,"
                                "'metric_names_for_computing_utilization':['named_metrics.q']"))),
        "[{\"xds_wrr_locality_experimental\":{\"childPolicy\":[{\"weighted_round_robin\":{"
        "\"enableOobLoadReport\":true,\"oobReportingPeriod\":\"0.500s\",\"blackoutPeriod\":\"0.000s\","
        "\"weightExpirationPeriod\":\"180.000s\",\"weightUpdatePeriod\":\"0.001s\","
        "\"errorUtilizationPenalty\":0.0,\"metricNamesForComputingUtilization\":[\"named_metrics.q\"]}}]}}]");
    refused(POLICIES(CLIENT_WRR(",'error_utilization_penalty':-0.5")),
            "typed_config.error_utilization_penalty.value: must be non-negative");
    refused(POLICIES(CLIENT_WRR(",'error_utilization_penalty':'NaN'")),
            "typed_config.error_utilization_penalty.value: must be non-negative");
    refused(POLICIES(CLIENT_WRR(",'error_utilization_penalty':'Infinity'")),
            "typed_config.error_utilization_penalty.value: must be non-negative");
    refused(POLICIES(CLIENT_WRR(",'blackout_period':'-1s'")), "typed_config.blackout_period");
}

/* Returns the JSON (tc_free) of a cluster whose round_robin is inside `depth` wrr_locality policies, one in the
 * other. */
static char *nested(size_t depth)
{
    struct tc_buf json = {0};
    tc_buf_append_str(&json, "{" EDS ",'load_balancing_policy':{'policies':[");
    for (size_t i = 0; i < depth; i++)
        tc_buf_append_str(&json, "{'typed_extension_config':{'typed_config':{'@type':'" TYPE LB
                                 "wrr_locality.v3.WrrLocality','endpoint_picking_policy':{'policies':[");
    tc_buf_append_str(&json, ROUND_ROBIN);
    for (size_t i = 0; i < depth; i++)
        tc_buf_append_str(&json, "]}}}}");
    tc_buf_append_str(&json, "]}}");
    return tc_buf_take(&json);
}

static void policies_nest_sixteen_deep(void **state)
{
    TC_CASE(CD10);
    (void)state;
    char *json = nested(15);
    tc_xds_resource_unref(valid(json));
    tc_free(json);
    json = nested(16);
    refused(json, "exceeded max recursion depth of 16");
    tc_free(json);
}

static void load_reports_go_to_self(void **state)
{
    TC_CASE(CD11);
    (void)state;
    refused(CLUSTER("'lrs_server':{'ads':{}}"), "field lrs_server: must be self");
    struct tc_xds_resource *r =
        valid(CLUSTER("'lrs_server':{'self':{}},'lrs_report_endpoint_metrics':['named_metrics.b','cpu_utilization',"
                      "'named_metrics.a','unheard_of','named_metrics.b','cpu_utilization','named_metrics.*']"));
    assert_true(tc_cluster_of(r)->has_lrs);
    assert_int_equal(tc_cluster_of(r)->lrs_metrics, TC_LRS_CPU | TC_LRS_ALL_NAMED);
    assert_int_equal(tc_cluster_of(r)->n_lrs_names, 2);
    assert_true(tc_slice_eq_str(tc_cluster_of(r)->lrs_names[0], "a"));
    assert_true(tc_slice_eq_str(tc_cluster_of(r)->lrs_names[1], "b"));
    tc_xds_resource_unref(r);
}

static uint32_t breaker(const char *thresholds)
{
    char *json = tc_asprintf(CLUSTER("'circuit_breakers':{'thresholds':[%s]}"), thresholds);
    struct tc_xds_resource *r = valid(json);
    uint32_t max = tc_cluster_of(r)->max_concurrent_requests;
    tc_xds_resource_unref(r);
    tc_free(json);
    return max;
}

static void first_default_threshold_counts(void **state)
{
    TC_CASE(CD12);
    (void)state;
    assert_int_equal(breaker("{'priority':'HIGH','max_requests':1},{'max_requests':2},{'max_requests':3}"), 2);
    assert_int_equal(breaker("{},{'max_requests':3}"), 1024);
    assert_int_equal(breaker("{'priority':'HIGH','max_requests':1}"), 1024);
    assert_true(breaker("{'max_requests':4294967295}") == UINT32_MAX);
    assert_int_equal(breaker("{'max_requests':0}"), 0);
}

static void connections_of_a_subchannel(void **state)
{
    TC_CASE(CS09);
    static const char variable[] = "GRPC_EXPERIMENTAL_XDS_MAX_CONCURRENT_STREAMS_CONNECTION_SCALING";
    static const struct {
        const char *thresholds, *scaling;
        uint32_t max;
    } rows[] = {
        {"", NULL, 1},
        {"{}", NULL, 1},
        {"{'max_connections':7}", NULL, 7},
        {"{'priority':'HIGH','max_connections':0},{'max_connections':2},{'max_connections':0}", NULL, 2},
        {"{},{'max_connections':3}", NULL, 1},
        {"{'max_connections':4294967295}", "true", UINT32_MAX},
        {"{'max_connections':7}", "false", 1},
        {"{'max_connections':0}", "false", 1},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        char *json = tc_asprintf(CLUSTER("'circuit_breakers':{'thresholds':[{'max_connections':0}],"
                                         "'per_host_thresholds':[%s]}"),
                                 rows[i].thresholds);
        struct tc_xds_registries reg;
        if (rows[i].scaling)
            setenv(variable, rows[i].scaling, 1);
        tc_xds_registries_init(&reg); /* reads the environment; the decoder does not */
        unsetenv(variable);
        struct tc_xds_resource *r =
            kit_resource_valid(&tc_cluster_type, &(struct tc_xds_decode_context){.registries = &reg}, json);
        assert_true(tc_cluster_of(r)->max_connections == rows[i].max);
        tc_xds_resource_unref(r);
        tc_free(json);
    }
    refused(CLUSTER("'circuit_breakers':{'per_host_thresholds':[{'max_connections':0}]}"),
            "field circuit_breakers.per_host_thresholds.max_connections: must be greater than 0");
}

static void outliers_are_checked(void **state)
{
    TC_CASE(CD13);
    TC_CASE(CD14);
    TC_CASE(CD15);
    (void)state;
#define OUTLIER(more) CLUSTER("'outlier_detection':{" more "}")
    refused("{" EDS ",'outlier_detection':{'interval':'-1s'}}",
            "field outlier_detection.interval.seconds: value must be in the range [0, 315576000000]");
    refused(OUTLIER("'base_ejection_time':'-0.5s'"), "base_ejection_time.nanos: value must be in the range");
    refused(OUTLIER("'max_ejection_percent':101"), "max_ejection_percent: value must be <= 100");
    refused(OUTLIER("'enforcing_success_rate':101"), "enforcing_success_rate: value must be <= 100");
    refused(OUTLIER("'enforcing_failure_percentage':101"), "enforcing_failure_percentage: value must be <= 100");
    refused(OUTLIER("'failure_percentage_threshold':101"),
            "field outlier_detection.failure_percentage_threshold: value must be <= 100");
    struct tc_xds_resource *r = valid(OUTLIER(""));
    const struct tc_outlier_settings *o = tc_cluster_of(r)->outlier;
    assert_true(o->success_rate.on);
    assert_false(o->failure_percentage.on);
    assert_int_equal(o->interval_ms, 10000);
    assert_int_equal(o->base_ejection_ms, 30000);
    assert_int_equal(o->max_ejection_ms, 300000);
    assert_int_equal(o->max_ejection_percent, 10);
    assert_int_equal(o->stdev_factor, 1900);
    assert_int_equal(o->success_rate.enforcement_percent, 100);
    assert_int_equal(o->success_rate.minimum_hosts, 5);
    assert_int_equal(o->success_rate.request_volume, 100);
    assert_int_equal(o->failure_threshold, 85);
    assert_int_equal(o->failure_percentage.minimum_hosts, 5);
    assert_int_equal(o->failure_percentage.request_volume, 50);
    tc_xds_resource_unref(r);
    r = valid(OUTLIER("'enforcing_success_rate':0,'enforcing_failure_percentage':7,'base_ejection_time':'400s'"));
    o = tc_cluster_of(r)->outlier;
    assert_false(o->success_rate.on);
    assert_true(o->failure_percentage.on);
    assert_int_equal(o->failure_percentage.enforcement_percent, 7);
    assert_int_equal(o->max_ejection_ms, 400000);
    tc_xds_resource_unref(r);
}

#define UPSTREAM(type, more) CLUSTER("'upstream_config':{'typed_config':{'@type':'" TYPE type "'" more "}}")
#define HTTP_OPTIONS(more) UPSTREAM("envoy.extensions.upstreams.http.v3.HttpProtocolOptions", more)

static void upstream_config_has_the_idle_timeout(void **state)
{
    TC_CASE(CD16);
    (void)state;
    refused(UPSTREAM("envoy.config.cluster.v3.Cluster", ""),
            "field upstream_config.typed_config: unsupported upstream config type envoy.config.cluster.v3.Cluster");
    refused(HTTP_OPTIONS(",'common_http_protocol_options':{'idle_timeout':'-1s'}"), "idle_timeout.seconds");
    struct tc_xds_resource *r = valid(HTTP_OPTIONS(",'common_http_protocol_options':{'idle_timeout':'1.5s'}"));
    assert_int_equal(tc_cluster_of(r)->idle_timeout_ms, 1500);
    tc_xds_resource_unref(r);
    r = valid(HTTP_OPTIONS(""));
    assert_int_equal(tc_cluster_of(r)->idle_timeout_ms, 3600000);
    tc_xds_resource_unref(r);
}

static void override_host_statuses(void **state)
{
    (void)state;
    struct tc_xds_resource *r = valid(
        CLUSTER("'common_lb_config':{'override_host_status':{'statuses':['DRAINING','UNHEALTHY','HEALTHY',77]}}"));
    assert_int_equal(tc_cluster_of(r)->override_host_status, TC_OVERRIDE_HOST_HEALTHY | TC_OVERRIDE_HOST_DRAINING);
    tc_xds_resource_unref(r);
    r = valid(CLUSTER("'common_lb_config':{'override_host_status':{}}"));
    assert_int_equal(tc_cluster_of(r)->override_host_status, 0);
    tc_xds_resource_unref(r);
}

#define DNS(localities) "{'name':'c','type':'LOGICAL_DNS','load_assignment':{'endpoints':[" localities "]}}"
#define DNS_AT(address) DNS("{'lb_endpoints':[{'endpoint':{'address':{'socket_address':{" address "}}}}]}")

static void logical_dns_has_one_address(void **state)
{
    TC_CASE(DN07);
    (void)state;
    struct tc_xds_resource *r = valid(DNS_AT("'address':'a.example','port_value':443"));
    assert_int_equal(tc_cluster_of(r)->kind, TC_CLUSTER_LOGICAL_DNS);
    assert_string_equal(tc_cluster_of(r)->dns_target->data, "a.example:443");
    tc_xds_resource_unref(r);
    r = valid(DNS_AT("'address':'::1','port_value':443"));
    assert_string_equal(tc_cluster_of(r)->dns_target->data, "[::1]:443");
    tc_xds_resource_unref(r);
    refused("{'name':'c','type':'LOGICAL_DNS'}", "field load_assignment: field not present");
    refused(DNS(""), "must contain exactly one locality for LOGICAL_DNS cluster, found 0");
    refused(DNS("{},{}"), "must contain exactly one locality for LOGICAL_DNS cluster, found 2");
    refused(DNS("{}"), "must contain exactly one endpoint for LOGICAL_DNS cluster, found 0");
    refused(DNS("{'lb_endpoints':[{},{}]}"), "must contain exactly one endpoint for LOGICAL_DNS cluster, found 2");
    refused(DNS("{'lb_endpoints':[{}]}"), "lb_endpoints[0].endpoint: field not present");
    refused(DNS("{'lb_endpoints':[{'endpoint':{}}]}"), "endpoint.address: field not present");
    refused(DNS("{'lb_endpoints':[{'endpoint':{'address':{'pipe':{'path':'/x'}}}}]}"),
            "address.socket_address: field not present");
    refused(DNS_AT("'port_value':443"), "socket_address.address: must be non-empty");
    refused(DNS_AT("'address':'a.example'"), "socket_address.port_value: field not present");
    refused(DNS_AT("'address':'a.example','port_value':65536"), "port_value: invalid port");
    refused(DNS_AT("'address':'a.example','port_value':1,'resolver_name':'x'"),
            "resolver_name: LOGICAL_DNS clusters must NOT have a custom resolver name set");
}

/* Resources are equal if their bytes are equal, and if load reports go to the same server. */
static void equality_is_of_bytes_and_lrs_servers(void **state)
{
    (void)state;
    struct tc_xds_server s1 = {.key = tc_rstr_str("s1")}, s2 = {.key = tc_rstr_str("s2")};
    const struct tc_xds_decode_context from_s1 = {.server = &s1}, from_s2 = {.server = &s2};
    const char *lrs = CLUSTER("'lrs_server':{'self':{}}");
    struct tc_xds_resource *r[] = {valid("{" EDS "}"),
                                   valid("{" EDS "}"),
                                   valid(CLUSTER("'lb_policy':'RING_HASH'")),
                                   valid(RING("")), /* the same settings in other bytes */
                                   kit_resource_valid(&tc_cluster_type, &from_s1, lrs),
                                   kit_resource_valid(&tc_cluster_type, &from_s2, lrs)};
    assert_true(tc_cluster_type.equal(r[0], r[1]));
    assert_false(tc_cluster_type.equal(r[0], r[2]));
    assert_false(tc_cluster_type.equal(r[2], r[3]));
    assert_false(tc_cluster_type.equal(r[4], r[5]));
    for (size_t i = 0; i < TC_ARRAY_LEN(r); i++)
        tc_xds_resource_unref(r[i]);
    tc_rstr_unref(s1.key);
    tc_rstr_unref(s2.key);
}

int main(void)
{
    if (torc_log_set_levels("resource=warn") != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(type_is_eds_or_dns),
        cmocka_unit_test(eds_config_is_ads_or_self),
        cmocka_unit_test(every_fault_is_named),
        cmocka_unit_test(cluster_types),
        cmocka_unit_test(aggregates_are_bounded),
        cmocka_unit_test(policies_of_aggregates_are_ignored),
        cmocka_unit_test(least_request),
        cmocka_unit_test(random_subsetting),
        cmocka_unit_test(lb_policy_becomes_json),
        cmocka_unit_test(ring_sizes_are_checked),
        cmocka_unit_test(maglev_of_the_cluster),
        cmocka_unit_test(maglev_as_an_extension),
        cmocka_unit_test(hash_policies_of_the_lb_policy),
        cmocka_unit_test(extension_policies),
        cmocka_unit_test(client_side_weighted_round_robin),
        cmocka_unit_test(policies_nest_sixteen_deep),
        cmocka_unit_test(load_reports_go_to_self),
        cmocka_unit_test(first_default_threshold_counts),
        cmocka_unit_test(connections_of_a_subchannel),
        cmocka_unit_test(outliers_are_checked),
        cmocka_unit_test(upstream_config_has_the_idle_timeout),
        cmocka_unit_test(override_host_statuses),
        cmocka_unit_test(logical_dns_has_one_address),
        cmocka_unit_test(equality_is_of_bytes_and_lrs_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
