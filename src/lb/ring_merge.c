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
    AHEAD = 16, /* entries that come or go, around which the old ring is fetched before it is needed */
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
#define WIDE __attribute__((target("avx2,avx512f")))

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

WIDE static inline void move_block_wide(uint32_t *out, const uint32_t *in, uint32_t delta)
{
    __m256i v = _mm256_loadu_si256((const void *)in);
    _mm256_storeu_si256((void *)out, _mm256_add_epi32(v, _mm256_set1_epi32((int)delta)));
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

INLINE void merge(const struct tc_ring *to_ring, const struct tc_ring *from_ring, const struct tc_ring_change *change,
                  bool wide)
{
    /* Copies: nothing that is written to can be a part of them. */
    struct tc_ring r = *to_ring;
    const struct tc_ring old = *from_ring;
    const struct tc_ring_change c = *change;
    uint32_t at = 0, to = 0;
    for (uint32_t k = 0; k < c.entries.n; k++) {
        uint32_t item = c.entries.item[k], gone = item / TC_RING_GONE; /* 1 or 0 */
        uint32_t upto = c.entries.at[k];
        copy_run(&r, to, &old, at, upto - at, &c, wide);
        to += upto - at;
        at = upto + gone;
        /* Either way, whether it comes or goes, without a branch: that is as good as random. What goes is overwritten.
         */
        r.hash[to] = c.entries.hash[k];
        r.item[to] = item;
        to += 1 - gone;
    }
    copy_run(&r, to, &old, at, old.size - at, &c, wide);
}

/* Copies INDEX_BLOCK buckets, `delta` further. */
INLINE void move_block(uint32_t *out, const uint32_t *in, uint32_t delta, bool wide)
{
#if defined(__x86_64__)
    if (wide) {
        move_block_wide(out, in, delta);
        return;
    }
#endif
    (void)wide;
    const four by = (four){0} + (int32_t)delta;
    four v[INDEX_BLOCK / LANES];
    memcpy(v, in, sizeof(v));
    for (unsigned l = 0; l < INDEX_BLOCK / LANES; l++)
        v[l] += by;
    memcpy(out, v, sizeof(v));
}

/* The index moves by one from the bucket after each entry that came or went. */
INLINE void move_index(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_entries *entries, bool wide)
{
    const struct tc_ring_entries e = *entries;
    uint32_t *out = r->index, buckets = tc_ring_buckets(r), b = 0, delta = 0; /* modulo 2^32 */
    const uint32_t *in = old->index;
    unsigned shift = r->shift;
    for (uint32_t k = 0; k <= e.n; k++) {
        uint32_t until = k < e.n ? (uint32_t)(e.hash[k] >> shift) : buckets;
        /* A block at least, and whole ones: the next overwrite what is too much. */
        do {
            move_block(out + b, in + b, delta, wide);
            b += INDEX_BLOCK;
        } while (b <= until);
        b = until + 1;
        delta += k < e.n ? 1 - 2 * (e.item[k] / TC_RING_GONE) : 0;
    }
}

INLINE void make(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_change *c, bool wide)
{
    merge(r, old, c, wide);
    if (r->shift == old->shift)
        move_index(r, old, &c->entries, wide);
}

static void make_plain(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_change *c)
{
    make(r, old, c, false);
}

#if defined(__x86_64__)
WIDE static void make_wide(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_change *c)
{
    make(r, old, c, true);
}
#else
#define make_wide make_plain
#endif

void tc_ring_merge(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_change *c, bool wide)
{
    if (wide && c->shifted)
        make_wide(r, old, c);
    else
        make_plain(r, old, c);
    tc_ring_pad(r);
    r->ties = c->ties;
    if (r->ties)
        order_ties(r);
    if (r->shift != old->shift)
        tc_ring_index(r);
}
