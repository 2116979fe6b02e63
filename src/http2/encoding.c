/* gzip of single messages, with zlib.
 *
 * A packer compresses a message in pieces, so that a large message does not hold up the loop. The room for the
 * compressed bytes doubles up to zlib's bound.
 *
 * A small gzip member may inflate to a thousand times its size. So the room for the content doubles up to
 * COUNTED_BYTES; beyond that the content's size is counted before room is taken.
 *
 * zlib's state and the room for bytes are taken so that a lack of memory is an error, not the end of the process
 * (base/mem.h). Results are the caller's. Nothing but a packer and the caller's blocks is shared between calls, so
 * any thread may call. */
#include "http2/encoding.h"

#include <limits.h>
#include <zlib.h>

#include "base/mem.h"

enum {
    GZIP_WINDOW = 15 + 16,
    PACKED_BYTES = 16 << 10, /* the first room for a compressed message */
    COUNTED_BYTES = 8 << 20  /* the most room that is taken for content whose size is not known */
};

static void *zlib_take(void *opaque, unsigned n, unsigned size)
{
    (void)opaque;
    return tc_try_realloc(NULL, (size_t)n * size);
}

static void zlib_give(void *opaque, void *ptr)
{
    (void)opaque;
    tc_free(ptr);
}

/* Gives back the room beyond `len` bytes, and ends the string there. Takes over `out`. Returns the string, which may
 * have moved. */
static struct tc_rstr *gzip_fit(struct tc_blocks *blocks, struct tc_rstr *out, size_t len)
{
    struct tc_rstr *fitting = tc_rstr_resize(blocks, out, len);
    out = fitting ? fitting : out;
    out->len = len;
    out->data[len] = '\0';
    return out;
}

struct tc_h2_packer {
    z_stream z;
    struct tc_slice left; /* not given to zlib yet */
    struct tc_rstr *out;  /* compressed so far; NULL: nothing yet, or it was handed over */
    size_t cap, most;     /* of `out`: its room, and the room that suffices for any content of this length */
};

struct tc_h2_packer *tc_h2_packer_new(struct tc_slice data)
{
    if (data.len > UINT_MAX / 2)
        return NULL;
    struct tc_h2_packer *p = TC_NEW(struct tc_h2_packer);
    p->z = (z_stream){.zalloc = zlib_take, .zfree = zlib_give};
    p->left = data;
    if (deflateInit2(&p->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK) {
        p->most = deflateBound(&p->z, (uLong)data.len);
        return p;
    }
    tc_free(p);
    return NULL;
}

/* Enlarges `out`. Returns false if there is not enough memory. */
static bool packer_room(struct tc_h2_packer *p)
{
    size_t len = p->cap - p->z.avail_out, cap = TC_MIN(TC_MAX(p->cap * 2, (size_t)PACKED_BYTES), p->most);
    struct tc_rstr *room = cap > p->cap ? tc_rstr_resize(NULL, p->out, cap) : NULL;
    if (!room)
        return false;
    p->out = room;
    p->cap = cap;
    p->z.next_out = (Bytef *)room->data + len;
    p->z.avail_out = (uInt)(cap - len);
    return true;
}

int tc_h2_packer_work(struct tc_h2_packer *p, size_t bytes, struct tc_rstr **out)
{
    size_t piece = TC_MIN(bytes, p->left.len);
    p->z.next_in = (Bytef *)(uintptr_t)p->left.data;
    p->z.avail_in = (uInt)piece;
    p->left = tc_slice_of((const char *)p->left.data + piece, p->left.len - piece);
    int rc = Z_OK;
    do {
        if (!p->z.avail_out && !packer_room(p))
            return TORC_EAGAIN;
        rc = deflate(&p->z, p->left.len ? Z_NO_FLUSH : Z_FINISH);
    } while (rc == Z_OK && (p->z.avail_in || !p->left.len));
    if (rc != Z_STREAM_END)
        return rc == Z_OK || rc == Z_BUF_ERROR ? 0 : TORC_EAGAIN;
    *out = gzip_fit(NULL, p->out, p->cap - p->z.avail_out);
    p->out = NULL;
    return 0;
}

void tc_h2_packer_free(struct tc_h2_packer *p)
{
    if (!p)
        return;
    deflateEnd(&p->z);
    tc_rstr_unref(p->out);
    tc_free(p);
}

struct tc_rstr *tc_h2_gzip(struct tc_slice data)
{
    struct tc_rstr *out = NULL;
    struct tc_h2_packer *p = tc_h2_packer_new(data);
    if (p)
        tc_h2_packer_work(p, data.len, &out);
    tc_h2_packer_free(p);
    return out;
}

/* Stores in *size how much `data` inflates to, without keeping the content. Stops soon after max_bytes. Returns what
 * tc_h2_gunzip returns. */
static int gunzip_size(struct tc_slice data, size_t max_bytes, size_t *size)
{
    enum { SCRATCH_BYTES = 65536 };
    z_stream z = {
        .zalloc = zlib_take, .zfree = zlib_give, .next_in = (Bytef *)(uintptr_t)data.data, .avail_in = (uInt)data.len};
    Bytef *scratch = tc_try_realloc(NULL, SCRATCH_BYTES);
    int rc = scratch ? inflateInit2(&z, GZIP_WINDOW) : Z_MEM_ERROR;
    bool begun = rc == Z_OK;
    size_t len = 0;
    while (rc == Z_OK && len <= max_bytes) {
        z.next_out = scratch;
        z.avail_out = SCRATCH_BYTES;
        rc = inflate(&z, Z_NO_FLUSH);
        len += SCRATCH_BYTES - z.avail_out;
    }
    if (begun)
        inflateEnd(&z);
    tc_free(scratch);
    *size = len;
    if (rc == Z_MEM_ERROR)
        return TORC_EAGAIN;
    return len > max_bytes ? TORC_ELIMIT : rc == Z_STREAM_END ? 0 : TORC_EPROTO;
}

/* Enlarges *out, whose *cap bytes did not suffice: to twice the size, but at most max_bytes + 1; or, if that is above
 * COUNTED_BYTES, to the size of the content. So content beyond the limit takes at most COUNTED_BYTES of memory. Returns
 * what tc_h2_gunzip returns; on failure *out and *cap are unchanged. */
static int gunzip_enlarge(struct tc_blocks *blocks, struct tc_rstr **out, size_t *cap, struct tc_slice data,
                          size_t max_bytes)
{
    size_t larger = TC_MIN(*cap * 2, max_bytes + 1), size;
    if (larger > COUNTED_BYTES) {
        int rc = gunzip_size(data, max_bytes, &size);
        if (rc)
            return rc;
        larger = TC_MAX(size, *cap + 1);
    }
    struct tc_rstr *room = tc_rstr_resize(blocks, *out, larger);
    if (!room)
        return TORC_EAGAIN;
    *out = room;
    *cap = larger;
    return 0;
}

int tc_h2_gunzip(struct tc_blocks *blocks, struct tc_slice data, size_t max_bytes, struct tc_rstr **result)
{
    z_stream z = {
        .zalloc = zlib_take, .zfree = zlib_give, .next_in = (Bytef *)(uintptr_t)data.data, .avail_in = (uInt)data.len};
    int rc = data.len > UINT_MAX ? Z_DATA_ERROR : inflateInit2(&z, GZIP_WINDOW);
    if (rc != Z_OK)
        return rc == Z_MEM_ERROR ? TORC_EAGAIN : TORC_EPROTO;
    /* Room for one byte more than allowed (max_bytes + 1) suffices to see that the content is too large. */
    max_bytes = TC_MIN(max_bytes, SIZE_MAX - 4097);
    size_t cap = TC_MIN(TC_MIN(TC_MAX(data.len, (size_t)64) * 4, (size_t)COUNTED_BYTES), max_bytes + 1), len = 0;
    struct tc_rstr *out = tc_rstr_resize(blocks, NULL, cap);
    int failed = out ? 0 : TORC_EAGAIN;
    while (!failed && rc == Z_OK && len <= max_bytes) {
        if (len == cap) {
            failed = gunzip_enlarge(blocks, &out, &cap, data, max_bytes);
            continue;
        }
        uInt room = (uInt)TC_MIN(cap - len, (size_t)UINT_MAX);
        z.next_out = (Bytef *)out->data + len;
        z.avail_out = room;
        rc = inflate(&z, Z_NO_FLUSH);
        len += room - z.avail_out;
    }
    bool whole = rc == Z_STREAM_END && z.avail_in == 0;
    inflateEnd(&z);
    if (!failed && !(whole && len <= max_bytes))
        failed = len > max_bytes ? TORC_ELIMIT : rc == Z_MEM_ERROR ? TORC_EAGAIN : TORC_EPROTO;
    if (failed) {
        tc_rstr_unref(out);
        return failed;
    }
    *result = gzip_fit(blocks, out, len);
    return 0;
}
