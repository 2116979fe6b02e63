#include "lb/override_host.h"

#include "base/mem.h"
#include "lb/describe.h"
#include "lb/override_host_config.h"
#include "lb/override_set.h"
#include "lb/session.h"
#include "lb/single.h"

struct policy {
    struct tc_lb_single single;
    struct tc_override_host_settings settings; /* as last given */
    struct tc_endpoints *endpoints;            /* as last given; NULL: none yet */
    struct tc_endpoints *for_child;            /* of them, without those that drain */
    struct tc_override_set set;                /* empty while there are no sessions */
    struct tc_link wrappers;                   /* all of them */
    struct tc_link wanted;                     /* entries that picks ask to be connected */
    struct tc_task want_task;
    struct tc_timer timer;
    uint64_t swept_ms; /* the last sweep, or the begin of sessions */
    struct tc_task publish_task;
    struct access *access;
};

/* The pickers' way to the policy, which may be gone. */
struct access {
    struct tc_lref ref;
    struct policy *policy; /* NULL after shutdown */
};

/* A subchannel of the child's, or the policy's own: one that sessions need and the child has not. */
struct wrapper {
    struct tc_subchannel base;       /* on_state: NULL: the policy's own */
    struct policy *owner;            /* NULL after shutdown */
    struct tc_link link;             /* of owner->wrappers */
    struct tc_link entry_link;       /* of entry->subchannels */
    struct tc_override_entry *entry; /* NULL: the address is not in the list, or there are no sessions */
    struct tc_subchannel *inner;
    enum torc_connectivity state;
};

static struct wrapper *wrapper_of(struct tc_link *entry_link)
{
    return TC_CONTAINER_OF(entry_link, struct wrapper, entry_link);
}

static bool is_own(const struct wrapper *w)
{
    return !w->base.on_state;
}

static uint64_t now_ms(const struct policy *p)
{
    return tc_loop_now_ms(p->single.base.helper->env->loop);
}

static bool usable(const struct policy *p, const struct tc_override_entry *e)
{
    return (p->settings.statuses >> e->endpoint->health & 1) != 0;
}

static bool recently_used(const struct policy *p, const struct tc_override_entry *e)
{
    return e->used && now_ms(p) - e->last_used_ms < p->settings.idle_timeout_ms;
}

static void publish_later(struct policy *p)
{
    p->single.unpublished = true;
    tc_loop_defer(p->single.base.helper->env->loop, &p->publish_task);
}

/* What picks that wait for this entry would find has changed. */
static void changed(struct policy *p, struct tc_override_entry *e)
{
    if (e->awaited)
        publish_later(p);
    e->awaited = false;
}

/* --- wrappers --- */

static void wrapper_free(struct wrapper *w)
{
    tc_list_remove(&w->entry_link);
    tc_list_remove(&w->link);
    tc_subchannel_release(w->inner);
    tc_endpoint_unref(w->base.endpoint);
    tc_addr_fini(&w->base.addr);
    tc_free(w);
}

/* The one that a pick takes first: READY before IDLE before CONNECTING. NULL: there is none. */
static struct wrapper *best_of(const struct tc_override_entry *e)
{
    static const unsigned ranks[] = {
        [TORC_READY] = 3, [TORC_IDLE] = 2, [TORC_CONNECTING] = 1, [TORC_TRANSIENT_FAILURE] = 0};
    struct wrapper *best = NULL;
    TC_LIST_FOREACH(it, &e->subchannels)
    {
        struct wrapper *w = wrapper_of(it);
        if (!best || ranks[w->state] > ranks[best->state])
            best = w;
    }
    return best;
}

/* Gives up the policy's own subchannels of the entry but for `keep`. */
static void drop_own(struct tc_override_entry *e, const struct wrapper *keep)
{
    for (struct tc_link *it = e->subchannels.next, *next; it != &e->subchannels; it = next) {
        next = it->next;
        if (is_own(wrapper_of(it)) && wrapper_of(it) != keep)
            wrapper_free(wrapper_of(it));
    }
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

/* The policy's own is of the endpoint as the list has it now: its locality may be another. */
static void renew_endpoint(struct wrapper *w)
{
    struct tc_endpoint *old = w->base.endpoint;
    w->base.endpoint = tc_endpoint_ref(w->entry->endpoint);
    tc_endpoint_unref(old);
}

/* Whether the policy goes on with a subchannel that the child gives up (A75). */
static bool adopts(const struct wrapper *w)
{
    const struct tc_override_entry *e = w->entry;
    return e && w->owner->single.base.helper && usable(w->owner, e) && recently_used(w->owner, e) && best_of(e) == w;
}

static void wrapper_release(struct tc_subchannel *sc)
{
    struct wrapper *w = (struct wrapper *)sc;
    struct tc_override_entry *e = w->entry;
    struct policy *p = w->owner;
    if (adopts(w)) {
        w->base.on_state = NULL;
        renew_endpoint(w);
        drop_own(e, w);
    } else {
        wrapper_free(w);
    }
    if (e)
        changed(p, e);
}

static const struct tc_subchannel_ops wrapper_ops = {
    .connect = wrapper_connect,
    .reset_backoff = wrapper_reset_backoff,
    .inner = wrapper_inner,
    .release = wrapper_release,
};

static void on_inner_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    struct wrapper *w = arg;
    bool lost = w->state == TORC_READY && state != TORC_READY;
    w->state = state;
    if (w->entry) {
        changed(w->owner, w->entry);
        /* An RPC that was picked for it may not have got away, and waits for what comes next. */
        if (lost && w->entry->used)
            publish_later(w->owner);
        /* The child's connection is there: it serves the sessions too. */
        if (state == TORC_READY && !is_own(w))
            drop_own(w->entry, NULL);
    }
    if (!is_own(w))
        w->base.on_state(w->base.arg, state, status);
}

static struct wrapper *wrapper_new(struct policy *p, struct tc_endpoint *endpoint, const struct tc_addr *addr,
                                   tc_subchannel_state_fn on_state, void *arg)
{
    struct tc_lb_helper *up = p->single.base.helper;
    struct wrapper *w = TC_NEW(struct wrapper);
    w->base = (struct tc_subchannel){&wrapper_ops, tc_endpoint_ref(endpoint), tc_addr_ref(addr), on_state, arg};
    w->owner = p;
    w->state = TORC_IDLE;
    tc_list_append(&p->wrappers, &w->link);
    tc_list_init(&w->entry_link);
    w->entry = tc_override_set_find(&p->set, addr);
    if (w->entry)
        tc_list_append(&w->entry->subchannels, &w->entry_link);
    w->inner = up->ops->create_subchannel(up, endpoint, addr, on_inner_state, w);
    return w;
}

/* --- endpoints --- */

/* Finds the wrapper's place in the new set; the policy's own goes when nobody could use it any more. */
static void relink(struct policy *p, struct wrapper *w)
{
    tc_list_remove(&w->entry_link);
    w->entry = tc_override_set_find(&p->set, &w->base.addr);
    if (w->entry)
        tc_list_append(&w->entry->subchannels, &w->entry_link);
    if (!is_own(w))
        return;
    if (!w->entry || !usable(p, w->entry)) {
        wrapper_free(w);
        return;
    }
    renew_endpoint(w);
}

/* Knows these endpoints (NULL: none) from now on. The last ones are still alive. */
static void know(struct policy *p, const struct tc_endpoints *endpoints)
{
    struct tc_override_set before = p->set;
    tc_override_set_init(&p->set, endpoints, &before);
    for (struct tc_link *it = p->wrappers.next, *next; it != &p->wrappers; it = next) {
        next = it->next;
        relink(p, TC_CONTAINER_OF(it, struct wrapper, link));
    }
    tc_override_set_fini(&before);
}

/* A55: what drains is never the child's. */
static struct tc_endpoints *without_draining(struct tc_endpoints *all)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++)
        n += all->at[i]->health != TC_HEALTH_DRAINING;
    if (n == all->n)
        return tc_endpoints_ref(all);
    struct tc_endpoints_child *children = tc_calloc(all->n_children, sizeof(*children));
    for (size_t i = 0; i < all->n_children; i++)
        children[i] =
            (struct tc_endpoints_child){tc_rstr_ref(all->children[i].name), tc_endpoints_ref(all->children[i].list)};
    struct tc_endpoints *out = tc_endpoints_take_children(children, all->n_children);
    out->at = n ? tc_calloc(n, sizeof(*out->at)) : NULL;
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i]->health != TC_HEALTH_DRAINING)
            out->at[out->n++] = tc_endpoint_ref(all->at[i]);
    return out;
}

static void take_endpoints(struct policy *p, struct tc_endpoints *endpoints,
                           const struct tc_override_host_settings *was)
{
    struct tc_endpoints *before = p->endpoints;
    bool same = !endpoints || endpoints == before;
    if (!same) {
        p->endpoints = tc_endpoints_ref(endpoints);
        tc_endpoints_unref(p->for_child);
        p->for_child = without_draining(endpoints);
    }
    bool on = p->settings.sessions;
    if (on != was->sessions || (on && (!same || p->settings.statuses != was->statuses)))
        know(p, on ? p->endpoints : NULL);
    if (!same)
        tc_endpoints_unref(before);
}

/* --- sweep --- */

/* A75: first after idle_timeout, then when the one that is unused for longest is due. */
static void set_timer(struct policy *p)
{
    uint64_t now = now_ms(p), timeout = p->settings.idle_timeout_ms, wait = timeout;
    if (!p->settings.sessions) {
        tc_timer_stop(&p->timer);
        return;
    }
    TC_LIST_FOREACH(it, &p->wrappers)
    {
        const struct wrapper *w = TC_CONTAINER_OF(it, struct wrapper, link);
        if (is_own(w) && w->entry) {
            uint64_t unused = now - w->entry->last_used_ms;
            wait = TC_MIN(wait, timeout > unused ? timeout - unused : 0);
        }
    }
    uint64_t since = now - p->swept_ms;
    tc_timer_start(&p->timer, TC_MAX(wait, since < TC_OVERRIDE_SWEEP_MIN_MS ? TC_OVERRIDE_SWEEP_MIN_MS - since : 0));
}

static void on_timer(struct tc_timer *timer)
{
    struct policy *p = TC_CONTAINER_OF(timer, struct policy, timer);
    p->swept_ms = now_ms(p);
    for (struct tc_link *it = p->wrappers.next, *next; it != &p->wrappers; it = next) {
        struct wrapper *w = TC_CONTAINER_OF(it, struct wrapper, link);
        next = it->next;
        if (!is_own(w) || recently_used(p, w->entry))
            continue;
        changed(p, w->entry);
        wrapper_free(w);
    }
    set_timer(p);
}

/* --- picker --- */

struct oh_picker {
    struct tc_picker base;
    struct access *access;
    struct tc_picker *child;
};

static void access_unref(struct access *a)
{
    if (tc_lref_dec(&a->ref))
        tc_free(a);
}

/* "1.1.1.1:1,2.2.2.2:2", the address in use first (A61). */
static struct tc_slice addresses(const struct tc_endpoint *endpoint, const struct tc_addr *first,
                                 struct tc_arena *arena)
{
    struct tc_buf text = {0};
    tc_addr_format(first, &text);
    for (size_t i = 0; i < endpoint->n_addrs; i++)
        if (!tc_addr_eq(&endpoint->addrs[i], first)) {
            tc_buf_append_char(&text, ',');
            tc_addr_format(&endpoint->addrs[i], &text);
        }
    char *copy = tc_arena_dup(arena, tc_buf_slice(&text));
    struct tc_slice out = tc_slice_of(copy, copy ? text.len : 0);
    tc_buf_fini(&text);
    return out;
}

/* The session's RPC goes to this entry. */
static void use(struct policy *p, struct tc_override_entry *e, const struct tc_pick_args *args)
{
    if (!args->dry) {
        e->used = true;
        e->last_used_ms = now_ms(p);
    }
    args->session->picked = addresses(e->endpoint, e->addr, args->arena);
}

static enum tc_pick_kind take_ready(struct policy *p, struct wrapper *w, const struct tc_pick_args *args,
                                    struct tc_pick *out)
{
    out->subchannel = &w->base;
    use(p, w->entry, args);
    if (TC_UNLIKELY(args->trace != NULL)) {
        struct tc_buf text = {0};
        tc_addr_format(&w->base.addr, &text);
        char *copy = tc_arena_dup(args->trace->arena, tc_buf_slice(&text));
        args->trace->endpoint = tc_slice_of(copy, copy ? text.len : 0);
        args->trace->policy = tc_slice_str("xds_override_host");
        tc_buf_fini(&text);
    }
    return TC_PICK_COMPLETE;
}

static const char *why_not(const struct policy *p, const struct tc_override_entry *e)
{
    if (!e)
        return "the cluster has no such endpoint";
    if (!usable(p, e))
        return e->endpoint->health == TC_HEALTH_DRAINING  ? "the endpoint is DRAINING"
               : e->endpoint->health == TC_HEALTH_HEALTHY ? "the endpoint is HEALTHY"
                                                          : "the endpoint's health is UNKNOWN";
    return "the endpoint cannot be connected to";
}

/* A75: READY before IDLE before CONNECTING before one without a subchannel, each the first of the cookie's. False: the
 * child is to pick. */
static bool pick_override(struct policy *p, const struct tc_pick_args *args, struct tc_pick *out,
                          enum tc_pick_kind *kind)
{
    struct tc_session *s = args->session;
    struct tc_override_entry *idle = NULL, *connecting = NULL, *bare = NULL;
    if (s->n == 0)
        return false;
    s->passed_over = NULL;
    for (size_t i = 0; i < s->n; i++) {
        struct tc_override_entry *e = tc_override_set_find(&p->set, &s->addrs[i]);
        const struct wrapper *w = e && usable(p, e) ? best_of(e) : NULL;
        if (w && w->state == TORC_READY) {
            *kind = take_ready(p, best_of(e), args, out);
            s->passed_over = NULL;
            return true;
        }
        if (w && w->state == TORC_IDLE)
            idle = idle ? idle : e;
        else if (w && w->state == TORC_CONNECTING)
            connecting = connecting ? connecting : e;
        else if (!w && e && usable(p, e))
            bare = bare ? bare : e;
        else if (!s->passed_over)
            s->passed_over = why_not(p, e);
    }
    struct tc_override_entry *wait = idle ? idle : connecting ? connecting : bare;
    if (!wait)
        return false;
    wait->awaited |= !args->dry;
    if (!args->dry && wait != connecting && !tc_list_linked(&wait->wanted)) {
        tc_list_append(&p->wanted, &wait->wanted);
        tc_loop_defer(p->single.base.helper->env->loop, &p->want_task);
    }
    *kind = TC_PICK_QUEUE;
    return true;
}

/* Other policies' wrappers may stand before ours. */
static struct wrapper *find_wrapper(struct tc_subchannel *sc, const struct policy *owner)
{
    for (; sc; sc = sc->ops->inner(sc))
        if (sc->ops == &wrapper_ops && ((struct wrapper *)sc)->owner == owner)
            return (struct wrapper *)sc;
    return NULL;
}

/* The child has nothing to give, and what the cookie names has failed: its return is worth another pick too. */
static void await_all(struct policy *p, const struct tc_session *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct tc_override_entry *e = tc_override_set_find(&p->set, &s->addrs[i]);
        if (e)
            e->awaited = true;
    }
}

static enum tc_pick_kind oh_pick(struct tc_picker *base, const struct tc_pick_args *args, struct tc_pick *out)
{
    struct oh_picker *picker = TC_CONTAINER_OF(base, struct oh_picker, base);
    struct policy *p = picker->access->policy;
    enum tc_pick_kind kind;
    if (!p || !args->session)
        return tc_picker_pick(picker->child, args, out);
    args->session->picked = tc_slice_of(NULL, 0);
    if (pick_override(p, args, out, &kind))
        return kind;
    kind = tc_picker_pick(picker->child, args, out);
    struct wrapper *w = kind == TC_PICK_COMPLETE ? find_wrapper(out->subchannel, p) : NULL;
    if (w && w->entry)
        use(p, w->entry, args);
    if (kind != TC_PICK_COMPLETE && !args->dry)
        await_all(p, args->session);
    return kind;
}

static void oh_picker_free(struct tc_picker *base)
{
    struct oh_picker *p = TC_CONTAINER_OF(base, struct oh_picker, base);
    tc_picker_unref(p->child);
    access_unref(p->access);
    tc_free(p);
}

static const struct tc_picker_ops oh_picker_ops = {.pick = oh_pick, .free = oh_picker_free};

static struct tc_picker *session_picker(const struct policy *p)
{
    struct oh_picker *picker = TC_NEW(struct oh_picker);
    picker->base.ops = &oh_picker_ops;
    tc_lref_init(&picker->base.ref);
    picker->access = p->access;
    tc_lref_inc(&p->access->ref);
    picker->child = tc_picker_ref(p->single.picker);
    return &picker->base;
}

static void on_publish(struct tc_task *task)
{
    tc_lb_single_publish(&TC_CONTAINER_OF(task, struct policy, publish_task)->single);
}

/* What picks asked for. */
static void on_want(struct tc_task *task)
{
    struct policy *p = TC_CONTAINER_OF(task, struct policy, want_task);
    for (struct tc_link *it; (it = tc_list_pop(&p->wanted));) {
        struct tc_override_entry *e = TC_CONTAINER_OF(it, struct tc_override_entry, wanted);
        struct wrapper *w = best_of(e);
        if (!usable(p, e)) {
            changed(p, e);
            continue;
        }
        if (!w) {
            w = wrapper_new(p, e->endpoint, e->addr, NULL, NULL);
            e->used = true;
            e->last_used_ms = now_ms(p);
        }
        if (w->state == TORC_IDLE)
            tc_subchannel_connect(w->inner);
    }
    set_timer(p);
}

/* --- the child's helper --- */

static struct tc_subchannel *create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                               const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg)
{
    struct policy *p = TC_CONTAINER_OF(h, struct policy, single.helper);
    return &wrapper_new(p, endpoint, addr, on_state, arg)->base;
}

static struct tc_picker *make_picker(struct tc_lb_single *single, enum torc_connectivity *state)
{
    const struct policy *p = TC_CONTAINER_OF(single, struct policy, single);
    (void)state;
    return p->settings.sessions ? session_picker(p) : tc_picker_ref(single->picker);
}

static const struct tc_lb_single_ops single_ops = {create_subchannel, make_picker};

/* --- policy --- */

static struct tc_status oh_update(struct tc_lb_policy *base, const struct tc_lb_update *update)
{
    struct policy *p = TC_CONTAINER_OF(base, struct policy, single.base);
    if (!base->helper)
        return (struct tc_status){0};
    struct tc_override_host_settings was = p->settings;
    p->settings = *tc_override_host_settings(update->config);
    if (p->settings.sessions && !was.sessions)
        p->swept_ms = now_ms(p);
    tc_lb_single_begin_update(&p->single);
    /* Sessions that wait may have another endpoint now, or none. */
    p->single.unpublished |= p->settings.sessions || was.sessions;
    take_endpoints(p, update->endpoints, &was);
    set_timer(p);
    struct tc_lb_update down = *update;
    down.endpoints = update->endpoints ? p->for_child : NULL;
    down.config = tc_override_host_child(update->config);
    return tc_lb_single_end_update(&p->single, &down);
}

static void oh_reset_backoff(struct tc_lb_policy *base)
{
    struct policy *p = TC_CONTAINER_OF(base, struct policy, single.base);
    tc_lb_single_reset_backoff(base);
    TC_LIST_FOREACH(it, &p->wrappers)
    {
        struct wrapper *w = TC_CONTAINER_OF(it, struct wrapper, link);
        if (is_own(w))
            tc_subchannel_reset_backoff(w->inner);
    }
}

static void oh_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    const struct policy *p = TC_CONTAINER_OF(base, struct policy, single.base);
    uint64_t now = now_ms(p);
    tc_describe_flag(d, "sessions", p->settings.sessions);
    tc_describe_timer(d, "next_sweep_ms", &p->timer);
    tc_describe_open(d, "own", '[');
    TC_LIST_FOREACH(it, &p->wrappers)
    {
        const struct wrapper *w = TC_CONTAINER_OF(it, struct wrapper, link);
        if (!is_own(w))
            continue;
        tc_describe_open(d, NULL, '{');
        tc_describe_endpoint(d, "endpoint", w->base.endpoint);
        tc_describe_state(d, "state", w->state);
        tc_describe_number(d, "unused_ms", now - w->entry->last_used_ms);
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
    tc_describe_child(d, "child", p->single.child);
}

static void oh_shutdown(struct tc_lb_policy *base)
{
    struct policy *p = TC_CONTAINER_OF(base, struct policy, single.base);
    if (!base->helper)
        return;
    tc_timer_stop(&p->timer);
    tc_task_cancel(&p->want_task);
    p->access->policy = NULL;
    access_unref(p->access);
    base->helper = NULL;
    know(p, NULL);
    tc_task_cancel(&p->publish_task);
    tc_lb_single_end(&p->single);
    /* A child of the application's may give up the rest later. */
    for (struct tc_link *it; (it = tc_list_pop(&p->wrappers));)
        TC_CONTAINER_OF(it, struct wrapper, link)->owner = NULL;
    tc_endpoints_unref(p->endpoints);
    tc_endpoints_unref(p->for_child);
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = oh_update,
    .exit_idle = tc_lb_single_exit_idle,
    .reset_backoff = oh_reset_backoff,
    .describe = oh_describe,
    .shutdown = oh_shutdown,
};

static struct tc_lb_policy *create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    struct policy *p = TC_NEW(struct policy);
    tc_lb_single_init(&p->single, &policy_ops, &single_ops, cls, helper);
    p->access = TC_NEW(struct access);
    tc_lref_init(&p->access->ref);
    p->access->policy = p;
    tc_list_init(&p->wrappers);
    tc_list_init(&p->wanted);
    tc_timer_init(&p->timer, helper->env->loop, on_timer);
    tc_task_init(&p->want_task, on_want);
    tc_task_init(&p->publish_task, on_publish);
    return &p->single.base;
}

const struct tc_lb_class tc_override_host_class = {
    .name = "xds_override_host_experimental",
    .alias = "xds_override_host",
    .create = create,
    .parse_config = tc_override_host_parse,
    .free_config = tc_override_host_free_config,
    .equal_config = tc_override_host_equal_config,
};
