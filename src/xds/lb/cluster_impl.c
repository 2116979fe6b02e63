/* xds_cluster_impl (A37, A74, A75): limits and counts for all RPCs of one cluster.
 *
 * A pick passes, in this order: the EDS drops (each category drops its share at random), the circuit breaker (A32: a
 * limit of concurrent RPCs over all channels of the process), the child's pick. A completed pick that is not dry gets
 * trackers for the breaker's counter and the load report (A27).
 *
 * The limits are one reference-counted object, made when the cluster's data change. Pickers and RPCs in flight keep the
 * object that they started with. A cluster that drops everything is READY once the child has reported any state.
 * Policies and pickers: loop thread only; configs: any thread. The base of the policy is lb/wrapper.h. */
#include "xds/lb/policies.h"

#include "base/json.h"
#include "base/mem.h"
#include "lb/child_configs.h"
#include "lb/delegate.h"
#include "lb/describe.h"
#include "lb/registry.h"
#include "lb/wrapper.h"
#include "xds/domain/client_pool.h"
#include "xds/lb/call_counter.h"
#include "xds/lb/load_recorder.h"
#include "xds/lb/tls.h"
#include "xds/resource/xds_config.h"

/* --- config --- */

/* {"cluster": "name", "childPolicy": [...]}; the deprecated fields are ignored (A74). */
static struct tc_lb_config *impl_parse_config(const struct tc_lb_factory *factory, const json_t *json,
                                              const struct tc_lb_registry *registry, unsigned depth,
                                              struct tc_validation_errors *errors)
{
    (void)factory;
    const char *cluster = NULL;
    size_t before = errors->count;
    if (!tc_json_get_str(json, "cluster", &cluster, errors) && errors->count == before)
        tc_validation_add_at(errors, ".cluster", "field not present");
    struct tc_lb_config *child = tc_lb_parse_child(registry, json, "childPolicy", depth, errors), *config = NULL;
    if (errors->count == before) {
        struct tc_rstr *name = tc_rstr_str(cluster);
        config = tc_child_config_single(&tc_cluster_impl_factory, name, child);
        tc_rstr_unref(name);
    }
    tc_lb_config_unref(child);
    return config;
}

/* --- limits --- */

/* Shared by the policy, by the pickers that were made while the limits were in force, and by the RPCs that they picked
 * for. */
struct cluster_limits {
    struct tc_lref ref;
    struct tc_rstr *cluster;         /* its name; a reference */
    struct tc_call_counter *counter; /* a reference */
    struct tc_cluster_load *load;    /* a reference; NULL: not reported */
    const struct tc_cluster
        *hashing;             /* the cluster if its LB policy has hash policies of its own, a reference; or NULL */
    uint32_t max_calls;       /* RPCs in flight over all channels of the process (A32) */
    bool full;                /* for tc_call_counter_begin */
    struct tc_status breaker; /* fails the RPCs beyond max_calls */
    bool tls_ignored;         /* the channel's credentials ignore the cluster's transport_socket */
    bool drops_all;
    size_t n_drops;
    struct drop {
        uint32_t millionths;      /* of the RPCs that the categories before it leave */
        struct tc_rstr *category; /* a reference */
        struct tc_status status;  /* fails the RPCs that the category drops */
    } drops[];
};

/* Returns the limits with one reference. Makes the texts of drops and of the breaker once, not for each RPC. The
 * Cluster resource of `cluster` must not be NULL; `load` may be NULL. Takes references of its own. */
static struct cluster_limits *cluster_limits_new(const struct tc_xds_config *xds,
                                                 const struct tc_cluster_config *cluster, struct tc_cluster_load *load,
                                                 const struct tc_lb_env *env)
{
    size_t n = cluster->eds ? cluster->eds->n_drops : 0;
    struct cluster_limits *l = tc_calloc(1, sizeof(*l) + n * sizeof(l->drops[0]));
    tc_lref_init(&l->ref);
    l->cluster = tc_rstr_ref(cluster->name);
    l->counter = tc_call_counter_get(cluster->name, cluster->cluster->eds_service);
    l->load = tc_cluster_load_ref(load);
    if (cluster->cluster->hash_policies)
        l->hashing =
            tc_cluster_of(tc_xds_resource_ref((struct tc_xds_resource *)(uintptr_t)&cluster->cluster->base.head));
    l->max_calls = cluster->cluster->max_concurrent_requests;
    struct tc_rstr *breaker =
        tc_rstr_printf("circuit breaker drop: cluster \"" TC_SHOWN "\" is at its limit of %u concurrent requests",
                       TC_SHOW(cluster->name->data), l->max_calls);
    l->breaker = (struct tc_status){TORC_STATUS_UNAVAILABLE, TORC_LAYER_LIMIT,
                                    tc_with_node_id(tc_rstr_slice(breaker), xds->node_id)};
    tc_rstr_unref(breaker);
    l->tls_ignored = cluster->cluster->tls && !env->secured_by_xds;
    l->drops_all = cluster->eds && cluster->eds->drops_all;
    l->n_drops = n;
    for (size_t i = 0; i < n; i++) {
        l->drops[i].millionths = cluster->eds->drops[i].millionths;
        l->drops[i].category = tc_rstr_ref(cluster->eds->drops[i].category);
        struct tc_rstr *text =
            tc_rstr_printf("EDS-configured drop: " TC_SHOWN, TC_SHOW(cluster->eds->drops[i].category->data));
        l->drops[i].status = (struct tc_status){TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                                                tc_with_node_id(tc_rstr_slice(text), xds->node_id)};
        tc_rstr_unref(text);
    }
    return l;
}

static void cluster_limits_unref(struct cluster_limits *l)
{
    if (!l || !tc_lref_dec(&l->ref))
        return;
    for (size_t i = 0; i < l->n_drops; i++) {
        tc_rstr_unref(l->drops[i].category);
        tc_status_fini(&l->drops[i].status);
    }
    tc_status_fini(&l->breaker);
    tc_rstr_unref(l->cluster);
    tc_call_counter_unref(l->counter);
    tc_cluster_load_unref(l->load);
    if (l->hashing)
        tc_xds_resource_unref((struct tc_xds_resource *)(uintptr_t)&l->hashing->base.head);
    tc_free(l);
}

/* --- picker --- */

struct impl_picker {
    struct tc_picker base;
    struct cluster_limits *limits; /* a reference */
    struct tc_picker *child;       /* a reference */
};

/* In the call's arena. */
struct breaker_tracker {
    struct tc_call_tracker base;
    struct cluster_limits *limits; /* a reference */
};

static void on_tracked_call_done(struct tc_call_tracker *base, const struct tc_status *status,
                                 const struct tc_headers *trailers)
{
    struct breaker_tracker *t = TC_CONTAINER_OF(base, struct breaker_tracker, base);
    (void)status;
    (void)trailers;
    tc_call_counter_end(t->limits->counter);
    cluster_limits_unref(t->limits);
}

/* Adds a tracker that subtracts the RPC from the breaker's counter when the RPC ends. If the arena has no room for the
 * tracker, subtracts the RPC at once. */
static void track_call(struct cluster_limits *l, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct breaker_tracker *t = tc_arena_calloc(args->arena, 1, sizeof(*t));
    if (!t) {
        tc_call_counter_end(l->counter);
        return;
    }
    t->base.on_done = on_tracked_call_done;
    t->limits = l;
    tc_lref_inc(&l->ref);
    tc_pick_track(out, &t->base);
}

/* Returns the category's random number, derived from args->random (finaliser of SplitMix64). It is the same whenever a
 * queued attempt picks again, so the attempt gets one chance to be dropped, not one for each pick. */
static uint64_t roll_drop(uint64_t random, size_t category)
{
    uint64_t x = random + (category + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Explains the pick: the leaf cluster, and whether its TLS is ignored. */
static void trace_leaf(struct tc_pick_trace *t, const struct cluster_limits *l)
{
    t->leaf = tc_arena_copy(t->arena, tc_rstr_slice(l->cluster));
    if (l->tls_ignored)
        t->security = tc_slice_str(TC_TLS_IGNORED);
}

/* A81: makes the endpoint's hostname the :authority, if it has one and the arena has room for it. */
static void rewrite_authority(const struct tc_pick_args *args, struct tc_pick *out)
{
    struct tc_slice name = tc_arena_copy(args->arena, tc_rstr_slice(out->subchannel->endpoint->hostname));
    if (!name.len)
        return;
    out->authority = name;
    if (args->trace)
        args->trace->authority = out->authority;
}

/* Returns a copy of `args` with the hash of the cluster's own hash policies instead of the route's; the hash is
 * args->random if the cluster's policies give none. */
static struct tc_pick_args rehash(const struct tc_cluster *cluster, const struct tc_pick_args *args)
{
    struct tc_pick_args own = *args;
    own.has_hash = true;
    if (!tc_hash_policies_compute(cluster->hash_policies, cluster->n_hash_policies, args->headers, args->channel_id,
                                  &own.hash))
        own.hash = args->random;
    return own;
}

static enum tc_pick_kind impl_pick(struct tc_picker *base, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct impl_picker *p = TC_CONTAINER_OF(base, struct impl_picker, base);
    struct cluster_limits *l = p->limits;
    if (TC_UNLIKELY(args->trace != NULL))
        trace_leaf(args->trace, l);
    for (size_t i = 0; i < l->n_drops; i++)
        if (tc_fraction_match(l->drops[i].millionths, roll_drop(args->random, i))) {
            out->status = tc_status_ref(&l->drops[i].status);
            if (!args->dry)
                tc_cluster_load_drop(l->load, l->drops[i].category);
            return TC_PICK_DROP;
        }
    if (!tc_call_counter_begin(l->counter, l->max_calls, &l->full)) { /* A32: before the child is asked */
        out->status = tc_status_ref(&l->breaker);
        if (!args->dry)
            tc_cluster_load_drop(l->load, NULL);
        return TC_PICK_DROP;
    }
    struct tc_pick_args own;
    if (TC_UNLIKELY(l->hashing != NULL)) {
        own = rehash(l->hashing, args);
        args = &own;
    }
    enum tc_pick_kind kind = tc_picker_pick(p->child, args, out);
    if (kind == TC_PICK_COMPLETE && args->auto_host_rewrite)
        rewrite_authority(args, out);
    if (kind == TC_PICK_COMPLETE && !args->dry) {
        track_call(l, args, out);
        tc_cluster_load_track(l->load, args, out);
    } else {
        tc_call_counter_end(l->counter);
    }
    return kind;
}

static void impl_picker_free(struct tc_picker *base)
{
    struct impl_picker *p = TC_CONTAINER_OF(base, struct impl_picker, base);
    cluster_limits_unref(p->limits);
    tc_picker_unref(p->child);
    tc_free(p);
}

static const struct tc_picker_ops impl_picker_ops = {.pick = impl_pick, .free = impl_picker_free};

/* --- policy --- */

struct cluster_impl {
    struct tc_lb_wrapper wrapper;
    struct cluster_limits *limits; /* a reference; NULL before the first update that has the cluster */
    struct tc_cluster_load *load;  /* owned (tc_cluster_load_stop); NULL: not reported */
    struct tc_cluster_config
        *cluster; /* the data that the limits were made from; a reference; NULL while `limits` is */
};

static struct tc_picker *impl_picker_new(struct tc_lb_wrapper *wrapper, enum torc_connectivity *state)
{
    const struct cluster_impl *p = TC_CONTAINER_OF(wrapper, struct cluster_impl, wrapper);
    struct impl_picker *picker = TC_NEW(struct impl_picker);
    tc_picker_init(&picker->base, &impl_picker_ops);
    picker->limits = p->limits;
    tc_lref_inc(&p->limits->ref);
    picker->child = tc_picker_ref(wrapper->picker);
    /* A cluster that drops everything has an answer for each RPC. */
    if (p->limits->drops_all)
        *state = TORC_CONNECTIVITY_READY;
    return &picker->base;
}

static const struct tc_lb_wrapper_ops lb_wrapper_ops = {
    .helper = {.update_state = tc_lb_wrapper_on_child_state},
    .picker = impl_picker_new,
};

/* Fails all RPCs: the update has no XdsConfig, or its XdsConfig has no data of the cluster. Returns the failure as the
 * update's answer. A child that an earlier update made stays, and its next report replaces the failure. */
static struct tc_status impl_refuse(struct cluster_impl *p, const struct tc_rstr *name)
{
    struct tc_status status =
        tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                       "xds_cluster_impl: no cluster \"" TC_SHOWN "\" in the xDS config", TC_SHOW(tc_rstr_cstr(name)));
    tc_lb_update_state(p->wrapper.base.helper, TORC_CONNECTIVITY_TRANSIENT_FAILURE, &status, tc_picker_fail(&status));
    return status;
}

/* Makes new limits and a new recorder if the cluster's data are another object. Pickers and RPCs that hold the old ones
 * keep them. */
static struct tc_status impl_update(struct tc_lb_policy *base, const struct tc_lb_update *update)
{
    struct cluster_impl *p = TC_CONTAINER_OF(base, struct cluster_impl, wrapper.base);
    const struct tc_child_config *config = tc_child_config_of(update->config);
    const struct tc_xds_config *xds = update->attributes;
    struct tc_cluster_config *cluster = xds ? tc_xds_config_cluster(xds, tc_rstr_slice(config->name)) : NULL;
    if (!cluster || !cluster->cluster)
        return impl_refuse(p, config->name);
    if (cluster != p->cluster) {
        struct tc_cluster_load *load = tc_cluster_load_new(xds, cluster), *before = p->load;
        struct cluster_limits *limits = cluster_limits_new(xds, cluster, load, p->wrapper.base.helper->env);
        cluster_limits_unref(p->limits);
        p->limits = limits;
        p->load = load;
        tc_cluster_load_stop(before);
        tc_cluster_config_unref(p->cluster);
        p->cluster = tc_cluster_config_ref(cluster);
    }
    struct tc_lb_update down = *update;
    down.config = config->config;
    tc_lb_wrapper_begin_update(&p->wrapper);
    p->wrapper.unpublished = true; /* the limits */
    return tc_lb_wrapper_end_update(&p->wrapper, &down);
}

static void impl_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    const struct cluster_impl *p = TC_CONTAINER_OF(base, struct cluster_impl, wrapper.base);
    const struct cluster_limits *l = p->limits;
    if (!l)
        return;
    tc_describe_state(d, "state", p->wrapper.state);
    tc_describe_number(d, "calls", l->counter->calls);
    tc_describe_number(d, "max_calls", l->max_calls);
    tc_describe_open(d, "drops", '[');
    for (size_t i = 0; i < l->n_drops; i++) {
        tc_describe_open(d, NULL, '{');
        tc_describe_text(d, "category", tc_rstr_slice(l->drops[i].category));
        tc_describe_number(d, "per_million", l->drops[i].millionths);
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
    tc_graceful_switch_describe(p->wrapper.child, d, "child");
}

static void impl_shutdown(struct tc_lb_policy *base)
{
    struct cluster_impl *p = TC_CONTAINER_OF(base, struct cluster_impl, wrapper.base);
    if (!base->helper)
        return;
    tc_lb_wrapper_end(&p->wrapper);
    cluster_limits_unref(p->limits);
    tc_cluster_load_stop(p->load);
    tc_cluster_config_unref(p->cluster);
    p->load = NULL;
    p->limits = NULL;
    p->cluster = NULL;
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = impl_update,
    .exit_idle = tc_lb_wrapper_exit_idle,
    .reset_backoff = tc_lb_wrapper_reset_backoff,
    .shutdown = impl_shutdown,
    .describe = impl_describe,
};

static struct tc_lb_policy *impl_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct cluster_impl *p = TC_NEW(struct cluster_impl);
    tc_lb_wrapper_init(&p->wrapper, &policy_ops, &lb_wrapper_ops, factory, helper);
    return &p->wrapper.base;
}

const struct tc_lb_factory tc_cluster_impl_factory = {
    .name = "xds_cluster_impl_experimental",
    .alias = "xds_cluster_impl",
    .create = impl_create,
    .parse_config = impl_parse_config,
    .free_config = tc_child_configs_free,
    .equal_config = tc_child_configs_equal,
};
