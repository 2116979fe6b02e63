#include "mesh/xds_resolver.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "mesh/cds.h"
#include "mesh/cluster_manager.h"
#include "mesh/config_selector.h"
#include "mesh/dependency_manager.h"
#include "mesh/domain.h"
#include "mesh/listener_name.h"

struct xds_resolver {
    struct tc_resolver base;
    char *target; /* as given */
    struct tc_rstr *listener;
    struct tc_domain_client *shared; /* NULL: the client is the caller's, or there is none */
    struct tc_xds_client *client;
    struct tc_dependency_manager *manager;
    struct tc_cluster_refs clusters;
    struct tc_resolver_env dns_env; /* of LOGICAL_DNS clusters */
    uint64_t channel_id;
    /* What to report. */
    struct tc_xds_config *config; /* the last good one; NULL: none yet */
    struct tc_config_selector *selector;
    struct tc_lb_config *lb_config; /* of the clusters in use; NULL: they have changed */
    struct tc_status error;         /* in place of them; OK: they hold */
    struct tc_task report;
};

static struct xds_resolver *of(struct tc_resolver *base)
{
    return TC_CONTAINER_OF(base, struct xds_resolver, base);
}

/* --- reporting --- */

static int by_name(const void *a, const void *b)
{
    const struct tc_cluster_manager_child *x = a, *y = b;
    return strcmp(x->name->data, y->name->data);
}

static struct tc_lb_config *make_lb_config(const struct xds_resolver *r)
{
    TC_VEC(struct tc_cluster_manager_child) children = {0};
    for (const struct tc_cluster_ref *c = r->clusters.table; c; c = c->hh.next)
        *tc_vec_push(&children) = (struct tc_cluster_manager_child){c->name, tc_cds_config_new(c->name, NULL)};
    if (children.len)
        qsort(children.data, children.len, sizeof(children.data[0]), by_name);
    struct tc_lb_config *config = tc_cluster_manager_config_new(children.data, children.len);
    for (size_t i = 0; i < children.len; i++)
        tc_lb_config_unref(children.data[i].config);
    tc_vec_fini(&children);
    return config;
}

static void unref_config(void *config)
{
    tc_xds_config_unref(config);
}

static void on_report(struct tc_task *task)
{
    struct xds_resolver *r = TC_CONTAINER_OF(task, struct xds_resolver, report);
    struct tc_resolver_result result = {0};
    if (!r->lb_config)
        r->lb_config = make_lb_config(r);
    result.lb_config = tc_lb_config_ref(r->lb_config);
    result.attributes = tc_xds_config_ref(r->config);
    result.attributes_unref = unref_config;
    if (tc_status_ok(&r->error)) {
        result.endpoints = tc_endpoints_empty();
        result.selector = tc_config_selector_ref(r->selector);
    } else {
        /* The policy fails what is not yet on its way; nothing can be routed. */
        result.status = tc_status_ref(&r->error);
    }
    TC_LOG(TC_LOG_MESH, TORC_LOG_DEBUG, "%s: config of %zu clusters%s%s", r->target,
           r->config ? r->config->n_clusters : 0, tc_status_ok(&r->error) ? "" : "; ", tc_status_text(&r->error));
    r->base.env->on_result(r->base.env->arg, &result);
    TC_LOG(TC_LOG_MESH, TORC_LOG_DEBUG, "%s: config in use", r->target);
}

static void schedule(struct xds_resolver *r)
{
    tc_loop_defer(r->base.env->loop, &r->report);
}

static void drop_selector(struct xds_resolver *r)
{
    struct tc_config_selector *old = r->selector;
    r->selector = NULL;
    tc_config_selector_unref(old);
}

static void on_config(void *arg, struct tc_xds_config *config)
{
    struct xds_resolver *r = arg;
    if (!r->selector || !tc_xds_config_same_routing(config, r->config)) {
        struct tc_config_selector *selector = tc_xds_selector_new(config, &r->clusters, r->channel_id);
        drop_selector(r);
        r->selector = selector;
    }
    tc_xds_config_ref(config);
    tc_xds_config_unref(r->config);
    r->config = config;
    tc_status_set(&r->error, (struct tc_status){0});
    schedule(r);
}

static void on_error(void *arg, const struct tc_status *error)
{
    struct xds_resolver *r = arg;
    drop_selector(r);
    tc_status_set(&r->error, tc_status_ref(error));
    schedule(r);
}

static const struct tc_dependency_events events = {.on_config = on_config, .on_error = on_error};

/* --- clusters in use --- */

static void forget_lb_config(struct xds_resolver *r)
{
    tc_lb_config_unref(r->lb_config);
    r->lb_config = NULL;
}

static void on_used(struct tc_cluster_refs *refs, struct tc_rstr *name)
{
    struct xds_resolver *r = TC_CONTAINER_OF(refs, struct xds_resolver, clusters);
    forget_lb_config(r);
    tc_dependency_manager_subscribe(r->manager, tc_rstr_slice(name));
}

/* The manager's round comes first, so that one report tells of both. */
static void on_unused(struct tc_cluster_refs *refs, struct tc_rstr *name)
{
    struct xds_resolver *r = TC_CONTAINER_OF(refs, struct xds_resolver, clusters);
    forget_lb_config(r);
    tc_dependency_manager_unsubscribe(r->manager, tc_rstr_slice(name));
    schedule(r);
}

/* --- the resolver --- */

static void start_manager(struct xds_resolver *r)
{
    struct tc_dependency_opts opts = {
        .listener = tc_rstr_slice(r->listener),
        .authority = r->base.env->authority,
        .dns = &r->dns_env,
        .domain = r->shared ? r->shared->domain : NULL,
    };
    r->manager = tc_dependency_manager_new(r->base.env->loop, r->client, &opts, &events, r);
}

static void xds_start(struct tc_resolver *base)
{
    struct xds_resolver *r = of(base);
    if (tc_status_ok(&r->error))
        start_manager(r);
    else
        schedule(r);
}

static void xds_request(struct tc_resolver *base)
{
    struct xds_resolver *r = of(base);
    if (r->manager)
        tc_dependency_manager_request_reresolution(r->manager);
}

static void xds_reset_backoff(struct tc_resolver *base)
{
    struct xds_resolver *r = of(base);
    if (r->client)
        tc_xds_client_reset_backoff(r->client);
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
    struct xds_resolver *r = of(base);
    tc_cluster_refs_fini(&r->clusters);
    tc_config_selector_unref(r->selector);
    tc_lb_config_unref(r->lb_config);
    tc_task_cancel(&r->report);
    tc_dependency_manager_free(r->manager);
    tc_domain_client_release(r->shared);
    tc_xds_config_unref(r->config);
    tc_status_fini(&r->error);
    tc_rstr_unref(r->listener);
    tc_free(r->target);
    tc_free(r);
}

static const struct tc_resolver_ops resolver_ops = {
    .start = xds_start,
    .request_reresolution = xds_request,
    .reset_backoff = xds_reset_backoff,
    .shutdown = xds_shutdown,
    .pending = xds_pending,
};

static struct xds_resolver *resolver_new(const struct tc_target *target, const struct tc_resolver_env *env)
{
    struct xds_resolver *r = TC_NEW(struct xds_resolver);
    r->base.ops = &resolver_ops;
    r->base.env = env;
    r->target = tc_strdup(target->text);
    r->clusters.on_used = on_used;
    r->clusters.on_unused = on_unused;
    r->dns_env = *env;
    r->channel_id = tc_rng_u64(tc_loop_rng(env->loop));
    tc_task_init(&r->report, on_report);
    return r;
}

static void find_listener(struct xds_resolver *r, const struct tc_target *target)
{
    struct tc_buf name = {0};
    const struct tc_xds_bootstrap *bootstrap = tc_xds_client_bootstrap(r->client);
    if (tc_listener_name(bootstrap, target, &name) == 0) {
        r->listener = tc_rstr_new(name.data, name.len);
    } else {
        struct tc_rstr *text =
            tc_rstr_printf("target \"" TC_SHOWN "\": authority \"" TC_SHOWN "\" is not in the xDS bootstrap",
                           TC_SHOW(target->text), TC_SHOW(target->authority));
        r->error =
            (struct tc_status){TORC_STATUS_UNAVAILABLE, tc_with_node_id(tc_rstr_slice(text), bootstrap->node_id)};
        tc_rstr_unref(text);
    }
    tc_buf_fini(&name);
}

struct tc_resolver *tc_xds_resolver_new(const struct tc_target *target, const struct tc_resolver_env *env,
                                        struct tc_xds_client *client)
{
    struct xds_resolver *r = resolver_new(target, env);
    r->client = client;
    find_listener(r, target);
    return &r->base;
}

static struct tc_resolver *create(const struct tc_resolver_class *cls, const struct tc_target *target,
                                  const struct tc_resolver_env *env)
{
    (void)cls;
    struct xds_resolver *r = resolver_new(target, env);
    struct tc_status why = {0};
    r->shared = tc_domain_client_get(tc_mesh_domain_of(env->runtime), env, tc_slice_str(target->text), &why);
    if (r->shared) {
        r->client = r->shared->client;
        find_listener(r, target);
    } else {
        TC_LOG(TC_LOG_MESH, TORC_LOG_ERROR, "%s: %s", target->text, tc_status_text(&why));
        r->error = tc_status_make(TORC_STATUS_UNAVAILABLE, "%s%s", env->xds_bootstrap_json ? "xDS bootstrap: " : "",
                                  tc_status_text(&why));
        tc_status_fini(&why);
    }
    return &r->base;
}

static bool authority(const struct tc_resolver_class *cls, const struct tc_target *target, struct tc_buf *out,
                      char **why)
{
    (void)cls;
    if (!target->path[0]) {
        if (why)
            *why = tc_asprintf("target \"" TC_SHOWN "\" names no service", TC_SHOW(target->text));
        return false;
    }
    tc_data_plane_authority(target, out);
    return true;
}

const struct tc_resolver_class tc_xds_resolver_class = {.scheme = "xds", .authority = authority, .create = create};
