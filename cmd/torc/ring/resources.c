/* torc ring --resources: the endpoints and sizes that a client would take from these resources.
 *
 * The Cluster's LB policy decides between a ring and a Maglev table. Its config gives the sizes that the command line
 * does not, and says how endpoints get weights and keys. The policy's own code (lb/ring_hash/endpoints.h) merges and
 * weighs the endpoints of the priority. */
#include "base/mem.h"
#include "cli.h"
#include "endpoints.h"
#include "lb/ring_hash/endpoints.h"
#include "lb/ring_hash/policy.h"
#include "ring_command.h"

/* Takes o->maglev, and the sizes that the command line does not set, from the cluster's policy. Fails if the policy
 * has neither a ring nor a table, with --maglev if it has no table, and with sizes of a ring if it has a table. */
static int take_sizes(struct ring_opts *o, struct tc_lb_config *lb)
{
    const struct tc_ring_hash_config *config = TC_CONTAINER_OF(lb, struct tc_ring_hash_config, base);
    const char *policy = lb->factory->name;
    if (lb->factory == &tc_maglev_factory) {
        if (o->min || o->max || o->cap)
            return cli_usage(RING_COMMAND, "--min, --max and --cap are for rings; Cluster \"%s\" has the LB policy %s",
                             o->cluster, policy);
        o->maglev = true;
        o->table_size = o->table_size ? o->table_size : config->table_size;
    } else if (o->maglev) {
        return cli_fail(RING_COMMAND, "Cluster \"%s\" has the LB policy %s, which has no Maglev table", o->cluster,
                        policy);
    } else if (lb->factory != &tc_ring_hash_factory) {
        return cli_fail(RING_COMMAND, "Cluster \"%s\" has the LB policy %s, which has no ring", o->cluster, policy);
    } else {
        o->min = o->min ? o->min : TC_MIN(config->min_ring_size, o->max ? o->max : UINT64_MAX);
        o->max = o->max ? o->max : TC_MAX(config->max_ring_size, o->min);
    }
    return 0;
}

/* Adds an endpoint. `part`: as in struct ring_endpoint. `use_hostname`: the hostname is the key of an endpoint without
 * a hash_key. */
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

int ring_read_resources(struct ring_opts *o)
{
    struct tc_lb_config *config;
    struct tc_endpoints *list;
    int rc = endpoints_of_cluster(RING_COMMAND, o->resources.data, o->resources.len, o->cluster, o->priority, &config,
                                  &list);
    if (rc == 0 && (rc = take_sizes(o, config)) == 0)
        add_endpoints(o, list, TC_CONTAINER_OF(config, struct tc_ring_hash_config, base));
    tc_endpoints_unref(list);
    tc_lb_config_unref(config);
    return rc;
}
