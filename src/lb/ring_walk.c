#include "lb/ring_walk.h"

/* Nothing is a branch on whether an entry comes or goes: that is as good as random. */
static void walk_plain(struct tc_ring_walk *walk, uint32_t k, uint32_t end)
{
    const struct tc_ring_walk w = *walk; /* nothing that is written to can be a part of it */
    uint32_t n = w.to.n, entries = w.entries.n, delta = w.delta;
    for (; k < end; k++) {
        uint64_t h = w.from.hash[k];
        uint32_t item = w.from.item[k], at = w.from.at[k], bits = w.state[item];
        uint32_t moved = w.item_to ? w.item_to[item] : item + (w.shift & (0 - (uint32_t)(item >= w.first)));
        uint32_t toggles = bits & TC_RING_TOGGLES, goes = bits & TC_RING_GOES, there = 0 - goes / TC_RING_GOES;
        w.to.hash[n] = h;
        w.to.item[n] = moved;
        w.to.at[n] = at + delta;
        n += 1 - bits / TC_RING_REMOVED;
        w.entries.hash[entries] = h;
        w.entries.item[entries] = (moved & ~there) | ((item | TC_RING_GONE) & there);
        w.entries.at[entries] = at;
        entries += toggles;
        delta += toggles - goes; /* one more, or one less */
    }
    walk->to.n = n;
    walk->entries.n = entries;
    walk->delta = delta;
}

/* The first from k on that is not below h, which is mostly not far. */
static uint32_t find(const struct tc_ring_margin *m, uint32_t k, uint64_t h)
{
    uint32_t low = k, step = 1;
    for (; m->n - low > step && m->hash[low + step] < h; step *= 2)
        low += step;
    uint32_t high = TC_MIN(m->n, low + step);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->hash[middle] < h)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One of the few. False if it forbids a margin. */
static bool take(struct tc_ring_walk *w, const struct tc_ring *old, uint64_t h, uint32_t item)
{
    uint32_t at = tc_ring_position(old, h);
    if (item & TC_RING_IN_MARGIN) {
        struct tc_ring_margin *m = &w->to;
        bool alike = (at < old->size && old->hash[at] == h) || (m->n > 0 && m->hash[m->n - 1] == h);
        m->hash[m->n] = h;
        m->item[m->n] = item & ~TC_RING_IN_MARGIN;
        m->at[m->n++] = at + w->delta;
        return !alike;
    }
    struct tc_ring_entries *e = &w->entries;
    e->hash[e->n] = h;
    e->item[e->n] = item;
    e->at[e->n++] = at;
    w->delta += item & TC_RING_GONE ? (uint32_t)-1 : 1;
    return true;
}

void tc_ring_walk(struct tc_ring *r, const struct tc_ring *old, struct tc_ring_change *c, const uint8_t *state,
                  bool wide)
{
    struct tc_ring_walk w = {old->margin, r->margin, c->entries, state, c->item_to, c->first, c->shift, 0};
    bool fine = true;
    uint32_t k = 0;
    w.to.n = 0;
    for (uint32_t i = 0; i <= c->few.n; i++) {
        uint32_t end = i < c->few.n ? find(&w.from, k, c->few.hash[i]) : w.from.n;
        if (wide)
            tc_ring_walk_wide(&w, k, end);
        else
            walk_plain(&w, k, end);
        k = end;
        if (i == c->few.n)
            break;
        /* No other entry of the ring may have a hash of the margin, unless the item goes. */
        if (k < w.from.n && w.from.hash[k] == c->few.hash[i])
            fine &= (state[w.from.item[k]] & TC_RING_REMOVED) != 0;
        fine &= take(&w, old, c->few.hash[i], c->few.item[i]);
    }
    c->entries.n = w.entries.n;
    r->margin.base = w.from.base;
    r->margin.n = fine && w.to.n == r->n_items ? w.to.n : 0;
}
