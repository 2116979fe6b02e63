/* Metadata that is received and sent. Names ending in -bin carry base64 on the wire and bytes in gRPC. */
#include "http2/metadata.h"

#include "base/parse.h"

/* Returns true for names that only the library may send, and those that gRPC never sends. */
static bool metadata_name_reserved(struct tc_slice name)
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

static int metadata_add_binary(struct tc_headers *h, struct tc_buf *scratch, struct tc_slice name,
                               struct tc_slice value)
{
    tc_buf_clear(scratch);
    int rc = tc_base64_decode(scratch, tc_slice_trim(value));
    return rc ? rc : tc_headers_add_copy(h, name, tc_buf_slice(scratch));
}

int tc_h2_metadata_add(struct tc_h2_header_block *block, struct tc_buf *scratch, struct tc_slice name,
                       struct tc_slice value)
{
    if (!tc_header_is_binary(name))
        return tc_headers_add_copy(block->headers, name, tc_slice_trim(value));
    /* A proxy may have joined several values of one name by commas, which base64 does not use. */
    bool more = true;
    struct tc_slice part;
    while (tc_slice_split(&value, &more, ',', &part)) {
        int rc = metadata_add_binary(block->headers, scratch, name, part);
        if (rc)
            return rc;
        block->bytes += more ? name.len + 32 : 0;
        if (block->bytes > block->max_bytes)
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

size_t tc_h2_metadata_encode(struct tc_buf *scratch, const struct tc_headers *h, nghttp2_nv *nva)
{
    size_t n = 0;
    for (size_t i = 0; h && i < h->len; i++) {
        struct tc_slice name = h->data[i].name, value = h->data[i].value;
        if (metadata_name_reserved(name))
            continue;
        if (tc_header_is_binary(name)) {
            size_t at = scratch->len;
            tc_base64_encode(scratch, value.data, value.len, false);
            value = tc_slice_of(scratch->data + at, scratch->len - at);
        }
        nva[n++] = tc_h2_nv(name, value, NGHTTP2_NV_FLAG_NONE);
    }
    return n;
}

bool tc_h2_is_grpc_content_type(struct tc_slice type)
{
    return tc_slice_istarts(type, tc_slice_of("application/grpc", 16)) &&
           (type.len == 16 || type.data[16] == '+' || type.data[16] == ';');
}
