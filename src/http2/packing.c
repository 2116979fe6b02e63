/* Compresses a server's messages in pieces, when their stream may send, within the loop's ration (io/ration.h). A
 * client that keeps its windows closed costs nothing.
 *
 * nghttp2 asks for DATA when the windows of stream and connection are open. At the first question for a message, the
 * message is compressed as far as the loop's ration goes, unless another stream is in streams.packing already. If the
 * compressed message is not whole after that, the stream is deferred and waits in streams.packing, until
 * tc_h2_conn_on_rest (streams.c) lets the compressing go on. Only the first stream of streams.packing has a packer,
 * which bounds the memory that compressing takes for a connection.
 *
 * The stream owns the packer, which borrows the owner's message, and the compressed message (send.compressed). The
 * owner is told of a compressed message (on_compressed), also from inside nghttp2. Loop thread only. */
#include "http2/server_stream_internal.h"

/* Deflating a byte takes about as long as inflating to eight. */
enum { PIECE_BYTES = 16 << 10, COST_OF_A_BYTE = 8 };

void tc_h2_packing_begin(struct tc_h2_server_stream *s)
{
    s->packing = true;
}

void tc_h2_packing_end(struct tc_h2_server_stream *s)
{
    if (!s->packing)
        return;
    s->packing = false;
    tc_list_remove(&s->packing_link);
    tc_h2_packer_free(s->packer);
    s->packer = NULL;
}

/* The message is too large to send: ends the call with RESOURCE_EXHAUSTED instead of this message. */
static void packing_reject(struct tc_h2_server_stream *server)
{
    struct tc_h2_stream *s = &server->stream;
    tc_status_set(&server->status, tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_HTTP2,
                                                  "message to send larger than max (%zu vs. %zu)", s->send.message.len,
                                                  TC_MIN(s->send.max_bytes, (size_t)TC_H2_MESSAGE_MAX)));
    server->aborted = true;
    server->trailers.len = 0;
    s->send.active = false;
    s->send.end_wanted = true;
    tc_h2_stream_drop_input(s);
}

/* Takes over the compressed message, or NULL if the message stays plain: it is too long for tc_h2_packer_new, zlib
 * failed, or there was not enough memory. */
static void packing_done(struct tc_h2_server_stream *server, struct tc_rstr *compressed)
{
    struct tc_h2_stream *s = &server->stream;
    size_t len = compressed ? compressed->len : s->send.message.len;
    tc_h2_packing_end(server);
    if (len > s->send.max_bytes || len > TC_H2_MESSAGE_MAX) {
        s->send.message.len = len;
        tc_rstr_unref(compressed);
        packing_reject(server);
        return;
    }
    if (!compressed)
        return;
    s->send.compressed = compressed;
    s->send.message = tc_rstr_slice(compressed);
    tc_h2_prefix(s->send.prefix, true, compressed->len);
    const struct tc_h2_server_events *events = TC_CONTAINER_OF(s->events, const struct tc_h2_server_events, stream);
    if (events->on_compressed)
        events->on_compressed(s->arg, compressed->len);
}

/* Returns true once the message is ready to be sent, or rejected. */
static bool packing_work(struct tc_h2_server_stream *s)
{
    struct tc_ration *ration = tc_loop_ration(s->stream.c->loop);
    struct tc_rstr *compressed = NULL;
    size_t len = s->stream.send.message.len;
    int rc = 0;
    if (tc_ration_used_up(ration))
        return false;
    if (!s->packer && !(s->packer = tc_h2_packer_new(s->stream.send.message)))
        rc = TORC_EAGAIN;
    while (rc == 0 && !compressed && !tc_ration_used_up(ration)) {
        rc = tc_h2_packer_work(s->packer, PIECE_BYTES, &compressed);
        tc_ration_use(ration, TC_MIN(len, (size_t)PIECE_BYTES) * COST_OF_A_BYTE);
    }
    if (rc == 0 && !compressed)
        return false;
    packing_done(s, compressed);
    return true;
}

void tc_h2_packing_go_on(struct tc_h2_conn *c)
{
    while (!tc_list_empty(&c->streams.packing)) {
        struct tc_h2_server_stream *s =
            TC_CONTAINER_OF(c->streams.packing.next, struct tc_h2_server_stream, packing_link);
        if (!packing_work(s))
            return;
        tc_h2_stream_resume(&s->stream);
    }
}

ssize_t tc_h2_packing_read(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
                           nghttp2_data_source *source, void *user_data)
{
    struct tc_h2_conn *c = user_data;
    struct tc_h2_stream *s = nghttp2_session_get_stream_user_data(ng, id);
    struct tc_h2_server_stream *server = s ? tc_h2_server_stream_of(s) : NULL;
    if (server && server->packing && (!tc_list_empty(&c->streams.packing) || !packing_work(server))) {
        if (!tc_list_linked(&server->packing_link))
            tc_list_append(&c->streams.packing, &server->packing_link);
        s->send.deferred = true;
        tc_h2_conn_rest(c);
        return NGHTTP2_ERR_DEFERRED;
    }
    return tc_h2_on_data_source_read(ng, id, buf, length, flags, source, user_data);
}
