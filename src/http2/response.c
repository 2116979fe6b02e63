/* A client's view of the response: headers, trailers, and what the status is when they do not say so. */
#include "base/mem.h"
#include "http2/internal.h"

#define MAX_INFORMATIONAL 32
#define MAX_BODY_BYTES 256

int tc_h2_code_from_http(unsigned http_status)
{
    /* http-grpc-status-mapping.md */
    switch (http_status) {
    case 400:
        return TORC_STATUS_INTERNAL;
    case 401:
        return TORC_STATUS_UNAUTHENTICATED;
    case 403:
        return TORC_STATUS_PERMISSION_DENIED;
    case 404:
        return TORC_STATUS_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return TORC_STATUS_UNAVAILABLE;
    default:
        return TORC_STATUS_UNKNOWN;
    }
}

struct tc_status tc_h2_status_from_rst(uint32_t h2_error)
{
    int code = TORC_STATUS_UNKNOWN;
    switch (h2_error) {
    case NGHTTP2_NO_ERROR:
    case NGHTTP2_PROTOCOL_ERROR:
    case NGHTTP2_INTERNAL_ERROR:
    case NGHTTP2_FLOW_CONTROL_ERROR:
    case NGHTTP2_SETTINGS_TIMEOUT:
    case NGHTTP2_FRAME_SIZE_ERROR:
    case NGHTTP2_COMPRESSION_ERROR:
    case NGHTTP2_CONNECT_ERROR:
        code = TORC_STATUS_INTERNAL;
        break;
    case NGHTTP2_REFUSED_STREAM:
        code = TORC_STATUS_UNAVAILABLE;
        break;
    case NGHTTP2_CANCEL:
        code = TORC_STATUS_CANCELLED;
        break;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        code = TORC_STATUS_RESOURCE_EXHAUSTED;
        break;
    case NGHTTP2_INADEQUATE_SECURITY:
        code = TORC_STATUS_PERMISSION_DENIED;
        break;
    default:
        break;
    }
    return tc_status_make(code, "stream reset by the server with %s (%u)", nghttp2_http2_strerror(h2_error),
                          (unsigned)h2_error);
}

static struct tc_slice keep(struct tc_h2_stream *s, struct tc_slice text)
{
    char *copy = tc_arena_dup(s->arena, text);
    s->block_over |= copy == NULL;
    return tc_slice_of(copy, copy ? text.len : 0);
}

void tc_h2_response_begin(struct tc_h2_stream *s)
{
    s->block = s->got_headers ? &s->trailers : &s->headers;
    s->block->len = 0;
    s->grpc_status = -1;
    s->grpc_message = s->bad_status = (struct tc_slice){0};
    if (!s->got_headers)
        s->http_status = 0;
}

static void on_grpc_status(struct tc_h2_stream *s, struct tc_slice value)
{
    uint64_t code;
    if (s->grpc_status != -1)
        return;
    if (tc_parse_u64(value, TORC_STATUS_UNAUTHENTICATED, &code) == 0) {
        s->grpc_status = (int)code;
    } else {
        s->grpc_status = -2;
        s->bad_status = keep(s, tc_slice_of(value.data, TC_MIN(value.len, (size_t)64)));
    }
}

static void on_encoding(struct tc_h2_stream *s, struct tc_slice value)
{
    if (tc_slice_eq_str(value, "gzip"))
        s->decoder.encoding = TC_H2_GZIP;
    else if (!tc_slice_eq_str(value, "identity"))
        s->bad_encoding = keep(s, value);
}

static void on_other(struct tc_h2_stream *s, struct tc_slice name, struct tc_slice value)
{
    int rc = tc_h2_metadata_add(s, s->block, name, value);
    if (rc == TORC_EPARSE)
        s->bad_header = keep(s, name);
    else if (rc)
        s->block_over = true;
}

void tc_h2_response_on_header(struct tc_h2_stream *s, struct tc_slice name, struct tc_slice value)
{
    uint64_t status;
    if (name.len && name.data[0] == ':') {
        if (tc_slice_eq_str(name, ":status") && tc_parse_u64(value, 999, &status) == 0)
            s->http_status = (uint16_t)status;
    } else if (tc_slice_eq_str(name, "content-type")) {
        if (!s->got_headers)
            s->content_type = keep(s, tc_slice_trim(value));
    } else if (!tc_slice_starts(name, tc_slice_of("grpc-", 5))) {
        on_other(s, name, value);
    } else if (tc_slice_eq_str(name, "grpc-status")) {
        on_grpc_status(s, tc_slice_trim(value));
    } else if (tc_slice_eq_str(name, "grpc-message")) {
        s->grpc_message = keep(s, value);
    } else if (tc_slice_eq_str(name, "grpc-encoding")) {
        on_encoding(s, tc_slice_trim(value));
    } else if (!tc_slice_eq_str(name, "grpc-accept-encoding")) {
        on_other(s, name, value);
    }
}

bool tc_h2_grpc_content_type(struct tc_slice type)
{
    return tc_slice_istarts(type, tc_slice_of("application/grpc", 16)) &&
           (type.len == 16 || type.data[16] == '+' || type.data[16] == ';');
}

static struct tc_status status_of_trailers(struct tc_h2_stream *s)
{
    struct tc_buf text = {0};
    if (s->grpc_status == -2)
        tc_buf_printf(&text, "invalid grpc-status \"%.*s\"%s", (int)s->bad_status.len, s->bad_status.data,
                      s->grpc_message.len ? ": " : "");
    tc_grpc_message_decode(&text, s->grpc_message);
    struct tc_status status = {s->grpc_status < 0 ? TORC_STATUS_UNKNOWN : s->grpc_status,
                               text.len ? tc_rstr_new(text.data, text.len) : NULL};
    tc_buf_fini(&text);
    return status;
}

/* The response is no gRPC: says what it was. */
static struct tc_status status_of_http(const struct tc_h2_stream *s)
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
    struct tc_status status = {code, tc_rstr_new(text.data, text.len)};
    tc_buf_fini(&text);
    return status;
}

static void conclude(struct tc_h2_stream *s)
{
    if (s->grpc_status != -1)
        tc_h2_stream_finish(s, status_of_trailers(s), true);
    else if (!s->is_grpc)
        tc_h2_stream_finish(s, status_of_http(s), false);
    else
        tc_h2_stream_finish(
            s, tc_status_make(TORC_STATUS_INTERNAL, "server closed the stream without sending trailers"), false);
}

/* The block as such: within the limit and well formed. */
static bool block_ok(struct tc_h2_stream *s)
{
    if (s->block_over) {
        tc_h2_stream_abort(s,
                           tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED,
                                          "received headers larger than max (%zu vs. %zu)", s->block_bytes,
                                          s->max_header_bytes),
                           NGHTTP2_CANCEL);
        return false;
    }
    if (s->bad_header.len) {
        tc_h2_stream_abort(s,
                           tc_status_make(TORC_STATUS_INTERNAL, "received header %.*s that is not valid base64",
                                          (int)s->bad_header.len, s->bad_header.data),
                           NGHTTP2_CANCEL);
        return false;
    }
    return true;
}

static void on_initial(struct tc_h2_stream *s, bool end_stream)
{
    s->got_headers = true;
    s->is_grpc = s->http_status == 200 && tc_h2_grpc_content_type(s->content_type);
    if (end_stream) {
        s->trailers_only = true;
        s->trailers = s->headers;
        tc_headers_init(&s->headers, s->arena);
        conclude(s);
    } else if (s->is_grpc && s->bad_encoding.len) {
        tc_h2_stream_abort(s,
                           tc_status_make(TORC_STATUS_INTERNAL, "received unknown grpc-encoding \"%.*s\"",
                                          (int)TC_MIN(s->bad_encoding.len, (size_t)64), s->bad_encoding.data),
                           NGHTTP2_CANCEL);
    } else if (s->is_grpc) {
        s->headers_due = true;
        tc_h2_stream_ready(s);
    }
}

void tc_h2_response_on_block(struct tc_h2_stream *s, bool end_stream)
{
    s->remote_ended |= end_stream;
    if (s->finished || !block_ok(s))
        return;
    if (s->got_headers) {
        if (end_stream)
            conclude(s);
    } else if (s->http_status / 100 != 1) {
        on_initial(s, end_stream);
    } else if (++s->informational > MAX_INFORMATIONAL) {
        tc_h2_stream_abort(s, tc_status_make(TORC_STATUS_INTERNAL, "too many informational responses"),
                           NGHTTP2_ENHANCE_YOUR_CALM);
    }
}

void tc_h2_response_on_end(struct tc_h2_stream *s)
{
    if (!s->finished)
        conclude(s);
}

void tc_h2_response_on_body(struct tc_h2_stream *s, const uint8_t *data, size_t len)
{
    tc_buf_append(&s->body, data, TC_MIN(len, MAX_BODY_BYTES - s->body.len));
    /* Enough to say what it is; the rest is not waited for. */
    if (s->body.len >= MAX_BODY_BYTES && !s->finished)
        tc_h2_stream_abort(s, status_of_http(s), NGHTTP2_CANCEL);
}
