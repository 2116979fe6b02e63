/* Side streams: one RPC for each kind and key that somebody watches, for as long as the connection is READY.
 *
 * A stream is in one of four phases: open (`rpc`), in line for MAX_CONCURRENT_STREAMS (`wait` is linked), in backoff
 * (`retry` runs), or none of these: there is no transport, or its server does not implement the method.
 *
 * A callback of a watch may end watches, and so the stream, and may even free the connection. So the watches that are
 * still to be told are on a list of their own (`due`), from which a watch leaves as from the other one, and the stream
 * is counted. */
#include "subchannel/side_stream.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/backoff.h"

struct tc_side_stream {
    struct tc_lref ref;
    struct tc_side_streams *set; /* NULL after the end */
    struct tc_link link;         /* of set->all */
    const struct tc_side_kind *kind;
    struct tc_rstr *key;
    struct tc_link watches;
    struct tc_link due; /* watches that a callback is still to be called for */
    bool changed;       /* watches came or went while `due` was not empty */
    struct tc_backoff backoff;
    struct tc_timer retry;
    struct tc_h2_stream *rpc;
    struct tc_capacity_wait wait;
    uint64_t began_ms;     /* when the RPC was started last */
    struct tc_buf message; /* the request's message, as are the others of `rpc` */
    struct tc_h2_request request;
    struct tc_arena arena;
};

static void side_stream_unref(struct tc_side_stream *s)
{
    if (!tc_lref_dec(&s->ref))
        return;
    tc_rstr_unref(s->key);
    tc_buf_fini(&s->message);
    tc_free(s);
}

/* Ends the RPC, the wait for it, or the backoff. */
static void side_stream_close(struct tc_side_stream *s)
{
    if (s->rpc)
        tc_h2_stream_cancel(s->rpc, TC_H2_CANCEL);
    s->rpc = NULL;
    tc_list_remove(&s->wait.link);
    tc_timer_stop(&s->retry);
    tc_arena_fini(&s->arena);
    tc_arena_init(&s->arena, 0, 0);
}

/* The RPC has ended, or could not be started. */
static void side_stream_back_off(struct tc_side_stream *s)
{
    struct tc_loop *loop = s->set->loop;
    uint64_t next_ms = s->began_ms + tc_backoff_next_ms(&s->backoff, tc_loop_rng(loop)), now_ms = tc_loop_now_ms(loop);
    side_stream_close(s);
    tc_timer_start(&s->retry, next_ms > now_ms ? next_ms - now_ms : 0);
}

static void side_stream_on_watches(struct tc_side_stream *s);

/* Calls on_message, or on_end if `status` is given, of each watch. The stream may have ended afterwards. */
static void side_stream_tell(struct tc_side_stream *s, struct tc_slice message, const struct tc_status *status)
{
    struct tc_link *link;
    tc_lref_inc(&s->ref);
    tc_list_splice(&s->due, &s->watches);
    while ((link = tc_list_pop(&s->due))) {
        struct tc_side_watch *w = tc_side_watch_of(link);
        tc_list_append(&s->watches, link);
        if (!status)
            w->on_message(w, message);
        else if (w->on_end)
            w->on_end(w, status);
    }
    if (s->changed)
        side_stream_on_watches(s);
    side_stream_unref(s);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct tc_side_stream *s = arg;
    tc_backoff_reset(&s->backoff);
    tc_h2_stream_read(s->rpc);
    side_stream_tell(s, tc_rstr_slice(message), NULL);
    tc_rstr_unref(message);
}

static void on_done(void *arg, const struct tc_h2_outcome *outcome)
{
    struct tc_side_stream *s = arg;
    s->rpc = NULL;
    if (outcome->status.code == TORC_STATUS_UNIMPLEMENTED) {
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "%s: the server does not implement %s: none on this connection",
               tc_transport_address(s->set->transport)->data, s->kind->name);
        side_stream_close(s);
    } else {
        side_stream_back_off(s);
    }
    side_stream_tell(s, (struct tc_slice){0}, &outcome->status);
}

static void side_stream_open(struct tc_side_stream *s)
{
    static const struct tc_h2_client_events events = {.stream = {.on_message = on_message}, .on_done = on_done};
    int error = 0;
    s->began_ms = tc_loop_now_ms(s->set->loop);
    s->message.len = 0;
    s->kind->request(&s->watches, &s->message);
    s->rpc = tc_transport_open(s->set->transport, &s->request, &s->arena, &events, s, &error);
    if (s->rpc) {
        tc_h2_stream_send(s->rpc, tc_buf_slice(&s->message), false, true);
        tc_h2_stream_read(s->rpc);
    } else if (error == TORC_EAGAIN) {
        tc_transport_wait(s->set->transport, &s->wait);
    } else {
        side_stream_back_off(s);
    }
}

static void on_capacity(struct tc_capacity_wait *wait, bool gone)
{
    if (!gone) /* otherwise tc_side_streams_use follows */
        side_stream_open(TC_CONTAINER_OF(wait, struct tc_side_stream, wait));
}

static void on_retry(struct tc_timer *timer)
{
    side_stream_open(TC_CONTAINER_OF(timer, struct tc_side_stream, retry));
}

/* The watches have changed. A stream that is in line or in backoff makes its request later. */
static void side_stream_on_watches(struct tc_side_stream *s)
{
    struct tc_buf message = {0};
    s->changed = !tc_list_empty(&s->due);
    if (!s->rpc || s->changed)
        return;
    s->kind->request(&s->watches, &message);
    if (!tc_slice_eq(tc_buf_slice(&message), tc_buf_slice(&s->message))) {
        side_stream_close(s);
        side_stream_open(s);
    }
    tc_buf_fini(&message);
}

static void side_stream_end(struct tc_side_stream *s)
{
    side_stream_close(s);
    tc_arena_fini(&s->arena);
    tc_list_remove(&s->link);
    s->set = NULL;
    side_stream_unref(s);
}

static void on_watch_end(struct tc_side_watch *w)
{
    struct tc_side_stream *s = w->stream;
    tc_list_remove(&w->link);
    w->stream = NULL;
    if (tc_list_empty(&s->watches) && tc_list_empty(&s->due))
        side_stream_end(s);
    else
        side_stream_on_watches(s);
}

static struct tc_side_stream *side_stream_new(struct tc_side_streams *set, const struct tc_side_watch *w)
{
    struct tc_side_stream *s = TC_NEW(struct tc_side_stream);
    tc_lref_init(&s->ref);
    s->set = set;
    s->kind = w->kind;
    s->key = tc_rstr_new(w->key.data, w->key.len);
    tc_list_init(&s->watches);
    tc_list_init(&s->due);
    tc_list_append(&set->all, &s->link);
    tc_backoff_init(&s->backoff, &tc_backoff_default);
    tc_timer_init(&s->retry, set->loop, on_retry);
    tc_list_init(&s->wait.link);
    s->wait.fn = on_capacity;
    s->request = (struct tc_h2_request){.path = tc_slice_str(w->kind->path),
                                        .authority = tc_rstr_slice(set->authority),
                                        .has_limits = true,
                                        .max_receive_message_bytes = TC_SIDE_MESSAGE_MAX,
                                        .max_send_message_bytes = SIZE_MAX};
    tc_arena_init(&s->arena, 0, 0);
    return s;
}

static struct tc_side_stream *side_stream_at(const struct tc_link *link)
{
    return TC_CONTAINER_OF((struct tc_link *)(uintptr_t)link, struct tc_side_stream, link);
}

void tc_side_streams_watch(struct tc_side_streams *set, struct tc_side_watch *w)
{
    struct tc_link *it = set->all.next;
    while (it != &set->all &&
           (side_stream_at(it)->kind != w->kind || !tc_slice_eq(tc_rstr_slice(side_stream_at(it)->key), w->key)))
        it = it->next;
    bool found = it != &set->all;
    struct tc_side_stream *s = found ? side_stream_at(it) : side_stream_new(set, w);
    w->stream = s;
    w->end = on_watch_end;
    tc_list_append(&s->watches, &w->link);
    if (found)
        side_stream_on_watches(s);
    else if (set->transport)
        side_stream_open(s);
}

void tc_side_streams_use(struct tc_side_streams *set, struct tc_transport *transport)
{
    TC_LIST_FOREACH(it, &set->all)
    side_stream_close(side_stream_at(it));
    set->transport = transport;
    TC_LIST_FOREACH(it, &set->all)
    {
        tc_backoff_reset(&side_stream_at(it)->backoff);
        if (transport)
            side_stream_open(side_stream_at(it));
    }
}

void tc_side_streams_init(struct tc_side_streams *set, struct tc_loop *loop, struct tc_rstr *authority)
{
    *set = (struct tc_side_streams){.loop = loop, .authority = tc_rstr_ref(authority)};
    tc_list_init(&set->all);
}

void tc_side_streams_fini(struct tc_side_streams *set)
{
    struct tc_link *link;
    while (!tc_list_empty(&set->all)) {
        struct tc_side_stream *s = side_stream_at(set->all.next);
        tc_list_splice(&s->watches, &s->due);
        while ((link = tc_list_pop(&s->watches)))
            tc_side_watch_of(link)->stream = NULL;
        side_stream_end(s);
    }
    tc_rstr_unref(set->authority);
}
