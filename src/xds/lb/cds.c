/* cds (A74, A75): turns one cluster of the XdsConfig into the policies that serve it.
 *
 *   a leaf cluster         outlier_detection -> xds_cluster_impl -> xds_override_host -> priority
 *                          -> for each priority the policy that the cluster asks for
 *   an aggregate cluster   priority -> a cds for each leaf cluster
 *
 * An update of a leaf cluster does nothing if the cluster is the same object as in the last XdsConfig, the policy's
 * config is equal, and tc_listener_has_sessions answers as before. Otherwise it builds the tree of endpoint lists
 * (eds_tree) and the child's config. Lists that did not change stay the same objects, and the last config stays if the
 * new one is equal, so that the policies below have little to do. An aggregate takes every update, since its leaf
 * clusters may have changed.
 *
 * cds_create_subchannel applies the cluster's TLS (A29). When the TLS changes, a new child replaces the old one
 * (tc_graceful_switch_renew), since the old connections no longer have the security that the cluster asks for. If the
 * cluster had no TLS before, the old child ends at once, since its connections may be plaintext.
 *
 * If the XdsConfig does not have the cluster, or the cluster has an error, or its TLS or its LB policy cannot be made,
 * there is no child: the policy fails RPCs itself (cds_fail). A cluster without endpoints has a child, which fails the
 * RPCs.
 *
 * The policy owns the child, the tree and the TLS, and holds the cluster's snapshot. Policies: loop thread only;
 * configs: any thread. Read cds_update first. */
#include "xds/lb/policies.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "lb/child_configs.h"
#include "lb/connectivity.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/graceful_switch.h"
#include "lb/outlier_detection/policy.h"
#include "lb/policies/priority.h"
#include "lb/registry.h"
#include "subchannel/subchannel.h"
#include "xds/filter/session_filter.h"
#include "xds/lb/eds_tree.h"
#include "xds/lb/override_host.h"
#include "xds/lb/tls.h"
#include "xds/resource/xds_config.h"

/* --- config --- */

/* {"cluster": "name"} */
static struct tc_lb_config *cds_parse_config(const struct tc_lb_factory *factory, const json_t *json,
                                             const struct tc_lb_registry *registry, unsigned depth,
                                             struct tc_validation_errors *errors)
{
    (void)factory;
    (void)registry;
    (void)depth;
    const char *cluster = NULL;
    size_t before = errors->count;
    if (!tc_json_get_str(json, "cluster", &cluster, errors)) {
        if (errors->count == before)
            tc_validation_add_at(errors, ".cluster", "field not present");
        return NULL;
    }
    struct tc_rstr *name = tc_rstr_str(cluster);
    struct tc_lb_config *config = tc_child_config_single(&tc_cds_factory, name, NULL);
    tc_rstr_unref(name);
    return config;
}

/* --- policy --- */

struct cds {
    struct tc_lb_policy base;
    struct tc_lb_helper helper;        /* the child's */
    struct tc_graceful_switch *child;  /* NULL: the policy fails RPCs itself, or there was no update yet */
    struct tc_lb_config *config;       /* of the last update, a reference; NULL: none yet */
    struct tc_cluster_config *cluster; /* the snapshot of the last update, a reference; NULL: it had none */
    size_t place;                      /* the cluster's index in the last XdsConfig: the next search begins there */
    struct tc_lb_config *child_config; /* of the child's last update, a reference; NULL without a child */
    struct tc_lb_config *lb;           /* parsed from the lb_config of `lb_of`, a reference; NULL: nothing was parsed */
    const struct tc_cluster *lb_of;    /* a reference of the Cluster alone: its snapshot would keep old endpoints */
    bool sessions;                     /* tc_listener_has_sessions of the last update */
    struct tc_eds_tree tree;
    struct tc_scaling scaling;  /* A105: the subchannels, with the cluster's max_connections */
    struct tc_cluster_tls *tls; /* A29: the credentials of the cluster's connections; NULL: the channel's own */
    enum torc_connectivity published_state; /* TORC_CONNECTIVITY_SHUTDOWN: nothing yet */
};

/* Returns the cluster's name, borrowed; NULL before the first update. */
static struct tc_rstr *cds_name(const struct cds *p)
{
    return p->config ? tc_child_config_of(p->config)->name : NULL;
}

/* Ends the child, which is not NULL. The next one begins without a config. */
static void cds_shut_child(struct cds *p)
{
    tc_graceful_switch_shutdown(p->child);
    p->child = NULL;
    tc_lb_config_unref(p->child_config);
    p->child_config = NULL;
}

/* Ends the child, and frees the endpoint lists and the TLS. Called if the cluster is missing or cannot be used, and in
 * the policy's shutdown. */
static void cds_drop_child(struct cds *p)
{
    if (p->child)
        cds_shut_child(p);
    tc_eds_tree_fini(&p->tree);
    tc_cluster_tls_free(p->tls);
    p->tls = NULL;
}

/* Publishes state and picker, whose reference it takes over, and logs a change of the state. Every report of the policy
 * passes through here. */
static void cds_publish(struct cds *p, enum torc_connectivity state, const struct tc_status *status,
                        struct tc_picker *picker)
{
    if (state != p->published_state && state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        TC_LOG(TC_LOG_LB, TORC_LOG_INFO, TC_SHOWN ": cluster TRANSIENT_FAILURE: %s", TC_SHOW(tc_rstr_cstr(cds_name(p))),
               tc_status_text(status));
    else if (state != p->published_state)
        TC_LOG(TC_LOG_LB, TORC_LOG_INFO, TC_SHOWN ": cluster %s", TC_SHOW(tc_rstr_cstr(cds_name(p))),
               tc_connectivity_name(state));
    p->published_state = state;
    tc_lb_update_state(p->base.helper, state, status, picker);
}

/* Ends the child and fails all RPCs with the status, of which it takes ownership. Returns OK as the update's answer. */
static struct tc_status cds_fail(struct cds *p, struct tc_status status)
{
    cds_drop_child(p);
    cds_publish(p, TORC_CONNECTIVITY_TRANSIENT_FAILURE, &status, tc_picker_fail(&status));
    tc_status_fini(&status);
    return (struct tc_status){0};
}

/* Gives back `lb` and `lb_of`. The caller replaces them, or ends the policy. */
static void cds_forget_lb(struct cds *p)
{
    tc_lb_config_unref(p->lb);
    if (p->lb_of)
        tc_xds_resource_unref((struct tc_xds_resource *)(uintptr_t)&p->lb_of->base.head);
}

/* Returns the config of the policy that the cluster's lb_config names, borrowed: the same object while the JSON is
 * equal. Returns NULL with *why if the JSON cannot be parsed. */
static struct tc_lb_config *cds_parse_lb(struct cds *p, struct tc_cluster_config *c, struct tc_status *why)
{
    struct tc_validation_errors errors = {0};
    const struct tc_cluster *now = c->cluster;
    if (p->lb && json_equal(p->lb_of->lb_config, now->lb_config))
        return p->lb;
    struct tc_lb_config *lb = tc_lb_parse_list(p->base.helper->env->registry, now->lb_config, 0, &errors);
    if (!lb)
        *why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS, "cluster \"" TC_SHOWN "\": LB policy: %s",
                              TC_SHOW(now->name->data), tc_validation_text(&errors));
    tc_validation_fini(&errors);
    cds_forget_lb(p);
    p->lb = lb;
    p->lb_of = lb ? tc_cluster_of(tc_xds_resource_ref((struct tc_xds_resource *)(uintptr_t)&now->base.head)) : NULL;
    return lb;
}

/* Returns the config of priority over a cds for each leaf cluster, a reference, or NULL with *why. The aggregate's
 * Cluster has an lb_config only with GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT (A75): then the leaf clusters use that
 * policy. */
static struct tc_lb_config *aggregate_config(struct cds *p, struct tc_cluster_config *c, struct tc_status *why)
{
    struct tc_lb_config *lb = NULL;
    if (c->cluster->lb_config) {
        lb = cds_parse_lb(p, c, why);
        if (!lb)
            return NULL;
    }
    struct tc_child_config *children = tc_calloc(c->n_leaf_clusters, sizeof(*children));
    for (size_t i = 0; i < c->n_leaf_clusters; i++)
        children[i] = (struct tc_child_config){
            .name = c->leaf_clusters[i], .config = tc_child_config_single(&tc_cds_factory, c->leaf_clusters[i], lb)};
    struct tc_lb_config *config = tc_child_configs_new(&tc_priority_factory, children, c->n_leaf_clusters);
    for (size_t i = 0; i < c->n_leaf_clusters; i++)
        tc_lb_config_unref(children[i].config);
    tc_free(children);
    return config;
}

/* Returns the config of xds_override_host over `child`, a reference. A55, A75: xds_override_host stands between
 * xds_cluster_impl and priority. Without sessions it only withholds draining endpoints from priority. */
static struct tc_lb_config *override_config(const struct cds *p, const struct tc_cluster *from,
                                            struct tc_lb_config *child)
{
    struct tc_override_host_settings s = {
        .sessions = p->sessions, .statuses = from->override_host_status, .idle_timeout_ms = from->idle_timeout_ms};
    return tc_override_config_new(&tc_override_host_factory, &s, child);
}

/* Returns the config of outlier_detection -> xds_cluster_impl -> xds_override_host -> priority -> lb for each priority
 * of the tree, a reference. */
static struct tc_lb_config *endpoint_cluster_config(const struct cds *p, const struct tc_cluster_config *c,
                                                    struct tc_lb_config *lb)
{
    struct tc_child_config *children = tc_calloc(p->tree.n, sizeof(*children));
    for (size_t i = 0; i < p->tree.n; i++)
        children[i] = (struct tc_child_config){
            .name = p->tree.priorities[i].name,
            .config = lb,
            .ignore_reresolution_requests = c->cluster->kind == TC_CLUSTER_EDS, /* A37 */
        };
    /* A50, A75: outlier_detection comes first below cds. It does nothing if the cluster has no outlier detection. */
    const struct tc_outlier_settings *outlier = c->cluster->outlier ? c->cluster->outlier : &tc_outlier_defaults;
    struct tc_lb_config *priorities = tc_child_configs_new(&tc_priority_factory, children, p->tree.n);
    struct tc_lb_config *override = override_config(p, c->cluster, priorities);
    struct tc_lb_config *impl = tc_child_config_single(&tc_cluster_impl_factory, c->name, override);
    struct tc_lb_config *config = tc_outlier_config_new(&tc_outlier_detection_factory, outlier, impl);
    tc_lb_config_unref(impl);
    tc_lb_config_unref(override);
    tc_lb_config_unref(priorities);
    tc_free(children);
    return config;
}

/* Returns the config for the child, a reference, or NULL with *why. Updates the tree, or empties it for an aggregate.
 * `override`: the policy to use instead of the one that the cluster asks for, or NULL. */
static struct tc_lb_config *cds_child_config(struct cds *p, struct tc_cluster_config *c, struct tc_lb_config *override,
                                             struct tc_status *why)
{
    if (c->cluster->kind == TC_CLUSTER_AGGREGATE) {
        if (!tc_status_ok(&c->leaf_error)) {
            *why = tc_status_ref(&c->leaf_error);
            return NULL;
        }
        tc_eds_tree_fini(&p->tree);
        return aggregate_config(p, c, why);
    }
    struct tc_lb_config *lb = override ? override : cds_parse_lb(p, c, why);
    if (!lb)
        return NULL;
    p->tree.http_connect = c->cluster->http_connect;
    if (c->cluster->kind == TC_CLUSTER_EDS)
        tc_eds_tree_update_eds(&p->tree, c->eds);
    else
        tc_eds_tree_update_dns(&p->tree, c->dns);
    return endpoint_cluster_config(p, c, lb);
}

/* --- subchannels: security (A29), scaling (A105) --- */

/* Every subchannel of the policies below is created here, and gets the cluster's security and max_connections. Where a
 * leaf cluster is below an aggregate, the leaf's cds adds the subchannel to its set last, which takes it out of the
 * aggregate's set: only the leaf cluster's max_connections counts, also after later updates. */
static struct tc_subchannel *cds_create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                                   const struct tc_addr *addr, tc_subchannel_state_fn on_state,
                                                   void *arg)
{
    struct cds *p = TC_CONTAINER_OF(h, struct cds, helper);
    struct tc_lb_helper *up = p->base.helper;
    struct tc_endpoint *secured =
        p->tls ? tc_cluster_tls_endpoint(p->tls, endpoint, up->env->authority) : tc_endpoint_ref(endpoint);
    struct tc_subchannel *sc = tc_lb_create_subchannel(up, secured, addr, on_state, arg);
    tc_endpoint_unref(secured);
    tc_scaling_add(&p->scaling, sc);
    return sc;
}

static void cds_update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                             struct tc_picker *picker)
{
    cds_publish(TC_CONTAINER_OF(h, struct cds, helper), state, status, picker);
}

static struct tc_slice cds_log_name(const struct tc_lb_helper *h)
{
    return tc_rstr_slice(cds_name(TC_CONTAINER_OF(h, const struct cds, helper)));
}

static const struct tc_lb_helper_ops cds_helper_ops = {
    .create_subchannel = cds_create_subchannel,
    .update_state = cds_update_state,
    .log_name = cds_log_name,
};

/* Sets p->tls to the cluster's TLS. If it changed, the child is renewed: the old child serves until the new one is no
 * longer CONNECTING. If there was no TLS before, the old child ends at once. Returns false with *why if the TLS cannot
 * be made: nothing may be sent to the cluster then. */
static bool cds_secure(struct cds *p, const struct tc_xds_config *xds, const struct tc_cluster *cluster,
                       struct tc_status *why)
{
    struct tc_cluster_tls *tls = NULL;
    bool leaf = cluster->kind != TC_CLUSTER_AGGREGATE;
    if (leaf && cluster->tls && p->base.helper->env->secured_by_xds) {
        const struct tc_xds_bootstrap *b = xds->client ? tc_xds_client_bootstrap(xds->client) : NULL;
        tls = tc_cluster_tls_new(xds->pool, b, cluster, why);
        if (!tls)
            return false;
    }
    if (tc_cluster_tls_eq(tls, p->tls)) {
        tc_cluster_tls_free(tls);
        return true;
    }
    if (p->child && !p->tls)
        cds_shut_child(p);
    else if (p->child)
        tc_graceful_switch_renew(p->child);
    tc_cluster_tls_free(p->tls);
    p->tls = tls;
    return true;
}

static void *cds_attributes_ref(void *attributes)
{
    return tc_xds_config_ref(attributes);
}

static void cds_attributes_unref(void *attributes)
{
    tc_xds_config_unref(attributes);
}

/* Returns the note for texts of failures, a new reference: the cluster's resolution note. If the cluster's TLS is
 * ignored, a hint comes first, since that may be why a server does not answer. */
static struct tc_rstr *resolution_note_of(const struct cds *p, const struct tc_cluster_config *c)
{
    if (!c->cluster->tls || p->base.helper->env->secured_by_xds)
        return tc_rstr_ref(c->resolution_note);
    return tc_rstr_printf(TC_TLS_IGNORED "%s%s", c->resolution_note ? "; " : "", tc_rstr_cstr(c->resolution_note));
}

/* Updates the child, after making it if need be, for a cluster that has its Cluster resource. Returns the child's
 * answer; OK if the TLS or the child's config cannot be made (cds_fail). */
static struct tc_status cds_update_child(struct cds *p, const struct tc_lb_update *update, struct tc_cluster_config *c)
{
    struct tc_status why = {0};
    struct tc_lb_config *child_config = NULL;
    if (cds_secure(p, update->attributes, c->cluster, &why))
        child_config = cds_child_config(p, c, tc_child_config_of(update->config)->config, &why);
    tc_cluster_config_ref(c);
    tc_cluster_config_unref(p->cluster);
    p->cluster = c;
    tc_scaling_set(&p->scaling, c->cluster->max_connections);
    if (!child_config)
        return cds_fail(p, why);
    if (tc_lb_config_eq(child_config, p->child_config)) {
        tc_lb_config_unref(child_config);
    } else {
        tc_lb_config_unref(p->child_config);
        p->child_config = child_config;
    }
    struct tc_endpoints *endpoints = p->tree.root ? tc_endpoints_ref(p->tree.root) : tc_endpoints_empty();
    struct tc_rstr *resolution_note = resolution_note_of(p, c);
    struct tc_lb_update down = {
        .endpoints = endpoints,
        .config = p->child_config,
        .resolution_note = resolution_note,
        .attributes = update->attributes,
    };
    /* priority may make the cds of a leaf cluster later, and that cds reads the XdsConfig. So the child of an aggregate
     * may keep the XdsConfig; each update brings the child a new one. The child of a leaf cluster must not keep the
     * XdsConfig: most updates end in the leaf's cds, and old endpoints of all clusters would stay in memory. */
    if (c->cluster->kind == TC_CLUSTER_AGGREGATE) {
        down.attributes_ref = cds_attributes_ref;
        down.attributes_unref = cds_attributes_unref;
    }
    if (!p->child)
        p->child = tc_graceful_switch_new(&p->helper);
    struct tc_status status = tc_graceful_switch_update(p->child, &down);
    tc_endpoints_unref(endpoints);
    tc_rstr_unref(resolution_note);
    return status;
}

static struct tc_status cds_update(struct tc_lb_policy *base, const struct tc_lb_update *update)
{
    struct cds *p = TC_CONTAINER_OF(base, struct cds, base);
    struct tc_rstr *name = tc_child_config_of(update->config)->name;
    const struct tc_xds_config *xds = update->attributes;
    struct tc_cluster_config *c = xds ? tc_xds_config_cluster_at(xds, tc_rstr_slice(name), &p->place) : NULL;
    bool sessions = xds && tc_listener_has_sessions(xds->listener);
    bool same = c && c == p->cluster && sessions == p->sessions && tc_lb_config_eq(update->config, p->config);
    p->sessions = sessions;
    if (!same) {
        tc_lb_config_unref(p->config);
        p->config = tc_lb_config_ref(update->config);
    }
    /* An aggregate goes on even if nothing about the cluster itself changed: its leaf clusters may have changed. */
    if (same && (!c->cluster || c->cluster->kind != TC_CLUSTER_AGGREGATE))
        return (struct tc_status){0};
    if (!c) {
        tc_cluster_config_unref(p->cluster);
        p->cluster = NULL;
        return cds_fail(p, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                                          "cds: no cluster \"" TC_SHOWN "\" in the xDS config",
                                          TC_SHOW(tc_rstr_cstr(name))));
    }
    if (!tc_status_ok(&c->status)) {
        tc_cluster_config_ref(c);
        tc_cluster_config_unref(p->cluster);
        p->cluster = c;
        return cds_fail(p, tc_status_ref(&c->status));
    }
    return cds_update_child(p, update, c);
}

static void cds_exit_idle(struct tc_lb_policy *base)
{
    struct cds *p = TC_CONTAINER_OF(base, struct cds, base);
    if (p->child)
        tc_graceful_switch_exit_idle(p->child);
}

static void cds_reset_backoff(struct tc_lb_policy *base)
{
    struct cds *p = TC_CONTAINER_OF(base, struct cds, base);
    if (p->child)
        tc_graceful_switch_reset_backoff(p->child);
}

static void cds_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    static const char *const kinds[] = {
        [TC_CLUSTER_EDS] = "EDS", [TC_CLUSTER_LOGICAL_DNS] = "LOGICAL_DNS", [TC_CLUSTER_AGGREGATE] = "AGGREGATE"};
    const struct cds *p = TC_CONTAINER_OF(base, struct cds, base);
    if (p->config)
        tc_describe_text(d, "cluster", tc_rstr_slice(cds_name(p)));
    if (p->cluster && p->cluster->cluster)
        tc_describe_text(d, "type", tc_slice_str(kinds[p->cluster->cluster->kind]));
    tc_graceful_switch_describe(p->child, d, "child");
}

static void cds_shutdown(struct tc_lb_policy *base)
{
    struct cds *p = TC_CONTAINER_OF(base, struct cds, base);
    if (!base->helper)
        return;
    cds_drop_child(p);
    tc_scaling_fini(&p->scaling);
    tc_lb_config_unref(p->config);
    cds_forget_lb(p);
    tc_cluster_config_unref(p->cluster);
    tc_lb_policy_end(&p->base);
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = cds_update,
    .exit_idle = cds_exit_idle,
    .reset_backoff = cds_reset_backoff,
    .shutdown = cds_shutdown,
    .describe = cds_describe,
};

static struct tc_lb_policy *cds_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct cds *p = TC_NEW(struct cds);
    p->base = (struct tc_lb_policy){.ops = &policy_ops, .factory = factory, .helper = helper};
    tc_lb_helper_init(&p->helper, &cds_helper_ops, helper);
    tc_scaling_init(&p->scaling);
    p->published_state = TORC_CONNECTIVITY_SHUTDOWN;
    return &p->base;
}

const struct tc_lb_factory tc_cds_factory = {
    .name = "cds_experimental",
    .alias = "cds",
    .create = cds_create,
    .parse_config = cds_parse_config,
    .free_config = tc_child_configs_free,
    .equal_config = tc_child_configs_equal,
};
