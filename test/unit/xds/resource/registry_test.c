/* How a Cluster is decoded depends on the decode context: on its registries, on their switch ring_hash_off, and on its
 * server, which is not known without a context. */
#include "xds/resource/registry.h"

#include "support/cmocka.h"
#include "support/kits/resource.h"
#include "xds/resource/cluster.h"

#include "base/json.h"
#include "base/mem.h"

#define CLUSTER(more) "{'name':'c','type':'EDS','eds_cluster_config':{'eds_config':{'ads':{}}}," more "}"
#define TYPE "type.googleapis.com/"
#define LB "envoy.extensions.load_balancing_policies."
#define POLICY(type, more) "{'typed_extension_config':{'typed_config':{'@type':'" TYPE type "'" more "}}}"
#define POLICIES(list) CLUSTER("'load_balancing_policy':{'policies':[" list "]}")
#define RING_POLICY(more) POLICY(LB "ring_hash.v3.RingHash", more)
#define STRUCT(name) POLICY("xds.type.v3.TypedStruct", ",'type_url':'x/" name "','value':{}")

static void check_lb(const struct tc_xds_decode_context *ctx, const char *json, const char *expected)
{
    struct tc_xds_resource *r = kit_resource_valid(&tc_cluster_type, ctx, json);
    char *text = tc_json_text(tc_cluster_of(r)->lb_config, false);
    assert_string_equal(text, expected);
    tc_free(text);
    tc_xds_resource_unref(r);
}

static bool only_ring_hash(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "ring_hash_experimental") == 0;
}

static void no_small_rings(void *arg, const json_t *list, struct tc_validation_errors *errors)
{
    json_int_t min = 0;
    assert_ptr_equal(arg, &tc_cluster_type);
    assert_int_equal(json_unpack((json_t *)list, "[{s:{s:I}}]", "ring_hash_experimental", "minRingSize", &min), 0);
    if (min < 10)
        tc_validation_add(errors, "too small");
}

static void registries_are_asked(void **state)
{
    (void)state;
    struct tc_xds_registries reg;
    tc_xds_registries_init(&reg);
    reg.lb_known = only_ring_hash;
    reg.lb_check = no_small_rings;
    reg.arg = (void *)&tc_cluster_type;
    struct tc_xds_decode_context ctx = {.registries = &reg};
    check_lb(&ctx, POLICIES(POLICY(LB "round_robin.v3.RoundRobin", "") "," RING_POLICY("")),
             "[{\"ring_hash_experimental\":{\"minRingSize\":1024,\"maxRingSize\":8388608}}]");
    kit_resource_refused(&tc_cluster_type, &ctx, POLICIES(RING_POLICY(",'minimum_ring_size':2")),
                         "field load_balancing_policy: too small");
}

/* A42: the policies of consistent hashing count as unknown in each of their forms. */
static void ring_hash_is_off(void **state)
{
    (void)state;
    struct tc_xds_registries reg;
    tc_xds_registries_init(&reg);
    reg.ring_hash_off = true;
    struct tc_xds_decode_context ctx = {.registries = &reg};
    kit_resource_refused(&tc_cluster_type, &ctx, CLUSTER("'lb_policy':'RING_HASH'"), "unsupported value RING_HASH");
    kit_resource_refused(
        &tc_cluster_type, &ctx,
        POLICIES(RING_POLICY("") "," POLICY(LB "maglev.v3.Maglev", "") "," STRUCT("ring_hash") "," STRUCT("maglev")),
        "no supported load balancing policy config found");
    check_lb(&ctx,
             POLICIES(STRUCT("ring_hash_experimental") "," STRUCT("maglev_experimental") "," STRUCT("round_robin")),
             "[{\"round_robin\":{}}]");
}

static void without_a_context_no_server_is_known(void **state)
{
    (void)state;
    struct tc_validation_errors errors = {0};
    struct tc_rstr *own = NULL;
    struct tc_buf bytes = kit_resource_message("envoy.config.cluster.v3.Cluster", CLUSTER("'lrs_server':{'self':{}}"));
    struct tc_xds_resource *r = tc_cluster_type.decode(&tc_cluster_type, NULL, tc_buf_slice(&bytes), &own, &errors);
    assert_non_null(r);
    assert_true(tc_cluster_of(r)->has_lrs);
    assert_null(tc_cluster_of(r)->lrs_server);
    tc_xds_resource_unref(r);
    tc_rstr_unref(own);
    tc_validation_fini(&errors);
    tc_buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registries_are_asked),
        cmocka_unit_test(ring_hash_is_off),
        cmocka_unit_test(without_a_context_no_server_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
