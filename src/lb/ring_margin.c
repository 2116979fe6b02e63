#include "lb/ring_margin.h"

#include "base/mem.h"

enum {
    MOST_ENTRIES = 32, /* of an item in the margin: of few items with many entries little changes */
    PART = 16,         /* of the items have an entry more than others, and so many have one less */
    PARTS = 256        /* items that are hashed at a time */
};

bool tc_ring_margin_base(const uint32_t *counts, uint32_t n, uint32_t size, uint32_t *base)
{
    uint32_t with[2][MOST_ENTRIES + 2] = {{0}},
                                    best = 0; /* items by entries; two, as equal ones mostly follow another */
    if (n > size / 2 || n < size / MOST_ENTRIES)
        return false;
    for (uint32_t i = 0; i < n; i++)
        with[i % 2][TC_MIN(counts[i], MOST_ENTRIES + 1)]++;
    for (uint32_t k = 0; k <= MOST_ENTRIES; k++)
        with[0][k] += with[1][k];
    for (uint32_t k = 0; k < MOST_ENTRIES; k++) {
        uint32_t either = TC_MIN(with[0][k], with[0][k + 1]);
        if (either > best) {
            best = either;
            *base = k;
        }
    }
    return best > n / PART;
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

/* Sorts the entries that hash[] has by item. */
static void sort_margin(struct tc_ring_margin *m, const uint64_t *hash, uint32_t n)
{
    struct tc_ring_sort sort;
    tc_ring_sort_init(&sort, n);
    struct tc_ring_part parts[PARTS];
    for (uint32_t i = 0; i < n;) {
        uint32_t most, k = 0;
        uint64_t *room = tc_ring_sort_room(&sort, &most);
        for (; k < TC_MIN(most, PARTS) && i < n; k++, i++) {
            parts[k] = (struct tc_ring_part){.item = i, .n = 1};
            room[k] = hash[i];
        }
        tc_ring_sort_add(&sort, parts, k);
    }
    tc_ring_sort_finish(&sort, m->hash, m->item, NULL, 0);
}

void tc_ring_margin_set(struct tc_ring *r, uint32_t base, const uint64_t *hash)
{
    struct tc_ring_margin *m = &r->margin;
    uint32_t n = r->n_items;
    bool alike = r->ties;
    if (alike)
        return;
    sort_margin(m, hash, n);
    for (uint32_t k = 0; k < n; k++) {
        uint64_t h = m->hash[k];
        uint32_t at = tc_ring_position(r, h);
        m->at[k] = at;
        alike |= k > 0 && m->hash[k - 1] == h;
        /* The padding has the largest number, and no item that is one: then it is no equal. */
        alike |= r->counts[m->item[k]] <= base && r->hash[at] == h;
    }
    m->base = base;
    m->n = alike ? 0 : n;
}

void tc_ring_margin_make(struct tc_ring *r, const struct tc_ring_item *items, uint32_t base)
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
    tc_ring_margin_set(r, base, hash);
    tc_free(hash);
}
