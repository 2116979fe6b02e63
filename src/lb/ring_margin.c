#include "lb/ring_margin.h"

#include "base/mem.h"
#include "lb/ring_walk.h"

enum {
    MOST_ENTRIES = 32, /* of an item in the margin: of few items with many entries little changes */
    PART = 16,         /* of the items have an entry more than others, and so many have one less */
    PARTS = 256        /* items that are hashed at a time */
};

/* The entry that the fewer of those that have it as their last, and those that have one less, are the most of. */
static uint32_t find_base(const uint32_t *counts, uint32_t n, uint32_t *either)
{
    uint32_t with[MOST_ENTRIES + 2] = {0}, best = 0; /* items by entries */
    *either = 0;
    for (uint32_t i = 0; i < n; i++)
        with[TC_MIN(counts[i], MOST_ENTRIES + 1)]++;
    for (uint32_t k = 0; k < MOST_ENTRIES; k++)
        if (TC_MIN(with[k], with[k + 1]) > *either) {
            *either = TC_MIN(with[k], with[k + 1]);
            best = k;
        }
    return best;
}

bool tc_ring_margin_base(const uint32_t *counts, uint32_t n, uint32_t size, uint32_t *base)
{
    if (n > size / 2 || n < size / MOST_ENTRIES)
        return false;
    /* Of equal weights. */
    uint32_t mean = size / n, more = tc_ring_count_above(counts, n, mean);
    uint32_t either =
        TC_MIN(tc_ring_count_above(counts, n, mean - 1) - more, more - tc_ring_count_above(counts, n, mean + 1));
    *base = mean;
    if (either <= n / PART)
        *base = find_base(counts, n, &either);
    return either > n / PART;
}

/* Entries of an item of more than there is room for are made apart. */
static void add_large(const struct tc_ring_part *part, uint32_t base, struct tc_ring_sort *sort, uint64_t *hash)
{
    struct tc_ring_part entry = {part->key, part->item, base, 1, 0}, all = *part;
    all.spare = 0;
    tc_ring_keys(&entry, 1, hash);
    tc_ring_sort_keys(sort, &all, 1);
}

void tc_ring_margin_entries(const struct tc_ring *r, const struct tc_ring_item *items, uint32_t base,
                            struct tc_ring_sort *sort, uint64_t *hash)
{
    struct tc_ring_part parts[PARTS];
    for (uint32_t i = 0; i < r->n_items;) {
        uint32_t most, n = 0, made = 0, first = i;
        uint64_t *room = tc_ring_sort_room(sort, &most);
        for (; n < PARTS && i < r->n_items; i++, n++) {
            uint32_t count = r->counts[i], hashes = TC_MAX(count, base + 1);
            if (sort->list || hashes > most - made)
                break;
            parts[n] = (struct tc_ring_part){items[i].key, i, 0, count, hashes - count};
            made += hashes;
        }
        if (n == 0) {
            struct tc_ring_part part = {items[i].key, i, 0, r->counts[i], 0};
            add_large(&part, base, sort, hash + i);
            i++;
            continue;
        }
        tc_ring_keys(parts, n, room);
        const uint64_t *at = room;
        for (uint32_t k = 0; k < n; at += parts[k].n + parts[k].spare, k++)
            hash[first + k] = at[base];
        tc_ring_sort_add(sort, parts, n);
    }
}

void tc_ring_margin_set(struct tc_ring *r, uint32_t base, const uint64_t *hash, bool wide)
{
    const struct tc_ring ring = *r; /* nothing that is written to can be a part of it */
    const struct tc_ring_margin *m = &ring.margin;
    uint32_t n = ring.n_items, there = tc_ring_count_above(ring.counts, n, base), found = 0;
    bool alike = false;
    if (ring.ties)
        return;
    struct tc_ring_sort sort;
    tc_ring_sort_init(&sort, n);
    tc_ring_sort_each(&sort, hash);
    tc_ring_sort_finish(&sort, m->hash, m->item, NULL, 0);
    if (wide && !ring.sparse)
        tc_ring_positions_wide(&ring, m->hash, n, m->at);
    else
        for (uint32_t k = 0; k < n; k++)
            m->at[k] = tc_ring_position(&ring, m->hash[k]);
    uint64_t before = ~m->hash[0];
    for (uint32_t k = 0; k < n; k++) {
        uint64_t h = m->hash[k];
        found += ring.hash[m->at[k]] == h;
        alike |= h == before;
        before = h;
    }
    r->margin.base = base;
    r->margin.n = alike || found != there ? 0 : n; /* more are found when one has the hash of another's entry */
}

void tc_ring_margin_make(struct tc_ring *r, const struct tc_ring_item *items, uint32_t base, bool wide)
{
    if (r->ties)
        return;
    uint64_t *hash = tc_reallocarray(NULL, r->n_items, sizeof(*hash));
    struct tc_ring_part parts[PARTS];
    for (uint32_t i = 0; i < r->n_items;) {
        uint32_t n = 0, first = i;
        for (; n < PARTS && i < r->n_items; i++)
            parts[n++] = (struct tc_ring_part){items[i].key, i, base, 1, 0};
        tc_ring_keys(parts, n, hash + first);
    }
    tc_ring_margin_set(r, base, hash, wide);
    tc_free(hash);
}
