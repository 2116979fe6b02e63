#include "lb/outlier_detection.h"

#include "base/mem.h"
#include "lb/describe.h"
#include "lb/outlier_detection_config.h"
#include "lb/outlier_set.h"
#include "lb/outlier_sweep.h"
#include "lb/single.h"

struct policy {
    struct tc_lb_single single;
    struct tc_outlier_settings settings; /* as last given */
    struct tc_endpoints *endpoints;      /* as last given; NULL: none yet */
    bool on;                             /* an algorithm is: RPCs are counted, the timer runs */
    struct tc_outlier_set watched;       /* the endpoints; none while no algorithm is on */
    struct tc_link wrappers;             /* all of them */
    struct tc_timer timer;
    uint64_t started_ms;    /* of the timer's present interval */
    struct tc_status unfit; /* the health of ejected endpoints */
};

/* What the child policy has in place of a subchannel (A50, A61). Lives on after its release while RPCs of it run. */
struct wrapper {
    struct tc_subchannel base;
    struct tc_lref ref;
    struct policy *owner;        /* NULL after shutdown */
    struct tc_link link;         /* of owner->wrappers */
    struct tc_subchannel *inner; /* NULL once released */
    struct tc_outlier *outlier;  /* the endpoint's; NULL: it is not watched */
    tc_subchannel_health_fn on_health;
    void *health_arg;
    struct tc_status inner_health;
    bool told_ejected; /* as the watcher knows it */
    struct tc_task health_task;
};

/* --- wrappers --- */

static void wrapper_unref(struct wrapper *w)
{
    if (!tc_lref_dec(&w->ref))
        return;
    tc_list_remove(&w->link);
    tc_endpoint_unref(w->base.endpoint);
    tc_addr_fini(&w->base.addr);
    tc_status_fini(&w->inner_health);
    tc_free(w);
}

static bool is_ejected(const struct wrapper *w)
{
    return w->outlier && w->outlier->ejected;
}

static const struct tc_status *health(const struct wrapper *w)
{
    return is_ejected(w) ? &w->owner->unfit : &w->inner_health;
}

static void wrapper_connect(struct tc_subchannel *sc)
{
    tc_subchannel_connect(((struct wrapper *)sc)->inner);
}

static void wrapper_reset_backoff(struct tc_subchannel *sc)
{
    tc_subchannel_reset_backoff(((struct wrapper *)sc)->inner);
}

static struct tc_subchannel *wrapper_inner(struct tc_subchannel *sc)
{
    return ((struct wrapper *)sc)->inner;
}

static void wrapper_release(struct tc_subchannel *sc)
{
    struct wrapper *w = (struct wrapper *)sc;
    tc_task_cancel(&w->health_task);
    w->on_health = NULL;
    tc_subchannel_release(w->inner);
    w->inner = NULL;
    wrapper_unref(w);
}

static void on_inner_health(void *arg, const struct tc_status *now)
{
    struct wrapper *w = arg;
    tc_status_set(&w->inner_health, tc_status_ref(now));
    if (!is_ejected(w))
        w->on_health(w->health_arg, &w->inner_health);
}

static const struct tc_status *wrapper_watch_health(struct tc_subchannel *sc, tc_subchannel_health_fn on_health,
                                                    void *arg)
{
    struct wrapper *w = (struct wrapper *)sc;
    w->on_health = on_health;
    w->health_arg = arg;
    w->told_ejected = is_ejected(w);
    tc_status_set(&w->inner_health, tc_status_ref(tc_subchannel_watch_health(w->inner, on_inner_health, w)));
    return health(w);
}

static const struct tc_subchannel_ops wrapper_ops = {
    .connect = wrapper_connect,
    .reset_backoff = wrapper_reset_backoff,
    .inner = wrapper_inner,
    .release = wrapper_release,
    .watch_health = wrapper_watch_health,
};

static void on_health_task(struct tc_task *task)
{
    struct wrapper *w = TC_CONTAINER_OF(task, struct wrapper, health_task);
    if (w->told_ejected == is_ejected(w))
        return;
    w->told_ejected = is_ejected(w);
    w->on_health(w->health_arg, health(w));
}

/* Tells the watcher if the endpoint was ejected or came back. */
static void tell(struct policy *p, struct wrapper *w)
{
    if (w->on_health && w->told_ejected != is_ejected(w))
        tc_loop_defer(p->single.base.helper->env->loop, &w->health_task);
}

static void on_inner_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    struct wrapper *w = arg;
    w->base.on_state(w->base.arg, state, status);
}

/* --- endpoints --- */

/* Watches these endpoints (NULL: none) from now on. The last ones are still alive. */
static void watch(struct policy *p, const struct tc_endpoints *endpoints)
{
    struct tc_outlier_set before = p->watched;
    tc_outlier_set_init(&p->watched, endpoints, &before);
    TC_LIST_FOREACH(it, &p->wrappers)
    {
        struct wrapper *w = TC_CONTAINER_OF(it, struct wrapper, link);
        w->outlier = tc_outlier_set_find(&p->watched, w->base.endpoint, &w->base.addr);
        tell(p, w);
    }
    tc_outlier_set_fini(&before);
}

/* --- timer --- */

/* A short one, or a great many endpoints, would leave the loop nothing else to do. */
static uint64_t interval_ms(const struct policy *p)
{
    return TC_MAX(p->settings.interval_ms, TC_OUTLIER_INTERVAL_MIN_MS + p->watched.n / TC_OUTLIER_PER_MS);
}

static void on_timer(struct tc_timer *timer)
{
    struct policy *p = TC_CONTAINER_OF(timer, struct policy, timer);
    struct tc_loop *loop = p->single.base.helper->env->loop;
    p->started_ms = tc_loop_now_ms(loop);
    tc_timer_start(&p->timer, interval_ms(p));
    if (!tc_outlier_sweep(p->watched.all, p->watched.n, &p->settings, p->started_ms, tc_loop_rng(loop)))
        return;
    TC_LIST_FOREACH(it, &p->wrappers)
    tell(p, TC_CONTAINER_OF(it, struct wrapper, link));
}

/* A50: a config that comes in the middle of an interval leaves its beginning where it is. */
static void set_timer(struct policy *p)
{
    if (!p->on) {
        tc_timer_stop(&p->timer);
        return;
    }
    uint64_t now_ms = tc_loop_now_ms(p->single.base.helper->env->loop);
    if (!tc_timer_active(&p->timer))
        p->started_ms = now_ms;
    uint64_t elapsed_ms = now_ms - p->started_ms;
    tc_timer_start(&p->timer, interval_ms(p) > elapsed_ms ? interval_ms(p) - elapsed_ms : 0);
}

/* --- picker --- */

struct od_picker {
    struct tc_picker base;
    const struct policy *owner; /* to know its wrappers by; may be gone */
    struct tc_picker *child;
};

struct tracker {
    struct tc_call_tracker base;
    struct wrapper *wrapper;
};

static void on_call_done(struct tc_call_tracker *base, const struct tc_status *status,
                         const struct tc_headers *trailers)
{
    struct wrapper *w = TC_CONTAINER_OF(base, struct tracker, base)->wrapper;
    (void)trailers;
    if (w->outlier && status)
        *(tc_status_ok(status) ? &w->outlier->now.successes : &w->outlier->now.failures) += 1;
    wrapper_unref(w);
}

/* Other policies' wrappers may stand before ours. */
static struct wrapper *find_wrapper(struct tc_subchannel *sc, const struct policy *owner)
{
    for (; sc; sc = sc->ops->inner(sc))
        if (sc->ops == &wrapper_ops && ((struct wrapper *)sc)->owner == owner)
            return (struct wrapper *)sc;
    return NULL;
}

static enum tc_pick_kind od_pick(struct tc_picker *base, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct od_picker *p = TC_CONTAINER_OF(base, struct od_picker, base);
    enum tc_pick_kind kind = tc_picker_pick(p->child, args, out);
    if (kind != TC_PICK_COMPLETE || args->dry)
        return kind;
    struct wrapper *w = find_wrapper(out->subchannel, p->owner);
    struct tracker *t = w && w->outlier ? tc_arena_calloc(args->arena, 1, sizeof(*t)) : NULL;
    if (!t)
        return kind;
    t->base.on_done = on_call_done;
    t->wrapper = w;
    tc_lref_inc(&w->ref);
    struct tc_call_tracker **tail = &out->trackers;
    while (*tail)
        tail = &(*tail)->next;
    *tail = &t->base;
    return kind;
}

static void od_picker_free(struct tc_picker *base)
{
    struct od_picker *p = TC_CONTAINER_OF(base, struct od_picker, base);
    tc_picker_unref(p->child);
    tc_free(p);
}

static const struct tc_picker_ops od_picker_ops = {.pick = od_pick, .free = od_picker_free};

static struct tc_picker *counting_picker(const struct policy *p)
{
    struct od_picker *picker = TC_NEW(struct od_picker);
    picker->base.ops = &od_picker_ops;
    tc_lref_init(&picker->base.ref);
    picker->owner = p;
    picker->child = tc_picker_ref(p->single.picker);
    return &picker->base;
}

/* --- the child's helper --- */

static struct tc_subchannel *create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                               const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg)
{
    struct policy *p = TC_CONTAINER_OF(h, struct policy, single.helper);
    struct tc_lb_helper *up = p->single.base.helper;
    struct wrapper *w = TC_NEW(struct wrapper);
    w->base = (struct tc_subchannel){&wrapper_ops, tc_endpoint_ref(endpoint), tc_addr_ref(addr), on_state, arg};
    tc_lref_init(&w->ref);
    tc_task_init(&w->health_task, on_health_task);
    w->owner = p;
    tc_list_append(&p->wrappers, &w->link);
    w->outlier = tc_outlier_set_find(&p->watched, endpoint, addr);
    w->inner = up->ops->create_subchannel(up, endpoint, addr, on_inner_state, w);
    return &w->base;
}

static struct tc_picker *make_picker(struct tc_lb_single *single, enum torc_connectivity *state)
{
    const struct policy *p = TC_CONTAINER_OF(single, struct policy, single);
    (void)state;
    return p->on ? counting_picker(p) : tc_picker_ref(single->picker);
}

static const struct tc_lb_single_ops single_ops = {create_subchannel, make_picker};

/* --- policy --- */

static void take_endpoints(struct policy *p, struct tc_endpoints *endpoints, bool was_on)
{
    struct tc_endpoints *before = p->endpoints;
    if (endpoints)
        p->endpoints = tc_endpoints_ref(endpoints);
    if (p->on && (!was_on || p->endpoints != before))
        watch(p, p->endpoints);
    else if (!p->on && was_on)
        watch(p, NULL);
    if (endpoints)
        tc_endpoints_unref(before);
}

static struct tc_status od_update(struct tc_lb_policy *base, const struct tc_lb_update *update)
{
    struct policy *p = TC_CONTAINER_OF(base, struct policy, single.base);
    if (!base->helper)
        return (struct tc_status){0};
    bool was_on = p->on;
    p->settings = *tc_outlier_detection_settings(update->config);
    p->on = p->settings.by_success_rate || p->settings.by_failure_percentage;
    p->single.unpublished |= p->on != was_on;
    tc_lb_single_begin_update(&p->single);
    take_endpoints(p, update->endpoints, was_on);
    set_timer(p);
    struct tc_lb_update down = *update;
    down.config = tc_outlier_detection_child(update->config);
    return tc_lb_single_end_update(&p->single, &down);
}

static void od_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    const struct policy *p = TC_CONTAINER_OF(base, struct policy, single.base);
    tc_describe_timer(d, "next_sweep_ms", &p->timer);
    tc_describe_open(d, "ejected", '[');
    for (size_t i = 0; i < p->watched.n; i++)
        if (p->watched.all[i]->ejected)
            tc_describe_endpoint(d, NULL, p->watched.all[i]->endpoint);
    tc_describe_close(d, ']');
    tc_describe_child(d, "child", p->single.child);
}

static void od_shutdown(struct tc_lb_policy *base)
{
    struct policy *p = TC_CONTAINER_OF(base, struct policy, single.base);
    if (!base->helper)
        return;
    tc_timer_stop(&p->timer);
    tc_lb_single_end(&p->single);
    /* Those that are left are held by RPCs alone. */
    for (struct tc_link *it; (it = tc_list_pop(&p->wrappers));) {
        struct wrapper *w = TC_CONTAINER_OF(it, struct wrapper, link);
        w->owner = NULL;
        w->outlier = NULL;
    }
    tc_outlier_set_fini(&p->watched);
    tc_endpoints_unref(p->endpoints);
    tc_status_fini(&p->unfit);
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = od_update,
    .exit_idle = tc_lb_single_exit_idle,
    .reset_backoff = tc_lb_single_reset_backoff,
    .shutdown = od_shutdown,
    .describe = od_describe,
};

static struct tc_lb_policy *create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    struct policy *p = TC_NEW(struct policy);
    tc_lb_single_init(&p->single, &policy_ops, &single_ops, cls, helper);
    p->unfit = tc_status_make(TORC_STATUS_UNAVAILABLE, "endpoint ejected by outlier detection");
    tc_list_init(&p->wrappers);
    tc_timer_init(&p->timer, helper->env->loop, on_timer);
    return &p->single.base;
}

const struct tc_lb_class tc_outlier_detection_class = {
    .name = "outlier_detection",
    .alias = "outlier_detection_experimental",
    .create = create,
    .parse_config = tc_outlier_detection_parse,
    .free_config = tc_outlier_detection_free_config,
    .equal_config = tc_outlier_detection_equal_config,
};
