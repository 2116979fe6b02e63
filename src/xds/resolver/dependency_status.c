/* The texts of the dependency manager: why there is no config, why a cluster has no endpoints, which resources are
 * not known yet.
 *
 * The text of an error names the xDS node, and most texts name the resource and its service (LDS, RDS, CDS, EDS, LEDS),
 * so that the reader of a failed RPC's status knows where to look. Errors beside values (A88) go into a cluster's
 * resolution note, which the LB policies append to the status of RPCs that fail because no endpoint can be reached. The
 * text of tc_dep_no_vhost has such errors, too.
 *
 * A tc_rstr or tc_status that a function returns is a new one, and the caller's. The nodes are only read. Loop thread
 * only. */
#include "xds/resolver/dependency_manager_internal.h"

enum {
    MAX_NAMED_LOCALITIES = 16,
    MAX_ERROR_BYTES = 1024, /* of the error of a resource: each cluster's note may have a copy */
};

static const char *discovery_service(const struct tc_xds_resource_type *type)
{
    return type == &tc_listener_type       ? "LDS"
           : type == &tc_route_config_type ? "RDS"
           : type == &tc_cluster_type      ? "CDS"
           : type == &tc_eds_type          ? "EDS"
                                           : "LEDS";
}

static void append_error(struct tc_buf *out, struct tc_slice text)
{
    size_t len = TC_MIN(text.len, (size_t)MAX_ERROR_BYTES);
    while (len < text.len && len && ((unsigned char)text.data[len] & 0xc0) == 0x80)
        len--; /* does not cut a UTF-8 character */
    tc_buf_printf(out, ": %.*s%s", (int)len, text.data, len < text.len ? "..." : "");
}

/* Appends the resource and `error`: the node's error or its ambient error. */
static void describe_node(struct tc_buf *out, const struct tc_dep_node *n, const struct tc_status *error)
{
    const char *quote = n->type == &tc_eds_type ? "" : "\"";
    tc_buf_printf(out, "%s resource %s" TC_SHOWN "%s", discovery_service(n->type), quote, TC_SHOW(n->name->data),
                  quote);
    if (error->code == TORC_STATUS_NOT_FOUND && !n->value) /* with a value: deleted, but in use (A88) */
        tc_buf_append_str(out, " does not exist");
    else
        append_error(out, tc_slice_str(tc_status_text(error)));
}

void tc_dep_append_pending(struct tc_buf *out, const struct tc_dep_node *n, size_t *count)
{
    bool dns = n && n->dns && !tc_dns_watch_endpoints(n->dns) && tc_status_ok(tc_dns_watch_error(n->dns));
    if (!n || (!dns && (n->value || !tc_status_ok(&n->error))))
        return;
    if (++*count > TC_DEP_MAX_NAMED_PENDING)
        return;
    tc_buf_append_str(out, *count > 1 ? ", " : "");
    if (dns)
        tc_buf_printf(out, "the addresses of " TC_SHOWN, TC_SHOW(n->dns_target->data));
    else
        tc_buf_printf(out, "%s resource \"" TC_SHOWN "\"", discovery_service(n->type), TC_SHOW(n->name->data));
}

struct tc_status tc_dep_failure(const struct tc_dep_node *n)
{
    struct tc_buf text = {0};
    describe_node(&text, n, &n->error);
    struct tc_status status = {TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                               tc_with_node_id(tc_buf_slice(&text), n->manager->node_id)};
    tc_buf_fini(&text);
    return status;
}

static struct tc_rstr *leaf_error_text(const struct tc_dep_node *n, enum tc_dep_excess excess, size_t limit)
{
    switch (excess) {
    case TC_DEP_WHOLE:
        break;
    case TC_DEP_TOO_DEEP:
        return tc_rstr_printf("aggregate cluster graph exceeds max depth (%zu)", limit);
    case TC_DEP_TOO_WIDE:
        return tc_rstr_printf("aggregate cluster graph for " TC_SHOWN " exceeds max leaf clusters (%zu)",
                              TC_SHOW(n->name->data), limit);
    case TC_DEP_ALL_TOO_WIDE:
        return tc_rstr_printf("aggregate cluster graph for " TC_SHOWN
                              " exceeds max leaf clusters of all aggregates (%zu)",
                              TC_SHOW(n->name->data), limit);
    case TC_DEP_ALL_TOO_LARGE:
        return tc_rstr_printf("aggregate cluster graph for " TC_SHOWN " exceeds max names of all aggregates (%zu)",
                              TC_SHOW(n->name->data), limit);
    }
    return tc_rstr_printf("aggregate cluster dependency graph for " TC_SHOWN " has no leaf clusters",
                          TC_SHOW(n->name->data));
}

struct tc_status tc_dep_leaf_error(const struct tc_dep_node *n, enum tc_dep_excess excess, size_t limit)
{
    struct tc_rstr *text = leaf_error_text(n, excess, limit);
    struct tc_status status = {TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                               tc_with_node_id(tc_rstr_slice(text), n->manager->node_id)};
    tc_rstr_unref(text);
    return status;
}

static void append_empty_localities(const struct tc_eds *eds, struct tc_buf *out, size_t *n)
{
    for (size_t p = 0; p < eds->n_priorities; p++)
        for (size_t i = 0; i < eds->priorities[p].n; i++) {
            const struct tc_eds_locality *l = &eds->priorities[p].localities[i];
            if (l->n != 0)
                continue;
            if (*n < MAX_NAMED_LOCALITIES) {
                struct tc_buf name = {0};
                tc_eds_locality_format(l, &name);
                tc_buf_printf(out, "%s" TC_SHOWN, *n ? ", " : "", TC_SHOW(tc_buf_cstr(&name)));
                tc_buf_fini(&name);
            }
            ++*n;
        }
}

struct tc_rstr *tc_dep_eds_note(const struct tc_eds *eds)
{
    if (eds->n_priorities == 0 && eds->n_unweighted)
        return tc_rstr_printf("EDS resource " TC_SHOWN
                              " contains no localities: %zu %s load_balancing_weight, which leaves %s out",
                              TC_SHOW(eds->name->data), eds->n_unweighted,
                              eds->n_unweighted == 1 ? "has no" : "have no", eds->n_unweighted == 1 ? "it" : "them");
    if (eds->n_priorities == 0)
        return tc_rstr_printf("EDS resource " TC_SHOWN " contains no localities", TC_SHOW(eds->name->data));
    struct tc_buf list = {0};
    struct tc_rstr *note = NULL;
    size_t n = 0;
    append_empty_localities(eds, &list, &n);
    if (n > MAX_NAMED_LOCALITIES)
        tc_buf_printf(&list, ", and %zu more", n - MAX_NAMED_LOCALITIES);
    if (n)
        note = tc_rstr_printf("EDS resource " TC_SHOWN " contains empty localities: [%s]", TC_SHOW(eds->name->data),
                              tc_buf_cstr(&list));
    tc_buf_fini(&list);
    return note;
}

/* Appends what is wrong with the locality's collection, and returns true. Returns false if nothing is wrong. */
static bool append_collection(const struct tc_dependency_manager *m, const struct tc_eds_locality *l,
                              struct tc_buf *out)
{
    const struct tc_dep_node *n = NULL;
    if (!l->collection)
        return false;
    HASH_FIND(hh, m->collections, l->collection->data, l->collection->len, n);
    const struct tc_status *error = n && tc_status_ok(&n->ambient) ? &n->error : n ? &n->ambient : NULL;
    bool left_out = !n || (l->from && l->n != l->from->n);
    if (!left_out && tc_status_ok(error))
        return false;
    tc_buf_append_str(out, out->len ? "; " : "");
    if (left_out)
        tc_buf_printf(out, "LEDS resource \"" TC_SHOWN "\" is beyond the limit of endpoints or of collections",
                      TC_SHOW(l->collection->data));
    else
        describe_node(out, n, error);
    return true;
}

struct tc_rstr *tc_dep_collections_note(const struct tc_dependency_manager *m, const struct tc_eds *merged)
{
    struct tc_buf text = {0};
    struct tc_rstr *note = tc_dep_eds_note(merged);
    size_t named = 0;
    tc_buf_append_slice(&text, tc_rstr_slice(note));
    tc_rstr_unref(note);
    for (size_t p = 0; p < merged->n_priorities; p++)
        for (size_t i = 0; i < merged->priorities[p].n && named < TC_DEP_MAX_NAMED_PENDING; i++)
            named += append_collection(m, &merged->priorities[p].localities[i], &text);
    note = text.len ? tc_rstr_new(text.data, text.len) : NULL;
    tc_buf_fini(&text);
    return note;
}

static void append_ambient_error(struct tc_buf *out, const struct tc_dep_node *n)
{
    if (!n || tc_status_ok(&n->ambient))
        return;
    tc_buf_append_str(out, out->len ? "; " : "");
    describe_node(out, n, &n->ambient);
}

static void append_endpoints_error(struct tc_buf *out, const struct tc_dep_node *cluster, const struct tc_dep_node *eds)
{
    if (eds && !eds->value)
        describe_node(out, eds, &eds->error);
    else if (eds && eds->note)
        tc_buf_append_slice(out, tc_rstr_slice(eds->note));
    if (cluster->dns)
        tc_buf_append_slice(out, tc_rstr_slice(tc_dns_watch_error(cluster->dns)->text));
}

struct tc_rstr *tc_dep_resolution_note(const struct tc_dependency_manager *m, const struct tc_dep_node *cluster,
                                       const struct tc_dep_node *eds)
{
    struct tc_buf text = {0};
    append_endpoints_error(&text, cluster, eds);
    append_ambient_error(&text, m->listener);
    append_ambient_error(&text, m->routes);
    append_ambient_error(&text, cluster);
    append_ambient_error(&text, eds);
    struct tc_rstr *note = text.len ? tc_with_node_id(tc_buf_slice(&text), m->node_id)
                                    : tc_rstr_printf("xDS node ID:%s", tc_rstr_cstr(m->node_id));
    tc_buf_fini(&text);
    return note;
}

/* --- nothing to route by --- */

/* Returns an UNAVAILABLE with the text and the xDS node. Frees the text. */
static struct tc_status manager_unavailable(const struct tc_dependency_manager *m, struct tc_buf *text)
{
    struct tc_status status = {TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                               tc_with_node_id(tc_buf_slice(text), m->node_id)};
    tc_buf_fini(text);
    return status;
}

struct tc_status tc_dep_socket_listener(const struct tc_dependency_manager *m)
{
    struct tc_buf text = {0};
    tc_buf_printf(&text, "LDS resource \"" TC_SHOWN "\" is a socket listener, not an API listener",
                  TC_SHOW(m->listener->name->data));
    return manager_unavailable(m, &text);
}

struct tc_status tc_dep_no_vhost(const struct tc_dependency_manager *m, const struct tc_route_table *table,
                                 const struct tc_rstr *routes_name)
{
    struct tc_buf text = {0};
    tc_buf_printf(&text, "no virtual host for \"" TC_SHOWN "\" in route configuration \"" TC_SHOWN "\"",
                  TC_SHOW(m->authority->data), TC_SHOW(tc_rstr_cstr(routes_name)));
    if (table->n_vhosts == 0)
        tc_buf_append_str(&text, ", which has no virtual hosts at all");
    append_ambient_error(&text, m->listener);
    append_ambient_error(&text, m->routes);
    return manager_unavailable(m, &text);
}
