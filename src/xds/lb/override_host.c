/* The policy of xds_override_host; override_host.h says what it is for.
 *
 * - The set (override_host_map.c) has an entry for each address of the cluster, draining endpoints and all priorities
 *   included. An entry lists the subchannels to its address.
 * - Every subchannel that the child creates is wrapped, and linked to the entry of its address. A subchannel whose
 *   base.on_state is NULL is the policy's own: created for an entry without a subchannel (policy_on_want), or adopted
 *   when the child released a subchannel that sessions use (subchannel_release).
 * - A pick of an RPC with a cookie looks up the cookie's addresses and takes the best entry: READY before IDLE before
 *   CONNECTING before one without a subchannel. A READY entry completes the pick. Any other entry queues the pick, and
 *   `want_task` connects the entry unless it is CONNECTING. If there is no entry to take, the child picks.
 * - An entry that a queued pick waits for is `awaited`: its next change publishes a new picker, with which the RPC
 *   picks again.
 * - The timer ends the policy's own subchannels that no session has used for idle_timeout.
 *
 * Without sessions (settings.sessions is false) the set is empty, subchannels have no entry, and the child's pickers
 * are published as they are.
 *
 * Ownership: entries belong to the set, which borrows the endpoints of the last list. The child releases its
 * subchannels. The policy ends one of its own when no session has used it for idle_timeout, when its address has left
 * the list, when sessions may no longer use its endpoint, when the endpoint's hostname or proxy has changed, or when a
 * better subchannel to the same address replaces it. Pickers reach the policy through `access`, since they may outlive
 * the policy. */
#include "xds/lb/override_host.h"

#include "base/log.h"
#include "base/mem.h"
#include "lb/describe.h"
#include "lb/session_affinity.h"
#include "lb/wrapped_subchannel.h"
#include "lb/wrapper.h"
#include "xds/lb/override_host_map.h"

struct oh_policy {
    struct tc_lb_wrapper wrapper;
    struct tc_override_host_settings settings; /* of the last update */
    struct tc_endpoints *endpoints;            /* the last list; NULL: none yet */
    struct tc_endpoints *for_child;            /* `endpoints` without draining ones; NULL: none yet */
    struct tc_override_set set;                /* empty while there are no sessions */
    struct tc_wrapped_subchannels subchannels; /* struct oh_subchannel */
    struct tc_link wanted;                     /* entries that picks want connected */
    struct tc_task want_task;
    struct tc_timer timer;
    uint64_t swept_ms; /* when the last sweep was, or when sessions began */
    struct tc_task publish_task;
    struct oh_access *access;
    bool unknown_logged; /* the log has told of an address that `set` lacks; reset with each new set */
};

/* The pickers' way to the policy, which they may outlive. */
struct oh_access {
    struct tc_lref ref;
    struct oh_policy *policy; /* NULL after shutdown */
};

/* A subchannel of the child, or one of the policy's own. */
struct oh_subchannel {
    struct tc_wrapped_subchannel wrapped;
    struct tc_link entry_link;       /* in entry->subchannels */
    struct tc_override_entry *entry; /* NULL: the list lacks the address or has it with another proxy, or no sessions */
    enum torc_connectivity state;
    bool health_watched; /* the child watches, or watched, the health of the inner subchannel */
};

static struct oh_subchannel *subchannel_of(struct tc_wrapped_subchannel *wrapped)
{
    return TC_CONTAINER_OF(wrapped, struct oh_subchannel, wrapped);
}

static struct oh_subchannel *subchannel_of_link(struct tc_link *link)
{
    return TC_CONTAINER_OF(link, struct oh_subchannel, wrapped.link);
}

static struct oh_subchannel *subchannel_of_entry_link(struct tc_link *entry_link)
{
    return TC_CONTAINER_OF(entry_link, struct oh_subchannel, entry_link);
}

/* Must not be called after the policy's shutdown, which clears wrapped.set. */
static struct oh_policy *subchannel_policy(const struct oh_subchannel *w)
{
    return TC_CONTAINER_OF(w->wrapped.set, struct oh_policy, subchannels);
}

static bool subchannel_is_own(const struct oh_subchannel *w)
{
    return !w->wrapped.base.on_state;
}

static uint64_t policy_now_ms(const struct oh_policy *p)
{
    return tc_loop_now_ms(p->wrapper.base.helper->env->loop);
}

/* Returns whether sessions may use the endpoint, by its health (A55). */
static bool entry_is_usable(const struct oh_policy *p, const struct tc_override_entry *e)
{
    return (p->settings.statuses >> e->endpoint->health & 1) != 0;
}

static bool entry_is_recently_used(const struct oh_policy *p, const struct tc_override_entry *e)
{
    return e->used && policy_now_ms(p) - e->last_used_ms < p->settings.idle_timeout_ms;
}

static void policy_publish_later(struct oh_policy *p)
{
    p->wrapper.unpublished = true;
    tc_loop_defer(p->wrapper.base.helper->env->loop, &p->publish_task);
}

/* Called when something about the entry has changed: if picks wait for the entry, a task publishes a new picker. */
static void entry_changed(struct oh_policy *p, struct tc_override_entry *e)
{
    if (e->awaited)
        policy_publish_later(p);
    e->awaited = false;
}

/* --- subchannels --- */

static void subchannel_end(struct oh_subchannel *w)
{
    tc_list_remove(&w->entry_link);
    tc_wrapped_subchannel_end(&w->wrapped);
}

/* Returns the entry's best subchannel: READY before IDLE before CONNECTING before TRANSIENT_FAILURE, the last one of
 * equals. NULL: the entry has none. */
static struct oh_subchannel *entry_best(const struct tc_override_entry *e)
{
    static const unsigned ranks[] = {[TORC_CONNECTIVITY_READY] = 3,
                                     [TORC_CONNECTIVITY_IDLE] = 2,
                                     [TORC_CONNECTIVITY_CONNECTING] = 1,
                                     [TORC_CONNECTIVITY_TRANSIENT_FAILURE] = 0};
    struct oh_subchannel *best = NULL;
    TC_LIST_FOREACH(it, &e->subchannels)
    {
        struct oh_subchannel *w = subchannel_of_entry_link(it);
        if (!best || ranks[w->state] >= ranks[best->state])
            best = w;
    }
    return best;
}

/* Ends the policy's own subchannels of the entry, except `keep`. */
static void entry_drop_own(struct tc_override_entry *e, const struct oh_subchannel *keep)
{
    for (struct tc_link *it = e->subchannels.next, *next; it != &e->subchannels; it = next) {
        next = it->next;
        if (subchannel_is_own(subchannel_of_entry_link(it)) && subchannel_of_entry_link(it) != keep)
            subchannel_end(subchannel_of_entry_link(it));
    }
}

/* Gives a subchannel of the policy's own the entry's endpoint: its attributes (locality, ...) may have changed. */
static void subchannel_renew_endpoint(struct oh_subchannel *w)
{
    struct tc_endpoint *old = w->wrapped.base.endpoint;
    w->wrapped.base.endpoint = tc_endpoint_ref(w->entry->endpoint);
    tc_endpoint_unref(old);
}

/* A75: returns whether the policy keeps this subchannel, which the child releases. */
static bool subchannel_is_adopted(const struct oh_subchannel *w)
{
    const struct tc_override_entry *e = w->entry;
    return e && entry_is_usable(subchannel_policy(w), e) && entry_is_recently_used(subchannel_policy(w), e) &&
           entry_best(e) == w;
}

static const struct tc_status *subchannel_watch_health(struct tc_subchannel *sc, tc_subchannel_health_fn on_health,
                                                       void *arg)
{
    struct oh_subchannel *w = subchannel_of(tc_wrapped_subchannel_of(sc));
    w->health_watched = true;
    return tc_subchannel_watch_health(w->wrapped.inner, on_health, arg);
}

static void subchannel_ignore_health(void *arg, const struct tc_status *health)
{
    (void)arg;
    (void)health;
}

static void subchannel_release(struct tc_subchannel *sc)
{
    struct oh_subchannel *w = subchannel_of(tc_wrapped_subchannel_of(sc));
    struct tc_override_entry *e = w->entry;
    struct oh_policy *p = e ? subchannel_policy(w) : NULL;
    if (subchannel_is_adopted(w)) {
        w->wrapped.base.on_state = NULL;
        /* The inner subchannel lives on, and must forget the child's health watcher, which goes now. */
        if (w->health_watched)
            tc_subchannel_watch_health(w->wrapped.inner, subchannel_ignore_health, NULL);
        subchannel_renew_endpoint(w);
        entry_drop_own(e, w);
    } else {
        subchannel_end(w);
    }
    if (e)
        entry_changed(p, e);
}

static const struct tc_subchannel_ops subchannel_ops = {
    .connect = tc_wrapped_subchannel_connect,
    .reset_backoff = tc_wrapped_subchannel_reset_backoff,
    .inner = tc_wrapped_subchannel_inner,
    .release = subchannel_release,
    .watch_health = subchannel_watch_health,
};

static void subchannel_on_inner_state(void *arg, enum torc_connectivity state, const struct tc_status *status)
{
    struct oh_subchannel *w = subchannel_of(arg);
    bool lost = w->state == TORC_CONNECTIVITY_READY && state != TORC_CONNECTIVITY_READY;
    w->state = state;
    if (w->entry) {
        struct oh_policy *p = subchannel_policy(w);
        entry_changed(p, w->entry);
        /* An RPC that was picked for this connection and is not sent yet waits for the next picker. */
        if (lost && w->entry->used)
            policy_publish_later(p);
        /* The child's connection serves the sessions, too. */
        if (state == TORC_CONNECTIVITY_READY && !subchannel_is_own(w))
            entry_drop_own(w->entry, NULL);
    }
    if (!subchannel_is_own(w))
        w->wrapped.base.on_state(w->wrapped.base.arg, state, status);
}

/* Links the subchannel, which is in no entry's list, to the entry of its address and proxy. w->entry becomes NULL if
 * there is none. */
static void subchannel_find_entry(struct oh_subchannel *w, const struct tc_override_set *set,
                                  const struct tc_addr *addr)
{
    w->entry = tc_override_set_find(set, addr);
    if (w->entry && !tc_addr_eq(w->entry->addr, addr))
        w->entry = NULL; /* the endpoint has another proxy now (A86) */
    if (w->entry)
        tc_list_append(&w->entry->subchannels, &w->entry_link);
}

/* Returns a wrapper that subchannel_end ends, linked to its entry. `on_state` NULL: it is one of the policy's own. */
static struct oh_subchannel *subchannel_new(struct oh_policy *p, struct tc_endpoint *endpoint,
                                            const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg)
{
    struct oh_subchannel *w = TC_NEW(struct oh_subchannel);
    w->state = TORC_CONNECTIVITY_IDLE;
    tc_list_init(&w->entry_link);
    subchannel_find_entry(w, &p->set, addr);
    tc_wrapped_subchannel_init(&w->wrapped, &p->subchannels, p->wrapper.base.helper, endpoint, addr, on_state, arg);
    return w;
}

/* --- endpoints --- */

/* Finds the subchannel's entry in the new set. Ends a subchannel of the policy's own that sessions may no longer use,
 * or whose endpoint has another hostname now: the hostname may be the SNI of the connection (A101). */
static void subchannel_relink(struct oh_policy *p, struct oh_subchannel *w)
{
    const struct tc_endpoint *now;
    tc_list_remove(&w->entry_link);
    subchannel_find_entry(w, &p->set, &w->wrapped.base.addr);
    if (!subchannel_is_own(w))
        return;
    now = w->entry ? w->entry->endpoint : NULL;
    if (!now || !entry_is_usable(p, w->entry) || !tc_rstr_eq(now->hostname, w->wrapped.base.endpoint->hostname)) {
        subchannel_end(w);
        return;
    }
    subchannel_renew_endpoint(w);
}

/* Replaces the set by one of these endpoints (NULL: none). The old set's list must still be alive. */
static void policy_replace_set(struct oh_policy *p, const struct tc_endpoints *endpoints)
{
    struct tc_override_set before = p->set;
    tc_override_set_init(&p->set, endpoints, &before);
    for (struct tc_link *it = p->subchannels.all.next, *next; it != &p->subchannels.all; it = next) {
        next = it->next;
        subchannel_relink(p, subchannel_of_link(it));
    }
    p->unknown_logged = false;
    tc_override_set_fini(&before);
}

/* A55: returns the list for the child, a reference. Only the root's own endpoints can be draining (eds_tree.h). */
static struct tc_endpoints *endpoints_without_draining(struct tc_endpoints *all)
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

/* Takes the list of an update; NULL keeps the last list. Replaces the set if the list or the settings, which were `was`
 * before the update, ask for another. */
static void policy_take_endpoints(struct oh_policy *p, struct tc_endpoints *endpoints,
                                  const struct tc_override_host_settings *was)
{
    struct tc_endpoints *before = p->endpoints;
    bool same = !endpoints || endpoints == before;
    if (!same) {
        p->endpoints = tc_endpoints_ref(endpoints);
        tc_endpoints_unref(p->for_child);
        p->for_child = endpoints_without_draining(endpoints);
    }
    bool on = p->settings.sessions;
    if (on != was->sessions || (on && (!same || p->settings.statuses != was->statuses)))
        policy_replace_set(p, on ? p->endpoints : NULL);
    if (!same)
        tc_endpoints_unref(before);
}

/* --- sweep --- */

/* A75: the next sweep is when idle_timeout of the policy's longest unused own subchannel is over, or after idle_timeout
 * if there is none; but at least TC_OVERRIDE_SWEEP_MIN_MS after swept_ms. A subchannel that is adopted later does not
 * bring the sweep forward. */
static void policy_set_timer(struct oh_policy *p)
{
    uint64_t now = policy_now_ms(p), timeout = p->settings.idle_timeout_ms, wait = timeout;
    if (!p->settings.sessions) {
        tc_timer_stop(&p->timer);
        return;
    }
    TC_LIST_FOREACH(it, &p->subchannels.all)
    {
        const struct oh_subchannel *w = subchannel_of_link(it);
        if (subchannel_is_own(w) && w->entry) {
            uint64_t unused = now - w->entry->last_used_ms;
            wait = TC_MIN(wait, timeout > unused ? timeout - unused : 0);
        }
    }
    uint64_t since = now - p->swept_ms;
    tc_timer_start(&p->timer, TC_MAX(wait, since < TC_OVERRIDE_SWEEP_MIN_MS ? TC_OVERRIDE_SWEEP_MIN_MS - since : 0));
}

static void policy_on_timer(struct tc_timer *timer)
{
    struct oh_policy *p = TC_CONTAINER_OF(timer, struct oh_policy, timer);
    p->swept_ms = policy_now_ms(p);
    for (struct tc_link *it = p->subchannels.all.next, *next; it != &p->subchannels.all; it = next) {
        struct oh_subchannel *w = subchannel_of_link(it);
        next = it->next;
        if (!subchannel_is_own(w) || entry_is_recently_used(p, w->entry))
            continue;
        entry_changed(p, w->entry);
        subchannel_end(w);
    }
    policy_set_timer(p);
}

/* --- picker --- */

struct oh_picker {
    struct tc_picker base;
    struct oh_access *access;
    struct tc_picker *child;
};

static void oh_access_unref(struct oh_access *a)
{
    if (tc_lref_dec(&a->ref))
        tc_free(a);
}

/* Notes that an RPC of the session goes to this entry (not in a dry run), and stores the answer for the filter. */
static void entry_use(struct oh_policy *p, struct tc_override_entry *e, const struct tc_pick_args *args)
{
    if (!args->dry) {
        e->used = true;
        e->last_used_ms = policy_now_ms(p);
        e->fallback_logged = false;
    }
    args->session->picked = tc_override_endpoint_text(e->endpoint, e->addr, args->arena);
}

static enum tc_pick_kind pick_ready(struct oh_policy *p, struct oh_subchannel *w, const struct tc_pick_args *args,
                                    struct tc_pick *out)
{
    out->subchannel = &w->wrapped.base;
    entry_use(p, w->entry, args);
    if (TC_UNLIKELY(args->trace != NULL)) {
        args->trace->endpoint = tc_pick_trace_addr(args->trace->arena, &w->wrapped.base.addr);
        args->trace->policy = tc_slice_str("xds_override_host");
    }
    return TC_PICK_COMPLETE;
}

/* Returns why a pick passes over the entry (NULL: the set lacks the address). Static text. */
static const char *entry_why_not(const struct oh_policy *p, const struct tc_override_entry *e)
{
    if (!e)
        return "the cluster has no such endpoint";
    if (!entry_is_usable(p, e))
        return e->endpoint->health == TC_HEALTH_DRAINING  ? "the endpoint is DRAINING"
               : e->endpoint->health == TC_HEALTH_HEALTHY ? "the endpoint is HEALTHY"
                                                          : "the endpoint's health is UNKNOWN";
    return "the endpoint cannot be connected to";
}

/* Logs that a session's RPCs go to other endpoints. Logs an entry once, until a session uses the entry again. Logs one
 * address that the set lacks, until the set is replaced. */
static void policy_log_fallback(struct oh_policy *p, const struct tc_session *s)
{
    if (!tc_log_enabled(TC_LOG_LB, TORC_LOG_DEBUG))
        return;
    struct tc_override_entry *e = tc_override_set_find(&p->set, &s->addrs[0]);
    bool *logged = e ? &e->fallback_logged : &p->unknown_logged;
    if (*logged)
        return;
    *logged = true;
    struct tc_slice target = p->wrapper.base.helper->env->target;
    char *address = tc_addr_text(&s->addrs[0]);
    tc_log_write(TC_LOG_LB, TORC_LOG_DEBUG, "%.*s: xds_override_host: sessions of %s go to other endpoints: %s",
                 (int)target.len, target.data, address, s->passed_over);
    tc_free(address);
}

/* Picks by the session's addresses (A75): READY before IDLE before CONNECTING before an entry without a subchannel;
 * among equals the cookie's order. Stores the answer in *kind, or returns false if the child must pick. */
static bool pick_override(struct oh_policy *p, const struct tc_pick_args *args, struct tc_pick *out,
                          enum tc_pick_kind *kind)
{
    struct tc_session *s = args->session;
    struct tc_override_entry *idle = NULL, *connecting = NULL, *bare = NULL;
    if (s->n == 0)
        return false;
    s->passed_over = NULL;
    for (size_t i = 0; i < s->n; i++) {
        struct tc_override_entry *e = tc_override_set_find(&p->set, &s->addrs[i]);
        const struct oh_subchannel *w = e && entry_is_usable(p, e) ? entry_best(e) : NULL;
        if (w && w->state == TORC_CONNECTIVITY_READY) {
            *kind = pick_ready(p, entry_best(e), args, out);
            s->passed_over = NULL;
            return true;
        }
        if (w && w->state == TORC_CONNECTIVITY_IDLE)
            idle = idle ? idle : e;
        else if (w && w->state == TORC_CONNECTIVITY_CONNECTING)
            connecting = connecting ? connecting : e;
        else if (!w && e && entry_is_usable(p, e))
            bare = bare ? bare : e;
        else if (!s->passed_over)
            s->passed_over = entry_why_not(p, e);
    }
    struct tc_override_entry *wait = idle ? idle : connecting ? connecting : bare;
    if (!wait) {
        if (!args->dry)
            policy_log_fallback(p, s);
        return false;
    }
    wait->awaited |= !args->dry;
    if (!args->dry && wait != connecting && !tc_list_linked(&wait->wanted)) {
        tc_list_append(&p->wanted, &wait->wanted);
        tc_loop_defer(p->wrapper.base.helper->env->loop, &p->want_task);
    }
    *kind = TC_PICK_QUEUE;
    return true;
}

/* Makes the entries of the session `awaited`. Called if none of them can be used and the child did not complete the
 * pick either: a queued RPC then also picks again when one of these entries changes. */
static void policy_await_session(struct oh_policy *p, const struct tc_session *s)
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
    struct oh_policy *p = picker->access->policy;
    enum tc_pick_kind kind;
    if (!p || !args->session)
        return tc_picker_pick(picker->child, args, out);
    args->session->picked = tc_slice_of(NULL, 0);
    if (pick_override(p, args, out, &kind))
        return kind;
    kind = tc_picker_pick(picker->child, args, out);
    struct tc_wrapped_subchannel *wrapped =
        kind == TC_PICK_COMPLETE ? tc_wrapped_subchannels_find(&p->subchannels, &subchannel_ops, out->subchannel)
                                 : NULL;
    if (wrapped && subchannel_of(wrapped)->entry)
        entry_use(p, subchannel_of(wrapped)->entry, args);
    if (kind != TC_PICK_COMPLETE && !args->dry)
        policy_await_session(p, args->session);
    return kind;
}

static void oh_picker_free(struct tc_picker *base)
{
    struct oh_picker *p = TC_CONTAINER_OF(base, struct oh_picker, base);
    tc_picker_unref(p->child);
    oh_access_unref(p->access);
    tc_free(p);
}

static const struct tc_picker_ops oh_picker_ops = {.pick = oh_pick, .free = oh_picker_free};

static struct tc_picker *oh_picker_new(const struct oh_policy *p)
{
    struct oh_picker *picker = TC_NEW(struct oh_picker);
    tc_picker_init(&picker->base, &oh_picker_ops);
    picker->access = p->access;
    tc_lref_inc(&p->access->ref);
    picker->child = tc_picker_ref(p->wrapper.picker);
    return &picker->base;
}

static void policy_on_publish(struct tc_task *task)
{
    tc_lb_wrapper_publish(&TC_CONTAINER_OF(task, struct oh_policy, publish_task)->wrapper);
}

/* Connects the `wanted` entries; an entry without a subchannel gets one of the policy's own. */
static void policy_on_want(struct tc_task *task)
{
    struct oh_policy *p = TC_CONTAINER_OF(task, struct oh_policy, want_task);
    for (struct tc_link *it; (it = tc_list_pop(&p->wanted));) {
        struct tc_override_entry *e = TC_CONTAINER_OF(it, struct tc_override_entry, wanted);
        struct oh_subchannel *w = entry_best(e);
        if (!entry_is_usable(p, e)) {
            entry_changed(p, e);
            continue;
        }
        if (!w) {
            w = subchannel_new(p, e->endpoint, e->addr, NULL, NULL);
            e->used = true;
            e->last_used_ms = policy_now_ms(p);
        }
        if (w->state == TORC_CONNECTIVITY_IDLE)
            tc_subchannel_connect(w->wrapped.inner);
    }
    policy_set_timer(p);
}

/* --- the child's helper --- */

static struct tc_subchannel *oh_create_subchannel(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                                  const struct tc_addr *addr, tc_subchannel_state_fn on_state,
                                                  void *arg)
{
    struct oh_policy *p = TC_CONTAINER_OF(h, struct oh_policy, wrapper.helper);
    return &subchannel_new(p, endpoint, addr, on_state, arg)->wrapped.base;
}

static struct tc_picker *oh_make_picker(struct tc_lb_wrapper *wrapper, enum torc_connectivity *state)
{
    const struct oh_policy *p = TC_CONTAINER_OF(wrapper, struct oh_policy, wrapper);
    (void)state;
    return p->settings.sessions ? oh_picker_new(p) : tc_picker_ref(wrapper->picker);
}

static const struct tc_lb_wrapper_ops lb_wrapper_ops = {
    .helper = {.create_subchannel = oh_create_subchannel, .update_state = tc_lb_wrapper_on_child_state},
    .picker = oh_make_picker,
};

/* --- policy --- */

static struct tc_status oh_update(struct tc_lb_policy *base, const struct tc_lb_update *update)
{
    struct oh_policy *p = TC_CONTAINER_OF(base, struct oh_policy, wrapper.base);
    if (!base->helper)
        return (struct tc_status){0};
    struct tc_override_host_settings was = p->settings;
    const struct tc_override_host_config *config = tc_override_host_config(update->config);
    p->settings = config->settings;
    if (p->settings.sessions && !was.sessions)
        p->swept_ms = policy_now_ms(p);
    tc_lb_wrapper_begin_update(&p->wrapper);
    /* Queued RPCs of sessions must pick again: their endpoints may have changed. */
    p->wrapper.unpublished |= p->settings.sessions || was.sessions;
    policy_take_endpoints(p, update->endpoints, &was);
    policy_set_timer(p);
    struct tc_lb_update down = *update;
    down.endpoints = update->endpoints ? p->for_child : NULL;
    down.config = config->child;
    return tc_lb_wrapper_end_update(&p->wrapper, &down);
}

static void oh_reset_backoff(struct tc_lb_policy *base)
{
    struct oh_policy *p = TC_CONTAINER_OF(base, struct oh_policy, wrapper.base);
    tc_lb_wrapper_reset_backoff(base);
    TC_LIST_FOREACH(it, &p->subchannels.all)
    {
        struct oh_subchannel *w = subchannel_of_link(it);
        if (subchannel_is_own(w))
            tc_subchannel_reset_backoff(w->wrapped.inner);
    }
}

static void oh_describe(const struct tc_lb_policy *base, struct tc_describe *d)
{
    const struct oh_policy *p = TC_CONTAINER_OF(base, struct oh_policy, wrapper.base);
    uint64_t now = policy_now_ms(p);
    tc_describe_flag(d, "sessions", p->settings.sessions);
    tc_describe_timer(d, "next_sweep_ms", &p->timer);
    tc_describe_open(d, "own", '[');
    TC_LIST_FOREACH(it, &p->subchannels.all)
    {
        const struct oh_subchannel *w = subchannel_of_link(it);
        if (!subchannel_is_own(w))
            continue;
        tc_describe_open(d, NULL, '{');
        tc_describe_endpoint(d, "endpoint", w->wrapped.base.endpoint);
        tc_describe_state(d, "state", w->state);
        tc_describe_number(d, "unused_ms", now - w->entry->last_used_ms);
        tc_describe_close(d, '}');
    }
    tc_describe_close(d, ']');
    tc_graceful_switch_describe(p->wrapper.child, d, "child");
}

static void oh_shutdown(struct tc_lb_policy *base)
{
    struct oh_policy *p = TC_CONTAINER_OF(base, struct oh_policy, wrapper.base);
    if (!base->helper)
        return;
    tc_timer_stop(&p->timer);
    tc_task_cancel(&p->want_task);
    p->access->policy = NULL;
    oh_access_unref(p->access);
    policy_replace_set(p, NULL);
    tc_task_cancel(&p->publish_task);
    tc_lb_wrapper_end(&p->wrapper);
    /* A child policy of the application may release its subchannels later. */
    while (tc_wrapped_subchannels_pop(&p->subchannels))
        ;
    tc_endpoints_unref(p->endpoints);
    tc_endpoints_unref(p->for_child);
}

static const struct tc_lb_policy_ops policy_ops = {
    .update = oh_update,
    .exit_idle = tc_lb_wrapper_exit_idle,
    .reset_backoff = oh_reset_backoff,
    .describe = oh_describe,
    .shutdown = oh_shutdown,
};

static struct tc_lb_policy *oh_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    struct oh_policy *p = TC_NEW(struct oh_policy);
    tc_lb_wrapper_init(&p->wrapper, &policy_ops, &lb_wrapper_ops, factory, helper);
    p->access = TC_NEW(struct oh_access);
    tc_lref_init(&p->access->ref);
    p->access->policy = p;
    tc_wrapped_subchannels_init(&p->subchannels, &subchannel_ops, subchannel_on_inner_state);
    tc_list_init(&p->wanted);
    tc_timer_init(&p->timer, helper->env->loop, policy_on_timer);
    tc_task_init(&p->want_task, policy_on_want);
    tc_task_init(&p->publish_task, policy_on_publish);
    return &p->wrapper.base;
}

const struct tc_lb_factory tc_override_host_factory = {
    .name = "xds_override_host_experimental",
    .alias = "xds_override_host",
    .create = oh_create,
    .parse_config = tc_override_config_parse,
    .free_config = tc_override_config_free,
    .equal_config = tc_override_config_equal,
};
