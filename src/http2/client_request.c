/* A client's request headers, submitted to nghttp2. Binary values are encoded into the connection's scratch buffer.
 * nghttp2 copies them, so the buffer is free again after the submit; it is wiped if call credentials added headers. */
#include <stdio.h>

#include "base/mem.h"
#include "http2/client_stream_internal.h"
#include "http2/timeout.h"

#define LITERAL(text) tc_slice_of(text, sizeof(text) - 1)
/* STATIC_BOTH: nghttp2 need not copy our own constants. OWN_FIELDS: room for the fields that are not metadata.
 * STACK_FIELDS: how many fields of a request fit on the stack. */
enum { STATIC_BOTH = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE, OWN_FIELDS = 12, STACK_FIELDS = 48 };

/* Returns the size of the fields as RFC 9113 6.5.2 counts a header list (32 bytes for each field). A binary value
 * counts with its length in base64 and at most 4 bytes more. `list` may be NULL. */
static size_t headers_size(const struct tc_headers *list)
{
    size_t bytes = 0;
    for (size_t i = 0; list && i < list->len; i++) {
        const struct tc_header *h = &list->data[i];
        bytes += 32 + h->name.len + (tc_header_is_binary(h->name) ? h->value.len / 3 * 4 + 4 : h->value.len);
    }
    return bytes;
}

size_t tc_h2_request_size(const struct tc_h2_request *r)
{
    return r->path.len + r->authority.len + r->user_agent.len + OWN_FIELDS * 48 + headers_size(r->metadata) +
           headers_size(r->auth);
}

/* Stores the fields that are not metadata, at most OWN_FIELDS, at `nva`. Returns their number. `timeout` and `attempts`
 * are memory for values: the fields borrow them, and the request's texts, until they are submitted. */
static size_t request_own_fields(const struct tc_h2_request *r, bool secure, nghttp2_nv *nva, char timeout[16],
                                 char attempts[16])
{
    size_t n = 0;
    nva[n++] = tc_h2_nv(LITERAL(":method"), LITERAL("POST"), STATIC_BOTH);
    nva[n++] = tc_h2_nv(LITERAL(":scheme"), secure ? LITERAL("https") : LITERAL("http"), STATIC_BOTH);
    nva[n++] = tc_h2_nv(LITERAL(":path"), r->path, NGHTTP2_NV_FLAG_NO_COPY_NAME);
    nva[n++] = tc_h2_nv(LITERAL(":authority"), r->authority, NGHTTP2_NV_FLAG_NO_COPY_NAME);
    /* The timeout follows the pseudo-headers (PROTOCOL-HTTP2.md). The timeout and the count of attempts differ from
     * call to call: NO_INDEX keeps them out of the compression table. */
    if (r->timeout_ns)
        nva[n++] = tc_h2_nv(LITERAL("grpc-timeout"), tc_slice_of(timeout, tc_h2_timeout_encode(timeout, r->timeout_ns)),
                            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_INDEX);
    nva[n++] = tc_h2_nv(LITERAL("te"), LITERAL("trailers"), STATIC_BOTH);
    nva[n++] = tc_h2_nv(LITERAL("content-type"), LITERAL("application/grpc"), STATIC_BOTH);
    if (r->user_agent.len)
        nva[n++] = tc_h2_nv(LITERAL("user-agent"), r->user_agent, NGHTTP2_NV_FLAG_NO_COPY_NAME);
    nva[n++] = tc_h2_nv(LITERAL("grpc-accept-encoding"), LITERAL("identity,gzip"), STATIC_BOTH);
    if (r->encoding == TC_H2_GZIP)
        nva[n++] = tc_h2_nv(LITERAL("grpc-encoding"), LITERAL("gzip"), STATIC_BOTH);
    if (r->previous_attempts) {
        int len = snprintf(attempts, 16, "%u", (unsigned)r->previous_attempts);
        nva[n++] = tc_h2_nv(LITERAL("grpc-previous-rpc-attempts"), tc_slice_of(attempts, (size_t)len),
                            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_INDEX);
    }
    return n;
}

int tc_h2_request_submit(struct tc_h2_client_stream *s, const struct tc_h2_request *request)
{
    struct tc_h2_conn *c = s->stream.c;
    nghttp2_nv stack[STACK_FIELDS], *nva = stack;
    char timeout[16], attempts[16];
    size_t metadata = (request->metadata ? request->metadata->len : 0) + (request->auth ? request->auth->len : 0);
    if (metadata > STACK_FIELDS - OWN_FIELDS)
        nva = tc_reallocarray(NULL, metadata + OWN_FIELDS, sizeof(*nva));
    size_t n = request_own_fields(request, c->secure, nva, timeout, attempts);
    tc_buf_clear(&c->scratch);
    if (metadata) {
        tc_buf_reserve(&c->scratch, tc_h2_metadata_scratch(request->metadata) + tc_h2_metadata_scratch(request->auth));
        n += tc_h2_metadata_encode(&c->scratch, request->metadata, nva + n);
        n += tc_h2_metadata_encode(&c->scratch, request->auth, nva + n);
    }
    nghttp2_data_provider body = {.read_callback = tc_h2_on_data_source_read};
    int32_t id = nghttp2_submit_request(c->ng, NULL, nva, n, &body, &s->stream);
    if (request->auth && c->scratch.len)
        explicit_bzero(c->scratch.data, c->scratch.len); /* binary values may hold tokens */
    if (nva != stack)
        tc_free(nva);
    if (id < 0)
        return id;
    s->stream.id = id;
    return 0;
}
