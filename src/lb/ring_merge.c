/* What both rings have is copied, in the runs between the entries that come or go. */
#include "lb/ring_merge.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/mem.h"

enum {
    BLOCK = 16, /* entries that are copied at a time: beyond the end there is padding for that */
    SHORT_RUN = 8 * BLOCK,
    LANES = 4,
    INDEX_BLOCK = 2 * LANES
};

_Static_assert((int)BLOCK <= (int)TC_RING_PADDING, "blocks end in the padding at the latest");
_Static_assert((int)INDEX_BLOCK <= (int)TC_RING_INDEX_PADDING, "those of the index as well");

#define INLINE static inline __attribute__((always_inline))

typedef int32_t four __attribute__((vector_size(16), aligned(4)));

/* Copies old items as the new ring numbers them. */
INLINE void copy_items(uint32_t *out, const uint32_t *in, uint32_t n, const struct tc_ring_change *c)
{
    uint32_t k = 0;
    if (!c->shifted) {
        for (; k < n; k++)
            out[k] = c->item_to[in[k]];
        return;
    }
    const four zero = {0}, first = zero + (int32_t)c->first, shift = zero + (int32_t)c->shift;
    for (; k + LANES <= n; k += LANES) {
        four v;
        memcpy(&v, in + k, sizeof(v));
        v += (v >= first) & shift; /* signed: there are less than 2^31 */
        memcpy(out + k, &v, sizeof(v));
    }
    for (; k < n; k++)
        out[k] = in[k] + (in[k] >= c->first ? c->shift : 0);
}

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx512f")))

WIDE static inline void copy_block_wide(struct tc_ring *r, uint32_t to, const struct tc_ring *old, uint32_t at,
                                        const struct tc_ring_change *c)
{
    __m512i low = _mm512_loadu_si512(old->hash + at), high = _mm512_loadu_si512(old->hash + at + BLOCK / 2);
    __m512i item = _mm512_loadu_si512(old->item + at);
    _mm512_storeu_si512(r->hash + to, low);
    _mm512_storeu_si512(r->hash + to + BLOCK / 2, high);
    __mmask16 moves = _mm512_cmpge_epu32_mask(item, _mm512_set1_epi32((int)c->first));
    _mm512_storeu_si512(r->item + to, _mm512_mask_add_epi32(item, moves, item, _mm512_set1_epi32((int)c->shift)));
}
#endif

/* Copies a run of old entries; what is behind them may be overwritten, as far as a block reaches. wide: of items that
 * are `shifted`. */
INLINE void copy_run(struct tc_ring *r, uint32_t to, const struct tc_ring *old, uint32_t at, uint32_t n,
                     const struct tc_ring_change *c, bool wide)
{
    uint32_t k = 0;
    if (!wide && n > SHORT_RUN) {
        memcpy(r->hash + to, old->hash + at, n * sizeof(*r->hash));
        if (c->shifted && c->shift == 0)
            memcpy(r->item + to, old->item + at, n * sizeof(*r->item));
        else
            copy_items(r->item + to, old->item + at, n, c);
        return;
    }
    /* Whole blocks, and one at least: how many there are is better to predict than how many entries, as that is mostly
     * one. */
    do {
#if defined(__x86_64__)
        if (wide) {
            copy_block_wide(r, to + k, old, at + k, c);
            k += BLOCK;
            continue;
        }
#endif
        memcpy(r->hash + to + k, old->hash + at + k, BLOCK * sizeof(*r->hash));
        copy_items(r->item + to + k, old->item + at + k, BLOCK, c);
        k += BLOCK;
    } while (k < n);
}

/* Entries of equal hash by item: copying keeps the order that they had. */
static void order_ties(struct tc_ring *r)
{
    for (uint32_t e = 1; e < r->size; e++) {
        uint32_t item = r->item[e], at = e;
        for (; at > 0 && r->hash[at - 1] == r->hash[e] && r->item[at - 1] > item; at--)
            r->item[at] = r->item[at - 1];
        r->item[at] = item;
    }
}

INLINE bool merge(struct tc_ring *to_ring, const struct tc_ring *from_ring, const struct tc_ring_change *change,
                  bool wide)
{
    /* Copies: nothing that is written to can be a part of them. */
    struct tc_ring r = *to_ring;
    const struct tc_ring old = *from_ring;
    const struct tc_ring_change c = *change;
    uint32_t at = 0, to = 0;
    bool ties = old.ties, found = true;
    for (uint32_t k = 0; k < c.entries.n; k++) {
        uint64_t h = c.entries.hash[k];
        uint32_t item = c.entries.item[k] & ~TC_RING_GONE, gone = c.entries.item[k] / TC_RING_GONE; /* 1 or 0 */
        uint32_t upto = TC_MAX(c.entries.at[k], at);
        /* Another's of equal hash. */
        while (TC_UNLIKELY((upto < old.size) & gone & (old.hash[upto] == h) & (old.item[upto] != item)))
            upto++;
        if (upto - at >= r.size - to + gone)
            return false;
        copy_run(&r, to, &old, at, upto - at, &c, wide);
        to += upto - at;
        at = upto + gone;
        /* Either way, whether it comes or goes, without a branch: that is as good as random. What goes is overwritten.
         */
        bool same = old.hash[upto] == h, it = same & (upto < old.size) & (old.item[upto] == item);
        bool alike = same | (to > 0 && r.hash[to - 1] == h);
        found &= it | (gone == 0);
        ties |= alike & (gone == 0);
        r.hash[to] = h;
        r.item[to] = item;
        to += 1 - gone;
    }
    if (!found || old.size - at != r.size - to)
        return false;
    copy_run(&r, to, &old, at, old.size - at, &c, wide);
    to_ring->ties = ties;
    return true;
}

static bool merge_plain(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_change *c)
{
    return merge(r, old, c, false);
}

#if defined(__x86_64__)
WIDE static bool merge_wide(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_change *c)
{
    return merge(r, old, c, true);
}
#else
#define merge_wide merge_plain
#endif

/* The index moves by one from the bucket after each entry that came or went. */
static void move_index(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_entries *entries)
{
    const struct tc_ring_entries e = *entries;
    uint32_t *out = r->index, buckets = tc_ring_buckets(r), from = 0, delta = 0; /* modulo 2^32 */
    const uint32_t *in = old->index;
    unsigned shift = r->shift;
    for (uint32_t k = 0; k <= e.n; k++) {
        uint32_t until = k < e.n ? (uint32_t)(e.hash[k] >> shift) : buckets, b = from;
        const four by = (four){0} + (int32_t)delta;
        /* A block at least, and whole ones: the next overwrite what is too much. */
        do {
            four v[INDEX_BLOCK / LANES];
            memcpy(v, in + b, sizeof(v));
            for (unsigned l = 0; l < INDEX_BLOCK / LANES; l++)
                v[l] += by;
            memcpy(out + b, v, sizeof(v));
            b += INDEX_BLOCK;
        } while (b <= until);
        from = until + 1;
        delta += k < e.n ? 1 - 2 * (e.item[k] / TC_RING_GONE) : 0;
    }
}

bool tc_ring_merge(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_change *c, bool wide)
{
    if (!(wide && c->shifted ? merge_wide(r, old, c) : merge_plain(r, old, c)))
        return false;
    tc_ring_pad(r);
    if (r->ties)
        order_ties(r);
    if (r->shift == old->shift)
        move_index(r, old, &c->entries);
    else
        tc_ring_index(r);
    return true;
}
