/* The streams of a connection: due events are delivered to their owners from the loop, and all streams end at once with
 * the connection.
 *
 * The order of a delivery: the connection's own events (ready, draining, capacity, held), then each stream that has
 * something due, then on_closed. A callback may end any stream, or close the connection: `delivering` becomes NULL when
 * the stream that is being delivered goes, and `busy` keeps the connection until the delivery is over.
 *
 * One stream gets at most MESSAGES_AT_ONCE in one go, then the other streams have their turn. Two kinds of streams rest
 * until other users of the loop had their turn: a stream with compressed messages while the loop's ration is used up
 * (io/ration.h), and, once the connection has delivered MESSAGES_AFTER_END messages of ended streams, any ended stream.
 * (Flow control no longer holds back the messages of an ended stream.) Streams that do not rest go on meanwhile.
 *
 * A stream is in streams.all until it is over for its owner, and in at most one of streams.ready (due in the next
 * delivery), streams.delivered (due in the delivery that runs) and streams.resting. tc_h2_stream_release frees a
 * server's stream; a client's stream lies in the arena of its call. Loop thread only. */
#include "http2/client_stream_internal.h"
#include "http2/server_stream_internal.h"

enum { MESSAGES_AT_ONCE = 16, MESSAGES_AFTER_END = 64 };

/* --- delivery --- */

void tc_h2_conn_deliver_later(struct tc_h2_conn *c)
{
    tc_loop_defer(c->loop, &c->deliver);
}

static bool held_is_news(const struct tc_h2_conn *c)
{
    return c->streams.held / TC_H2_HELD_STEP != c->streams.held_told / TC_H2_HELD_STEP;
}

void tc_h2_stream_held_changed(struct tc_h2_stream *s)
{
    const struct tc_h2_receiver *r = &s->recv;
    if (!tc_h2_stream_serves(s))
        return;
    size_t held = r->pending.cap + (r->decoder.msg ? r->decoder.cap : 0) + (r->message ? r->message->len : 0) + r->kept;
    s->c->streams.held += held - s->recv.held;
    s->recv.held = held;
    if (held_is_news(s->c))
        tc_h2_conn_deliver_later(s->c);
}

/* Returns true if the stream has ended, and the connection has delivered MESSAGES_AFTER_END messages of such streams
 * since resting streams last went on. A stream's last message does not count. */
static bool stream_is_too_late(const struct tc_h2_stream *s)
{
    return s->finished && s->c->after_end >= MESSAGES_AFTER_END;
}

bool tc_h2_stream_deliver_messages(struct tc_h2_conn *c, struct tc_h2_stream *s)
{
    struct tc_h2_receiver *recv = &s->recv;
    for (int i = 0; i < MESSAGES_AT_ONCE && recv->wanted && tc_h2_stream_input_left(s) && !stream_is_too_late(s); i++) {
        tc_h2_stream_decode_pending(s);
        if (!recv->message)
            break;
        struct tc_rstr *message = recv->message;
        recv->message = NULL;
        recv->wanted--;
        c->after_end += s->finished && recv->pending.data;
        if (!s->events->on_message) {
            tc_rstr_unref(message);
            continue;
        }
        s->events->on_message(s->arg, message);
        if (tc_h2_stream_went(c, s))
            return false;
    }
    tc_h2_stream_held_changed(s);
    if (recv->wanted && tc_h2_stream_input_left(s)) {
        if (stream_is_too_late(s) || (!recv->message && tc_h2_stream_must_rest(s)))
            tc_h2_stream_rest(s);
        else
            tc_h2_stream_ready(s);
    }
    return true;
}

static void stream_deliver(struct tc_h2_stream *s)
{
    if (tc_h2_stream_serves(s))
        tc_h2_server_stream_deliver(tc_h2_server_stream_of(s));
    else
        tc_h2_client_stream_deliver(tc_h2_client_stream_of(s));
}

/* Events of the connection as a whole, before those of its streams. */
static void conn_deliver_events(struct tc_h2_conn *c)
{
    if (c->settings_seen && !c->ready_notified && !c->ending.failed && !c->ending.closed) {
        c->ready_notified = true;
        if (c->events->on_ready)
            c->events->on_ready(c->arg);
    }
    if (c->ending.on_draining_due && !c->ending.closed) {
        c->ending.on_draining_due = false;
        struct tc_status why = tc_status_ref(&c->ending.why);
        if (c->events->on_draining)
            c->events->on_draining(c->arg, &why, c->ending.too_many_pings);
        tc_status_fini(&why);
    }
    if (c->capacity_wanted && !c->ending.closed && tc_h2_conn_has_capacity(c)) {
        c->capacity_wanted = false;
        if (c->events->on_capacity)
            c->events->on_capacity(c->arg);
    }
    if (held_is_news(c) && !c->ending.closed) {
        c->streams.held_told = c->streams.held;
        if (c->events->on_held)
            c->events->on_held(c->arg, c->streams.held_told);
    }
}

static void conn_deliver_closed(struct tc_h2_conn *c)
{
    if (!c->ending.failed || c->ending.closed || c->ending.closed_notified)
        return;
    c->ending.closed_notified = true;
    struct tc_status why = tc_status_ref(&c->ending.why);
    if (c->events->on_closed)
        c->events->on_closed(c->arg, &why);
    tc_status_fini(&why);
}

void tc_h2_conn_rest(struct tc_h2_conn *c)
{
    struct tc_ration *ration = tc_loop_ration(c->loop);
    if (tc_ration_used_up(ration))
        tc_ration_wait(ration, &c->rest);
    else
        tc_loop_at_turn_end(c->loop, &c->rest);
}

void tc_h2_stream_rest(struct tc_h2_stream *s)
{
    if (tc_list_linked(&s->ready))
        return;
    tc_list_append(&s->c->streams.resting, &s->ready);
    tc_h2_conn_rest(s->c);
}

/* Lets resting streams and streams that compress go on; the two kinds take turns in going first. Resting streams go on
 * in their order until the ration or MESSAGES_AFTER_END is used up. A stream that must rest again goes to the end of
 * the list, behind the streams that have got nothing yet. */
void tc_h2_conn_on_rest(struct tc_task *task)
{
    struct tc_h2_conn *c = TC_CONTAINER_OF(task, struct tc_h2_conn, rest);
    const struct tc_ration *ration = tc_loop_ration(c->loop);
    struct tc_link *link;
    c->after_end = 0;
    c->packed_first = !c->packed_first;
    if (c->packed_first)
        tc_h2_packing_go_on(c);
    c->busy++;
    while (!tc_ration_used_up(ration) && c->after_end < MESSAGES_AFTER_END && (link = tc_list_pop(&c->streams.resting)))
        stream_deliver(TC_CONTAINER_OF(link, struct tc_h2_stream, ready));
    c->busy--;
    if (!c->packed_first)
        tc_h2_packing_go_on(c);
    if (!tc_list_empty(&c->streams.resting) || !tc_list_empty(&c->streams.packing))
        tc_h2_conn_rest(c);
    tc_h2_conn_release(c);
}

void tc_h2_conn_on_deliver(struct tc_task *task)
{
    struct tc_h2_conn *c = TC_CONTAINER_OF(task, struct tc_h2_conn, deliver);
    c->busy++;
    conn_deliver_events(c);
    tc_list_splice(&c->streams.delivered, &c->streams.ready);
    struct tc_link *link;
    while ((link = tc_list_pop(&c->streams.delivered)))
        stream_deliver(TC_CONTAINER_OF(link, struct tc_h2_stream, ready));
    conn_deliver_closed(c);
    c->busy--;
    if (!tc_list_empty(&c->streams.ready))
        tc_h2_conn_deliver_later(c);
    tc_h2_conn_release(c);
}

/* --- the end --- */

/* Takes the stream off the connection, and frees its received bytes, its messages and its outcome. */
static void stream_detach(struct tc_h2_stream *s)
{
    struct tc_h2_conn *c = s->c;
    if (tc_h2_stream_live(s))
        nghttp2_session_set_stream_user_data(c->ng, s->id, NULL);
    if (c->streams.delivering == s)
        c->streams.delivering = NULL;
    if (c->streams.opened_for == s)
        c->streams.opened_for = NULL;
    /* nghttp2 may still be decoding a header block of the stream: RST_STREAM was not written yet. */
    if (c->streams.in_block == s)
        c->streams.in_block = NULL;
    tc_list_remove(&s->link);
    tc_list_remove(&s->ready);
    c->streams.n--;
    tc_h2_stream_drop_input(s);
    tc_rstr_clear(&s->send.compressed);
    tc_status_fini(&s->outcome);
    s->id = -1;
    s->c = NULL;
}

void tc_h2_stream_release(struct tc_h2_stream *s)
{
    struct tc_h2_conn *c = s->c;
    stream_detach(s);
    if (tc_h2_stream_serves(s))
        tc_h2_server_stream_free(c, tc_h2_server_stream_of(s));
    else
        tc_buf_fini(&tc_h2_client_stream_of(s)->body);
    tc_h2_conn_release(c);
}

void tc_h2_streams_detach(struct tc_h2_conn *c)
{
    TC_LIST_FOREACH(it, &c->streams.all)
    TC_CONTAINER_OF(it, struct tc_h2_stream, link)->id = -1;
}

size_t tc_h2_streams_lose(struct tc_h2_conn *c)
{
    struct tc_link *next;
    size_t cut_off = 0;
    for (struct tc_link *it = c->streams.all.next; it != &c->streams.all; it = next) {
        next = it->next;
        struct tc_h2_stream *s = TC_CONTAINER_OF(it, struct tc_h2_stream, link);
        cut_off += !s->finished;
        if (tc_h2_stream_serves(s))
            tc_h2_server_stream_on_lost(
                tc_h2_server_stream_of(s),
                tc_status_make(TORC_STATUS_CANCELLED, TORC_LAYER_HTTP2, "%s", tc_status_text(&c->ending.why)));
        else
            tc_h2_client_stream_on_conn_lost(tc_h2_client_stream_of(s));
    }
    return cut_off;
}

void tc_h2_streams_drop(struct tc_h2_conn *c)
{
    struct tc_link *next;
    for (struct tc_link *it = c->streams.all.next; it != &c->streams.all; it = next) {
        next = it->next;
        struct tc_h2_stream *s = TC_CONTAINER_OF(it, struct tc_h2_stream, link);
        if (tc_h2_stream_serves(s) || !s->finished)
            tc_h2_stream_release(s);
        else
            tc_h2_client_stream_stop_sending(tc_h2_client_stream_of(s));
    }
}
