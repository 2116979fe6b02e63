/* Connected transports (HTTP/2 connections), and the groups of transports on whose streams calls wait. Loop thread
 * only.
 *
 * A transport has three phases:
 *
 *   new      until the server's SETTINGS (on_ready)
 *   in use   a member of a group
 *   gone     after GOAWAY or loss (the owner hears on_gone), or after the owner drained it. No stream is opened. Open
 *            streams go on; the end of the HTTP/2 connection (on_closed) frees the transport. tc_transport_close
 *            frees it at once, in any phase.
 *
 * When the group's last member is gone, the waits on the group end with NULL: the calls ask their picker again.
 *
 * MAX_CONCURRENT_STREAMS: a call uses the oldest transport with a free stream (A105). A call that finds none waits on
 * the group, first come, first served; a call that comes later does not overtake it. While calls wait, the transports
 * are asked for on_capacity (tc_h2_conn_want_capacity). A side stream waits for one transport alone; other transports
 * may serve calls behind it first. */
#include "subchannel/transport.h"

#include "base/mem.h"

struct tc_transport {
    struct tc_link link;                      /* of the owner's list */
    struct tc_transport_group *group;         /* NULL: not in use */
    struct tc_link member;                    /* of group->in_use */
    uint64_t began_ms;                        /* of tc_transport_group_join; 0 before */
    uint64_t keepalive_ms;                    /* of the options; 0: off */
    struct tc_h2_conn *h2;                    /* owned */
    struct tc_rstr *address;                  /* a reference */
    const struct tc_transport_events *events; /* NULL once the owner drained the transport, or on_gone was called */
    void *arg;
    bool gone;                /* no stream can be opened any longer */
    struct tc_barren *barren; /* tc_transport_judge_later; a reference; NULL: none */
};

struct tc_barren *tc_barren_new(void)
{
    struct tc_barren *b = TC_NEW(struct tc_barren);
    tc_lref_init(&b->ref);
    return b;
}

void tc_barren_unref(struct tc_barren *b)
{
    if (b && tc_lref_dec(&b->ref))
        tc_free(b);
}

/* --- the group --- */

static struct tc_transport *member_at(const struct tc_link *link)
{
    return TC_CONTAINER_OF((struct tc_link *)(uintptr_t)link, struct tc_transport, member);
}

void tc_transport_group_init(struct tc_transport_group *g, struct tc_rstr *address,
                             void (*on_wait)(struct tc_transport_group *g))
{
    *g = (struct tc_transport_group){.address = address, .on_wait = on_wait};
    tc_list_init(&g->in_use);
    tc_list_init(&g->waiting);
}

struct tc_transport *tc_transport_group_oldest(const struct tc_transport_group *g)
{
    return tc_list_empty(&g->in_use) ? NULL : member_at(g->in_use.next);
}

struct tc_transport *tc_transport_group_choose(const struct tc_transport_group *g)
{
    const struct tc_link *it = g->in_use.next;
    if (it == &g->in_use)
        return NULL;
    while (it->next != &g->in_use && !tc_h2_conn_has_capacity(member_at(it)->h2))
        it = it->next;
    return member_at(it);
}

size_t tc_transport_group_count(const struct tc_transport_group *g)
{
    size_t n = 0;
    for (const struct tc_link *it = g->in_use.next; it != &g->in_use; it = it->next)
        n++;
    return n;
}

/* Returns the first wait that can be served, and stores in *t the transport that has a stream for it. Returns NULL if
 * there is none; *t has no meaning then. */
static struct tc_capacity_wait *group_next(const struct tc_transport_group *g, struct tc_transport **t)
{
    *t = tc_transport_group_choose(g);
    if (!*t || !tc_h2_conn_has_capacity((*t)->h2))
        return NULL;
    for (struct tc_link *it = g->waiting.next; it != &g->waiting; it = it->next) {
        struct tc_capacity_wait *w = TC_CONTAINER_OF(it, struct tc_capacity_wait, link);
        if (w->only && !tc_h2_conn_has_capacity(w->only->h2))
            continue;
        if (w->only)
            *t = (struct tc_transport *)(uintptr_t)w->only;
        return w;
    }
    return NULL;
}

bool tc_transport_group_starves(const struct tc_transport_group *g)
{
    const struct tc_transport *t = tc_transport_group_choose(g);
    if (!t || tc_h2_conn_has_capacity(t->h2))
        return false;
    for (const struct tc_link *it = g->waiting.next; it != &g->waiting; it = it->next)
        if (!TC_CONTAINER_OF(it, const struct tc_capacity_wait, link)->only)
            return true;
    return false;
}

/* Asks the transports for on_capacity, since calls wait. `newly` false: group_serve has just tried, and the calls that
 * still wait cannot use the transports that have a free stream, so these are not asked. */
static void group_wait(struct tc_transport_group *g, bool newly)
{
    for (struct tc_link *it = g->in_use.next; it != &g->in_use; it = it->next)
        if (newly || !tc_h2_conn_has_capacity(member_at(it)->h2))
            tc_h2_conn_want_capacity(member_at(it)->h2);
    if (g->on_wait)
        g->on_wait(g);
}

/* Serves waits while there are free streams for them. For those that are left asks for on_capacity again. */
static void group_serve(struct tc_transport_group *g)
{
    struct tc_capacity_wait *w;
    struct tc_transport *t;
    g->serving = true;
    while ((w = group_next(g, &t))) {
        tc_list_remove(&w->link);
        w->fn(w, t);
    }
    g->serving = false;
    if (!tc_list_empty(&g->waiting))
        group_wait(g, false);
}

void tc_transport_group_join(struct tc_transport_group *g, struct tc_transport *t,
                             const struct tc_transport_events *events, uint64_t began_ms)
{
    t->group = g;
    t->events = events;
    t->began_ms = began_ms;
    tc_list_append(&g->in_use, &t->member);
    if (!tc_list_empty(&g->waiting))
        tc_h2_conn_want_capacity(t->h2);
}

/* --- a transport --- */

/* Takes the transport out of its group: no stream is opened on it any longer. Ends the waits with the group's last
 * transport. */
static void transport_leave(struct tc_transport *t)
{
    struct tc_transport_group *g = t->group;
    struct tc_link *link;
    t->gone = true;
    t->group = NULL;
    tc_list_remove(&t->member);
    while (g && tc_list_empty(&g->in_use) && (link = tc_list_pop(&g->waiting))) {
        struct tc_capacity_wait *w = TC_CONTAINER_OF(link, struct tc_capacity_wait, link);
        w->fn(w, NULL);
    }
}

/* The transport is gone: leaves the group, then notifies the owner, once. */
static void transport_go(struct tc_transport *t, const struct tc_status *why, bool too_many_pings)
{
    if (t->gone)
        return;
    transport_leave(t);
    if (t->events)
        t->events->on_gone(t->arg, t, why, too_many_pings);
    t->events = NULL;
}

static void on_ready(void *arg)
{
    struct tc_transport *t = arg;
    if (t->events)
        t->events->on_ready(t->arg);
}

static void on_capacity(void *arg)
{
    struct tc_transport *t = arg;
    if (t->group)
        group_serve(t->group);
}

static void on_draining(void *arg, const struct tc_status *why, bool too_many_pings)
{
    transport_go(arg, why, too_many_pings);
}

static void on_closed(void *arg, const struct tc_status *why)
{
    struct tc_transport *t = arg;
    transport_go(t, why, false);
    tc_transport_close(t);
}

static const struct tc_h2_conn_events h2_events = {
    .on_ready = on_ready,
    .on_capacity = on_capacity,
    .on_draining = on_draining,
    .on_closed = on_closed,
};

struct tc_transport *tc_transport_new(struct tc_loop *loop, struct tc_bytestream *bs, const struct tc_h2_opts *opts,
                                      struct tc_rstr *address, struct tc_link *list,
                                      const struct tc_transport_events *events, void *arg)
{
    struct tc_transport *t = TC_NEW(struct tc_transport);
    t->address = tc_rstr_ref(address);
    t->events = events;
    t->arg = arg;
    tc_list_init(&t->member);
    tc_list_append(list, &t->link);
    t->keepalive_ms = opts->keepalive.time_ms;
    t->h2 = tc_h2_conn_new(loop, bs, opts, &h2_events, t);
    return t;
}

void tc_transport_drain(struct tc_transport *t, const char *debug_text)
{
    t->events = NULL;
    transport_leave(t);
    tc_h2_conn_drain(t->h2, debug_text);
}

void tc_transport_close(struct tc_transport *t)
{
    t->events = NULL;
    transport_leave(t);
    tc_list_remove(&t->link);
    if (t->barren)
        t->barren->n = tc_h2_conn_answered(t->h2) ? 0 : t->barren->n + 1;
    tc_barren_unref(t->barren);
    tc_h2_conn_close(t->h2);
    tc_rstr_unref(t->address);
    tc_free(t);
}

struct tc_transport *tc_transport_of_link(struct tc_link *link)
{
    return TC_CONTAINER_OF(link, struct tc_transport, link);
}

struct tc_h2_conn *tc_transport_h2(const struct tc_transport *t)
{
    return t->h2;
}

uint64_t tc_transport_keepalive_ms(const struct tc_transport *t)
{
    return t->keepalive_ms;
}

uint64_t tc_transport_began_ms(const struct tc_transport *t)
{
    return t->began_ms;
}

void tc_transport_judge_later(struct tc_transport *t, struct tc_barren *barren)
{
    tc_lref_inc(&barren->ref);
    t->barren = barren;
}

struct tc_rstr *tc_transport_address(const struct tc_transport *t)
{
    return t->address;
}

struct tc_h2_stream *tc_transport_open(struct tc_transport *t, const struct tc_h2_request *request,
                                       struct tc_arena *arena, const struct tc_h2_client_events *events, void *arg,
                                       int *error)
{
    if (t->gone) {
        *error = TORC_ECLOSED;
        return NULL;
    }
    if (!t->group->serving && !tc_list_empty(&t->group->waiting)) {
        *error = TORC_EAGAIN;
        return NULL;
    }
    return tc_h2_client_stream_open(t->h2, request, arena, events, arg, error);
}

/* A wait that was served and met the limit again stays the first. */
void tc_transport_wait(struct tc_transport *t, struct tc_capacity_wait *wait)
{
    struct tc_transport_group *g = t->group;
    wait->group = g;
    if (g->serving) {
        tc_list_prepend(&g->waiting, &wait->link);
        return;
    }
    tc_list_append(&g->waiting, &wait->link);
    group_wait(g, true);
}
