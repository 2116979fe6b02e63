/* A request on its way in: its header fields, and the requests that are rejected here, which the owner never sees.
 *
 * As in grpc-go, some faults have an HTTP status besides grpc-status: a wrong method 405, a wrong content-type 415, a
 * malformed grpc-timeout or -bin field 400. Every other fault has a grpc-status under HTTP status 200. The DATA of a
 * rejected request is discarded.
 *
 * A path that is not "/service/method" is rejected before any authorization looks at it, and is never corrected: the
 * corrected path would differ from the path that was authorized (CVE-2026-33186 of grpc-go). A41: `host` replaces a
 * missing :authority, and is dropped beside one. nghttp2 rejects repeated :authority or host fields, and
 * connection-specific headers.
 *
 * The functions run inside of nghttp2's callbacks (session.c), so they call no owner and free no stream: the delivery
 * announces a request (on_stream_due). Fields are copied to the stream's arena. Loop thread only. */
#include "http2/server_stream_internal.h"
#include "http2/timeout.h"

static void request_on_pseudo(struct tc_h2_server_stream *s, struct tc_slice name, struct tc_slice value)
{
    if (tc_slice_eq_str(name, ":method")) {
        s->is_post = tc_slice_eq_str(value, "POST");
        return;
    }
    bool path = tc_slice_eq_str(name, ":path");
    if (!path && !tc_slice_eq_str(name, ":authority"))
        return;
    if (tc_headers_add_copy(&s->stream.headers, name, value))
        s->stream.block.over = true;
    else if (path)
        s->path = s->stream.headers.data[s->stream.headers.len - 1].value;
    s->has_authority |= !path;
}

/* Inserts `host` as :authority, behind the other pseudo-headers, unless the request has one. */
static void request_on_host(struct tc_h2_server_stream *s, struct tc_slice value)
{
    struct tc_headers *h = &s->stream.headers;
    if (s->has_authority)
        return;
    s->has_authority = true;
    if (tc_headers_add_copy(h, tc_slice_str(":authority"), value)) {
        s->stream.block.over = true;
        return;
    }
    struct tc_header authority = h->data[h->len - 1];
    size_t at = 0;
    while (at < h->len - 1 && h->data[at].name.data[0] == ':')
        at++;
    memmove(&h->data[at + 1], &h->data[at], (h->len - 1 - at) * sizeof(authority));
    h->data[at] = authority;
}

static bool list_has_gzip(struct tc_slice list)
{
    bool more = true, found = false;
    struct tc_slice item;
    while (!found && tc_slice_split(&list, &more, ',', &item))
        found = tc_slice_eq_str(tc_slice_trim(item), "gzip");
    return found;
}

/* Takes a field that is not metadata. Returns false for a field of metadata. Of several fields of one name the last one
 * counts, but grpc-accept-encoding is a list, which several fields extend. */
static bool request_on_grpc_field(struct tc_h2_server_stream *s, struct tc_slice name, struct tc_slice value)
{
    if (tc_slice_eq_str(name, "content-type")) {
        s->stream.is_grpc = tc_h2_is_grpc_content_type(value);
    } else if (tc_slice_eq_str(name, "grpc-timeout")) {
        s->bad_timeout = tc_h2_timeout_decode(value, &s->timeout_ns) != 0;
        s->has_timeout = !s->bad_timeout;
    } else if (tc_slice_eq_str(name, "grpc-encoding")) {
        bool gzip = tc_slice_eq_str(value, "gzip");
        s->stream.recv.decoder.encoding = gzip ? TC_H2_GZIP : TC_H2_IDENTITY;
        s->unknown_encoding = gzip || tc_slice_eq_str(value, "identity") ? NULL : tc_arena_dup(&s->own_arena, value);
    } else if (tc_slice_eq_str(name, "grpc-accept-encoding")) {
        s->accepts_gzip |= list_has_gzip(value);
    } else {
        return tc_slice_eq_str(name, "te") || tc_slice_eq_str(name, "content-length");
    }
    return true;
}

void tc_h2_server_stream_on_header(struct tc_h2_server_stream *s, struct tc_slice name, struct tc_slice value)
{
    if (s->stream.got_headers)
        return; /* trailers of a request have no meaning in gRPC */
    if (name.len && name.data[0] == ':') {
        request_on_pseudo(s, name, value);
        return;
    }
    if (tc_slice_eq_str(name, "host")) {
        request_on_host(s, value);
        return;
    }
    if (request_on_grpc_field(s, name, tc_slice_trim(value)))
        return;
    int rc = tc_h2_metadata_add(&s->stream.block, &s->stream.c->scratch, name, value);
    if (rc == TORC_EPARSE)
        s->bad_base64 = true;
    else if (rc)
        s->stream.block.over = true;
}

/* Answers with an HTTP status, a field that belongs to it (`name` NULL: none), and a gRPC status for clients of gRPC:
 * `code` is its number in decimal, `text` its message. nghttp2 copies the values. */
static void reject_http(struct tc_h2_server_stream *s, const char *status, const char *name, const char *value,
                        const char *code, const char *text)
{
    nghttp2_nv nva[] = {
        tc_h2_nv(tc_slice_str(":status"), tc_slice_str(status), NGHTTP2_NV_FLAG_NO_COPY_NAME),
        tc_h2_nv(tc_slice_str("grpc-status"), tc_slice_str(code), NGHTTP2_NV_FLAG_NO_COPY_NAME),
        tc_h2_nv(tc_slice_str("grpc-message"), tc_slice_str(text), NGHTTP2_NV_FLAG_NO_COPY_NAME),
        tc_h2_nv(tc_slice_str(name ? name : ""), tc_slice_str(name ? value : ""), NGHTTP2_NV_FLAG_NONE),
    };
    s->rejected = s->stream.send.end_wanted = s->stream.recv.discard = true;
    nghttp2_submit_response(s->stream.c->ng, s->stream.id, nva, TC_ARRAY_LEN(nva) - !name, NULL);
}

/* Returns whether a path is "/service/method", both not empty. The service may have slashes of its own. */
static bool path_is_valid(struct tc_slice path)
{
    if (path.len < 4 || path.data[0] != '/' || path.data[1] == '/')
        return false;
    return memchr(path.data + 2, '/', path.len - 2) != NULL && path.data[path.len - 1] != '/';
}

static void reject_malformed(struct tc_h2_server_stream *s, const char *text)
{
    reject_http(s, "400", "content-type", "application/grpc", "13", text);
}

/* Takes over the status. */
static void reject_status(struct tc_h2_server_stream *s, struct tc_status status)
{
    s->rejected = s->stream.recv.discard = true;
    tc_h2_server_stream_send_status(&s->stream, &status, NULL);
    tc_status_fini(&status);
}

static void reject_grpc(struct tc_h2_server_stream *s, int code, const char *text)
{
    reject_status(s, tc_status_make(code, TORC_LAYER_HTTP2, "%s", text));
}

static void reject_encoding(struct tc_h2_server_stream *s)
{
    reject_status(s, tc_status_make(TORC_STATUS_UNIMPLEMENTED, TORC_LAYER_HTTP2,
                                    "grpc-encoding \"%.100s\" is not supported, but identity and gzip are",
                                    s->unknown_encoding));
}

void tc_h2_server_stream_on_block(struct tc_h2_server_stream *s, bool end_stream)
{
    s->stream.recv.ended |= end_stream;
    if (s->stream.got_headers) {
        tc_h2_stream_ready(&s->stream);
        return;
    }
    s->stream.got_headers = true;
    s->stream.c->streams.request_ms = tc_loop_now_ms(s->stream.c->loop);
    if (s->stream.block.over)
        reject_grpc(s, TORC_STATUS_RESOURCE_EXHAUSTED, "request headers larger than max");
    else if (!s->is_post)
        reject_http(s, "405", "allow", "POST", "13", "the method of the request must be POST");
    else if (!s->stream.is_grpc)
        reject_http(s, "415", NULL, NULL, "3", "the content-type of the request must be application/grpc");
    else if (!path_is_valid(s->path))
        reject_grpc(s, TORC_STATUS_UNIMPLEMENTED, "malformed method name");
    else if (s->bad_timeout)
        reject_malformed(s, "malformed grpc-timeout");
    else if (s->bad_base64)
        reject_malformed(s, "binary header that is not valid base64");
    else if (s->unknown_encoding)
        reject_encoding(s);
    else if (s->has_timeout && s->timeout_ns == 0)
        reject_grpc(s, TORC_STATUS_DEADLINE_EXCEEDED, "the deadline of the request has passed");
    else {
        s->on_stream_due = true;
        tc_h2_stream_ready(&s->stream);
    }
}
