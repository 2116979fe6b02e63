/* A new ring out of an old one. The entries that one of the two lacks are hashed and sorted; the rest is copied in the
 * runs between them. */
#include "base/mem.h"
#include "lb/ring_impl.h"
#include "lb/ring_sort.h"

enum { REBUILD_PART = 4 }; /* of the entries: when more change, a build is cheaper */

/* Entries by hash, as the sort leaves them. */
struct entries {
    uint64_t *hash;
    uint32_t *item;
    uint32_t n;
};

/* Where both rings differ. */
struct change {
    uint32_t *item_to;     /* of each old item its new index, TC_RING_ADDED when it went */
    struct entries gone;   /* with old items */
    struct entries added;  /* with new items */
    uint32_t first, shift; /* with `shifted`: old items from `first` on move by `shift`, the others stay */
    bool shifted;
};

typedef uint32_t four_items __attribute__((vector_size(16), aligned(4)));

static void entries_fini(struct entries *e)
{
    tc_free(e->hash);
    tc_free(e->item);
}

/* The n entries of the parts. */
static struct entries entries_of(const struct tc_ring_part *parts, size_t n_parts, uint32_t n)
{
    struct entries e = {tc_reallocarray(NULL, n, sizeof(*e.hash)), tc_reallocarray(NULL, n, sizeof(*e.item)), n};
    struct tc_ring_sort sort;
    tc_ring_sort_init(&sort, n);
    tc_ring_sort_keys(&sort, parts, n_parts);
    tc_ring_sort_finish(&sort, e.hash, e.item, NULL, 0);
    return e;
}

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

/* Fills *c; false when so much changes that it is not worth it. */
static bool find_change(struct change *c, const struct tc_ring *old, const struct tc_ring_item *old_items,
                        const uint32_t *from, const struct tc_ring_item *items, const uint32_t *counts, uint32_t n)
{
    uint64_t added = 0, gone = old->size;
    memset(c->item_to, 0xff, old->n_items * sizeof(*c->item_to));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t o = from[i], before = o == TC_RING_ADDED ? 0 : old->counts[o];
        if (o != TC_RING_ADDED)
            c->item_to[o] = i;
        added += counts[i] > before ? counts[i] - before : 0;
        gone -= TC_MIN(counts[i], before);
    }
    if (added + gone > old->size / REBUILD_PART)
        return false;
    struct tc_ring_part *parts = tc_reallocarray(NULL, TC_MAX(n, old->n_items), sizeof(*parts));
    size_t n_parts = 0;
    for (uint32_t o = 0; o < old->n_items; o++) {
        uint32_t i = c->item_to[o], left = i == TC_RING_ADDED ? 0 : counts[i];
        if (left < old->counts[o])
            parts[n_parts++] = (struct tc_ring_part){old_items[o].key, o, left, old->counts[o] - left};
    }
    c->gone = entries_of(parts, n_parts, (uint32_t)gone);
    n_parts = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t before = from[i] == TC_RING_ADDED ? 0 : old->counts[from[i]];
        if (counts[i] > before)
            parts[n_parts++] = (struct tc_ring_part){items[i].key, i, before, counts[i] - before};
    }
    c->added = entries_of(parts, n_parts, (uint32_t)added);
    tc_free(parts);
    c->shifted = find_shift(c, old->n_items);
    return true;
}

/* Copies a run of old entries, with the items' new indices. */
static void copy_run(struct tc_ring *r, uint32_t to, const struct tc_ring *old, uint32_t at, uint32_t n,
                     const struct change *c)
{
    memcpy(r->hash + to, old->hash + at, n * sizeof(*r->hash));
    const uint32_t *in = old->item + at;
    uint32_t *out = r->item + to, k = 0;
    if (!c->shifted) {
        for (; k < n; k++)
            out[k] = c->item_to[in[k]];
        return;
    }
    if (c->shift == 0) {
        memcpy(out, in, n * sizeof(*out));
        return;
    }
    const four_items first = {c->first, c->first, c->first, c->first}, shift = {c->shift, c->shift, c->shift, c->shift};
    for (; k + 4 <= n; k += 4) {
        four_items v;
        memcpy(&v, in + k, sizeof(v));
        v += (four_items)(v >= first) & shift;
        memcpy(out + k, &v, sizeof(v));
    }
    for (; k < n; k++)
        out[k] = in[k] + (in[k] >= c->first ? c->shift : 0);
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
    uint32_t at = 0, to = 0, a = 0, g = 0;
    bool ties = old->ties;
    while (a < c->added.n || g < c->gone.n) {
        bool is_gone = g < c->gone.n && (a == c->added.n || c->gone.hash[g] <= c->added.hash[a]);
        uint64_t h = is_gone ? c->gone.hash[g] : c->added.hash[a];
        uint32_t upto = TC_MAX(position(old, h), at);
        if (is_gone)
            while (upto < old->size && old->hash[upto] == h && old->item[upto] != c->gone.item[g])
                upto++; /* another's of equal hash */
        if (to + (upto - at) + !is_gone > r->size)
            return false;
        copy_run(r, to, old, at, upto - at, c);
        to += upto - at;
        at = upto;
        if (is_gone) {
            if (at == old->size || old->hash[at] != h || old->item[at] != c->gone.item[g])
                return false;
            at++;
            g++;
            continue;
        }
        r->hash[to] = h;
        r->item[to] = c->added.item[a++];
        ties = ties || (to > 0 && r->hash[to - 1] == h) || (at < old->size && old->hash[at] == h);
        to++;
    }
    if (old->size - at != r->size - to)
        return false;
    copy_run(r, to, old, at, old->size - at, c);
    if (ties)
        order_ties(r);
    r->ties = ties;
    return true;
}

/* The index moves by one from the bucket after each entry that came or went. */
static void move_index(struct tc_ring *r, const struct tc_ring *old, const struct change *c)
{
    uint32_t buckets = tc_ring_buckets(r), b = 0, a = 0, g = 0;
    uint32_t delta = 0; /* modulo 2^32 */
    while (b <= buckets) {
        uint64_t until = buckets;
        if (a < c->added.n)
            until = TC_MIN(until, c->added.hash[a] >> r->shift);
        if (g < c->gone.n)
            until = TC_MIN(until, c->gone.hash[g] >> r->shift);
        for (; b <= until; b++)
            r->index[b] = old->index[b] + delta;
        for (; a < c->added.n && c->added.hash[a] >> r->shift == until; a++)
            delta++;
        for (; g < c->gone.n && c->gone.hash[g] >> r->shift == until; g++)
            delta--;
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
    entries_fini(&c.gone);
    entries_fini(&c.added);
    tc_free(counts);
    return r ? r : tc_ring_new(items, n, min, max, cap);
}
