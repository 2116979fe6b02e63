/* endpoints_of_cluster decodes resources with the client's code (xds/resource, xds/lb/eds_tree.h): the Cluster for the
 * config of its LB policy, its ClusterLoadAssignment for the endpoints. */
#include "endpoints.h"

#include "api/builtin.h"
#include "base/parse.h"
#include "cli.h"
#include "controlplane/resource_load.h"
#include "lb/registry.h"
#include "xds/lb/eds_tree.h"
#include "xds/resource/cluster.h"

int endpoints_parse(const char *command, const char *option, struct tc_slice text, struct tc_slice *key,
                    uint64_t *weight, bool *weighted)
{
    size_t eq = text.len;
    while (eq > 0 && text.data[eq - 1] != '=')
        eq--;
    *key = tc_slice_of(text.data, eq ? eq - 1 : text.len);
    *weight = 1;
    *weighted = eq > 0;
    if (eq && (tc_parse_u64(tc_slice_of(text.data + eq, text.len - eq), UINT64_MAX, weight) != 0 || *weight == 0))
        return cli_usage(command, "%s: '%.*s': a weight is a whole number from 1; a key with '=' in it needs one",
                         option, (int)text.len, text.data);
    if (key->len == 0)
        return cli_usage(command, "%s: '%.*s' has no key", option, (int)text.len, text.data);
    return 0;
}

int endpoints_each_line(const char *command, const char *path, int (*fn)(void *arg, struct tc_slice line), void *arg)
{
    struct tc_buf text = {0};
    int rc = cli_path(command, "--endpoints", path);
    if (rc == 0)
        rc = cli_read_file(command, path, &text);
    struct tc_slice rest = tc_buf_slice(&text), line;
    bool more = true;
    for (unsigned long n = 1; rc == 0 && tc_slice_split(&rest, &more, '\n', &line); n++) {
        if (line.len && line.data[line.len - 1] == '\r')
            line.len--;
        line = tc_slice_trim(line);
        if (line.len == 0 || line.data[0] == '#')
            continue;
        if (memchr(line.data, '\0', line.len))
            rc = cli_usage(command, "--endpoints %s: line %lu has a NUL in it", path, n);
        else
            rc = fn(arg, line);
    }
    tc_buf_fini(&text);
    return rc;
}

/* --- resources --- */

struct cluster_reader {
    const char *command;
    struct tc_resource_set *set;
};

/* Decodes the resource of that type and name. Returns a reference to it, or NULL with the error printed. */
static struct tc_xds_resource *read_resource(const struct cluster_reader *r, const struct tc_xds_resource_type *type,
                                             const struct tc_rstr *name)
{
    const struct tc_set_type *of_type = tc_resource_set_type(r->set, tc_slice_str(type->type_url));
    const struct tc_set_resource *found = of_type ? tc_set_type_find(of_type, tc_rstr_slice(name)) : NULL;
    if (!found) {
        cli_fail(r->command, "the resources have no %s \"" TC_SHOWN "\"", type->short_name, TC_SHOW(name->data));
        return NULL;
    }
    const struct tc_xds_decode_context ctx = {.registries = tc_builtin_validation_context()};
    struct tc_validation_errors errors = {0};
    struct tc_rstr *own_name = NULL;
    struct tc_xds_resource *resource = type->decode(type, &ctx, tc_rstr_slice(found->value), &own_name, &errors);
    if (!resource)
        cli_fail(r->command, "%s \"%s\": %s", type->short_name, name->data, tc_validation_text(&errors));
    tc_rstr_unref(own_name);
    tc_validation_fini(&errors);
    return resource;
}

/* Stores a reference to the endpoints of the priority in *out; nothing after a failure. */
static int take_endpoints(const struct cluster_reader *r, const struct tc_eds *eds, uint64_t priority,
                          struct tc_endpoints **out)
{
    struct tc_eds_tree tree = {0};
    int rc = 0;
    tc_eds_tree_update_eds(&tree, eds);
    if (priority >= tree.n)
        rc = cli_fail(r->command, "ClusterLoadAssignment \"%s\" has no priority %llu: %zu in all", eds->name->data,
                      (unsigned long long)priority, eds->n_priorities);
    else if (tree.priorities[priority].node->n == 0)
        rc = cli_fail(r->command, "priority %llu of ClusterLoadAssignment \"%s\" has no endpoints in use",
                      (unsigned long long)priority, eds->name->data);
    else
        *out = tc_endpoints_ref(tree.priorities[priority].node);
    tc_eds_tree_fini(&tree);
    return rc;
}

/* Stores a reference to the config and to the endpoints. After a failure *config may be set all the same. */
static int take_cluster(const struct cluster_reader *r, const struct tc_cluster *cluster, uint64_t priority,
                        struct tc_lb_config **config, struct tc_endpoints **endpoints)
{
    if (cluster->kind == TC_CLUSTER_LOGICAL_DNS)
        return cli_fail(r->command, "Cluster \"%s\" is of type LOGICAL_DNS: one endpoint, which DNS gives",
                        cluster->name->data);
    if (cluster->kind == TC_CLUSTER_AGGREGATE)
        return cli_fail(r->command,
                        "Cluster \"%s\" is an aggregate: each leaf cluster has its endpoints; the first is \"%s\"",
                        cluster->name->data, cluster->children[0]->data);
    struct tc_validation_errors errors = {0};
    int rc = 0;
    *config = tc_lb_parse_list(tc_builtin_policies(), cluster->lb_config, 0, &errors);
    if (!*config)
        rc = cli_fail(r->command, "Cluster \"%s\": LB policy: %s", cluster->name->data, tc_validation_text(&errors));
    struct tc_xds_resource *eds = rc == 0 ? read_resource(r, &tc_eds_type, cluster->eds_name) : NULL;
    if (rc == 0)
        rc = eds ? take_endpoints(r, tc_eds_of(eds), priority, endpoints) : CLI_FAILED;
    tc_xds_resource_unref(eds);
    tc_validation_fini(&errors);
    return rc;
}

int endpoints_of_cluster(const char *command, const char *const *paths, size_t n, const char *cluster,
                         uint64_t priority, struct tc_lb_config **config, struct tc_endpoints **endpoints)
{
    struct cluster_reader r = {command, tc_resource_set_new()};
    struct tc_rstr *name = tc_rstr_str(cluster);
    char *why = NULL;
    int rc = 0;
    *config = NULL;
    *endpoints = NULL;
    r.set->once = true;
    r.set->warn = cli_left_out;
    r.set->warn_arg = (void *)(uintptr_t)command;
    if (tc_resource_set_load(r.set, paths, n, &why) != 0)
        rc = cli_fail(command, "%s", why);
    struct tc_xds_resource *resource = rc == 0 ? read_resource(&r, &tc_cluster_type, name) : NULL;
    if (rc == 0)
        rc = resource ? take_cluster(&r, tc_cluster_of(resource), priority, config, endpoints) : CLI_FAILED;
    tc_xds_resource_unref(resource);
    tc_rstr_unref(name);
    tc_resource_set_free(r.set);
    tc_free(why);
    if (rc) {
        tc_lb_config_unref(*config);
        *config = NULL;
    }
    return rc;
}
