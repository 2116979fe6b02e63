/* The policy of outlier_detection: one child below it, one wrapper around each subchannel that the child creates.
 *
 * - RPC: the picker adds a tracker to each pick of an endpoint that is watched. When the RPC ends, the tracker counts a
 *   success or a failure for the endpoint; nothing if the pick led to no RPC.
 * - interval: policy_on_timer lets tc_outlier_sweep (ejection.c) decide which endpoints are ejected, then tells the
 *   wrappers.
 * - wrapper: passes everything through but health (A61). While its endpoint is ejected the watcher hears `unfit`
 *   instead of the health of the inner subchannel. Connectivity is never changed.
 * - update: a list of endpoints is compared by pointer. A new list makes a new set, which takes over the counts and
 *   ejections of endpoints that stay (endpoints.c).
 *
 * With both algorithms off (`on` is false) there is neither picker nor timer nor set: the child's pickers are published
 * as they are.
 *
 * Ownership: the policy owns the set of endpoints. The child owns the wrappers, and a picked RPC holds a reference of
 * its wrapper. So a wrapper may outlive its release (its `inner` is then NULL) and the policy (`set` and `outlier` are
 * then NULL). Loop thread only. */
#include "lb/outlier_detection/policy.h"

#include "base/mem.h"
#include "lb/describe.h"
#include "lb/outlier_detection/endpoints.h"
#include "lb/wrapped_subchannel.h"
#include "lb/wrapper.h"

struct od_policy {
    struct tc_lb_wrapper wrapper;
    struct tc_outlier_settings settings;       /* of the last update */
    struct tc_endpoints *endpoints;            /* of the last update that had a list; NULL: none yet */
    bool on;                                   /* an algorithm is on: RPCs are counted, the timer runs */
    struct tc_outlier_set watched;             /* the endpoints; empty unless `on` */
    struct tc_wrapped_subchannels subchannels; /* struct od_subchannel */
    struct tc_timer timer;
    uint64_t started_ms;    /* when the timer's present interval began */
    struct tc_status unfit; /* the health of ejected endpoints */
};

struct od_subchannel {
    struct tc_wrapped_subchannel wrapped;
    struct tc_outlier *outlier;        /* borrowed from `watched`; NULL: the endpoint is not watched */
    tc_subchannel_health_fn on_health; /* the watcher's; NULL: none, or the wrapper was released */
    void *health_arg;
    struct tc_status inner_health; /* as the inner subchannel told it last; OK before the health is watched */
    bool told_ejected;             /* `ejected` as subchannel_watch_health or health_task last told it */
    struct tc_task health_task;
};

/* --- wrappers --- */

static struct od_subchannel *subchannel_of(struct tc_subchannel *sc)
{
    return TC_CONTAINER_OF(sc, struct od_subchannel, wrapped.base);
}

static struct od_subchannel *subchannel_of_link(struct tc_link *link)
{
    return TC_CONTAINER_OF(link, struct od_subchannel, wrapped.link);
}

static bool subchannel_is_ejected(const struct od_subchannel *w)
{
    return w->outlier && w->outlier->ejected;
}

static const struct tc_status *subchannel_health(const struct od_subchannel *w)
{
    if (!subchannel_is_ejected(w))
        return &w->inner_health;
    return &TC_CONTAINER_OF(w->wrapped.set, const struct od_policy, subchannels)->unfit;
}

static void subchannel_release(struct tc_subchannel *sc)
{
    struct od_subchannel *w = subchannel_of(sc);
    tc_task_cancel(&w->health_task);
    w->on_health = NULL;
    tc_status_fini(&w->inner_health);
    tc_wrapped_subchannel_end(&w->wrapped);
}

static void subchannel_on_inner_health(void *arg, const struct tc_status *now)
{
    struct od_subchannel *w = arg;
    tc_status_set(&w->inner_health, tc_status_ref(now));
    if (!subchannel_is_ejected(w))
        w->on_health(w->health_arg, &w->inner_health);
}

static const struct tc_status *subchannel_watch_health(struct tc_subchannel *sc, tc_subchannel_health_fn on_health,
                                                       void *arg)
{
    struct od_subchannel *w = subchannel_of(sc);
    w->on_health = on_health;
    w->health_arg = arg;
    w->told_ejected = subchannel_is_ejected(w);
    const struct tc_status *inner = tc_subchannel_watch_health(w->wrapped.inner, subchannel_on_inner_health, w);
    tc_status_set(&w->inner_health, tc_status_ref(inner));
    return subchannel_health(w);
}

static const struct tc_subchannel_ops subchannel_ops = {
    .connect = tc_wrapped_subchannel_connect,
    .reset_backoff = tc_wrapped_subchannel_reset_backoff,
    .inner = tc_wrapped_subchannel_inner,
    .release = subchannel_release,
    .watch_health = subchannel_watch_health,
};

static void subchannel_on_health_task(struct tc_task *task)
{
    struct od_subchannel *w = TC_CONTAINER_OF(task, struct od_subchannel, health_task);
    if (w->told_ejected == subchannel_is_ejected(w))
        return;
    w->told_ejected = subchannel_is_ejected(w);
    w->on_health(w->health_arg, subchannel_health(w));
}

/* Notifies the watcher, by a task, if the endpoint was ejected or came back. */
static void subchannel_notify(struct od_policy *p, struct od_subchannel *w)
{
    if (w->on_health && w->told_ejected != subchannel_is_ejected(w))
        tc_loop_defer(p->wrapper.base.helper->env->loop, &w->health_task);
}

static void subchannel_on_inner_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    struct tc_wrapped_subchannel *w = arg;
    w->base.on_state(w->base.arg, state, status);
}

/* --- endpoints --- */

/* Watches these endpoints (NULL: none) from now on. The list that was watched before must still be alive. */
static void policy_watch(struct od_policy *p, const struct tc_endpoints *endpoints)
{
    struct tc_outlier_set before = p->watched;
    tc_outlier_set_init(&p->watched, endpoints, &before);
    TC_LIST_FOREACH(it, &p->subchannels.all)
    {
        struct od_subchannel *w = subchannel_of_link(it);
        w->outlier = tc_outlier_set_find(&p->watched, w->wrapped.base.endpoint, &w->wrapped.base.addr);
        subchannel_notify(p, w);
    }
    tc_outlier_set_fini(&before);
}

/* --- timer --- */

static uint64_t policy_interval_ms(const struct od_policy *p)
{
    return TC_MAX(p->settings.interval_ms, TC_OUTLIER_INTERVAL_MIN_MS + p->watched.n / TC_OUTLIER_PER_MS);
}

static void policy_on_timer(struct tc_timer *timer)
{
    struct od_policy *p = TC_CONTAINER_OF(timer, struct od_policy, timer);
    struct tc_loop *loop = p->wrapper.base.helper->env->loop;
    p->started_ms = tc_loop_now_ms(loop);
    tc_timer_start(&p->timer, policy_interval_ms(p));
    if (!tc_outlier_sweep(p->watched.all, p->watched.n, &p->settings, p->started_ms, tc_loop_rng(loop),
                          p->wrapper.base.helper->env->target))
        return;
    TC_LIST_FOREACH(it, &p->subchannels.all)
    subchannel_notify(p, subchannel_of_link(it));
}

/* A50: a config that comes in the middle of an interval does not move the interval's begin. */
static void policy_set_timer(struct od_policy *p)
{
    if (!p->on) {
        tc_timer_stop(&p->timer);
        return;
    }
    uint64_t now_ms = tc_loop_now_ms(p->wrapper.base.helper->env->loop);
    if (!tc_timer_active(&p->timer))
        p->started_ms = now_ms;
    uint64_t elapsed_ms = now_ms - p->started_ms;
    tc_timer_start(&p->timer, policy_interval_ms(p) > elapsed_ms ? policy_interval_ms(p) - elapsed_ms : 0);
}

/* --- picker --- */

struct od_picker {
    struct tc_picker base;
    const struct tc_wrapped_subchannels *subchannels; /* compared, never read: the policy may be gone */
    struct tc_picker *child;                          /* a reference */
};

struct od_tracker {
    struct tc_call_tracker base;
    struct od_subchannel *subchannel; /* a reference (wrapped.ref) */
};

static void tracker_on_done(struct tc_call_tracker *base, const struct tc_status *status,
                            const struct tc_headers *trailers)
{
    struct od_subchannel *w = TC_CONTAINER_OF(base, struct od_tracker, base)->subchannel;
    (void)trailers;
    if (w->outlier && status)
        *(tc_status_ok(status) ? &w->outlier->now.successes : &w->outlier->now.failures) += 1;
    tc_wrapped_subchannel_unref(&w->wrapped);
}

static enum tc_pick_kind od_pick(struct tc_picker *base, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct od_picker *p = TC_CONTAINER_OF(base, struct od_picker, base);
    enum tc_pick_kind kind = tc_picker_pick(p->child, args, out);
    if (kind != TC_PICK_COMPLETE || args->dry)
        return kind;
    struct tc_wrapped_subchannel *wrapped =
        tc_wrapped_subchannels_find(p->subchannels, &subchannel_ops, out->subchannel);
    struct od_subchannel *w = wrapped ? subchannel_of(&wrapped->base) : NULL;
    struct od_tracker *t = w && w->outlier ? tc_arena_calloc(args->arena, 1, sizeof(*t)) : NULL;
    if (!t)
        return kind;
    t->base.on_done = tracker_on_done;
    t->subchannel = w;
    tc_lref_inc(&wrapped->ref);
    tc_pick_track(out, &t->base);
    return kind;
}

static void od_picker_free(struct tc_picker *base)
{
    struct od_picker *p = TC_CONTAINER_OF(base, struct od_picker, base);
    tc_picker_unref(p->child);
    tc_free(p);
}

static const struct tc_picker_ops od_picker_ops = {.pick = od_pick, .free = od_picker_free};

static struct tc_picker *od_picker_new(const struct od_policy *p)
{
    struct od_picker *picker = TC_NEW(struct od_picker);
    tc_picker_init(&picker->base, &od_picker_ops);
    picker->subchannels = &p->subchannels;
    picker->child = tc_picker_ref(p->wrapper.picker);
    return &picker->base;
}

/* --- the child's helper --- */

static struct tc_subchannel *od_create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                                  const struct tc_addr *addr, tc_subchannel_state_fn on_state,
                                                  void *arg)
{
    struct od_policy *p = TC_CONTAINER_OF(h, struct od_policy, wrapper.helper);
    struct od_subchannel *w = TC_NEW(struct od_subchannel);
    tc_task_init(&w->health_task, subchannel_on_health_task);
    w->outlier = tc_outlier_set_find(&p->watched, endpoint, addr);
    tc_wrapped_subchannel_init(&w->wrapped, &p->subchannels, p->wrapper.base.helper, endpoint, addr, on_state, arg);
    return &w->wrapped.base;
}

static struct tc_picker *od_make_picker(struct tc_lb_wrapper *wrapper, enum torc_connectivity *state)
{
    const struct od_policy *p = TC_CONTAINER_OF(wrapper, struct od_policy, wrapper);
    (void)state;
    return p->on ? od_picker_new(p) : tc_picker_ref(wrapper->picker);
}

static const struct tc_lb_wrapper_ops lb_wrapper_ops = {
    .helper = {.create_subchannel = od_create_subchannel, .update_state = tc_lb_wrapper_on_child_state},
    .picker = od_make_picker,
};

/* --- policy --- */

static void policy_take_endpoints(struct od_policy *p, struct tc_endpoints *endpoints, bool was_on)
{
    struct tc_endpoints *before = p->endpoints;
    if (endpoints)
        p->endpoints = tc_endpoints_ref(endpoints);
    if (p->on && (!was_on || p->endpoints != before))
        policy_watch(p, p->endpoints);
    else if (!p->on && was_on)
        policy_watch(p, NULL);
    if (endpoints)
        tc_endpoints_unref(before);
}

static struct tc_status od_update(struct tc_lb_policy *base, const struct tc_lb_update *update)
{
    struct od_policy *p = TC_CONTAINER_OF(base, struct od_policy, wrapper.base);
    if (!base->helper)
        return (struct tc_status){0};
    bool was_on = p->on;
    const struct tc_outlier_config *config = tc_outlier_config(update->config);
    p->settings = config->settings;
    p->on = p->settings.success_rate.on || p->settings.failure_percentage.on;
    p->wrapper.unpublished |= p->on != was_on;
    tc_lb_wrapper_begin_update(&p->wrapper);
    policy_take_endpoints(p, update->endpoints, was_on);
    policy_set_timer(p);
    struct tc_lb_update down = *update;
    down.config = config->child;
    return tc_lb_wrapper_end_update(&p->wrapper, &down);
}

static void od_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    const struct od_policy *p = TC_CONTAINER_OF(base, struct od_policy, wrapper.base);
    tc_describe_timer(d, "next_sweep_ms", &p->timer);
    tc_describe_open(d, "ejected", '[');
    for (size_t i = 0; i < p->watched.n; i++)
        if (p->watched.all[i]->ejected)
            tc_describe_endpoint(d, NULL, p->watched.all[i]->endpoint);
    tc_describe_close(d, ']');
    tc_graceful_switch_describe(p->wrapper.child, d, "child");
}

static void od_shutdown(struct tc_lb_policy *base)
{
    struct od_policy *p = TC_CONTAINER_OF(base, struct od_policy, wrapper.base);
    if (!base->helper)
        return;
    tc_timer_stop(&p->timer);
    tc_lb_wrapper_end(&p->wrapper);
    /* The child released its wrappers. RPCs hold the rest, or a child policy of the application, which releases
     * later. */
    for (struct tc_wrapped_subchannel *w; (w = tc_wrapped_subchannels_pop(&p->subchannels));)
        subchannel_of(&w->base)->outlier = NULL;
    tc_outlier_set_fini(&p->watched);
    tc_endpoints_unref(p->endpoints);
    tc_status_fini(&p->unfit);
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = od_update,
    .exit_idle = tc_lb_wrapper_exit_idle,
    .reset_backoff = tc_lb_wrapper_reset_backoff,
    .shutdown = od_shutdown,
    .describe = od_describe,
};

static struct tc_lb_policy *od_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct od_policy *p = TC_NEW(struct od_policy);
    tc_lb_wrapper_init(&p->wrapper, &policy_ops, &lb_wrapper_ops, factory, helper);
    p->unfit = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "endpoint ejected by outlier detection");
    tc_wrapped_subchannels_init(&p->subchannels, &subchannel_ops, subchannel_on_inner_state);
    tc_timer_init(&p->timer, helper->env->loop, policy_on_timer);
    return &p->wrapper.base;
}

const struct tc_lb_factory tc_outlier_detection_factory = {
    .name = "outlier_detection",
    .alias = "outlier_detection_experimental",
    .create = od_create,
    .parse_config = tc_outlier_config_parse,
    .free_config = tc_outlier_config_free,
    .equal_config = tc_outlier_config_equal,
};
