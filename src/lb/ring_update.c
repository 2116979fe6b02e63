/* A new ring out of an old one. The entries that one of the two lacks are hashed and sorted; the rest is copied in the
 * runs between them. */
#include "base/mem.h"
#include "lb/ring_impl.h"
#include "lb/ring_sort.h"

enum {
    REBUILD_PART = 4, /* of the entries: when more change, a build is cheaper */
    BLOCK = 16,       /* entries that are copied at a time: beyond the end there is padding for that */
    SHORT_RUN = 8 * BLOCK,
    FEW = 32 /* index buckets for an entry that comes or goes, from which on these are few */
};

_Static_assert((int)BLOCK <= (int)TC_RING_PADDING, "blocks end in the padding at the latest");

#define GONE ((uint32_t)1 << 31) /* in an entry's item: one of the old ring that the new one lacks */

/* Where both rings differ. */
struct change {
    uint32_t *item_to; /* of each old item its new index, TC_RING_ADDED when it went */
    uint64_t *hash;    /* n entries that come or go, by hash */
    uint32_t *item;    /* of which item: a new one's index, or an old one's with GONE */
    uint32_t n;
    uint32_t first, shift; /* with `shifted`: old items from `first` on move by `shift`, the others stay */
    bool shifted;
};

typedef int32_t four_items __attribute__((vector_size(16), aligned(4)));

/* True when the kept items are in their old order with one gap or one insertion: by far the most usual change. */
static bool find_shift(struct change *c, uint32_t n_old)
{
    uint32_t o = 0;
    while (o < n_old && (c->item_to[o] == o || c->item_to[o] == TC_RING_ADDED))
        o++;
    c->first = o;
    c->shift = o < n_old ? c->item_to[o] - o : 0;
    for (; o < n_old; o++)
        if (c->item_to[o] != TC_RING_ADDED && c->item_to[o] != o + c->shift)
            return false;
    return true;
}

/* Hashes and sorts what comes and goes. Those that go are before those that come of equal hash. */
static void find_entries(struct change *c, const struct tc_ring_part *parts, size_t n)
{
    struct tc_ring_sort sort;
    tc_ring_sort_init(&sort, c->n);
    c->hash = tc_reallocarray(NULL, c->n, sizeof(*c->hash));
    c->item = tc_reallocarray(NULL, c->n, sizeof(*c->item));
    tc_ring_sort_keys(&sort, parts, n);
    tc_ring_sort_finish(&sort, c->hash, c->item, NULL, 0);
}

/* Fills *c; false when so much changes that it is not worth it. Items are looked at without branches on whether they
 * changed: at a ring's maximum many did, and which cannot be predicted. */
static bool find_change(struct change *c, const struct tc_ring *old, const struct tc_ring_item *old_items,
                        const uint32_t *from, const struct tc_ring_item *items, const uint32_t *counts, uint32_t n)
{
    uint64_t added = 0, gone = old->size;
    uint32_t *more = tc_reallocarray(NULL, (size_t)n + old->n_items, sizeof(*more)), *less = more + n;
    uint32_t n_more = 0, n_less = 0;
    memset(c->item_to, 0xff, old->n_items * sizeof(*c->item_to));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t o = from[i], before = o == TC_RING_ADDED ? 0 : old->counts[o];
        if (o != TC_RING_ADDED)
            c->item_to[o] = i;
        more[n_more] = i;
        n_more += counts[i] > before;
        added += counts[i] > before ? counts[i] - before : 0;
        gone -= TC_MIN(counts[i], before);
    }
    if (added + gone > old->size / REBUILD_PART || n >= GONE || old->n_items >= GONE) {
        tc_free(more);
        return false;
    }
    for (uint32_t o = 0; o < old->n_items; o++) {
        uint32_t i = c->item_to[o], left = i == TC_RING_ADDED ? 0 : counts[i];
        less[n_less] = o;
        n_less += left < old->counts[o];
    }
    struct tc_ring_part *parts = tc_reallocarray(NULL, (size_t)n_less + n_more, sizeof(*parts)), *p = parts;
    for (uint32_t k = 0; k < n_less; k++) {
        uint32_t o = less[k], i = c->item_to[o], left = i == TC_RING_ADDED ? 0 : counts[i];
        *p++ = (struct tc_ring_part){old_items[o].key, o | GONE, left, old->counts[o] - left};
    }
    for (uint32_t k = 0; k < n_more; k++) {
        uint32_t i = more[k], before = from[i] == TC_RING_ADDED ? 0 : old->counts[from[i]];
        *p++ = (struct tc_ring_part){items[i].key, i, before, counts[i] - before};
    }
    c->n = (uint32_t)(added + gone);
    find_entries(c, parts, (size_t)(p - parts));
    c->shifted = find_shift(c, old->n_items);
    tc_free(parts);
    tc_free(more);
    return true;
}

/* Copies old items as the new ring numbers them. */
static inline void copy_items(uint32_t *out, const uint32_t *in, uint32_t n, const struct change *c)
{
    uint32_t k = 0;
    if (!c->shifted) {
        for (; k < n; k++)
            out[k] = c->item_to[in[k]];
        return;
    }
    const four_items zero = {0}, first = zero + (int32_t)c->first, shift = zero + (int32_t)c->shift;
    for (; k + 4 <= n; k += 4) {
        four_items v;
        memcpy(&v, in + k, sizeof(v));
        v += (v >= first) & shift; /* signed: there are less than GONE */
        memcpy(out + k, &v, sizeof(v));
    }
    for (; k < n; k++)
        out[k] = in[k] + (in[k] >= c->first ? c->shift : 0);
}

/* Copies a run of old entries; what is behind them may be overwritten, as far as a block reaches. */
static inline void copy_run(struct tc_ring *r, uint32_t to, const struct tc_ring *old, uint32_t at, uint32_t n,
                            const struct change *c)
{
    if (n > SHORT_RUN) {
        memcpy(r->hash + to, old->hash + at, n * sizeof(*r->hash));
        if (c->shifted && c->shift == 0)
            memcpy(r->item + to, old->item + at, n * sizeof(*r->item));
        else
            copy_items(r->item + to, old->item + at, n, c);
        return;
    }
    /* Whole blocks: how many there are is better to predict than how many entries, as that is mostly one. */
    for (uint32_t k = 0; k < n; k += BLOCK) {
        memcpy(r->hash + to + k, old->hash + at + k, BLOCK * sizeof(*r->hash));
        copy_items(r->item + to + k, old->item + at + k, BLOCK, c);
    }
}

/* The first entry of the ring that is not below h. */
static uint32_t position(const struct tc_ring *r, uint64_t h)
{
    uint32_t at = tc_ring_find(r, h);
    return at == 0 && r->hash[0] < h ? r->size : at; /* beyond the last */
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

/* False when an entry that should go is not there: old_items were not those of the ring. */
static bool merge(struct tc_ring *r, const struct tc_ring *old, const struct change *c)
{
    uint32_t at = 0, to = 0;
    bool ties = old->ties, found = true;
    for (uint32_t k = 0; k < c->n; k++) {
        uint64_t h = c->hash[k];
        uint32_t item = c->item[k] & ~GONE, gone = c->item[k] / GONE; /* 1 or 0 */
        uint32_t upto = TC_MAX(position(old, h), at);
        while (gone && upto < old->size && old->hash[upto] == h && old->item[upto] != item)
            upto++; /* another's of equal hash */
        if (upto - at >= r->size - to + gone)
            return false;
        copy_run(r, to, old, at, upto - at, c);
        to += upto - at;
        at = upto + gone;
        /* Either way, whether it comes or goes, without a branch: that is as good as random. What goes is overwritten.
         */
        bool same = old->hash[upto] == h, it = same & (upto < old->size) & (old->item[upto] == item);
        bool alike = same | (to > 0 && r->hash[to - 1] == h);
        found &= it | (gone == 0);
        ties |= alike & (gone == 0);
        r->hash[to] = h;
        r->item[to] = item;
        to += 1 - gone;
    }
    if (!found || old->size - at != r->size - to)
        return false;
    copy_run(r, to, old, at, old->size - at, c);
    tc_ring_pad(r);
    if (ties)
        order_ties(r);
    r->ties = ties;
    return true;
}

/* Copies n entries of the index, `delta` further. */
static void copy_moved(uint32_t *out, const uint32_t *in, uint32_t n, uint32_t delta)
{
    const four_items by = (four_items){0} + (int32_t)delta;
    uint32_t k = 0;
    for (; k + 4 <= n; k += 4) {
        four_items v;
        memcpy(&v, in + k, sizeof(v));
        v += by;
        memcpy(out + k, &v, sizeof(v));
    }
    for (; k < n; k++)
        out[k] = in[k] + delta;
}

/* The index moves by one from the bucket after each entry that came or went. */
static void move_index(struct tc_ring *r, const struct tc_ring *old, const struct change *c)
{
    uint32_t buckets = tc_ring_buckets(r), delta = 0; /* modulo 2^32 */
    if (c->n < buckets / FEW) {
        uint32_t b = 0;
        for (uint32_t k = 0; k <= c->n; k++) {
            uint32_t until = k < c->n ? (uint32_t)(c->hash[k] >> r->shift) : buckets;
            copy_moved(r->index + b, old->index + b, until + 1 - b, delta);
            b = until + 1;
            delta += k < c->n ? 1 - 2 * (c->item[k] / GONE) : 0;
        }
        return;
    }
    /* How far, by sums: runs between changes would be too short to be worth a loop. */
    memset(r->index, 0, ((size_t)buckets + 1) * sizeof(*r->index));
    for (uint32_t k = 0; k < c->n; k++)
        r->index[(c->hash[k] >> r->shift) + 1] += 1 - 2 * (c->item[k] / GONE);
    for (uint32_t b = 0; b <= buckets; b++) {
        delta += r->index[b];
        r->index[b] = old->index[b] + delta;
    }
}

struct tc_ring *tc_ring_update(const struct tc_ring *old, const struct tc_ring_item *old_items, const uint32_t *from,
                               const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap)
{
    struct change c = {0};
    struct tc_ring *r = NULL;
    uint32_t *counts = tc_reallocarray(NULL, n, sizeof(*counts));
    uint32_t size = tc_ring_allot(items, n, min, max, cap, counts);
    c.item_to = tc_reallocarray(NULL, old->n_items, sizeof(*c.item_to));
    if (size && old->size && find_change(&c, old, old_items, from, items, counts, (uint32_t)n)) {
        r = tc_ring_alloc(size, counts, n, old);
        if (!merge(r, old, &c)) {
            tc_ring_unref(r);
            r = NULL;
        } else if (r->shift == old->shift) {
            move_index(r, old, &c);
        } else {
            tc_ring_index(r);
        }
    }
    tc_free(c.item_to);
    tc_free(c.hash);
    tc_free(c.item);
    tc_free(counts);
    return r ? r : tc_ring_new(items, n, min, max, cap);
}
