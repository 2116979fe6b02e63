/* Merges an old ring with the sorted list of changed entries. update.c has a picture.
 *
 * Between two changed entries lies a run of old entries, which is copied: the hashes as they are, the items renumbered.
 * Where a bound decides the ring's size, about half of the items gain or lose an entry (update.c), so most runs are a
 * few entries long. Such runs are copied in blocks of 16; the next block overwrites the surplus. Whether an entry is
 * added or removed is arithmetic, not a branch. If both rings have the same number of buckets, the index is copied in
 * blocks, too, one higher or lower after each changed entry's bucket. Otherwise the index is made again. */
#include "ring/merge.h"

#include "base/mem.h"

enum {
    BLOCK = 16,            /* entries that are copied at a time; the padding takes the surplus */
    SHORT_RUN = 8 * BLOCK, /* the most entries of a run that is copied in blocks */
    LANES = 4,
    INDEX_BLOCK = 2 * LANES /* buckets that are moved at a time */
};

_Static_assert((int)BLOCK <= (int)TC_RING_PADDING, "a block that begins in the ring must end in its padding");
_Static_assert((int)INDEX_BLOCK <= (int)TC_RING_INDEX_PADDING, "a block of the index must end in its padding");

#define INLINE static inline __attribute__((always_inline))

typedef int32_t four __attribute__((vector_size(16), aligned(4)));

/* Copies old items with their new indexes. */
INLINE void items_copy(uint32_t *out, const uint32_t *in, uint32_t n, const struct tc_ring_change *c)
{
    uint32_t k = 0;
    if (!c->shifted) {
        for (; k < n; k++)
            out[k] = c->old_to_new[in[k]];
        return;
    }
    const four zero = {0}, first = zero + (int32_t)c->first, shift = zero + (int32_t)c->shift;
    for (; k + LANES <= n; k += LANES) {
        four v;
        memcpy(&v, in + k, sizeof(v));
        v += (v >= first) & shift; /* as signed numbers: there are fewer than 2^31 items */
        memcpy(out + k, &v, sizeof(v));
    }
    for (; k < n; k++)
        out[k] = in[k] + (in[k] >= c->first ? c->shift : 0);
}

/* Copies a run of n old entries. May overwrite up to BLOCK entries past the run, even if n is 0. */
INLINE void run_copy(struct tc_ring *r, uint32_t to, const struct tc_ring *old, uint32_t at, uint32_t n,
                     const struct tc_ring_change *c)
{
    uint32_t k = 0;
    if (n > SHORT_RUN) {
        memcpy(r->hash + to, old->hash + at, n * sizeof(*r->hash));
        if (c->shifted && c->shift == 0)
            memcpy(r->item + to, old->item + at, n * sizeof(*r->item));
        else
            items_copy(r->item + to, old->item + at, n, c);
        return;
    }
    /* Most runs take one block, so the branch is predicted; a branch for each entry would not be. */
    do {
        memcpy(r->hash + to + k, old->hash + at + k, BLOCK * sizeof(*r->hash));
        items_copy(r->item + to + k, old->item + at + k, BLOCK, c);
        k += BLOCK;
    } while (k < n);
}

/* Sorts entries of equal hash by item: copying keeps their old order, and the order of the items may have changed. */
static void ring_order_ties(struct tc_ring *r)
{
    for (uint32_t e = 1; e < r->size; e++) {
        uint32_t item = r->item[e], at = e;
        for (; at > 0 && r->hash[at - 1] == r->hash[e] && r->item[at - 1] > item; at--)
            r->item[at] = r->item[at - 1];
        r->item[at] = item;
    }
}

static void ring_merge_entries(const struct tc_ring *to_ring, const struct tc_ring *from_ring,
                               const struct tc_ring_change *change)
{
    /* Local copies: the compiler knows that no store below changes them. */
    struct tc_ring r = *to_ring;
    const struct tc_ring old = *from_ring;
    const struct tc_ring_change c = *change;
    uint32_t at = 0, to = 0;
    for (uint32_t k = 0; k < c.entries.n; k++) {
        uint32_t item = c.entries.item[k], removed = item / TC_RING_REMOVED; /* 1 or 0 */
        uint32_t upto = c.entries.at[k];
        run_copy(&r, to, &old, at, upto - at, &c);
        to += upto - at;
        at = upto + removed;
        /* Written in either case; a removed entry is then overwritten. */
        r.hash[to] = c.entries.hash[k];
        r.item[to] = item;
        to += 1 - removed;
    }
    run_copy(&r, to, &old, at, old.size - at, &c);
}

/* Copies INDEX_BLOCK buckets, each `delta` higher. */
INLINE void index_move_block(uint32_t *out, const uint32_t *in, uint32_t delta)
{
    const four by = (four){0} + (int32_t)delta;
    four v[INDEX_BLOCK / LANES];
    memcpy(v, in, sizeof(v));
    for (unsigned l = 0; l < INDEX_BLOCK / LANES; l++)
        v[l] += by;
    memcpy(out, v, sizeof(v));
}

/* Makes the index of `r` of the old ring's index, which has as many buckets. */
static void ring_move_index(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_entries *entries)
{
    const struct tc_ring_entries e = *entries;
    uint32_t *out = r->index, buckets = tc_ring_buckets(r), b = 0, delta = 0; /* modulo 2^32 */
    const uint32_t *in = old->index;
    unsigned shift = r->shift;
    for (uint32_t k = 0; k <= e.n; k++) {
        uint32_t until = k < e.n ? (uint32_t)(e.hash[k] >> shift) : buckets;
        /* Whole blocks, at least one; the next ones overwrite the surplus. */
        do {
            index_move_block(out + b, in + b, delta);
            b += INDEX_BLOCK;
        } while (b <= until);
        b = until + 1;
        delta += k < e.n ? 1 - 2 * (e.item[k] / TC_RING_REMOVED) : 0;
    }
}

void tc_ring_merge(struct tc_ring *r, const struct tc_ring *old, const struct tc_ring_change *c)
{
    ring_merge_entries(r, old, c);
    tc_ring_pad(r);
    r->ties = c->ties;
    if (r->ties)
        ring_order_ties(r);
    if (r->shift == old->shift)
        ring_move_index(r, old, &c->entries);
    else
        tc_ring_index(r);
}
