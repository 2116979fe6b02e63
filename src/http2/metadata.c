#include "base/parse.h"
#include "http2/internal.h"

bool tc_h2_name_reserved(struct tc_slice name)
{
    static const char *const names[] = {"te",
                                        "content-type",
                                        "user-agent",
                                        "connection",
                                        "host",
                                        "keep-alive",
                                        "proxy-connection",
                                        "transfer-encoding",
                                        "upgrade",
                                        "content-length",
                                        "grpc-status",
                                        "grpc-message",
                                        "grpc-encoding",
                                        "grpc-accept-encoding",
                                        "grpc-timeout"};
    if (name.len == 0 || name.data[0] == ':')
        return true;
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++)
        if (tc_slice_eq_str(name, names[i]))
            return true;
    return false;
}

static int add_binary(struct tc_h2_conn *c, struct tc_headers *h, struct tc_slice name, struct tc_slice value)
{
    tc_buf_clear(&c->scratch);
    int rc = tc_base64_decode(&c->scratch, tc_slice_trim(value));
    return rc ? rc : tc_headers_add_copy(h, name, tc_buf_slice(&c->scratch));
}

int tc_h2_metadata_add(struct tc_h2_stream *s, struct tc_headers *h, struct tc_slice name, struct tc_slice value)
{
    if (!tc_header_is_binary(name))
        return tc_headers_add_copy(h, name, tc_slice_trim(value));
    /* Values of one name may have been joined by commas on the way; base64 has none. */
    bool more = true;
    struct tc_slice part;
    while (tc_slice_split(&value, &more, ',', &part)) {
        int rc = add_binary(s->c, h, name, part);
        if (rc)
            return rc;
        s->block_bytes += more ? name.len + 32 : 0;
        if (s->block_bytes > s->max_header_bytes)
            return TORC_ELIMIT;
    }
    return 0;
}

size_t tc_h2_metadata_scratch(const struct tc_headers *h)
{
    size_t bytes = 0;
    for (size_t i = 0; h && i < h->len; i++)
        if (tc_header_is_binary(h->data[i].name))
            bytes += h->data[i].value.len / 3 * 4 + 4;
    return bytes;
}

size_t tc_h2_metadata_encode(struct tc_h2_conn *c, const struct tc_headers *h, nghttp2_nv *nva)
{
    size_t n = 0;
    for (size_t i = 0; h && i < h->len; i++) {
        struct tc_slice name = h->data[i].name, value = h->data[i].value;
        if (tc_h2_name_reserved(name))
            continue;
        if (tc_header_is_binary(name)) {
            size_t at = c->scratch.len;
            tc_base64_encode(&c->scratch, value.data, value.len, false);
            value = tc_slice_of(c->scratch.data + at, c->scratch.len - at);
        }
        nva[n++] = tc_h2_nv(name, value, NGHTTP2_NV_FLAG_NONE);
    }
    return n;
}
