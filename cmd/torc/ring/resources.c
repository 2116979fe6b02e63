/* torc ring --resources: the endpoints and sizes that a client would take from these resources.
 *
 * The Cluster's policy says whether a ring or a Maglev table is shown. Its config gives the sizes, unless the command
 * line does, and the way of weights and keys: the endpoints of the priority pass the policy's own set
 * (lb/ring_hash/endpoints.h), which merges and weighs them. */
#include "api/builtin.h"
#include "base/mem.h"
#include "cli.h"
#include "controlplane/resource_load.h"
#include "lb/registry.h"
#include "lb/ring_hash/endpoints.h"
#include "lb/ring_hash/policy.h"
#include "ring_command.h"
#include "xds/lb/eds_tree.h"
#include "xds/resource/cluster.h"

/* Returns the resource of that type and name, decoded as a client decodes it, or NULL with the reason printed. */
static struct tc_xds_resource *read_resource(const struct tc_resource_set *set, const struct tc_xds_resource_type *type,
                                             const struct tc_rstr *name)
{
    const struct tc_set_type *of_type = tc_resource_set_type(set, tc_slice_str(type->type_url));
    const struct tc_set_resource *found = of_type ? tc_set_type_find(of_type, tc_rstr_slice(name)) : NULL;
    if (!found) {
        cli_fail(RING_COMMAND, "the resources have no %s \"" TC_SHOWN "\"", type->short_name, TC_SHOW(name->data));
        return NULL;
    }
    const struct tc_xds_decode_context ctx = {.registries = tc_builtin_validation_context()};
    struct tc_validation_errors errors = {0};
    struct tc_rstr *own_name = NULL;
    struct tc_xds_resource *r = type->decode(type, &ctx, tc_rstr_slice(found->value), &own_name, &errors);
    if (!r)
        cli_fail(RING_COMMAND, "%s \"%s\": %s", type->short_name, name->data, tc_validation_text(&errors));
    tc_rstr_unref(own_name);
    tc_validation_fini(&errors);
    return r;
}

/* Takes the cluster's sizes unless the command line sets them. *config (a reference; NULL on failure) is that of its
 * policy. */
static int take_sizes(struct ring_opts *o, const struct tc_cluster *cluster, struct tc_ring_hash_config **config)
{
    struct tc_validation_errors errors = {0};
    struct tc_lb_config *lb = tc_lb_parse_list(tc_builtin_policies(), cluster->lb_config, 0, &errors);
    int rc = 0;
    if (!lb) {
        rc = cli_fail(RING_COMMAND, "Cluster \"%s\": LB policy: %s", cluster->name->data, tc_validation_text(&errors));
    } else if (lb->factory == &tc_maglev_factory) {
        *config = TC_CONTAINER_OF(tc_lb_config_ref(lb), struct tc_ring_hash_config, base);
        o->maglev = true;
        o->table_size = o->table_size ? o->table_size : (*config)->table_size;
    } else if (o->maglev) {
        rc = cli_fail(RING_COMMAND, "Cluster \"%s\" has the LB policy %s, which has no Maglev table",
                      cluster->name->data, lb->factory->name);
    } else if (lb->factory != &tc_ring_hash_factory) {
        rc = cli_fail(RING_COMMAND, "Cluster \"%s\" has the LB policy %s, which has no ring", cluster->name->data,
                      lb->factory->name);
    } else {
        *config = TC_CONTAINER_OF(tc_lb_config_ref(lb), struct tc_ring_hash_config, base);
        o->min = o->min ? o->min : (*config)->min_ring_size;
        o->max = o->max ? o->max : (*config)->max_ring_size;
    }
    tc_lb_config_unref(lb);
    tc_validation_fini(&errors);
    return rc;
}

/* `part`: of the whole weight, for a table; else 0. */
static void add_endpoint(struct ring_opts *o, const struct tc_endpoint *e, uint64_t weight, double part,
                         bool use_hostname)
{
    struct tc_buf locality = {0};
    char *address = tc_addr_text(&e->addrs[0]);
    struct tc_slice key = tc_rstr_slice(e->hash_key);
    if (key.len == 0 && use_hostname)
        key = tc_rstr_slice(e->hostname);
    tc_locality_format(e->locality, &locality);
    *tc_vec_push(&o->endpoints.at) = (struct ring_endpoint){
        .key = key.len ? tc_slice_dup(key) : tc_strdup(address),
        .weight = weight,
        .part = part,
        .address = address,
        .locality = tc_buf_take(&locality),
    };
}

/* Adds the endpoints of a list with the weights that the policy gives them. */
static void add_endpoints(struct ring_opts *o, const struct tc_endpoints *list, struct tc_ring_hash_config *config)
{
    struct tc_rh_set *set = tc_rh_set_new(list->n, config);
    uint32_t *was = tc_calloc(list->n, sizeof(*was));
    double *parts = tc_calloc(list->n, sizeof(*parts));
    tc_rh_set_merge(set, NULL, list, was);
    if (config->locality_weighted)
        tc_rh_set_weights(set, parts);
    for (uint32_t i = 0; i < set->n; i++)
        add_endpoint(o, set->at[i].endpoint, set->at[i].weight, parts[i], config->use_hostname);
    tc_rh_set_unref(set);
    tc_free(was);
    tc_free(parts);
}

static int take_endpoints(struct ring_opts *o, const struct tc_eds *eds, struct tc_ring_hash_config *config)
{
    struct tc_eds_tree tree = {0};
    int rc = 0;
    tc_eds_tree_update_eds(&tree, eds);
    if (o->priority >= tree.n) {
        rc = cli_fail(RING_COMMAND, "ClusterLoadAssignment \"%s\" has no priority %llu: %zu in all", eds->name->data,
                      (unsigned long long)o->priority, eds->n_priorities);
    } else {
        const struct tc_endpoints *list = tree.priorities[o->priority].node;
        add_endpoints(o, list, config);
        if (list->n == 0)
            rc = cli_fail(RING_COMMAND, "priority %llu of ClusterLoadAssignment \"%s\" has no endpoints in use",
                          (unsigned long long)o->priority, eds->name->data);
    }
    tc_eds_tree_fini(&tree);
    return rc;
}

static int take_cluster(struct ring_opts *o, const struct tc_resource_set *set, const struct tc_cluster *cluster)
{
    if (cluster->kind == TC_CLUSTER_LOGICAL_DNS)
        return cli_fail(RING_COMMAND, "Cluster \"%s\" is of type LOGICAL_DNS: one endpoint, which DNS gives",
                        cluster->name->data);
    if (cluster->kind == TC_CLUSTER_AGGREGATE)
        return cli_fail(RING_COMMAND,
                        "Cluster \"%s\" is an aggregate: each leaf cluster has a ring; the first is \"%s\"",
                        cluster->name->data, cluster->children[0]->data);
    struct tc_ring_hash_config *config = NULL;
    int rc = take_sizes(o, cluster, &config);
    struct tc_xds_resource *eds = rc == 0 ? read_resource(set, &tc_eds_type, cluster->eds_name) : NULL;
    if (rc == 0)
        rc = eds ? take_endpoints(o, tc_eds_of(eds), config) : CLI_FAILED;
    tc_xds_resource_unref(eds);
    tc_lb_config_unref((struct tc_lb_config *)config);
    return rc;
}

int ring_read_resources(struct ring_opts *o)
{
    struct tc_resource_set *set = tc_resource_set_new();
    struct tc_rstr *name = tc_rstr_str(o->cluster);
    char *why = NULL;
    int rc = 0;
    set->once = true;
    set->warn = cli_left_out;
    set->warn_arg = RING_COMMAND;
    if (tc_resource_set_load(set, o->resources.data, o->resources.len, &why) != 0)
        rc = cli_fail(RING_COMMAND, "%s", why);
    struct tc_xds_resource *cluster = rc == 0 ? read_resource(set, &tc_cluster_type, name) : NULL;
    if (rc == 0)
        rc = cluster ? take_cluster(o, set, tc_cluster_of(cluster)) : CLI_FAILED;
    tc_xds_resource_unref(cluster);
    tc_rstr_unref(name);
    tc_resource_set_free(set);
    tc_free(why);
    return rc;
}
