/* The part of a stream that clients and servers share: messages out, demand for messages in. client_stream.c and
 * server_stream.c define how a stream ends; streams.c defines what the connection does with it. */
#include "http2/stream.h"

#include "http2/stream_internal.h"

void tc_h2_stream_init(struct tc_h2_stream *s, struct tc_h2_conn *c, struct tc_arena *arena)
{
    s->c = c;
    s->arena = arena;
    s->id = -1;
    s->block.headers = &s->headers;
    s->block.max_bytes = c->opts.limits.max_header_list_bytes;
    tc_list_init(&s->ready);
    tc_headers_init(&s->headers, arena);
    tc_h2_decoder_init(&s->recv.decoder, c->opts.limits.max_receive_message_bytes);
    s->recv.decoder.blocks = s->recv.pending.blocks = tc_loop_blocks(c->loop);
    s->send.max_bytes = c->opts.limits.max_send_message_bytes;
    tc_list_append(&c->streams.all, &s->link);
    c->streams.n++;
}

struct tc_h2_conn *tc_h2_stream_conn(const struct tc_h2_stream *s)
{
    return s->c;
}

void tc_h2_stream_ready(struct tc_h2_stream *s)
{
    if (tc_list_linked(&s->ready))
        return;
    tc_list_append(&s->c->streams.ready, &s->ready);
    tc_h2_conn_deliver_later(s->c);
}

void tc_h2_stream_submit_reset(struct tc_h2_stream *s, uint32_t h2_error)
{
    nghttp2_submit_rst_stream(s->c->ng, NGHTTP2_FLAG_NONE, s->id, h2_error);
    tc_h2_conn_flush_later(s->c);
}

void tc_h2_stream_drop_input(struct tc_h2_stream *s)
{
    s->recv.discard = true;
    tc_h2_pending_cut(&s->recv.pending, 0);
    tc_rstr_clear(&s->recv.message);
    tc_h2_decoder_fini(&s->recv.decoder);
    s->recv.kept = 0;
    tc_h2_stream_held_changed(s);
}

void tc_h2_stream_resume(struct tc_h2_stream *s)
{
    if (s->send.deferred)
        nghttp2_session_resume_data(s->c->ng, s->id);
    s->send.deferred = false;
    tc_h2_conn_flush_later(s->c);
}

int tc_h2_stream_send(struct tc_h2_stream *s, struct tc_slice message, bool compress, bool end)
{
    struct tc_h2_sender *send = &s->send;
    if (!tc_h2_stream_live(s) || s->finished || send->active || send->on_written_due || send->end_wanted)
        return TORC_ESTATE;
    compress = compress && send->encoding == TC_H2_GZIP;
    send->compressed = compress && !s->server ? tc_h2_gzip(message) : NULL;
    send->message = send->compressed ? tc_rstr_slice(send->compressed) : message;
    bool later = compress && s->server; /* packing.c compresses the message, and checks its size then */
    if (!later && (send->message.len > send->max_bytes || send->message.len > TC_H2_MESSAGE_MAX)) {
        send->rejected_bytes = send->message.len;
        tc_rstr_clear(&send->compressed);
        return TORC_ELIMIT;
    }
    tc_h2_prefix(send->prefix, send->compressed != NULL, send->message.len);
    send->at = 0;
    send->active = true;
    send->end_wanted = end;
    tc_h2_stream_resume(s);
    return 0;
}

size_t tc_h2_stream_rejected_bytes(const struct tc_h2_stream *s)
{
    return s->send.rejected_bytes;
}

void tc_h2_stream_read(struct tc_h2_stream *s)
{
    if (!s->c)
        return;
    s->recv.wanted++;
    if (tc_h2_stream_input_left(s) || s->finished || s->recv.ended)
        tc_h2_stream_ready(s);
}

void tc_h2_stream_cancel(struct tc_h2_stream *s, uint32_t h2_error)
{
    if (!s->c)
        return;
    tc_h2_stream_reset(s, h2_error);
    tc_h2_stream_release(s);
}
