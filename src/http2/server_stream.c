/* The server's side of a call: the request's headers, and response headers and trailers. */
#include <stdio.h>

#include "base/mem.h"
#include "http2/internal.h"

#define LITERAL(text) tc_slice_of(text, sizeof(text) - 1)
#define STATIC_BOTH (NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE)
#define OWN_FIELDS 6
#define STACK_FIELDS 24
#define ARENA_BYTES 1024
/* Kept for the next requests while some run. */
#define MAX_SPARE 32

struct tc_h2_stream *tc_h2_server_stream_new(struct tc_h2_conn *c, int32_t id)
{
    struct tc_h2_stream *s = c->spare;
    if (s) {
        c->spare = s->next_spare;
        struct tc_arena arena = s->own_arena;
        *s = (struct tc_h2_stream){.own_arena = arena};
        tc_arena_reset(&s->own_arena);
        c->n_spare--;
    } else {
        s = TC_NEW(struct tc_h2_stream);
        tc_arena_init(&s->own_arena, ARENA_BYTES, 0);
    }
    s->server = true;
    tc_h2_stream_init(s, c, &s->own_arena);
    s->id = id;
    s->block = &s->headers;
    return s;
}

void tc_h2_server_stream_free(struct tc_h2_conn *c, struct tc_h2_stream *s)
{
    if (!c->closed && c->n_spare < MAX_SPARE) {
        s->next_spare = c->spare;
        c->spare = s;
        c->n_spare++;
        return;
    }
    tc_arena_fini(&s->own_arena);
    tc_free(s);
}

void tc_h2_server_drop_spare(struct tc_h2_conn *c, unsigned keep)
{
    while (c->n_spare > keep) {
        struct tc_h2_stream *s = c->spare;
        c->spare = s->next_spare;
        c->n_spare--;
        tc_arena_fini(&s->own_arena);
        tc_free(s);
    }
}

const struct tc_headers *tc_h2_stream_request(const struct tc_h2_stream *s)
{
    return &s->headers;
}

uint64_t tc_h2_stream_timeout_ns(const struct tc_h2_stream *s)
{
    return s->timeout_ns;
}

static void on_pseudo(struct tc_h2_stream *s, struct tc_slice name, struct tc_slice value)
{
    if (tc_slice_eq_str(name, ":method")) {
        s->is_post = tc_slice_eq_str(value, "POST");
        return;
    }
    bool path = tc_slice_eq_str(name, ":path");
    if (!path && !tc_slice_eq_str(name, ":authority"))
        return;
    if (tc_headers_add_copy(&s->headers, name, value))
        s->block_over = true;
    else if (path)
        s->path = s->headers.data[s->headers.len - 1].value;
}

static bool own_header(struct tc_h2_stream *s, struct tc_slice name, struct tc_slice value)
{
    if (tc_slice_eq_str(name, "content-type")) {
        s->is_grpc = tc_h2_grpc_content_type(value);
    } else if (tc_slice_eq_str(name, "grpc-timeout")) {
        s->bad_timeout |= tc_h2_timeout_decode(value, &s->timeout_ns) != 0;
    } else if (tc_slice_eq_str(name, "grpc-encoding")) {
        if (tc_slice_eq_str(value, "gzip"))
            s->decoder.encoding = TC_H2_GZIP;
        else
            s->unknown_encoding |= !tc_slice_eq_str(value, "identity");
    } else if (tc_slice_eq_str(name, "grpc-accept-encoding")) {
        s->accepts_gzip |= tc_slice_find(value, LITERAL("gzip")) >= 0;
    } else {
        return tc_slice_eq_str(name, "te") || tc_slice_eq_str(name, "content-length");
    }
    return true;
}

void tc_h2_server_on_header(struct tc_h2_stream *s, struct tc_slice name, struct tc_slice value)
{
    if (s->got_headers)
        return; /* trailers of a request mean nothing in gRPC */
    if (name.len && name.data[0] == ':') {
        on_pseudo(s, name, value);
        return;
    }
    if (own_header(s, name, tc_slice_trim(value)))
        return;
    int rc = tc_h2_metadata_add(s, &s->headers, name, value);
    if (rc == TORC_EPARSE)
        s->bad_base64 = true;
    else if (rc)
        s->block_over = true;
}

static void refuse_http(struct tc_h2_stream *s, const char *status)
{
    nghttp2_nv nv = tc_h2_nv(LITERAL(":status"), tc_slice_str(status), NGHTTP2_NV_FLAG_NO_COPY_NAME);
    s->refused = s->end_wanted = s->discard = true;
    nghttp2_submit_response(s->c->ng, s->id, &nv, 1, NULL);
}

static void refuse_grpc(struct tc_h2_stream *s, int code, const char *text)
{
    struct tc_status status = tc_status_make(code, "%s", text);
    s->refused = s->discard = true;
    tc_h2_stream_send_status(s, &status, NULL);
    tc_status_fini(&status);
}

void tc_h2_server_on_block(struct tc_h2_stream *s, bool end_stream)
{
    s->remote_ended |= end_stream;
    if (s->got_headers) {
        tc_h2_stream_ready(s);
        return;
    }
    s->got_headers = true;
    if (s->block_over)
        refuse_grpc(s, TORC_STATUS_RESOURCE_EXHAUSTED, "request headers larger than max");
    else if (!s->is_post)
        refuse_http(s, "405");
    else if (!s->is_grpc)
        refuse_http(s, "415");
    else if (!s->path.len || s->path.data[0] != '/')
        refuse_grpc(s, TORC_STATUS_UNIMPLEMENTED, "malformed method name");
    else if (s->bad_timeout)
        refuse_grpc(s, TORC_STATUS_INTERNAL, "malformed grpc-timeout");
    else if (s->bad_base64)
        refuse_grpc(s, TORC_STATUS_INTERNAL, "binary header that is not valid base64");
    else if (s->unknown_encoding)
        refuse_grpc(s, TORC_STATUS_UNIMPLEMENTED, "unknown grpc-encoding");
    else {
        s->announce = true;
        tc_h2_stream_ready(s);
    }
}

/* Appends the response headers that every answer has. */
static size_t response_fields(nghttp2_nv *nva, enum tc_h2_encoding encoding)
{
    size_t n = 0;
    nva[n++] = tc_h2_nv(LITERAL(":status"), LITERAL("200"), STATIC_BOTH);
    nva[n++] = tc_h2_nv(LITERAL("content-type"), LITERAL("application/grpc"), STATIC_BOTH);
    nva[n++] = tc_h2_nv(LITERAL("grpc-accept-encoding"), LITERAL("identity,gzip"), STATIC_BOTH);
    if (encoding == TC_H2_GZIP)
        nva[n++] = tc_h2_nv(LITERAL("grpc-encoding"), LITERAL("gzip"), STATIC_BOTH);
    return n;
}

static size_t status_fields(struct tc_h2_conn *c, nghttp2_nv *nva, const struct tc_status *status, char code[16])
{
    size_t n = 0;
    struct tc_slice value = LITERAL("0");
    if (!tc_status_ok(status))
        value.data = code, value.len = (size_t)snprintf(code, 16, "%d", status->code);
    nva[n++] = tc_h2_nv(LITERAL("grpc-status"), value, NGHTTP2_NV_FLAG_NO_COPY_NAME);
    if (status->text && status->text->len) {
        size_t at = c->scratch.len;
        tc_grpc_message_encode(&c->scratch, tc_rstr_slice(status->text));
        nva[n++] = tc_h2_nv(LITERAL("grpc-message"), tc_slice_of(c->scratch.data + at, c->scratch.len - at),
                            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_INDEX);
    }
    return n;
}

/* Room for own fields and those of h, on the caller's stack where they fit. */
static nghttp2_nv *fields_room(nghttp2_nv *stack, const struct tc_headers *h)
{
    size_t more = h ? h->len : 0;
    return more <= STACK_FIELDS - OWN_FIELDS ? stack : tc_reallocarray(NULL, more + OWN_FIELDS, sizeof(*stack));
}

/* Binary values and the status text, encoded, must not move while they are referred to. */
static void scratch_room(struct tc_h2_conn *c, const struct tc_headers *h, const struct tc_status *status)
{
    tc_buf_clear(&c->scratch);
    tc_buf_reserve(&c->scratch, tc_h2_metadata_scratch(h) + (status && status->text ? 3 * status->text->len : 0) + 1);
}

int tc_h2_stream_send_headers(struct tc_h2_stream *s, const struct tc_headers *headers, enum tc_h2_encoding encoding)
{
    if (!s->c || !s->c->ng || s->id <= 0 || s->responded || s->end_wanted)
        return TORC_ESTATE;
    nghttp2_nv stack[STACK_FIELDS], *nva = fields_room(stack, headers);
    s->responded = true;
    s->encoding = s->accepts_gzip ? encoding : TC_H2_IDENTITY;
    scratch_room(s->c, headers, NULL);
    size_t n = response_fields(nva, s->encoding);
    n += tc_h2_metadata_encode(s->c, headers, nva + n);
    nghttp2_data_provider body = {.read_callback = tc_h2_on_data_source_read};
    nghttp2_submit_response(s->c->ng, s->id, nva, n, &body);
    tc_h2_conn_flush_later(s->c);
    if (nva != stack)
        tc_free(nva);
    return 0;
}

static void submit_trailers_only(struct tc_h2_stream *s, const struct tc_status *status,
                                 const struct tc_headers *trailers)
{
    nghttp2_nv stack[STACK_FIELDS], *nva = fields_room(stack, trailers);
    char code[16];
    s->responded = s->end_wanted = true;
    scratch_room(s->c, trailers, status);
    size_t n = response_fields(nva, TC_H2_IDENTITY);
    n += status_fields(s->c, nva + n, status, code);
    n += tc_h2_metadata_encode(s->c, trailers, nva + n);
    nghttp2_submit_response(s->c->ng, s->id, nva, n, NULL);
    tc_h2_conn_flush_later(s->c);
    if (nva != stack)
        tc_free(nva);
}

void tc_h2_server_submit_trailers(struct tc_h2_stream *s)
{
    nghttp2_nv stack[STACK_FIELDS], *nva = fields_room(stack, &s->out_trailers);
    char code[16];
    scratch_room(s->c, &s->out_trailers, &s->out_status);
    size_t n = status_fields(s->c, nva, &s->out_status, code);
    n += tc_h2_metadata_encode(s->c, &s->out_trailers, nva + n);
    nghttp2_submit_trailer(s->c->ng, s->id, nva, n);
    if (nva != stack)
        tc_free(nva);
}

int tc_h2_stream_send_status(struct tc_h2_stream *s, const struct tc_status *status, const struct tc_headers *trailers)
{
    if (!s->c || !s->c->ng || s->id <= 0 || s->end_wanted)
        return TORC_ESTATE;
    s->discard = true;
    if (!s->responded) {
        submit_trailers_only(s, status, trailers);
        return 0;
    }
    s->out_status = tc_status_ref(status);
    for (size_t i = 0; trailers && i < trailers->len; i++)
        tc_headers_add_copy(&s->out_trailers, trailers->data[i].name, trailers->data[i].value);
    s->end_wanted = true;
    tc_h2_stream_resume(s);
    return 0;
}
