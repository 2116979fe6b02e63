/* The response, as a client reads it: header blocks, and the status they make.
 *
 *   begin        nghttp2 begins a block: the response's headers, trailers, or an informational (1xx) response.
 *   on_header    :status, content-type, grpc-status, grpc-message and grpc-encoding are kept in the stream.
 *                grpc-accept-encoding, and content-type and grpc-encoding of trailers, are dropped. All else is
 *                metadata for `headers` or `trailers`.
 *   on_block     The block is complete. A 1xx block is forgotten; beyond MAX_INFORMATIONAL of them the RPC ends. The
 *                first other block is the headers, or, if it ends the stream, trailers-only. A later block concludes
 *                the response only if it ends the stream. A block beyond the limit, or with a bad -bin value, ends the
 *                RPC in any case.
 *   on_body      DATA of a response that is not gRPC. Its first MAX_BODY_BYTES are kept for the text of status_of_http.
 *                Once that many bytes came, the RPC ends with that status.
 *   conclude     END_STREAM came. The outcome is the first of these that applies:
 *                  - INTERNAL, if grpc-status-details-bin contradicts grpc-status,
 *                  - grpc-status (UNKNOWN if its value is invalid),
 *                  - status_of_http, if the response is not gRPC,
 *                  - status_of_nothing, which says which part is missing.
 *
 * Texts of fields are copied to the call's arena. If a text does not fit, its block counts as beyond the limit. Loop
 * thread only. */
#include "base/parse.h"
#include "http2/client_stream_internal.h"
#include "http2/status_mapping.h"
#include "proto/wire.h"

enum { MAX_INFORMATIONAL = 32, MAX_BODY_BYTES = 256 };

/* Returns a copy in the arena. If there is no room, returns an empty text and marks the block as beyond the limit. */
static struct tc_slice response_keep_text(struct tc_h2_client_stream *s, struct tc_slice text)
{
    struct tc_slice copy = tc_arena_copy(s->stream.arena, text);
    s->stream.block.over |= copy.data == NULL;
    return copy;
}

static void response_forget_status(struct tc_h2_client_stream *s)
{
    s->grpc_status = TC_H2_STATUS_NONE;
    s->grpc_message = s->bad_status = (struct tc_slice){0};
}

void tc_h2_response_begin(struct tc_h2_client_stream *s)
{
    struct tc_h2_header_block *block = &s->stream.block;
    block->headers = s->stream.got_headers ? &s->trailers : &s->stream.headers;
    block->headers->len = 0;
    response_forget_status(s);
    if (s->stream.got_headers)
        return;
    s->http_status = 0;
    s->stream.is_grpc = false;
    s->stream.recv.decoder.encoding = TC_H2_IDENTITY;
    s->content_type = s->bad_encoding = (struct tc_slice){0};
}

TC_APART static void response_on_grpc_status(struct tc_h2_client_stream *s, struct tc_slice value)
{
    uint64_t code;
    if (tc_parse_u64(value, TORC_STATUS_UNAUTHENTICATED, &code) == 0) {
        s->grpc_status = (int)code;
    } else {
        s->grpc_status = TC_H2_STATUS_INVALID;
        s->bad_status = response_keep_text(s, tc_slice_of(value.data, TC_MIN(value.len, (size_t)64)));
    }
}

static void response_on_encoding(struct tc_h2_client_stream *s, struct tc_slice value)
{
    /* Trailers come after the messages: grpc-encoding in trailers says nothing about the messages. */
    if (s->stream.got_headers)
        return;
    bool gzip = tc_slice_eq_str(value, "gzip");
    s->stream.recv.decoder.encoding = gzip ? TC_H2_GZIP : TC_H2_IDENTITY;
    s->bad_encoding = gzip || tc_slice_eq_str(value, "identity") ? tc_slice_of(NULL, 0) : response_keep_text(s, value);
}

static void response_on_metadata(struct tc_h2_client_stream *s, struct tc_slice name, struct tc_slice value)
{
    int rc = tc_h2_metadata_add(&s->stream.block, &s->stream.c->scratch, name, value);
    if (rc == TORC_EPARSE)
        s->bad_header = response_keep_text(s, name);
    else if (rc)
        s->stream.block.over = true;
}

/* Sets is_grpc by the content-type alone; response_on_initial looks at HTTP's status too. Keeps a value that is not
 * gRPC's, for the status's text. */
static void response_on_content_type(struct tc_h2_client_stream *s, struct tc_slice value)
{
    s->stream.is_grpc = tc_h2_is_grpc_content_type(value);
    if (!s->stream.is_grpc)
        s->content_type = response_keep_text(s, value);
}

TC_APART static void response_on_pseudo(struct tc_h2_client_stream *s, struct tc_slice name, struct tc_slice value)
{
    uint64_t status;
    if (tc_slice_eq_str(name, ":status") && tc_parse_u64(value, 999, &status) == 0)
        s->http_status = (uint16_t)status;
}

/* A response may have grpc-status, grpc-message, content-type and grpc-encoding once. If one of them comes more often,
 * the last one counts, as in grpc-go and C-core. All follow the same rule, so that the status and the message are of
 * one pair. */
void tc_h2_response_on_header(struct tc_h2_client_stream *s, struct tc_slice name, struct tc_slice value)
{
    if (name.len && name.data[0] == ':') {
        response_on_pseudo(s, name, value);
    } else if (tc_slice_eq_str(name, "content-type")) {
        if (!s->stream.got_headers)
            response_on_content_type(s, tc_slice_trim(value));
    } else if (!tc_slice_starts(name, tc_slice_of("grpc-", 5))) {
        response_on_metadata(s, name, value);
    } else if (tc_slice_eq_str(name, "grpc-status")) {
        response_on_grpc_status(s, tc_slice_trim(value));
    } else if (tc_slice_eq_str(name, "grpc-message")) {
        s->grpc_message = response_keep_text(s, value);
    } else if (tc_slice_eq_str(name, "grpc-encoding")) {
        response_on_encoding(s, tc_slice_trim(value));
    } else if (!tc_slice_eq_str(name, "grpc-accept-encoding")) {
        response_on_metadata(s, name, value);
    }
}

static struct tc_status status_of_trailers(struct tc_h2_client_stream *s)
{
    struct tc_buf text = {0};
    if (s->grpc_status == TC_H2_STATUS_INVALID)
        tc_buf_printf(&text, "invalid grpc-status \"%.*s\"%s", (int)s->bad_status.len, s->bad_status.data,
                      s->grpc_message.len ? ": " : "");
    tc_grpc_message_decode(&text, s->grpc_message);
    struct tc_status status = {s->grpc_status < 0 ? TORC_STATUS_UNKNOWN : s->grpc_status, TORC_LAYER_PEER,
                               text.len ? tc_rstr_new(text.data, text.len) : NULL};
    tc_buf_fini(&text);
    return status;
}

/* Stores the code of a serialised google.rpc.Status, its field 1. Returns false if the bytes are malformed or have no
 * code. */
static bool status_details_code(struct tc_slice details, uint64_t *code)
{
    struct tc_wire_field f;
    bool found = false;
    while (details.len) {
        if (!tc_wire_next(&details, &f))
            return false;
        if (f.number == 1 && f.is_varint) {
            *code = (uint32_t)f.varint;
            found = true;
        }
    }
    return found;
}

/* Returns true, with its code in *code, if grpc-status-details-bin contradicts grpc-status. PROTOCOL-HTTP2.md asks
 * clients to check it. As in grpc-go, a field that comes more than once or is not a google.rpc.Status is ignored. */
static bool status_details_contradict(const struct tc_h2_client_stream *s, uint64_t *code)
{
    const struct tc_header *details = NULL;
    for (size_t i = 0; i < s->trailers.len; i++) {
        const struct tc_header *h = &s->trailers.data[i];
        if (!tc_slice_eq_str(h->name, "grpc-status-details-bin"))
            continue;
        if (details)
            return false;
        details = h;
    }
    return details && status_details_code(details->value, code) && *code != (uint64_t)s->grpc_status;
}

/* Returns the status of a response that is not gRPC, with a text that describes the response. */
static struct tc_status status_of_http(const struct tc_h2_client_stream *s)
{
    struct tc_buf text = {0};
    int code = TORC_STATUS_UNKNOWN;
    if (s->http_status != 200) {
        code = tc_h2_code_from_http(s->http_status);
        tc_buf_printf(&text, "server answered with HTTP status %u", s->http_status);
    } else if (s->content_type.len) {
        tc_buf_printf(&text, "server answered with content-type \"%.*s\"",
                      (int)TC_MIN(s->content_type.len, (size_t)128), s->content_type.data);
    } else {
        tc_buf_append_str(&text, "server answered without content-type");
    }
    if (s->body.len) {
        tc_buf_append_str(&text, ": ");
        for (size_t i = 0; i < s->body.len; i++) {
            char ch = s->body.data[i];
            tc_buf_append_char(&text, ch >= 0x20 && ch <= 0x7e ? ch : ' ');
        }
    }
    struct tc_status status = {code, TORC_LAYER_HTTP2, tc_rstr_of_buf(&text)};
    return status;
}

/* Returns the status of a gRPC response without grpc-status: INTERNAL if the stream ended on DATA, without trailers
 * (PROTOCOL-HTTP2.md), else UNKNOWN (http-grpc-status-mapping.md). */
static struct tc_status status_of_nothing(bool trailers)
{
    if (trailers)
        return tc_status_make(TORC_STATUS_UNKNOWN, TORC_LAYER_HTTP2, "server sent trailers without grpc-status");
    return tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2, "server closed the stream without sending trailers");
}

/* The response is complete. `trailers`: a header block ended the stream, not DATA. */
static void response_conclude(struct tc_h2_client_stream *s, bool trailers)
{
    uint64_t code = 0;
    s->stream.c->answered |= s->grpc_status != TC_H2_STATUS_NONE && !s->aside;
    if (s->grpc_status >= 0 && status_details_contradict(s, &code))
        tc_h2_client_stream_finish(s,
                                   tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2,
                                                  "grpc-status-details-bin has code %llu, but grpc-status is %d",
                                                  (unsigned long long)code, s->grpc_status),
                                   false);
    else if (s->grpc_status != TC_H2_STATUS_NONE)
        tc_h2_client_stream_finish(s, status_of_trailers(s), true);
    else if (!s->stream.is_grpc)
        tc_h2_client_stream_finish(s, status_of_http(s), false);
    else
        tc_h2_client_stream_finish(s, status_of_nothing(trailers), false);
}

void tc_h2_response_too_large(struct tc_h2_client_stream *s)
{
    tc_h2_client_stream_abort(s,
                              tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_LIMIT,
                                             "received headers larger than max (%zu vs. %zu)", s->stream.block.bytes,
                                             s->stream.block.max_bytes),
                              NGHTTP2_CANCEL);
}

/* Returns false, and ends the RPC, if the block exceeds the limit or has a bad -bin value. */
static bool response_block_ok(struct tc_h2_client_stream *s)
{
    if (s->stream.block.over) {
        tc_h2_response_too_large(s);
        return false;
    }
    if (s->bad_header.len) {
        tc_h2_client_stream_abort(s,
                                  tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2,
                                                 "received header %.*s that is not valid base64",
                                                 (int)s->bad_header.len, s->bad_header.data),
                                  NGHTTP2_CANCEL);
        return false;
    }
    return true;
}

static void response_on_initial(struct tc_h2_client_stream *s, bool end_stream)
{
    s->stream.got_headers = true;
    s->stream.is_grpc &= s->http_status == 200;
    if (end_stream) {
        s->trailers_only = true;
        s->trailers = s->stream.headers;
        tc_headers_init(&s->stream.headers, s->stream.arena);
        response_conclude(s, true);
        return;
    }
    /* grpc-status counts only in the block that ends the stream. */
    response_forget_status(s);
    if (s->stream.is_grpc && s->bad_encoding.len) {
        tc_h2_client_stream_abort(s,
                                  tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_CODEC,
                                                 "received unknown grpc-encoding \"%.*s\"",
                                                 (int)TC_MIN(s->bad_encoding.len, (size_t)64), s->bad_encoding.data),
                                  NGHTTP2_CANCEL);
    } else if (s->stream.is_grpc) {
        s->on_headers_due = true;
        tc_h2_stream_ready(&s->stream);
    }
}

void tc_h2_response_on_block(struct tc_h2_client_stream *s, bool end_stream)
{
    s->stream.recv.ended |= end_stream;
    if (s->stream.finished || !response_block_ok(s))
        return;
    if (s->stream.got_headers) {
        if (end_stream)
            response_conclude(s, true);
    } else if (s->http_status / 100 != 1) {
        response_on_initial(s, end_stream);
    } else if (++s->informational > MAX_INFORMATIONAL) {
        tc_h2_client_stream_abort(
            s, tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2, "too many informational responses"),
            NGHTTP2_ENHANCE_YOUR_CALM);
    }
}

void tc_h2_response_on_end(struct tc_h2_client_stream *s)
{
    if (!s->stream.finished)
        response_conclude(s, false);
}

void tc_h2_response_on_body(struct tc_h2_client_stream *s, const uint8_t *data, size_t len)
{
    tc_buf_append(&s->body, data, TC_MIN(len, MAX_BODY_BYTES - s->body.len));
    /* Enough to describe the body: the rest is not wanted. */
    if (s->body.len >= MAX_BODY_BYTES && !s->stream.finished)
        tc_h2_client_stream_abort(s, status_of_http(s), NGHTTP2_CANCEL);
}
