/* gzip for single messages (declared in framing.h). */
#include <limits.h>
#include <zlib.h>

#include "base/mem.h"
#include "http2/framing.h"

#define GZIP_WINDOW (15 + 16)

/* NULL when there is not so much memory; `out` is then as it was. */
static struct tc_rstr *resize(struct tc_rstr *out, size_t cap)
{
    bool fresh = out == NULL;
    out = tc_try_realloc(out, sizeof(*out) + cap + 1);
    if (out && fresh) {
        tc_ref_init(&out->ref);
        out->in_block = false;
    }
    return out;
}

static struct tc_rstr *finish(struct tc_rstr *out, size_t len)
{
    struct tc_rstr *fitting = resize(out, len);
    out = fitting ? fitting : out;
    out->len = len;
    out->data[len] = '\0';
    return out;
}

struct tc_rstr *tc_h2_gzip(struct tc_slice data)
{
    z_stream z = {0};
    if (data.len > UINT_MAX / 2 ||
        deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    size_t cap = deflateBound(&z, (uLong)data.len);
    struct tc_rstr *out = resize(NULL, cap);
    z.next_in = (Bytef *)(uintptr_t)data.data;
    z.avail_in = (uInt)data.len;
    z.next_out = out ? (Bytef *)out->data : NULL;
    z.avail_out = out ? (uInt)cap : 0;
    int rc = deflate(&z, Z_FINISH);
    size_t len = cap - z.avail_out;
    deflateEnd(&z);
    if (rc != Z_STREAM_END) {
        tc_free(out);
        return NULL;
    }
    return finish(out, len);
}

int tc_h2_gunzip(struct tc_slice data, size_t max_bytes, struct tc_rstr **result)
{
    z_stream z = {0};
    int rc = data.len > UINT_MAX ? Z_DATA_ERROR : inflateInit2(&z, GZIP_WINDOW);
    if (rc != Z_OK)
        return rc == Z_MEM_ERROR ? TORC_EAGAIN : TORC_EPROTO;
    /* One byte more than allowed is room enough to see that it is too much. */
    size_t limit = max_bytes < SIZE_MAX - 4096 ? max_bytes + 1 : SIZE_MAX - 4096;
    size_t cap = TC_MIN(TC_MAX(data.len, (size_t)64) * 4, limit), len = 0;
    struct tc_rstr *out = resize(NULL, cap);
    z.next_in = (Bytef *)(uintptr_t)data.data;
    z.avail_in = (uInt)data.len;
    rc = out ? Z_OK : Z_MEM_ERROR;
    while (rc == Z_OK) {
        if (len == cap) {
            if (cap == limit)
                break;
            cap = cap > limit / 2 ? limit : cap * 2;
            struct tc_rstr *larger = resize(out, cap);
            if (!larger) {
                rc = Z_MEM_ERROR;
                break;
            }
            out = larger;
        }
        uInt room = (uInt)TC_MIN(cap - len, (size_t)UINT_MAX);
        z.next_out = (Bytef *)out->data + len;
        z.avail_out = room;
        rc = inflate(&z, Z_NO_FLUSH);
        len += room - z.avail_out;
    }
    bool whole = rc == Z_STREAM_END && z.avail_in == 0;
    inflateEnd(&z);
    if (len > max_bytes || !whole) {
        tc_free(out);
        if (rc == Z_MEM_ERROR)
            return TORC_EAGAIN;
        return len > max_bytes ? TORC_ELIMIT : TORC_EPROTO;
    }
    *result = finish(out, len);
    return 0;
}
