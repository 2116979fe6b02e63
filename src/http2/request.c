/* A client's request headers. */
#include <stdio.h>

#include "base/mem.h"
#include "base/parse.h"
#include "http2/internal.h"

#define LITERAL(text) tc_slice_of(text, sizeof(text) - 1)
/* Our own constants need no copy inside nghttp2. */
#define STATIC_BOTH (NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE)
#define OWN_FIELDS 12
#define MAX_TIMEOUT_DIGITS 99999999u
#define STACK_FIELDS 48

/* Every call has one: cheaper than printf. */
static size_t put_timeout(char out[16], unsigned n, char unit)
{
    char digits[10];
    size_t i = sizeof(digits), len = 0;
    do {
        digits[--i] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    while (i < sizeof(digits))
        out[len++] = digits[i++];
    out[len++] = unit;
    out[len] = '\0';
    return len;
}

size_t tc_h2_timeout_encode(char out[16], uint64_t timeout_ns)
{
    static const struct {
        uint64_t ns;
        char unit;
    } units[] = {{1, 'n'},
                 {1000, 'u'},
                 {TC_NS_PER_MS, 'm'},
                 {TC_NS_PER_S, 'S'},
                 {60 * TC_NS_PER_S, 'M'},
                 {3600 * TC_NS_PER_S, 'H'}};
    /* The finest unit that holds it in 8 digits, rounded up: a deadline must not come early. */
    for (size_t i = 0; i < TC_ARRAY_LEN(units); i++) {
        uint64_t n = timeout_ns / units[i].ns + (timeout_ns % units[i].ns != 0);
        if (n <= MAX_TIMEOUT_DIGITS)
            return put_timeout(out, (unsigned)n, units[i].unit);
    }
    return put_timeout(out, MAX_TIMEOUT_DIGITS, 'H');
}

int tc_h2_timeout_decode(struct tc_slice s, uint64_t *timeout_ns)
{
    uint64_t n, unit;
    if (s.len < 2 || s.len > 9)
        return TORC_EPARSE;
    switch (s.data[s.len - 1]) {
    case 'n':
        unit = 1;
        break;
    case 'u':
        unit = 1000;
        break;
    case 'm':
        unit = TC_NS_PER_MS;
        break;
    case 'S':
        unit = TC_NS_PER_S;
        break;
    case 'M':
        unit = 60 * TC_NS_PER_S;
        break;
    case 'H':
        unit = 3600 * TC_NS_PER_S;
        break;
    default:
        return TORC_EPARSE;
    }
    if (tc_parse_u64(tc_slice_of(s.data, s.len - 1), 99999999, &n))
        return TORC_EPARSE;
    if (__builtin_mul_overflow(n, unit, timeout_ns))
        *timeout_ns = UINT64_MAX;
    return 0;
}

static size_t list_size(const struct tc_headers *list)
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
    return r->path.len + r->authority.len + r->user_agent.len + OWN_FIELDS * 48 + list_size(r->metadata) +
           list_size(r->auth);
}

static size_t own_fields(const struct tc_h2_request *r, nghttp2_nv *nva, char timeout[16], char attempts[16])
{
    size_t n = 0;
    nva[n++] = tc_h2_nv(LITERAL(":method"), LITERAL("POST"), STATIC_BOTH);
    nva[n++] = tc_h2_nv(LITERAL(":scheme"), r->scheme, NGHTTP2_NV_FLAG_NO_COPY_NAME);
    nva[n++] = tc_h2_nv(LITERAL(":path"), r->path, NGHTTP2_NV_FLAG_NO_COPY_NAME);
    nva[n++] = tc_h2_nv(LITERAL(":authority"), r->authority, NGHTTP2_NV_FLAG_NO_COPY_NAME);
    nva[n++] = tc_h2_nv(LITERAL("te"), LITERAL("trailers"), STATIC_BOTH);
    nva[n++] = tc_h2_nv(LITERAL("content-type"), LITERAL("application/grpc"), STATIC_BOTH);
    if (r->user_agent.len)
        nva[n++] = tc_h2_nv(LITERAL("user-agent"), r->user_agent, NGHTTP2_NV_FLAG_NO_COPY_NAME);
    nva[n++] = tc_h2_nv(LITERAL("grpc-accept-encoding"),
                        r->accept_gzip ? LITERAL("identity,gzip") : LITERAL("identity"), STATIC_BOTH);
    if (r->encoding == TC_H2_GZIP)
        nva[n++] = tc_h2_nv(LITERAL("grpc-encoding"), LITERAL("gzip"), STATIC_BOTH);
    /* These differ from call to call: kept out of the compression table. */
    if (r->timeout_ns)
        nva[n++] = tc_h2_nv(LITERAL("grpc-timeout"), tc_slice_of(timeout, tc_h2_timeout_encode(timeout, r->timeout_ns)),
                            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_INDEX);
    if (r->previous_attempts) {
        int len = snprintf(attempts, 16, "%u", (unsigned)r->previous_attempts);
        nva[n++] = tc_h2_nv(LITERAL("grpc-previous-rpc-attempts"), tc_slice_of(attempts, (size_t)len),
                            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_INDEX);
    }
    return n;
}

int tc_h2_request_submit(struct tc_h2_stream *s, const struct tc_h2_request *request)
{
    struct tc_h2_conn *c = s->c;
    nghttp2_nv stack[STACK_FIELDS], *nva = stack;
    char timeout[16], attempts[16];
    size_t metadata = (request->metadata ? request->metadata->len : 0) + (request->auth ? request->auth->len : 0);
    if (metadata > STACK_FIELDS - OWN_FIELDS)
        nva = tc_reallocarray(NULL, metadata + OWN_FIELDS, sizeof(*nva));
    size_t n = own_fields(request, nva, timeout, attempts);
    tc_buf_clear(&c->scratch);
    tc_buf_reserve(&c->scratch, tc_h2_metadata_scratch(request->metadata) + tc_h2_metadata_scratch(request->auth));
    n += tc_h2_metadata_encode(c, request->metadata, nva + n);
    n += tc_h2_metadata_encode(c, request->auth, nva + n);
    nghttp2_data_provider body = {.read_callback = tc_h2_on_data_source_read};
    int32_t id = nghttp2_submit_request(c->ng, NULL, nva, n, &body, s);
    if (request->auth && c->scratch.len)
        explicit_bzero(c->scratch.data, c->scratch.len); /* with its binary values */
    if (nva != stack)
        tc_free(nva);
    if (id < 0)
        return id;
    s->id = id;
    return 0;
}
