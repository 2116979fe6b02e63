/* Side streams: one RPC for each kind and key that somebody watches, for as long as the connection is READY.
 *
 * A stream is in one of four phases: open (`rpc`), waiting for a free stream of MAX_CONCURRENT_STREAMS (`wait` is
 * linked), in backoff (`timer` runs, and `rpc` is NULL), or none of these: there is no transport, or its server does
 * not implement the method.
 *
 * `news` is what the watches hear: the newest message, or the end. A watch that has not heard the news yet is `behind`;
 * side_stream_tell calls such watches. While the stream is open `timer` is its pace: of the messages that come while
 * the timer runs, the newest is told when the timer runs out.
 *
 * A stream without watches stays while it is in backoff, and one of each kind when the server does not implement the
 * method, so that the next watch does not ask again.
 *
 * A callback of a watch may end watches, and with its last watch the stream; it may even free the connection. So
 * side_stream_tell holds a reference to the stream, and keeps the watches that it has not reached yet on a list of
 * their own (`due`).
 *
 * The set (struct tc_side_streams) has a reference to each stream until side_stream_end. Watches belong to their
 * owners. Loop thread only. */
#include "subchannel/side_stream.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/backoff.h"

enum side_news { NEWS_NONE, NEWS_MESSAGE, NEWS_END };

struct tc_side_stream {
    struct tc_lref ref;
    struct tc_side_streams *set; /* NULL after the end */
    struct tc_link link;         /* of set->all */
    const struct tc_side_kind *kind;
    struct tc_rstr *key; /* a reference */
    struct tc_link watches;
    struct tc_link due; /* watches that side_stream_tell has not reached yet */
    bool changed;       /* watches came or went while `due` was not empty */
    bool unimplemented; /* on this transport */
    bool crowded;       /* the log already says that there is no room for the stream */
    enum side_news news;
    struct tc_rstr *message; /* NEWS_MESSAGE; a reference */
    struct tc_status status; /* NEWS_END */
    struct tc_task tell;     /* side_stream_tell: watches joined, or there is no room */
    struct tc_backoff backoff;
    struct tc_timer timer;    /* the backoff; while the stream is open, its pace */
    unsigned messages;        /* that came since the timer started */
    struct tc_h2_stream *rpc; /* NULL: the stream is not open */
    struct tc_capacity_wait wait;
    uint64_t began_ms;         /* when side_stream_open was called last, in the loop's time */
    struct tc_buf request;     /* the RPC's message */
    struct tc_h2_request head; /* the RPC's headers */
    struct tc_arena arena;     /* the RPC's */
};

static struct tc_side_stream *side_stream_at(const struct tc_link *link)
{
    return TC_CONTAINER_OF((struct tc_link *)(uintptr_t)link, struct tc_side_stream, link);
}

/* Sets what the watches hear, all of which are behind then. Takes over message (NULL: none) and status. */
static void side_stream_set_news(struct tc_side_stream *s, enum side_news news, struct tc_rstr *message,
                                 struct tc_status status)
{
    tc_rstr_unref(s->message);
    s->news = news;
    s->message = message;
    tc_status_set(&s->status, status);
    TC_LIST_FOREACH(it, &s->watches)
    tc_side_watch_of(it)->behind = true;
    TC_LIST_FOREACH(it, &s->due)
    tc_side_watch_of(it)->behind = true;
}

static void side_stream_unref(struct tc_side_stream *s)
{
    if (!tc_lref_dec(&s->ref))
        return;
    side_stream_set_news(s, NEWS_NONE, NULL, (struct tc_status){0});
    tc_rstr_unref(s->key);
    tc_buf_fini(&s->request);
    tc_free(s);
}

/* Ends the RPC and its pace, the wait for it, or the backoff. */
static void side_stream_close(struct tc_side_stream *s)
{
    if (s->rpc)
        tc_h2_stream_cancel(s->rpc, TC_H2_CANCEL);
    s->rpc = NULL;
    tc_list_remove(&s->wait.link);
    tc_timer_stop(&s->timer);
    tc_arena_fini(&s->arena);
    tc_arena_init(&s->arena, 0, 0);
}

/* Ends a stream without watches, and drops the set's reference. May free the stream. */
static void side_stream_end(struct tc_side_stream *s)
{
    side_stream_close(s);
    tc_arena_fini(&s->arena);
    tc_task_cancel(&s->tell);
    tc_list_remove(&s->link);
    s->set = NULL;
    side_stream_unref(s);
}

/* Closes the stream, and has it opened again after the backoff, which counts from began_ms. */
static void side_stream_back_off(struct tc_side_stream *s)
{
    struct tc_loop *loop = s->set->loop;
    uint64_t next_ms = s->began_ms + tc_backoff_next_ms(&s->backoff, tc_loop_rng(loop)), now_ms = tc_loop_now_ms(loop);
    side_stream_close(s);
    tc_timer_start(&s->timer, next_ms > now_ms ? next_ms - now_ms : 0);
}

static void side_stream_on_watches(struct tc_side_stream *s);

/* Calls the watches that are behind. May free the stream and the connection. */
static void side_stream_tell(struct tc_side_stream *s)
{
    struct tc_link *link;
    tc_lref_inc(&s->ref);
    tc_list_splice(&s->due, &s->watches);
    while ((link = tc_list_pop(&s->due))) {
        struct tc_side_watch *w = tc_side_watch_of(link);
        tc_list_append(&s->watches, link);
        if (!w->behind)
            continue;
        w->behind = false;
        if (s->news == NEWS_MESSAGE) {
            struct tc_rstr *message = tc_rstr_ref(s->message);
            w->on_message(w, tc_rstr_slice(message));
            tc_rstr_unref(message);
        } else if (s->news == NEWS_END && w->on_end) {
            struct tc_status status = tc_status_ref(&s->status);
            w->on_end(w, &status);
            tc_status_fini(&status);
        }
    }
    if (s->changed)
        side_stream_on_watches(s);
    side_stream_unref(s);
}

static void on_tell(struct tc_task *task)
{
    side_stream_tell(TC_CONTAINER_OF(task, struct tc_side_stream, tell));
}

/* Starts the pace again, and tells the newest message. May free the stream and the connection. */
static void side_stream_pace(struct tc_side_stream *s)
{
    if (s->messages >= TC_SIDE_MESSAGES)
        tc_h2_stream_read(s->rpc);
    s->messages = 0;
    tc_timer_start(&s->timer, TC_SIDE_PACE_MS);
    side_stream_tell(s);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct tc_side_stream *s = arg;
    tc_backoff_reset(&s->backoff);
    side_stream_set_news(s, NEWS_MESSAGE, message, (struct tc_status){0});
    if (++s->messages < TC_SIDE_MESSAGES)
        tc_h2_stream_read(s->rpc);
    if (!tc_timer_active(&s->timer))
        side_stream_pace(s);
}

static void on_done(void *arg, const struct tc_h2_outcome *outcome)
{
    struct tc_side_stream *s = arg;
    s->rpc = NULL;
    if (outcome->status.code != TORC_STATUS_UNIMPLEMENTED) {
        side_stream_back_off(s);
        if (tc_h2_conn_lost(tc_transport_h2(s->set->transport)))
            return; /* tc_side_streams_use follows */
    } else {
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "%s: the server does not implement %s: none on this connection",
               tc_transport_address(s->set->transport)->data, s->kind->name);
        side_stream_close(s);
        s->unimplemented = true;
    }
    side_stream_set_news(s, NEWS_END, NULL, tc_status_ref(&outcome->status));
    side_stream_tell(s);
}

/* Returns how many streams are open. */
static uint32_t side_streams_count(const struct tc_side_streams *set)
{
    uint32_t n = 0;
    for (const struct tc_link *it = set->all.next; it != &set->all; it = it->next)
        n += side_stream_at(it)->rpc != NULL;
    return n;
}

/* There is no room for the stream: has a task tell its watches so, and has the stream opened again after the
 * backoff. */
static void side_stream_crowd(struct tc_side_stream *s, uint32_t limit)
{
    side_stream_set_news(s, NEWS_END, NULL,
                         tc_status_make(TORC_STATUS_UNIMPLEMENTED, TORC_LAYER_LIMIT,
                                        "the server allows %u streams at a time, which leaves none beside the RPCs",
                                        limit));
    if (!s->crowded)
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "%s: no %s at present: %s", tc_transport_address(s->set->transport)->data,
               s->kind->name, tc_status_text(&s->status));
    s->crowded = true;
    side_stream_back_off(s);
    tc_loop_defer(s->set->loop, &s->tell);
}

/* Opens the stream on the set's transport, which must not be NULL. If that fails, the stream waits or backs off. The
 * stream must have a watch on `watches`. Calls no watch. */
static void side_stream_open(struct tc_side_stream *s)
{
    static const struct tc_h2_client_events events = {.stream = {.on_message = on_message}, .on_done = on_done};
    uint32_t limit = tc_h2_conn_max_streams(tc_transport_h2(s->set->transport));
    int error = 0;
    s->began_ms = tc_loop_now_ms(s->set->loop);
    if (side_streams_count(s->set) + 1 >= limit) {
        side_stream_crowd(s, limit);
        return;
    }
    s->crowded = false;
    s->messages = 0;
    s->request.len = 0;
    s->kind->request(&s->watches, &s->request);
    s->rpc = tc_transport_open(s->set->transport, &s->head, &s->arena, &events, s, &error);
    if (s->rpc) {
        tc_h2_stream_send(s->rpc, tc_buf_slice(&s->request), false, true);
        tc_h2_stream_read(s->rpc);
    } else if (error == TORC_EAGAIN) {
        s->wait.only = s->set->transport;
        tc_transport_wait(s->set->transport, &s->wait);
    } else {
        side_stream_back_off(s);
    }
}

static void on_capacity(struct tc_capacity_wait *wait, struct tc_transport *t)
{
    if (t) /* otherwise tc_side_streams_use follows */
        side_stream_open(TC_CONTAINER_OF(wait, struct tc_side_stream, wait));
}

static void on_timer(struct tc_timer *timer)
{
    struct tc_side_stream *s = TC_CONTAINER_OF(timer, struct tc_side_stream, timer);
    if (tc_list_empty(&s->watches))
        side_stream_end(s);
    else if (!s->rpc)
        side_stream_open(s);
    else if (s->messages > 0)
        side_stream_pace(s);
}

/* The watches have changed. If the stream is open and its request is now another one, opens it again; inside of
 * side_stream_tell that waits until all watches are told. A stream that waits or is in backoff makes its request
 * later. */
static void side_stream_on_watches(struct tc_side_stream *s)
{
    struct tc_buf request = {0};
    s->changed = !tc_list_empty(&s->due);
    if (!s->rpc || s->changed)
        return;
    s->kind->request(&s->watches, &request);
    if (!tc_slice_eq(tc_buf_slice(&request), tc_buf_slice(&s->request))) {
        side_stream_close(s);
        side_stream_open(s);
    }
    tc_buf_fini(&request);
}

/* Returns a stream of the kind, other than `but`, whose method the server does not implement; or NULL. */
static struct tc_side_stream *side_streams_refused(const struct tc_side_streams *set, const struct tc_side_kind *kind,
                                                   const struct tc_side_stream *but)
{
    for (const struct tc_link *it = set->all.next; it != &set->all; it = it->next)
        if (side_stream_at(it)->kind == kind && side_stream_at(it)->unimplemented && side_stream_at(it) != but)
            return side_stream_at(it);
    return NULL;
}

/* `end` of struct tc_side_watch. Without watches, the stream ends unless it must stay for the next watch (see the
 * head). */
static void on_watch_end(struct tc_side_watch *w)
{
    struct tc_side_stream *s = w->stream;
    bool in_backoff = !s->rpc && tc_timer_active(&s->timer);
    bool stays = s->unimplemented ? !side_streams_refused(s->set, s->kind, s) : in_backoff;
    tc_list_remove(&w->link);
    w->stream = NULL;
    if (!tc_list_empty(&s->watches) || !tc_list_empty(&s->due))
        side_stream_on_watches(s);
    else if (!stays)
        side_stream_end(s);
}

/* Makes the stream that a watch wants, and gives it to the set. If the server is known not to implement the kind's
 * method, the new stream begins with that end. */
static struct tc_side_stream *side_stream_new(struct tc_side_streams *set, const struct tc_side_watch *w)
{
    const struct tc_side_stream *refused = side_streams_refused(set, w->kind, NULL);
    struct tc_side_stream *s = TC_NEW(struct tc_side_stream);
    tc_lref_init(&s->ref);
    s->set = set;
    s->kind = w->kind;
    s->key = tc_rstr_new(w->key.data, w->key.len);
    tc_list_init(&s->watches);
    tc_list_init(&s->due);
    tc_list_append(&set->all, &s->link);
    tc_task_init(&s->tell, on_tell);
    tc_backoff_init(&s->backoff, &tc_backoff_default);
    tc_timer_init(&s->timer, set->loop, on_timer);
    tc_list_init(&s->wait.link);
    s->wait.fn = on_capacity;
    s->head = (struct tc_h2_request){.path = tc_slice_str(w->kind->path),
                                     .authority = tc_rstr_slice(set->authority),
                                     .has_limits = true,
                                     .aside = true,
                                     .max_receive_message_bytes = w->kind->max_message_bytes,
                                     .max_send_message_bytes = SIZE_MAX};
    tc_arena_init(&s->arena, 0, 0);
    if (refused) {
        s->unimplemented = true;
        side_stream_set_news(s, NEWS_END, NULL, tc_status_ref(&refused->status));
    }
    return s;
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
    w->behind = s->news != NEWS_NONE;
    tc_list_append(&s->watches, &w->link);
    if (w->behind)
        tc_loop_defer(set->loop, &s->tell);
    if (found)
        side_stream_on_watches(s);
    else if (set->transport && !s->unimplemented)
        side_stream_open(s);
}

void tc_side_streams_make_room(struct tc_side_streams *set)
{
    uint32_t limit = set->transport ? tc_h2_conn_max_streams(tc_transport_h2(set->transport)) : 0;
    TC_LIST_FOREACH(it, &set->all)
    {
        if (side_streams_count(set) < TC_MAX(limit, 1u))
            return;
        if (side_stream_at(it)->rpc)
            side_stream_crowd(side_stream_at(it), limit);
    }
}

void tc_side_streams_reset_backoff(struct tc_side_streams *set)
{
    TC_LIST_FOREACH(it, &set->all)
    {
        struct tc_side_stream *s = side_stream_at(it);
        tc_backoff_reset(&s->backoff);
        if (!s->rpc && tc_timer_active(&s->timer))
            tc_timer_start(&s->timer, 0);
    }
}

void tc_side_streams_use(struct tc_side_streams *set, struct tc_transport *transport)
{
    struct tc_link *next;
    /* Closes all streams before it opens the first: side_stream_open counts the set's open streams against the limit of
     * the new transport, and streams on the old transport must not count. */
    TC_LIST_FOREACH(it, &set->all)
    side_stream_close(side_stream_at(it));
    set->transport = transport;
    set->uses++;
    for (struct tc_link *it = set->all.next; it != &set->all; it = next) {
        struct tc_side_stream *s = side_stream_at(it);
        next = it->next;
        if (tc_list_empty(&s->watches)) {
            side_stream_end(s);
            continue;
        }
        side_stream_set_news(s, NEWS_NONE, NULL, (struct tc_status){0});
        s->unimplemented = s->crowded = false;
        tc_backoff_reset(&s->backoff);
        if (transport)
            side_stream_open(s);
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
