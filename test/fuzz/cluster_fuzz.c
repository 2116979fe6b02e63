/* Clusters (resource.h). An accepted cluster has the EDS name, DNS target or children that its kind needs and, unless
 * it is an aggregate, an LB config. */
#include "resource.h"
#include "xds/resource/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_buf bytes = {0};
    struct tc_xds_resource *r = tc_fuzz_decode(&tc_cluster_type, data, size, &bytes);
    if (r) {
        const struct tc_cluster *c = tc_cluster_of(r);
        TC_FUZZ_CHECK(c->name);
        TC_FUZZ_CHECK(c->kind != TC_CLUSTER_EDS || c->eds_name);
        TC_FUZZ_CHECK(c->kind != TC_CLUSTER_LOGICAL_DNS || c->dns_target);
        TC_FUZZ_CHECK(c->kind != TC_CLUSTER_AGGREGATE || c->n_children > 0);
        TC_FUZZ_CHECK(json_is_array(c->lb_config) || c->kind == TC_CLUSTER_AGGREGATE);
        char *text = json_dumps(c->lb_config, JSON_COMPACT);
        TC_FUZZ_CHECK(text || !c->lb_config);
        free(text);
    }
    tc_xds_resource_unref(r);
    tc_buf_fini(&bytes);
    return 0;
}
