/* A new ring made of an old one that differs in a few items.
 *
 * The ring of ring.c's head loses the item b, so a and c share ten entries: the three entries of b are removed, and one
 * of a and two of c are added. All six are hashed, sorted, and placed in the old ring; the rest is copied in runs:
 *
 *     changed entries   +c_4   -b_2   -b_0   -b_1   +c_3   +a_4
 *     at (in old)         0      1      3      4      8      8
 *
 *     old    |             a_2 | b_2 | c_1 | b_0 | b_1 | a_0  c_2  a_3 |            | c_0  a_1 |
 *                          ||     x    ||     x     x     ||   ||   ||                ||   ||
 *     new    |      c_4    a_2         c_1                a_0  c_2  a_3   c_3  a_4    c_0  a_1 |
 *                    +                                                     +    +
 *     item           1     0           1                  0    1    0     1    0      1    0     (c was item 2)
 *
 * Steps: update_map_items finds which items both rings have, mostly in their old order with one gap or one insertion.
 * update_compare finds which of these items have more entries than before, or fewer: where a bound decides the ring's
 * size, one item more or less moves the shares of all items, and about half of the items gain or lose an entry.
 * update_find_entries hashes and sorts the changed entries, update_place_entries finds their places in the old ring,
 * and tc_ring_merge (merge.c) copies. If more than a quarter of the entries changes, as in a ring as small as this one,
 * a build is cheaper and made instead. The old ring stays as it is, since pickers read it. struct update lives for one
 * call of tc_ring_update, which frees its arrays. */
#include "ring/update.h"

#include "base/mem.h"
#include "ring/memory.h"
#include "ring/merge.h"
#include "ring/shares.h"
#include "ring/sort.h"

enum { REBUILD_PART = 4 }; /* if more than 1/REBUILD_PART of the entries changes, a build is cheaper */

/* Items that are consecutive in both rings: new indexes from `now` on, old ones from `before` on. */
struct run {
    uint32_t now, before, n;
};

struct update {
    const struct tc_ring *old;
    const struct tc_ring_item *old_items, *items;
    const uint32_t *from;
    uint32_t n;
    void *scratch; /* one block for the arrays from `runs` to `stays` */
    struct run *runs;
    uint32_t n_runs;
    uint32_t *counts; /* entries of each item in the new ring */
    uint32_t *added;  /* items that only the new ring has */
    uint32_t n_added;
    uint32_t *changed; /* new indexes of the items of both rings that have more or fewer entries than before */
    uint32_t n_changed;
    uint8_t *stays; /* by old item: 1 if the new ring has it */
    struct tc_ring_change c;
};

typedef int32_t four __attribute__((vector_size(16), aligned(4)));

static inline four four_load(const uint32_t *p)
{
    four v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline bool four_any(four v)
{
    uint64_t halves[2];
    memcpy(halves, &v, sizeof(v));
    return (halves[0] | halves[1]) != 0;
}

/* Returns how many elements of `from` count up by one from the first on. */
static uint32_t from_run_length(const uint32_t *from, uint32_t n)
{
    const four eight = {8, 8, 8, 8}, step = {0, 1, 2, 3};
    four low = step + (int32_t)from[0], high = low + 4;
    uint32_t k = 0;
    for (; k + 8 <= n; k += 8, low += eight, high += eight)
        if (four_any((four_load(from + k) ^ low) | (four_load(from + k + 4) ^ high)))
            break;
    while (k < n && from[k] == from[0] + k)
        k++;
    return k;
}

/* Finds the runs of items that both rings have, the added items, and how an old item's index becomes its new index: by
 * one shift of all items from one place on, or else by the table old_to_new. */
static void update_map_items(struct update *u)
{
    struct tc_ring_change *c = &u->c;
    c->shifted = true;
    c->first = u->old->n_items;
    memset(u->stays, 0, u->old->n_items);
    uint32_t end = 0; /* the old index at which the last run ended */
    for (uint32_t i = 0, n; i < u->n; i += n) {
        n = 1;
        if (u->from[i] == TC_RING_ADDED) {
            u->added[u->n_added++] = i;
            continue;
        }
        n = from_run_length(u->from + i, u->n - i);
        struct run run = {i, u->from[i], n};
        u->runs[u->n_runs++] = run;
        memset(u->stays + run.before, 1, n);
        uint32_t shift = run.now - run.before;
        if (c->first == u->old->n_items && shift != 0) {
            c->first = run.before;
            c->shift = shift;
        }
        c->shifted = c->shifted && run.before >= end && shift == c->shift;
        end = run.before + n;
    }
    if (c->shifted)
        return;
    c->old_to_new = tc_reallocarray(NULL, u->old->n_items, sizeof(*c->old_to_new));
    memset(c->old_to_new, 0xff, u->old->n_items * sizeof(*c->old_to_new));
    for (const struct run *r = u->runs; r < u->runs + u->n_runs; r++)
        for (uint32_t k = 0; k < r->n; k++)
            c->old_to_new[r->before + k] = r->now + k;
}

/* Lists the items whose number of entries changed. Without a branch, since which items did is as good as random. */
static void update_compare(struct update *u)
{
    for (const struct run *r = u->runs; r < u->runs + u->n_runs; r++) {
        const uint32_t *before = u->old->counts + r->before, *now = u->counts + r->now;
        uint32_t *changed = u->changed, found = u->n_changed;
        for (uint32_t k = 0; k < r->n; k++) {
            changed[found] = r->now + k;
            found += now[k] != before[k];
        }
        u->n_changed = found;
    }
}

/* The changed entries, to be hashed. */
struct parts {
    struct tc_ring_part *at;
    size_t n;
    uint64_t entries;
};

/* Adds the entries with the numbers [first, end) of a key. */
static void parts_add(struct parts *p, struct tc_slice key, uint32_t item, uint32_t first, uint32_t end)
{
    if (first >= end)
        return;
    p->at[p->n++] = (struct tc_ring_part){key, item, first, end - first};
    p->entries += end - first;
}

/* Lists the changed entries; the caller frees the list. Removed ones must come before added ones of equal hash, so they
 * are listed first. */
static struct parts update_find_parts(const struct update *u)
{
    uint32_t n_old = u->old->n_items, removed = n_old - (u->n - u->n_added);
    const uint8_t *end = u->stays + n_old, *leaves = u->stays;
    struct parts p = {0};
    p.at = tc_reallocarray(NULL, (size_t)removed + 2 * (size_t)u->n_changed + u->n_added + 1, sizeof(*p.at));
    for (; removed && (leaves = memchr(leaves, 0, (size_t)(end - leaves))) != NULL; leaves++) {
        uint32_t o = (uint32_t)(leaves - u->stays);
        parts_add(&p, u->old_items[o].key, o | TC_RING_REMOVED, 0, u->old->counts[o]);
    }
    for (const uint32_t *i = u->changed; i < u->changed + u->n_changed; i++) {
        uint32_t o = u->from[*i];
        parts_add(&p, u->old_items[o].key, o | TC_RING_REMOVED, u->counts[*i], u->old->counts[o]);
    }
    for (const uint32_t *i = u->changed; i < u->changed + u->n_changed; i++)
        parts_add(&p, u->items[*i].key, *i, u->old->counts[u->from[*i]], u->counts[*i]);
    for (const uint32_t *i = u->added; i < u->added + u->n_added; i++)
        parts_add(&p, u->items[*i].key, *i, 0, u->counts[*i]);
    return p;
}

/* Hashes and sorts the changed entries. Returns false if there are so many that a build is cheaper. */
static bool update_find_entries(struct update *u)
{
    struct parts p = update_find_parts(u);
    bool worth = p.entries <= u->old->size / REBUILD_PART;
    if (worth) {
        struct tc_ring_entries *e = &u->c.entries;
        struct tc_ring_sort sort;
        e->n = (uint32_t)p.entries;
        tc_ring_sort_init(&sort, e->n);
        e->hash =
            tc_malloc(tc_ring_block_size((e->n + (size_t)TC_RING_PADDING) * (sizeof(uint64_t) + 2 * sizeof(uint32_t))));
        e->item = (uint32_t *)(void *)(e->hash + e->n + TC_RING_PADDING);
        e->at = e->item + e->n + TC_RING_PADDING;
        tc_ring_sort_keys(&sort, p.at, p.n);
        tc_ring_sort_finish(&sort, e->hash, e->item, NULL, 0);
    }
    tc_free(p.at);
    return worth;
}

/* Finds the place in the old ring of each changed entry, and whether the new ring may have equal hashes. Returns false
 * if a removed entry is not found: the caller's old_items or `from` are wrong, or removed entries of equal hash come in
 * another order than in the old ring. */
static bool update_place_entries(struct update *u)
{
    const struct tc_ring *old = u->old;
    struct tc_ring_entries *e = &u->c.entries;
    uint32_t past = 0; /* the least place that the next changed entry may have */
    u->c.ties = old->ties;
    for (uint32_t k = 0; k < e->n; k++) {
        uint64_t h = e->hash[k];
        uint32_t item = e->item[k], at = TC_MAX(tc_ring_position(old, h), past);
        bool removed = (item & TC_RING_REMOVED) != 0;
        while (removed && at < old->size && old->hash[at] == h && old->item[at] != (item & ~TC_RING_REMOVED))
            at++; /* an entry of another item with an equal hash */
        bool same = at < old->size && old->hash[at] == h;
        if (removed && !same)
            return false;
        u->c.ties |= !removed && (same || (k > 0 && e->hash[k - 1] == h));
        e->at[k] = at;
        past = at + removed;
    }
    return true;
}

/* Allocates the arrays from `runs` to `stays` in one block. As separate blocks they would grow with each added
 * endpoint, and the allocator would put them into new pages every other time. */
static void update_init_scratch(struct update *u)
{
    size_t n = u->n;
    u->scratch = tc_malloc(tc_ring_block_size(n * (sizeof(*u->runs) + 3 * sizeof(uint32_t)) + u->old->n_items));
    u->runs = u->scratch;
    u->counts = (uint32_t *)(void *)(u->runs + n);
    u->added = u->counts + n;
    u->changed = u->added + n;
    u->stays = (uint8_t *)(u->changed + n);
}

struct tc_ring *tc_ring_update(const struct tc_ring *old, const struct tc_ring_item *old_items, const uint32_t *from,
                               const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap)
{
    struct update u = {.old = old, .old_items = old_items, .items = items, .from = from};
    struct tc_ring *r = NULL;
    if (n == 0 || n >= TC_RING_REMOVED || old->size == 0 || old->n_items >= TC_RING_REMOVED)
        return tc_ring_new(items, n, min, max, cap);
    u.n = (uint32_t)n;
    update_init_scratch(&u);
    uint32_t size = tc_ring_shares(items, n, min, max, cap, u.counts);
    update_map_items(&u);
    update_compare(&u);
    if (update_find_entries(&u) && update_place_entries(&u)) {
        r = tc_ring_alloc(size, u.counts, u.n, old);
        tc_ring_merge(r, old, &u.c);
    }
    tc_free(u.c.old_to_new);
    tc_free(u.c.entries.hash);
    tc_free(u.scratch);
    return r ? r : tc_ring_new(items, n, min, max, cap);
}
