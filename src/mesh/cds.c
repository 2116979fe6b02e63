#include "mesh/cds.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "lb/describe.h"
#include "lb/outlier_detection.h"
#include "lb/override_host.h"
#include "lb/priority.h"
#include "mesh/cds_tree.h"
#include "mesh/cluster_impl.h"
#include "mesh/cluster_tls.h"
#include "mesh/config.h"
#include "mesh/session_filter.h"

/* --- config --- */

struct config {
    struct tc_lb_config base;
    struct tc_rstr *cluster;
    struct tc_lb_config *lb;
};

struct tc_lb_config *tc_cds_config_new(struct tc_rstr *cluster, struct tc_lb_config *lb)
{
    struct config *c = TC_NEW(struct config);
    c->base.cls = &tc_cds_class;
    tc_ref_init(&c->base.ref);
    c->cluster = tc_rstr_ref(cluster);
    c->lb = tc_lb_config_ref(lb);
    return &c->base;
}

static void free_config(struct tc_lb_config *base)
{
    struct config *c = TC_CONTAINER_OF(base, struct config, base);
    tc_rstr_unref(c->cluster);
    tc_lb_config_unref(c->lb);
    tc_free(c);
}

static bool equal_config(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct config *a = (const struct config *)pa, *b = (const struct config *)pb;
    return tc_rstr_eq(a->cluster, b->cluster) && tc_lb_config_eq(a->lb, b->lb);
}

/* {"cluster": "name"} */
static struct tc_lb_config *parse_config(const struct tc_lb_class *cls, const json_t *json,
                                         const struct tc_lb_registry *registry, unsigned depth,
                                         struct tc_faults *faults)
{
    (void)cls;
    (void)registry;
    (void)depth;
    const char *cluster = NULL;
    size_t before = faults->count;
    if (!tc_json_get_str(json, "cluster", &cluster, faults)) {
        if (faults->count == before)
            tc_faults_add_at(faults, ".cluster", "field not present");
        return NULL;
    }
    struct tc_rstr *name = tc_rstr_str(cluster);
    struct tc_lb_config *config = tc_cds_config_new(name, NULL);
    tc_rstr_unref(name);
    return config;
}

/* --- policy --- */

struct cds {
    struct tc_lb_policy base;
    struct tc_lb_helper helper;        /* the child's */
    struct tc_lb_child *child;         /* NULL: there is no cluster to balance */
    struct tc_lb_config *config;       /* as last given */
    struct tc_cluster_config *cluster; /* as last taken in */
    size_t place;                      /* of the cluster in the last XdsConfig */
    struct tc_lb_config *child_config;
    struct tc_lb_config *lb;         /* what the cluster's lb_config says */
    struct tc_cluster_config *lb_of; /* whose it is */
    bool sessions;                   /* the listener may have RPCs of sessions */
    struct tc_cds_tree tree;
    struct tc_cluster_tls *tls; /* A29: what the cluster's connections are secured with; NULL: the channel's own */
    struct tc_task free_task;
};

static void shut_child(struct cds *p)
{
    tc_lb_child_shutdown(p->child);
    p->child = NULL;
    tc_lb_config_unref(p->child_config);
    p->child_config = NULL;
}

static void drop_child(struct cds *p)
{
    if (p->child)
        shut_child(p);
    tc_cds_tree_fini(&p->tree);
    tc_cluster_tls_free(p->tls);
    p->tls = NULL;
}

static struct tc_status fail(struct cds *p, struct tc_status status)
{
    drop_child(p);
    p->base.helper->ops->update_state(p->base.helper, TORC_TRANSIENT_FAILURE, &status, tc_picker_fail(&status));
    tc_status_fini(&status);
    return (struct tc_status){0};
}

/* The policy that a cluster's lb_config names; the same object while the config says the same. NULL with *why. */
static struct tc_lb_config *parse_lb(struct cds *p, struct tc_cluster_config *c, struct tc_status *why)
{
    struct tc_faults faults;
    const struct tc_cluster *now = c->cluster;
    if (p->lb && json_equal(p->lb_of->cluster->lb_config, now->lb_config))
        return p->lb;
    tc_faults_init(&faults);
    struct tc_lb_config *lb = tc_lb_parse_list(p->base.helper->env->registry, now->lb_config, 0, &faults);
    if (!lb)
        *why = tc_status_make(TORC_STATUS_UNAVAILABLE, "cluster \"%s\": LB policy: %s", now->name->data,
                              tc_faults_text(&faults));
    tc_faults_fini(&faults);
    tc_lb_config_unref(p->lb);
    tc_cluster_config_unref(p->lb_of);
    p->lb = lb;
    p->lb_of = lb ? tc_cluster_config_ref(c) : NULL;
    return lb;
}

static bool aggregate_policy_counts(void)
{
    const char *value = getenv("GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT");
    return value && strcmp(value, "true") == 0;
}

/* priority over a cds for each leaf. */
static struct tc_lb_config *aggregate_config(struct cds *p, struct tc_cluster_config *c, struct tc_status *why)
{
    struct tc_lb_config *lb = NULL;
    if (aggregate_policy_counts()) {
        lb = parse_lb(p, c, why);
        if (!lb)
            return NULL;
    }
    struct tc_priority_child *children = tc_calloc(c->n_leaves, sizeof(*children));
    for (size_t i = 0; i < c->n_leaves; i++)
        children[i] = (struct tc_priority_child){.name = c->leaves[i], .config = tc_cds_config_new(c->leaves[i], lb)};
    struct tc_lb_config *config = tc_priority_config_new(children, c->n_leaves);
    for (size_t i = 0; i < c->n_leaves; i++)
        tc_lb_config_unref(children[i].config);
    tc_free(children);
    return config;
}

/* A50, A75: outlier_detection comes first below cds; one that does nothing when the cluster has none. */
static struct tc_lb_config *outlier_config(const struct tc_outlier_detection *from, struct tc_lb_config *child)
{
    struct tc_outlier_settings s = tc_outlier_defaults;
    if (from) {
        s.interval_ms = from->interval_ms;
        s.base_ejection_ms = from->base_ejection_ms;
        s.max_ejection_ms = from->max_ejection_ms;
        s.max_ejection_percent = from->max_ejection_percent;
        s.by_success_rate = from->success_rate;
        s.success_rate.stdev_factor = from->sr.stdev_factor;
        s.success_rate.enforcement_percent = from->sr.enforcement_percent;
        s.success_rate.minimum_hosts = from->sr.minimum_hosts;
        s.success_rate.request_volume = from->sr.request_volume;
        s.by_failure_percentage = from->failure_percentage;
        s.failure_percentage.threshold = from->fp.threshold;
        s.failure_percentage.enforcement_percent = from->fp.enforcement_percent;
        s.failure_percentage.minimum_hosts = from->fp.minimum_hosts;
        s.failure_percentage.request_volume = from->fp.request_volume;
    }
    return tc_outlier_detection_config_new(&s, child);
}

/* A55, A75: xds_override_host stands between xds_cluster_impl and priority; it does nothing without sessions. */
static struct tc_lb_config *override_config(const struct cds *p, const struct tc_cluster *from,
                                            struct tc_lb_config *child)
{
    struct tc_override_host_settings s = {
        .sessions = p->sessions, .statuses = from->override_host_status, .idle_timeout_ms = from->idle_timeout_ms};
    return tc_override_host_config_new(&s, child);
}

/* outlier_detection -> xds_cluster_impl -> xds_override_host -> priority -> lb. */
static struct tc_lb_config *leaf_config(const struct cds *p, const struct tc_cluster_config *c, struct tc_lb_config *lb)
{
    struct tc_priority_child *children = tc_calloc(p->tree.n, sizeof(*children));
    for (size_t i = 0; i < p->tree.n; i++)
        children[i] = (struct tc_priority_child){
            .name = p->tree.priorities[i].name,
            .config = lb,
            .ignore_reresolution_requests = c->cluster->kind == TC_CLUSTER_EDS, /* A37 */
        };
    struct tc_lb_config *priorities = tc_priority_config_new(children, p->tree.n);
    struct tc_lb_config *override = override_config(p, c->cluster, priorities);
    struct tc_lb_config *impl = tc_cluster_impl_config_new(c->name, override);
    struct tc_lb_config *config = outlier_config(c->cluster->outlier, impl);
    tc_lb_config_unref(impl);
    tc_lb_config_unref(override);
    tc_lb_config_unref(priorities);
    tc_free(children);
    return config;
}

/* The config for the child as the cluster is now. NULL with *why. */
static struct tc_lb_config *make_child_config(struct cds *p, struct tc_cluster_config *c, struct tc_lb_config *override,
                                              struct tc_status *why)
{
    if (c->cluster->kind == TC_CLUSTER_AGGREGATE) {
        if (!tc_status_ok(&c->leaf_error)) {
            *why = tc_status_ref(&c->leaf_error);
            return NULL;
        }
        tc_cds_tree_fini(&p->tree);
        return aggregate_config(p, c, why);
    }
    struct tc_lb_config *lb = override ? override : parse_lb(p, c, why);
    if (!lb)
        return NULL;
    p->tree.http_connect = c->cluster->http_connect;
    if (c->cluster->kind == TC_CLUSTER_EDS)
        tc_cds_tree_update_eds(&p->tree, c->eds);
    else
        tc_cds_tree_update_dns(&p->tree, c->dns);
    return leaf_config(p, c, lb);
}

/* --- security (A29) --- */

/* Whichever policy below makes a subchannel, it is secured here. */
static struct tc_subchannel *create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                               const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg)
{
    const struct cds *p = TC_CONTAINER_OF(h, struct cds, helper);
    struct tc_lb_helper *up = p->base.helper;
    if (!p->tls)
        return up->ops->create_subchannel(up, endpoint, addr, on_state, arg);
    struct tc_endpoint *secured = tc_cluster_tls_endpoint(p->tls, endpoint, up->env->authority);
    struct tc_subchannel *sc = up->ops->create_subchannel(up, secured, addr, on_state, arg);
    tc_endpoint_unref(secured);
    return sc;
}

static void update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                         struct tc_picker *picker)
{
    struct tc_lb_helper *up = TC_CONTAINER_OF(h, struct cds, helper)->base.helper;
    up->ops->update_state(up, state, status, picker);
}

static void request_reresolution(struct tc_lb_helper *h)
{
    struct tc_lb_helper *up = TC_CONTAINER_OF(h, struct cds, helper)->base.helper;
    if (up)
        up->ops->request_reresolution(up);
}

static const struct tc_lb_helper_ops helper_ops = {create_subchannel, update_state, request_reresolution};

/* Takes in how the cluster is secured. Connections of another security are none of its any more: its child makes new
 * ones, beside which the old ones serve until they are there; but connections that the cluster did not secure, and may
 * be in the clear, serve no more. False with *why: nothing may be sent to the cluster. */
static bool secure(struct cds *p, const struct tc_xds_config *xds, const struct tc_cluster *cluster,
                   struct tc_status *why)
{
    struct tc_cluster_tls *tls = NULL;
    bool leaf = cluster->kind != TC_CLUSTER_AGGREGATE;
    if (leaf && cluster->tls && p->base.helper->env->secured_by_xds) {
        const struct tc_xds_bootstrap *b = xds->client ? tc_xds_client_bootstrap(xds->client) : NULL;
        tls = tc_cluster_tls_new(xds->domain, b, cluster, why);
        if (!tls)
            return false;
    }
    if (tc_cluster_tls_eq(tls, p->tls)) {
        tc_cluster_tls_free(tls);
        return true;
    }
    if (p->child && !p->tls)
        shut_child(p);
    else if (p->child)
        tc_lb_child_renew(p->child);
    tc_cluster_tls_free(p->tls);
    p->tls = tls;
    return true;
}

static void *ref_attributes(void *attributes)
{
    return tc_xds_config_ref(attributes);
}

static void unref_attributes(void *attributes)
{
    tc_xds_config_unref(attributes);
}

static struct tc_status update_child(struct cds *p, const struct tc_lb_update *update, struct tc_cluster_config *c)
{
    struct tc_status why = {0};
    const struct config *config = TC_CONTAINER_OF(update->config, struct config, base);
    struct tc_lb_config *child_config = NULL;
    if (secure(p, update->attributes, c->cluster, &why))
        child_config = make_child_config(p, c, config->lb, &why);
    tc_cluster_config_ref(c);
    tc_cluster_config_unref(p->cluster);
    p->cluster = c;
    if (!child_config)
        return fail(p, why);
    if (tc_lb_config_eq(child_config, p->child_config)) {
        tc_lb_config_unref(child_config);
    } else {
        tc_lb_config_unref(p->child_config);
        p->child_config = child_config;
    }
    struct tc_endpoints *endpoints = p->tree.root ? tc_endpoints_ref(p->tree.root) : tc_endpoints_empty();
    struct tc_lb_update down = {
        .endpoints = endpoints,
        .config = p->child_config,
        .resolution_note = c->resolution_note,
        .attributes = update->attributes,
        .attributes_ref = ref_attributes,
        .attributes_unref = unref_attributes,
    };
    if (!p->child)
        p->child = tc_lb_child_new(&p->helper);
    struct tc_status status = tc_lb_child_update(p->child, &down);
    tc_endpoints_unref(endpoints);
    return status;
}

static struct tc_status cds_update(struct tc_lb_policy *base, const struct tc_lb_update *update)
{
    struct cds *p = TC_CONTAINER_OF(base, struct cds, base);
    const struct config *config = TC_CONTAINER_OF(update->config, struct config, base);
    const struct tc_xds_config *xds = update->attributes;
    struct tc_cluster_config *c = xds ? tc_xds_config_cluster_at(xds, tc_rstr_slice(config->cluster), &p->place) : NULL;
    bool sessions = xds && tc_listener_has_sessions(xds->listener);
    bool same = c && c == p->cluster && sessions == p->sessions && tc_lb_config_eq(update->config, p->config);
    p->sessions = sessions;
    if (!same) {
        tc_lb_config_unref(p->config);
        p->config = tc_lb_config_ref(update->config);
    }
    /* Nothing about the cluster changed. An aggregate's leaves may have. */
    if (same && (!c->cluster || c->cluster->kind != TC_CLUSTER_AGGREGATE))
        return (struct tc_status){0};
    if (!c)
        return fail(p, tc_status_make(TORC_STATUS_UNAVAILABLE, "cds: no cluster \"%s\" in the xDS config",
                                      tc_rstr_cstr(config->cluster)));
    if (!tc_status_ok(&c->status)) {
        tc_cluster_config_ref(c);
        tc_cluster_config_unref(p->cluster);
        p->cluster = c;
        return fail(p, tc_status_ref(&c->status));
    }
    return update_child(p, update, c);
}

static void cds_exit_idle(struct tc_lb_policy *base)
{
    struct cds *p = TC_CONTAINER_OF(base, struct cds, base);
    if (p->child)
        tc_lb_child_exit_idle(p->child);
}

static void cds_reset_backoff(struct tc_lb_policy *base)
{
    struct cds *p = TC_CONTAINER_OF(base, struct cds, base);
    if (p->child)
        tc_lb_child_reset_backoff(p->child);
}

static void cds_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    static const char *const kinds[] = {
        [TC_CLUSTER_EDS] = "EDS", [TC_CLUSTER_LOGICAL_DNS] = "LOGICAL_DNS", [TC_CLUSTER_AGGREGATE] = "AGGREGATE"};
    const struct cds *p = TC_CONTAINER_OF(base, struct cds, base);
    if (p->config)
        tc_describe_text(d, "cluster", tc_rstr_slice(TC_CONTAINER_OF(p->config, const struct config, base)->cluster));
    if (p->cluster && p->cluster->cluster)
        tc_describe_text(d, "type", tc_slice_str(kinds[p->cluster->cluster->kind]));
    tc_describe_child(d, "child", p->child);
}

static void on_free(struct tc_task *task)
{
    tc_free(TC_CONTAINER_OF(task, struct cds, free_task));
}

static void cds_shutdown(struct tc_lb_policy *base)
{
    struct cds *p = TC_CONTAINER_OF(base, struct cds, base);
    if (!base->helper)
        return;
    struct tc_loop *loop = base->helper->env->loop;
    drop_child(p);
    tc_lb_config_unref(p->config);
    tc_lb_config_unref(p->lb);
    tc_cluster_config_unref(p->lb_of);
    tc_cluster_config_unref(p->cluster);
    base->helper = NULL;
    tc_loop_defer(loop, &p->free_task);
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = cds_update,
    .exit_idle = cds_exit_idle,
    .reset_backoff = cds_reset_backoff,
    .shutdown = cds_shutdown,
    .describe = cds_describe,
};

static struct tc_lb_policy *create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    struct cds *p = TC_NEW(struct cds);
    p->base = (struct tc_lb_policy){&policy_ops, cls, helper};
    p->helper = (struct tc_lb_helper){&helper_ops, helper->env};
    tc_task_init(&p->free_task, on_free);
    return &p->base;
}

const struct tc_lb_class tc_cds_class = {
    .name = "cds_experimental",
    .alias = "cds",
    .create = create,
    .parse_config = parse_config,
    .free_config = free_config,
    .equal_config = equal_config,
};
