/* torc serve-xds --strict: warns of references to resources that the files do not have, and of localities without a
 * weight.
 *
 * A missing resource is a warning, not an error: a client accepts the reference, requests the resource, and waits. Each
 * missing name is reported once. A client leaves out a locality without a weight (A27): its endpoints get no RPCs. */
#include <stdlib.h>

#include "cli.h"
#include "serve_xds.h"
#include "xds/resource/cluster.h"
#include "xds/resource/endpoints.h"
#include "xds/resource/listener.h"
#include "xds/resource/route_config.h"

/* Adds a reference to `name`; NULL: there is none. `name` and `from` are copied. */
static void add_name(struct references *r, const struct tc_xds_resource_type *type, const struct tc_rstr *name,
                     const char *from)
{
    /* The resources of an authority may come from another server (A47). */
    if (!name || strncmp(tc_rstr_cstr(name), "xdstp:", 6) == 0)
        return;
    struct reference *new = tc_vec_push(&r->names);
    new->type = type->short_name;
    new->name = tc_strdup(tc_rstr_cstr(name));
    new->from = tc_strdup(from);
}

static void add_routes(struct references *r, const struct tc_route_table *table, const char *from)
{
    for (size_t i = 0; table && i < table->n_vhosts; i++)
        for (size_t j = 0; j < table->vhosts[i].n_routes; j++) {
            const struct tc_route *route = &table->vhosts[i].routes[j];
            if (route->kind == TC_ROUTE_CLUSTER)
                add_name(r, &tc_cluster_type, route->cluster, from);
            for (size_t k = 0; route->kind == TC_ROUTE_WEIGHTED && k < route->n_weighted; k++)
                add_name(r, &tc_cluster_type, route->weighted[k].name, from);
        }
}

static void add_of_cluster(struct references *r, const struct tc_cluster *cluster, const char *from)
{
    if (cluster->kind == TC_CLUSTER_EDS)
        add_name(r, &tc_eds_type, cluster->eds_name, from);
    for (size_t i = 0; cluster->kind == TC_CLUSTER_AGGREGATE && i < cluster->n_children; i++)
        add_name(r, &tc_cluster_type, cluster->children[i], from);
}

void references_add(struct references *r, const struct tc_xds_resource_type *type, struct tc_slice name,
                    struct tc_xds_resource *resource)
{
    char *from = tc_asprintf("%s \"%.*s\"", type->short_name, (int)name.len, name.data);
    struct reference *own = tc_vec_push(&r->names);
    own->type = type->short_name;
    own->name = tc_slice_dup(name);
    if (type == &tc_listener_type) {
        add_name(r, &tc_route_config_type, tc_listener_of(resource)->rds_name, from);
        add_routes(r, tc_listener_of(resource)->routes, from);
    } else if (type == &tc_route_config_type) {
        add_routes(r, &tc_route_config_of(resource)->table, from);
    } else if (type == &tc_cluster_type) {
        add_of_cluster(r, tc_cluster_of(resource), from);
    } else if (type == &tc_eds_type && tc_eds_of(resource)->n_unweighted) {
        *tc_vec_push(&r->unweighted) =
            tc_asprintf("%s: clients leave out %zu of its localities, for want of load_balancing_weight", from,
                        tc_eds_of(resource)->n_unweighted);
    }
    tc_free(from);
}

/* Sorts by type, then name; then the resource itself before the references to it; references by `from`. */
static int compare(const void *a, const void *b)
{
    const struct reference *x = a, *y = b;
    int order = strcmp(x->type, y->type);
    order = order ? order : strcmp(x->name, y->name);
    if (order || !x->from || !y->from)
        return order ? order : (x->from != NULL) - (y->from != NULL);
    return strcmp(x->from, y->from);
}

void references_report(struct references *r, const char *command)
{
    if (r->names.len)
        qsort(r->names.data, r->names.len, sizeof(*r->names.data), compare);
    for (size_t i = 0; i < r->names.len; i++) {
        const struct reference *n = &r->names.data[i], *before = i ? n - 1 : NULL;
        if (n->from && (!before || strcmp(before->type, n->type) != 0 || strcmp(before->name, n->name) != 0))
            cli_fail(command, "warning: %s names the %s \"%s\", which is not in the files", n->from, n->type, n->name);
    }
    for (size_t i = 0; i < r->unweighted.len; i++)
        cli_fail(command, "warning: %s", r->unweighted.data[i]);
}

void references_fini(struct references *r)
{
    for (size_t i = 0; i < r->names.len; i++) {
        tc_free(r->names.data[i].name);
        tc_free(r->names.data[i].from);
    }
    tc_vec_fini(&r->names);
    for (size_t i = 0; i < r->unweighted.len; i++)
        tc_free(r->unweighted.data[i]);
    tc_vec_fini(&r->unweighted);
}
