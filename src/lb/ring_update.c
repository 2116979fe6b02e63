/* A new ring out of an old one. Of the entries that one of the two lacks the margin has most, where there is one; the
 * others are hashed and sorted. What both have is copied. */
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/mem.h"
#include "lb/ring_margin.h"
#include "lb/ring_walk.h"

enum {
    REBUILD_PART = 4, /* of the entries: when more change, a build is cheaper */
    MARGIN_PART = 8,  /* of the items: when more entries change that its margin has not, it is made anew */
    COMPARED = 16,    /* items that are compared at a time */
    FEW = 2048        /* entries, besides those of a margin, for which there always is room */
};

#define ITEMS_LIMIT TC_RING_IN_MARGIN

/* Items that follow one another in both rings. */
struct run {
    uint32_t now, before, n;
};

struct update {
    const struct tc_ring *old;
    const struct tc_ring_item *old_items, *items;
    const uint32_t *from;
    uint32_t n;
    uint32_t *counts;
    uint32_t base; /* of the old ring's margin */
    bool keep;     /* the new one is to have it as well */
    bool wide;
    struct tc_ring_change c;
    void *scratch; /* one block for most of what follows */
    void *entries; /* the change's, if there are more than is in it; else NULL */
    struct run *runs;
    uint32_t n_runs;
    uint32_t *added; /* new items */
    uint32_t n_added;
    uint8_t *state;    /* by old item: what becomes of its entry in the margin */
    uint32_t *changed; /* new items with entries that come or go and that the margin has not; added ones are others */
    uint32_t n_changed;
};

typedef int32_t four __attribute__((vector_size(16), aligned(4)));

static inline four load_four(const uint32_t *p)
{
    four v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline bool any(four v)
{
    uint64_t halves[2];
    memcpy(halves, &v, sizeof(v));
    return (halves[0] | halves[1]) != 0;
}

/* How many follow one another from the first on. */
static uint32_t run_length(const uint32_t *from, uint32_t n)
{
    const four eight = {8, 8, 8, 8}, step = {0, 1, 2, 3};
    four low = step + (int32_t)from[0], high = low + 4;
    uint32_t k = 0;
    for (; k + 8 <= n; k += 8, low += eight, high += eight)
        if (any((load_four(from + k) ^ low) | (load_four(from + k + 4) ^ high)))
            break;
    while (k < n && from[k] == from[0] + k)
        k++;
    return k;
}

/* Finds out which items are in both rings. Mostly they are in their old order with one gap or one insertion. */
static void map_items(struct update *u)
{
    struct tc_ring_change *c = &u->c;
    c->shifted = true;
    c->first = u->old->n_items;
    uint32_t end = 0; /* of the old items so far */
    for (uint32_t i = 0, n; i < u->n; i += n) {
        n = 1;
        if (u->from[i] == TC_RING_ADDED) {
            u->added[u->n_added++] = i;
            continue;
        }
        n = run_length(u->from + i, u->n - i);
        struct run run = {i, u->from[i], n};
        u->runs[u->n_runs++] = run;
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
    c->item_to = tc_reallocarray(NULL, u->old->n_items, sizeof(*c->item_to));
    memset(c->item_to, 0xff, u->old->n_items * sizeof(*c->item_to));
    for (const struct run *r = u->runs; r < u->runs + u->n_runs; r++)
        for (uint32_t k = 0; k < r->n; k++)
            c->item_to[r->before + k] = r->now + k;
}

/* Compares four items: adds to *others what one has of entries more or less than the margin's. */
static inline four compare_four(const uint32_t *before, const uint32_t *now, four base, four *others)
{
    four b = load_four(before), n = load_four(now), had = b > base, has = n > base; /* 0 or -1 */
    *others |= n - b + has - had;
    return ((had ^ has) & TC_RING_TOGGLES) | (had & ~has & TC_RING_GOES);
}

/* Compares COMPARED items and writes their states. False when one has other entries more or less than the margin's. */
static inline bool compare_block(uint8_t *state, const uint32_t *before, const uint32_t *now, uint32_t base)
{
    const four bases = (four){0} + (int32_t)base;
    four others = {0};
#if defined(__SSE2__)
    __m128i v[COMPARED / 4];
    for (unsigned k = 0; k < COMPARED / 4; k++)
        v[k] = (__m128i)compare_four(before + 4 * k, now + 4 * k, bases, &others);
    _mm_storeu_si128((void *)state, _mm_packus_epi16(_mm_packs_epi32(v[0], v[1]), _mm_packs_epi32(v[2], v[3])));
#else
    for (unsigned k = 0; k < COMPARED; k += 4) {
        four v = compare_four(before + k, now + k, bases, &others);
        for (unsigned i = 0; i < 4; i++)
            state[k + i] = (uint8_t)v[i];
    }
#endif
    return !any(others);
}

/* Without branches: of a ring without a margin many items changed, and which cannot be predicted. */
static uint32_t note_changed(uint32_t *changed, const uint32_t *before, const uint32_t *now, uint32_t n, uint32_t first,
                             uint32_t base)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t had = before[k] > base, has = now[k] > base;
        changed[found] = first + k;
        found += now[k] - has != before[k] - had;
    }
    return found;
}

static void compare_run(struct update *u, struct run run)
{
    const uint32_t *before = u->old->counts + run.before, *now = u->counts + run.now;
    uint8_t *state = u->state + run.before;
    uint32_t k = 0;
    for (; k + COMPARED <= run.n; k += COMPARED)
        if (TC_UNLIKELY(!compare_block(state + k, before + k, now + k, u->base)))
            u->n_changed +=
                note_changed(u->changed + u->n_changed, before + k, now + k, COMPARED, run.now + k, u->base);
    for (uint32_t i = k; i < run.n; i++) {
        bool had = before[i] > u->base, has = now[i] > u->base;
        state[i] = (uint8_t)((had != has ? TC_RING_TOGGLES : 0) | (had && !has ? TC_RING_GOES : 0));
    }
    u->n_changed += note_changed(u->changed + u->n_changed, before + k, now + k, run.n - k, run.now + k, u->base);
}

static void compare(struct update *u)
{
    memset(u->state, TC_RING_REMOVED, u->old->n_items);
    for (uint32_t k = 0; k < u->n_runs; k++)
        compare_run(u, u->runs[k]);
}

/* Entries to hash. */
struct parts {
    struct tc_ring_part *at;
    size_t n;
};

/* Those of the numbers [first, end). */
static void add_part(struct parts *p, struct tc_slice key, uint32_t item, uint32_t first, uint32_t end)
{
    if (first < end)
        p->at[p->n++] = (struct tc_ring_part){key, item, first, end - first, 0};
}

/* The same without that of the margin. */
static void add_others(struct parts *p, struct tc_slice key, uint32_t item, uint32_t first, uint32_t end, uint32_t base)
{
    add_part(p, key, item, first, TC_MIN(end, TC_MAX(base, first)));
    add_part(p, key, item, TC_MAX(first, base + 1), end);
}

/* Of equal hashes those that go are before those that come, so they are made before. */
static struct parts find_parts(const struct update *u)
{
    uint32_t n_old = u->old->n_items, removed = n_old - (u->n - u->n_added);
    const uint8_t *end = u->state + n_old, *gone = u->state;
    struct parts p = {0};
    p.at = tc_reallocarray(NULL, (size_t)removed + 2 * ((size_t)u->n_changed + u->n_added) + 1, sizeof(*p.at));
    for (; removed && (gone = memchr(gone, TC_RING_REMOVED, (size_t)(end - gone))) != NULL; gone++) {
        uint32_t o = (uint32_t)(gone - u->state);
        add_part(&p, u->old_items[o].key, o | TC_RING_GONE, 0, u->old->counts[o]);
    }
    for (const uint32_t *i = u->changed; i < u->changed + u->n_changed; i++) {
        uint32_t o = u->from[*i];
        add_others(&p, u->old_items[o].key, o | TC_RING_GONE, u->counts[*i], u->old->counts[o], u->base);
    }
    for (const uint32_t *i = u->added; u->keep && i < u->added + u->n_added; i++)
        add_part(&p, u->items[*i].key, *i | TC_RING_IN_MARGIN, u->base, u->base + 1);
    for (const uint32_t *i = u->changed; i < u->changed + u->n_changed; i++)
        add_others(&p, u->items[*i].key, *i, u->old->counts[u->from[*i]], u->counts[*i], u->base);
    for (const uint32_t *i = u->added; i < u->added + u->n_added; i++)
        add_part(&p, u->items[*i].key, *i, 0, u->counts[*i]);
    return p;
}

/* Room for n, with as many behind them as may be written to. */
static size_t entries_bytes(size_t n)
{
    return (n + TC_RING_PADDING) * (sizeof(uint64_t) + 2 * sizeof(uint32_t));
}

static void entries_init(struct tc_ring_entries *e, void *block, size_t n)
{
    e->hash = block;
    e->item = (uint32_t *)(void *)(e->hash + n + TC_RING_PADDING);
    e->at = e->item + n + TC_RING_PADDING;
}

/* Hashes and sorts the entries that the margin has not. False when so many change that it is not worth it. */
static bool find_few(struct update *u)
{
    struct parts p = find_parts(u);
    uint64_t n = 0;
    for (size_t k = 0; k < p.n; k++)
        n += p.at[k].n;
    bool worth = n <= u->old->size / REBUILD_PART;
    if (worth) {
        struct tc_ring_entries *few = &u->c.few;
        struct tc_ring_sort sort;
        few->n = (uint32_t)n;
        tc_ring_sort_init(&sort, few->n);
        entries_init(few, tc_malloc(entries_bytes(few->n)), few->n);
        tc_ring_sort_keys(&sort, p.at, p.n);
        tc_ring_sort_finish(&sort, few->hash, few->item, NULL, 0);
    }
    tc_free(p.at);
    return worth;
}

/* The new ring, of that size, with a margin if that pays and it may. NULL: to be built. */
static struct tc_ring *update(struct update *u, uint32_t size, bool margin)
{
    const struct tc_ring *old = u->old;
    uint32_t base = TC_RING_NO_BASE;
    bool has = old->margin.n > 0;
    u->base = has ? old->margin.base : TC_RING_NO_BASE;
    map_items(u);
    compare(u);
    bool much = u->n_changed > u->n / MARGIN_PART;
    u->keep = has && margin && !much;
    bool make = margin && much && tc_ring_margin_base(u->counts, u->n, size, &base);
    struct tc_ring *r = tc_ring_alloc(size, u->counts, u->n, old, has || make);
    if (!find_few(u)) {
        tc_ring_unref(r);
        return NULL;
    }
    if (u->c.few.n > FEW)
        u->entries = tc_malloc(entries_bytes((size_t)TC_MAX(u->c.few.n, FEW) + old->margin.n));
    entries_init(&u->c.entries, u->entries ? u->entries : u->scratch, (size_t)TC_MAX(u->c.few.n, FEW) + old->margin.n);
    if (!tc_ring_walk(r, old, &u->c, u->state, u->wide)) {
        tc_ring_unref(r);
        return NULL;
    }
    tc_ring_merge(r, old, &u->c, u->wide);
    if (make)
        tc_ring_margin_make(r, u->items, base, u->wide);
    else if (!u->keep || r->ties)
        r->margin.n = 0;
    return r;
}

/* Whatever is needed for a while and is not small, in one block: it and the rings, in steps of size, find the places of
 * those before them on the heap. In pieces, growing by an endpoint each time, they would be in new pages every other
 * time. */
static void scratch_init(struct update *u)
{
    size_t n = u->n, n_old = u->old->n_items, entries = entries_bytes((size_t)FEW + u->old->margin.n);
    size_t bytes = entries + n * (sizeof(*u->runs) + 3 * sizeof(uint32_t)) + n_old + TC_RING_STATE_PADDING;
    u->scratch = tc_malloc(tc_ring_steps(bytes));
    u->runs = (struct run *)(void *)((char *)u->scratch + entries);
    u->counts = (uint32_t *)(void *)(u->runs + n);
    u->added = u->counts + n;
    u->changed = u->added + n;
    u->state = (uint8_t *)(u->changed + n);
}

struct tc_ring *tc_ring_rebuild(const struct tc_ring *old, const struct tc_ring_item *old_items, const uint32_t *from,
                                const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap,
                                struct tc_ring_how how)
{
    struct update u = {.old = old, .old_items = old_items, .items = items, .from = from};
    struct tc_ring *r = NULL;
    if (n == 0 || n >= ITEMS_LIMIT || old->size == 0 || old->n_items >= ITEMS_LIMIT)
        return tc_ring_build(items, n, min, max, cap, how);
    u.n = (uint32_t)n;
    u.wide = !how.plain && tc_ring_keys_can_wide();
    scratch_init(&u);
    uint32_t size = tc_ring_allot(items, n, min, max, cap, u.counts);
    r = update(&u, size, size >= how.margin_from && tc_ring_at_max(size, min, max, cap));
    tc_free(u.c.item_to);
    tc_free(u.c.few.hash);
    tc_free(u.entries);
    tc_free(u.scratch);
    return r ? r : tc_ring_build(items, n, min, max, cap, how);
}

struct tc_ring *tc_ring_update(const struct tc_ring *old, const struct tc_ring_item *old_items, const uint32_t *from,
                               const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap)
{
    return tc_ring_rebuild(old, old_items, from, items, n, min, max, cap, TC_RING_USUAL);
}
