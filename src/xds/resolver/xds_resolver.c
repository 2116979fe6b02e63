/* The resolver of "xds:" targets (A27, A31, A74).
 *
 *   bootstrap -> client (client_pool.h) -> dependency manager -> on_config -> report
 *
 * A report has three parts: the config selector (made again when routing changed or an error is over), the LB config (a
 * cluster manager with a child for every cluster in use), the XdsConfig as attributes for the policies. A report of an
 * error has a status instead of the selector. A cluster is in use while a selector or an RPC refers to it. When the
 * last reference goes, the cluster leaves the LB config with the next report.
 *
 * A bootstrap that cannot be read, or is invalid, fails the channel's RPCs, and is read again with backoff: another
 * process, such as istio-agent, may write it later. A bootstrap that the channel was given as JSON text is read once.
 * Loop thread only, except xds_authority. */
#include "xds/resolver/xds_resolver.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/vec.h"
#include "xds/domain/client_pool.h"
#include "xds/lb/policies.h"
#include "xds/resolver/config_selector.h"
#include "xds/resolver/dependency_manager.h"
#include "xds/resolver/listener_name.h"

struct xds_resolver {
    struct tc_resolver base;
    struct tc_target target;
    struct tc_rstr *listener;
    struct tc_pool_client *shared; /* a reference; NULL: the bootstrap cannot be used */
    struct tc_backoff backoff;     /* of reading the bootstrap */
    struct tc_timer read_again;
    struct tc_dependency_manager *manager; /* NULL: not started, or see `error` */
    struct tc_cluster_refs clusters;
    struct tc_resolver_env dns_env; /* of LOGICAL_DNS clusters */
    /* The next report: */
    struct tc_xds_config *config;        /* the last good one; NULL: none yet */
    struct tc_config_selector *selector; /* routes as `config` says; NULL: none yet, or see `error` */
    struct tc_lb_config *lb_config;      /* of the clusters in use; NULL: not made yet, or the clusters have changed */
    struct tc_status error;              /* why nothing can be routed; OK: `config` holds, or nothing is known yet */
    struct tc_task report;
};

static struct xds_resolver *resolver_of(struct tc_resolver *base)
{
    return TC_CONTAINER_OF(base, struct xds_resolver, base);
}

/* --- reporting --- */

static int compare_children(const void *a, const void *b)
{
    const struct tc_child_config *x = a, *y = b;
    return strcmp(x->name->data, y->name->data);
}

static struct tc_lb_config *resolver_make_lb_config(const struct xds_resolver *r)
{
    TC_VEC(struct tc_child_config) children = {0};
    for (const struct tc_cluster_ref *c = r->clusters.table; c; c = c->hh.next)
        *tc_vec_push(&children) =
            (struct tc_child_config){.name = c->name, .config = tc_child_config_single(&tc_cds_factory, c->name, NULL)};
    if (children.len)
        qsort(children.data, children.len, sizeof(children.data[0]), compare_children);
    struct tc_lb_config *config = tc_child_configs_new(&tc_cluster_manager_factory, children.data, children.len);
    for (size_t i = 0; i < children.len; i++)
        tc_lb_config_unref(children.data[i].config);
    tc_vec_fini(&children);
    return config;
}

static void config_unref(void *config)
{
    tc_xds_config_unref(config);
}

static void on_report(struct tc_task *task)
{
    struct xds_resolver *r = TC_CONTAINER_OF(task, struct xds_resolver, report);
    struct tc_resolver_result result = {0};
    if (!r->lb_config)
        r->lb_config = resolver_make_lb_config(r);
    result.lb_config = tc_lb_config_ref(r->lb_config);
    result.attributes = tc_xds_config_ref(r->config);
    result.attributes_unref = config_unref;
    if (tc_status_ok(&r->error)) {
        result.endpoints = tc_endpoints_empty();
        result.selector = tc_config_selector_ref(r->selector);
    } else {
        /* Nothing can be routed: xds_cluster_manager fails the RPCs that have no cluster yet. */
        result.status = tc_status_ref(&r->error);
    }
    TC_LOG(TC_LOG_MESH, TORC_LOG_DEBUG, "%s: config of %zu clusters%s%s", r->target.text,
           r->config ? r->config->n_clusters : 0, tc_status_ok(&r->error) ? "" : "; ", tc_status_text(&r->error));
    r->base.env->on_result(r->base.env->arg, &result);
    TC_LOG(TC_LOG_MESH, TORC_LOG_DEBUG, "%s: config in use", r->target.text);
}

static void schedule_report(struct xds_resolver *r)
{
    tc_loop_defer(r->base.env->loop, &r->report);
}

static void resolver_drop_selector(struct xds_resolver *r)
{
    struct tc_config_selector *old = r->selector;
    r->selector = NULL;
    tc_config_selector_unref(old);
}

static void on_config(void *arg, struct tc_xds_config *config)
{
    struct xds_resolver *r = arg;
    if (!r->selector || !tc_xds_config_same_routing(config, r->config)) {
        struct tc_config_selector *selector = tc_xds_selector_new(config, &r->clusters, r->base.env->channel_id);
        resolver_drop_selector(r);
        r->selector = selector;
    }
    tc_xds_config_ref(config);
    tc_xds_config_unref(r->config);
    r->config = config;
    tc_status_set(&r->error, (struct tc_status){0});
    schedule_report(r);
}

static void on_error(void *arg, const struct tc_status *error)
{
    struct xds_resolver *r = arg;
    resolver_drop_selector(r);
    tc_status_set(&r->error, tc_status_ref(error));
    schedule_report(r);
}

static const struct tc_dependency_events events = {.on_config = on_config, .on_error = on_error};

/* --- clusters in use --- */

static void resolver_forget_lb_config(struct xds_resolver *r)
{
    tc_lb_config_unref(r->lb_config);
    r->lb_config = NULL;
}

static void on_cluster_used(struct tc_cluster_refs *refs, struct tc_rstr *name)
{
    struct xds_resolver *r = TC_CONTAINER_OF(refs, struct xds_resolver, clusters);
    resolver_forget_lb_config(r);
    tc_dependency_manager_subscribe(r->manager, tc_rstr_slice(name));
}

/* Unsubscribes first: the manager's round then runs before the report, so that one report has both changes. (Not if a
 * report is queued already.) */
static void on_cluster_unused(struct tc_cluster_refs *refs, struct tc_rstr *name)
{
    struct xds_resolver *r = TC_CONTAINER_OF(refs, struct xds_resolver, clusters);
    resolver_forget_lb_config(r);
    tc_dependency_manager_unsubscribe(r->manager, tc_rstr_slice(name));
    schedule_report(r);
}

/* --- the client and the dependency manager --- */

static void resolver_start_manager(struct xds_resolver *r)
{
    struct tc_dependency_opts opts = {
        .listener = tc_rstr_slice(r->listener),
        .authority = r->base.env->authority,
        .dns = &r->dns_env,
        .pool = r->shared->pool,
    };
    r->manager = tc_dependency_manager_new(r->base.env->loop, r->shared->client, &opts, &events, r);
}

static void resolver_find_listener(struct xds_resolver *r)
{
    struct tc_buf name = {0};
    const struct tc_xds_bootstrap *bootstrap = tc_xds_client_bootstrap(r->shared->client);
    if (tc_listener_name(bootstrap, &r->target, &name) == 0) {
        r->listener = tc_rstr_new(name.data, name.len);
    } else {
        struct tc_rstr *text =
            tc_rstr_printf("target \"" TC_SHOWN "\": authority \"" TC_SHOWN "\" is not in the xDS bootstrap",
                           TC_SHOW(r->target.text), TC_SHOW(r->target.authority));
        r->error = (struct tc_status){TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                                      tc_with_node_id(tc_rstr_slice(text), bootstrap->node_id)};
        tc_rstr_unref(text);
    }
    tc_buf_fini(&name);
}

/* Sets the client and the listener's name. Sets `error` if there is no client, or no name. */
static void resolver_find_client(struct xds_resolver *r)
{
    const struct tc_resolver_env *env = r->base.env;
    struct tc_status why = {0}, error = {0};
    r->shared = tc_pool_client_get(tc_xds_client_pool_of(env->runtime), env, tc_slice_str(r->target.text), &why);
    if (r->shared) {
        tc_status_set(&r->error, (struct tc_status){0});
        resolver_find_listener(r);
        return;
    }
    error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS, "%s%s",
                           env->xds_bootstrap_json ? "xDS bootstrap: " : "", tc_status_text(&why));
    if (!tc_status_eq(&error, &r->error))
        TC_LOG(TC_LOG_MESH, TORC_LOG_ERROR, "%s: %s", r->target.text, tc_status_text(&why));
    tc_status_set(&r->error, error);
    tc_status_fini(&why);
}

/* Begins to watch if there is no error. Otherwise reports the error. If the bootstrap could not be read or is invalid,
 * reads it again later, unless it was given as JSON text. */
static void resolver_go_on(struct xds_resolver *r)
{
    if (tc_status_ok(&r->error)) {
        resolver_start_manager(r);
        return;
    }
    schedule_report(r);
    if (!r->shared && !r->base.env->xds_bootstrap_json)
        tc_timer_start(&r->read_again, tc_backoff_next_ms(&r->backoff, tc_loop_rng(r->base.env->loop)));
}

static void on_read_again(struct tc_timer *timer)
{
    struct xds_resolver *r = TC_CONTAINER_OF(timer, struct xds_resolver, read_again);
    resolver_find_client(r);
    resolver_go_on(r);
}

/* --- the resolver --- */

static void xds_start(struct tc_resolver *base)
{
    resolver_go_on(resolver_of(base));
}

static void xds_request(struct tc_resolver *base)
{
    struct xds_resolver *r = resolver_of(base);
    if (r->manager)
        tc_dependency_manager_request_reresolution(r->manager);
}

static void xds_reset_backoff(struct tc_resolver *base)
{
    struct xds_resolver *r = resolver_of(base);
    if (tc_timer_active(&r->read_again)) {
        tc_backoff_reset(&r->backoff);
        tc_timer_start(&r->read_again, 0);
    }
    if (r->shared)
        tc_xds_client_reset_backoff(r->shared->client);
    if (r->manager)
        tc_dependency_manager_reset_backoff(r->manager);
}

static void xds_pending(const struct tc_resolver *base, struct tc_buf *out)
{
    const struct xds_resolver *r = (const struct xds_resolver *)base;
    if (r->manager)
        tc_dependency_manager_pending(r->manager, out);
}

static void xds_shutdown(struct tc_resolver *base)
{
    struct xds_resolver *r = resolver_of(base);
    tc_cluster_refs_fini(&r->clusters);
    tc_config_selector_unref(r->selector);
    tc_lb_config_unref(r->lb_config);
    tc_task_cancel(&r->report);
    tc_timer_stop(&r->read_again);
    tc_dependency_manager_free(r->manager);
    tc_pool_client_release(r->shared);
    tc_xds_config_unref(r->config);
    tc_status_fini(&r->error);
    tc_rstr_unref(r->listener);
    tc_target_fini(&r->target);
    tc_free(r);
}

static const struct tc_resolver_ops resolver_ops = {
    .start = xds_start,
    .request_reresolution = xds_request,
    .reset_backoff = xds_reset_backoff,
    .shutdown = xds_shutdown,
    .pending = xds_pending,
};

static struct tc_resolver *xds_create(const struct tc_resolver_class *cls, const struct tc_target *target,
                                      const struct tc_resolver_env *env)
{
    (void)cls;
    struct xds_resolver *r = TC_NEW(struct xds_resolver);
    r->base.ops = &resolver_ops;
    r->base.env = env;
    r->target = (struct tc_target){.text = tc_strdup(target->text),
                                   .scheme = tc_strdup(target->scheme),
                                   .authority = tc_strdup(target->authority),
                                   .path = tc_strdup(target->path),
                                   .has_authority = target->has_authority};
    r->clusters.on_used = on_cluster_used;
    r->clusters.on_unused = on_cluster_unused;
    r->dns_env = *env;
    tc_task_init(&r->report, on_report);
    tc_backoff_init(&r->backoff, &env->backoff);
    tc_timer_init(&r->read_again, env->loop, on_read_again);
    resolver_find_client(r);
    return &r->base;
}

static bool xds_authority(const struct tc_resolver_class *cls, const struct tc_target *target, struct tc_buf *out,
                          char **why)
{
    (void)cls;
    /* The path becomes the name of a Listener, and the text becomes client_scope: strings of protobuf. */
    if (!tc_utf8_valid(tc_slice_str(target->path)) || !tc_utf8_valid(tc_slice_str(target->text)))
        return tc_refuse(why, "target \"" TC_SHOWN "\": it is not UTF-8", TC_SHOW(target->text));
    tc_data_plane_authority(target, out);
    return true;
}

const struct tc_resolver_class tc_xds_resolver_class = {
    .scheme = "xds", .authority = xds_authority, .create = xds_create};
