#include "mesh/cluster_impl.h"

#include "base/json.h"
#include "base/mem.h"
#include "lb/describe.h"
#include "lb/single.h"
#include "mesh/cluster_load.h"
#include "mesh/config.h"
#include "mesh/domain.h"

/* --- config --- */

struct config {
    struct tc_lb_config base;
    struct tc_rstr *cluster;
    struct tc_lb_config *child;
};

struct tc_lb_config *tc_cluster_impl_config_new(struct tc_rstr *cluster, struct tc_lb_config *child)
{
    struct config *c = TC_NEW(struct config);
    c->base.cls = &tc_cluster_impl_class;
    tc_ref_init(&c->base.ref);
    c->cluster = tc_rstr_ref(cluster);
    c->child = tc_lb_config_ref(child);
    return &c->base;
}

static void free_config(struct tc_lb_config *base)
{
    struct config *c = TC_CONTAINER_OF(base, struct config, base);
    tc_rstr_unref(c->cluster);
    tc_lb_config_unref(c->child);
    tc_free(c);
}

static bool equal_config(const struct tc_lb_config *pa, const struct tc_lb_config *pb)
{
    const struct config *a = (const struct config *)pa, *b = (const struct config *)pb;
    return tc_rstr_eq(a->cluster, b->cluster) && tc_lb_config_eq(a->child, b->child);
}

/* {"cluster": "name", "childPolicy": [...]}; the deprecated fields are ignored (A74). */
static struct tc_lb_config *parse_config(const struct tc_lb_class *cls, const json_t *json,
                                         const struct tc_lb_registry *registry, unsigned depth,
                                         struct tc_faults *faults)
{
    (void)cls;
    const char *cluster = NULL;
    const json_t *list = NULL;
    size_t before = faults->count;
    tc_json_get_str(json, "cluster", &cluster, faults);
    tc_json_get_arr(json, "childPolicy", &list, faults);
    if (faults->count == before && !cluster)
        tc_faults_add_at(faults, ".cluster", "field not present");
    if (faults->count == before && !list)
        tc_faults_add_at(faults, ".childPolicy", "field not present");
    if (faults->count != before)
        return NULL;
    tc_faults_push(faults, ".childPolicy");
    struct tc_lb_config *child = tc_lb_parse_list(registry, list, depth + 1, faults);
    tc_faults_pop(faults);
    if (!child)
        return NULL;
    struct tc_rstr *name = tc_rstr_str(cluster);
    struct tc_lb_config *config = tc_cluster_impl_config_new(name, child);
    tc_rstr_unref(name);
    tc_lb_config_unref(child);
    return config;
}

/* --- limits --- */

/* What a cluster's RPCs are held to; shared by the pickers made while it was in force. */
struct limits {
    struct tc_lref ref;
    struct tc_rstr *cluster;
    struct tc_call_counter *counter;
    struct tc_cluster_load *load; /* NULL: not reported */
    uint32_t max_calls;
    bool full;                /* for the counter: the last RPC was beyond max_calls */
    struct tc_status breaker; /* of RPCs beyond it */
    bool drops_all;
    size_t n_drops;
    struct drop {
        uint32_t millionths;
        struct tc_rstr *category;
        struct tc_status status;
    } drops[];
};

static struct limits *limits_new(const struct tc_xds_config *xds, const struct tc_cluster_config *cluster,
                                 struct tc_cluster_load *load)
{
    size_t n = cluster->eds ? cluster->eds->n_drops : 0;
    struct limits *l = tc_calloc(1, sizeof(*l) + n * sizeof(l->drops[0]));
    tc_lref_init(&l->ref);
    l->cluster = tc_rstr_ref(cluster->name);
    l->counter = tc_call_counter_get(xds->domain, cluster->name, cluster->cluster->eds_service);
    l->load = tc_cluster_load_ref(load);
    l->max_calls = cluster->cluster->max_concurrent_requests;
    struct tc_slice breaker = tc_slice_str("circuit breaker drop");
    l->breaker = (struct tc_status){TORC_STATUS_UNAVAILABLE, tc_with_node_id(breaker, xds->node_id)};
    l->drops_all = cluster->eds && cluster->eds->drops_all;
    l->n_drops = n;
    for (size_t i = 0; i < n; i++) {
        l->drops[i].millionths = cluster->eds->drops[i].millionths;
        l->drops[i].category = tc_rstr_ref(cluster->eds->drops[i].category);
        struct tc_rstr *text = tc_rstr_printf("EDS-configured drop: %s", cluster->eds->drops[i].category->data);
        l->drops[i].status =
            (struct tc_status){TORC_STATUS_UNAVAILABLE, tc_with_node_id(tc_rstr_slice(text), xds->node_id)};
        tc_rstr_unref(text);
    }
    return l;
}

static void limits_unref(struct limits *l)
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
    tc_free(l);
}

/* --- picker --- */

struct impl_picker {
    struct tc_picker base;
    struct limits *limits;
    struct tc_picker *child;
};

struct tracker {
    struct tc_call_tracker base;
    struct limits *limits;
};

static void on_call_done(struct tc_call_tracker *base, const struct tc_status *status,
                         const struct tc_headers *trailers)
{
    struct tracker *t = TC_CONTAINER_OF(base, struct tracker, base);
    (void)status;
    (void)trailers;
    tc_call_counter_end(t->limits->counter);
    limits_unref(t->limits);
}

/* The RPC was counted; ends that with it. */
static void track_call(struct limits *l, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct tracker *t = tc_arena_calloc(args->arena, 1, sizeof(*t));
    if (!t) {
        tc_call_counter_end(l->counter);
        return;
    }
    struct tc_call_tracker **tail = &out->trackers;
    t->base.on_done = on_call_done;
    t->limits = l;
    tc_lref_inc(&l->ref);
    while (*tail)
        tail = &(*tail)->next;
    *tail = &t->base;
}

/* A number of its own for each category out of the RPC's one, the same on every pick: an RPC that waits in the queue is
 * not rolled for again (finaliser of SplitMix64). */
static uint64_t roll(uint64_t random, size_t category)
{
    uint64_t x = random + (category + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void trace_leaf(struct tc_pick_trace *t, const struct limits *l)
{
    struct tc_slice name = tc_rstr_slice(l->cluster);
    char *copy = tc_arena_dup(t->arena, name);
    t->leaf = tc_slice_of(copy, copy ? name.len : 0);
}

/* A81: the hostname of the endpoint, if it has one. */
static void rewrite_authority(const struct tc_pick_args *args, struct tc_pick *out)
{
    struct tc_slice name = tc_rstr_slice(out->subchannel->endpoint->hostname);
    char *copy = name.len ? tc_arena_dup(args->arena, name) : NULL;
    if (!copy)
        return;
    out->authority = tc_slice_of(copy, name.len);
    if (args->trace)
        args->trace->authority = out->authority;
}

static enum tc_pick_kind pick(struct tc_picker *base, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct impl_picker *p = TC_CONTAINER_OF(base, struct impl_picker, base);
    struct limits *l = p->limits;
    if (TC_UNLIKELY(args->trace != NULL))
        trace_leaf(args->trace, l);
    for (size_t i = 0; i < l->n_drops; i++)
        if (tc_fraction_match(l->drops[i].millionths, roll(args->random, i))) {
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

static void picker_free(struct tc_picker *base)
{
    struct impl_picker *p = TC_CONTAINER_OF(base, struct impl_picker, base);
    limits_unref(p->limits);
    tc_picker_unref(p->child);
    tc_free(p);
}

static const struct tc_picker_ops picker_ops = {.pick = pick, .free = picker_free};

/* --- policy --- */

struct policy {
    struct tc_lb_single single;
    struct limits *limits;
    struct tc_cluster_load *load;      /* NULL: not reported */
    struct tc_cluster_config *cluster; /* that the limits were made from */
};

static struct tc_picker *make_picker(struct tc_lb_single *single, enum torc_connectivity *state)
{
    const struct policy *p = TC_CONTAINER_OF(single, struct policy, single);
    struct impl_picker *picker = TC_NEW(struct impl_picker);
    picker->base.ops = &picker_ops;
    tc_lref_init(&picker->base.ref);
    picker->limits = p->limits;
    tc_lref_inc(&p->limits->ref);
    picker->child = tc_picker_ref(single->picker);
    /* A cluster that drops everything has an answer for each RPC, endpoints or not. */
    if (p->limits->drops_all)
        *state = TORC_READY;
    return &picker->base;
}

static struct tc_subchannel *create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                               const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg)
{
    struct tc_lb_helper *up = TC_CONTAINER_OF(h, struct policy, single.helper)->single.base.helper;
    return up->ops->create_subchannel(up, endpoint, addr, on_state, arg);
}

static const struct tc_lb_single_ops single_ops = {create_subchannel, make_picker};

/* The policy is out of its place: there is nothing that it could be limited by. */
static struct tc_status refuse(struct policy *p, const struct config *config)
{
    struct tc_status status =
        tc_status_make(TORC_STATUS_UNAVAILABLE, "xds_cluster_impl: no cluster \"%s\" in the xDS config",
                       tc_rstr_cstr(config->cluster));
    p->single.base.helper->ops->update_state(p->single.base.helper, TORC_TRANSIENT_FAILURE, &status,
                                             tc_picker_fail(&status));
    return status;
}

static struct tc_status impl_update(struct tc_lb_policy *base, const struct tc_lb_update *update)
{
    struct policy *p = TC_CONTAINER_OF(base, struct policy, single.base);
    const struct config *config = TC_CONTAINER_OF(update->config, struct config, base);
    const struct tc_xds_config *xds = update->attributes;
    struct tc_cluster_config *cluster = xds ? tc_xds_config_cluster(xds, tc_rstr_slice(config->cluster)) : NULL;
    if (!cluster || !cluster->cluster)
        return refuse(p, config);
    if (cluster != p->cluster) {
        struct tc_cluster_load *load = tc_cluster_load_new(xds, cluster), *before = p->load;
        struct limits *limits = limits_new(xds, cluster, load);
        limits_unref(p->limits);
        p->limits = limits;
        p->load = load;
        tc_cluster_load_stop(before);
        tc_cluster_config_unref(p->cluster);
        p->cluster = tc_cluster_config_ref(cluster);
    }
    struct tc_lb_update down = *update;
    down.config = config->child;
    tc_lb_single_begin_update(&p->single);
    p->single.unpublished = true; /* the limits */
    return tc_lb_single_end_update(&p->single, &down);
}

static void impl_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    const struct policy *p = TC_CONTAINER_OF(base, struct policy, single.base);
    const struct limits *l = p->limits;
    if (!l)
        return;
    tc_describe_state(d, "state", p->single.state);
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
    tc_describe_child(d, "child", p->single.child);
}

static void impl_shutdown(struct tc_lb_policy *base)
{
    struct policy *p = TC_CONTAINER_OF(base, struct policy, single.base);
    if (!base->helper)
        return;
    tc_lb_single_end(&p->single);
    limits_unref(p->limits);
    tc_cluster_load_stop(p->load);
    tc_cluster_config_unref(p->cluster);
    p->load = NULL;
    p->limits = NULL;
    p->cluster = NULL;
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = impl_update,
    .exit_idle = tc_lb_single_exit_idle,
    .reset_backoff = tc_lb_single_reset_backoff,
    .shutdown = impl_shutdown,
    .describe = impl_describe,
};

static struct tc_lb_policy *create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    struct policy *p = TC_NEW(struct policy);
    tc_lb_single_init(&p->single, &policy_ops, &single_ops, cls, helper);
    return &p->single.base;
}

const struct tc_lb_class tc_cluster_impl_class = {
    .name = "xds_cluster_impl_experimental",
    .alias = "xds_cluster_impl",
    .create = create,
    .parse_config = parse_config,
    .free_config = free_config,
    .equal_config = equal_config,
};
