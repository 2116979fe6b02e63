/* A connected transport: an HTTP/2 connection, and the calls that wait for a stream on it.
 *
 * It goes through three phases: until the server's SETTINGS (on_ready), in use, and gone (GOAWAY, close, or the owner
 * let go): then no stream is opened, on_gone was called, calls that waited are sent back to their pick, and streams
 * that are open go on until the HTTP/2 connection ends and frees the transport.
 *
 * MAX_CONCURRENT_STREAMS: a call that finds no stream waits in `waiting`, first come, first served; a call that comes
 * later does not overtake it. */
#include "subchannel/transport.h"

#include "base/mem.h"

struct tc_transport {
    struct tc_link link;
    struct tc_loop *loop;
    struct tc_h2_conn *h2;
    struct tc_rstr *address;
    const struct tc_transport_events *events; /* NULL once the owner let go */
    void *arg;
    bool gone;
    bool serving;             /* inside on_capacity: calls that waited go first */
    bool blocked;             /* the last try to open a stream met the limit */
    struct tc_link waiting;   /* calls, by tc_capacity_wait.link */
    struct tc_barren *barren; /* where the end counts (tc_transport_judge_later); NULL: nowhere */
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

static void waits_flush_gone(struct tc_transport *t)
{
    struct tc_link *link;
    while ((link = tc_list_pop(&t->waiting))) {
        struct tc_capacity_wait *w = TC_CONTAINER_OF(link, struct tc_capacity_wait, link);
        w->fn(w, true);
    }
}

/* From the first GOAWAY or loss on, waiting calls go back to their pick before the owner is notified. */
static void transport_go(struct tc_transport *t, const struct tc_status *why, bool too_many_pings)
{
    if (t->gone)
        return;
    t->gone = true;
    waits_flush_gone(t);
    if (t->events)
        t->events->on_gone(t->arg, why, too_many_pings);
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
    struct tc_link *link;
    t->serving = true;
    t->blocked = false;
    /* Until a call meets the limit again: only that arms the next on_capacity. */
    while (!t->gone && !t->blocked && (link = tc_list_pop(&t->waiting))) {
        struct tc_capacity_wait *w = TC_CONTAINER_OF(link, struct tc_capacity_wait, link);
        w->fn(w, false);
    }
    t->serving = false;
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
    t->loop = loop;
    t->address = tc_rstr_ref(address);
    t->events = events;
    t->arg = arg;
    tc_list_init(&t->waiting);
    tc_list_append(list, &t->link);
    t->h2 = tc_h2_conn_new(loop, bs, opts, &h2_events, t);
    return t;
}

void tc_transport_set_events(struct tc_transport *t, const struct tc_transport_events *events)
{
    t->events = events;
}

void tc_transport_drain(struct tc_transport *t, const char *debug_text)
{
    t->events = NULL;
    t->gone = true;
    waits_flush_gone(t);
    tc_h2_conn_drain(t->h2, debug_text);
}

void tc_transport_close(struct tc_transport *t)
{
    t->events = NULL;
    t->gone = true;
    waits_flush_gone(t);
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
    if (!t->serving && !tc_list_empty(&t->waiting)) {
        *error = TORC_EAGAIN;
        return NULL;
    }
    struct tc_h2_stream *s = tc_h2_client_stream_open(t->h2, request, arena, events, arg, error);
    t->blocked = !s && *error == TORC_EAGAIN;
    return s;
}

/* A call that was served by on_capacity and met the limit again stays the first. */
void tc_transport_wait(struct tc_transport *t, struct tc_capacity_wait *wait)
{
    if (t->serving)
        tc_list_prepend(&t->waiting, &wait->link);
    else
        tc_list_append(&t->waiting, &wait->link);
    if (t->events && t->events->on_wait)
        t->events->on_wait(t->arg);
}
