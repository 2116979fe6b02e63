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

static void take_margin(struct tc_ring_walk *w, const struct tc_ring *old, uint64_t h, uint32_t item)
{
    uint32_t at = tc_ring_position(old, h), n = w->to.n;
    w->fine &= !(at < old->size && old->hash[at] == h) && !(n > 0 && w->to.hash[n - 1] == h);
    w->to.hash[n] = h;
    w->to.item[n] = item;
    w->to.at[n] = at + w->delta;
    w->to.n++;
}

/* False when it should go and is not there: what was told about the old ring is wrong. */
static bool take_entry(struct tc_ring_walk *w, const struct tc_ring *old, uint64_t h, uint32_t item)
{
    uint32_t n = w->entries.n, at = tc_ring_position(old, h);
    uint32_t past = n == 0 ? 0 : w->entries.at[n - 1] + w->entries.item[n - 1] / TC_RING_GONE;
    bool gone = (item & TC_RING_GONE) != 0;
    at = TC_MAX(at, past);
    while (gone && at < old->size && old->hash[at] == h && old->item[at] != (item & ~TC_RING_GONE))
        at++; /* another's of equal hash */
    bool same = at < old->size && old->hash[at] == h;
    w->ties |= !gone && (same || (n > 0 && w->entries.hash[n - 1] == h));
    w->entries.hash[n] = h;
    w->entries.item[n] = item;
    w->entries.at[n] = at;
    w->entries.n++;
    w->delta += gone ? (uint32_t)-1 : 1;
    return same || !gone;
}

bool tc_ring_walk(struct tc_ring *r, const struct tc_ring *old, struct tc_ring_change *c, const uint8_t *state,
                  bool wide)
{
    struct tc_ring_walk w = {old->margin, r->margin, c->entries, state,     c->item_to,
                             c->first,    c->shift,  0,          old->ties, true};
    bool found = true;
    uint32_t k = 0;
    w.to.n = 0;
    for (uint32_t i = 0; i <= c->few.n && found; i++) {
        uint32_t end = i < c->few.n ? find(&w.from, k, c->few.hash[i]) : w.from.n;
        if (wide)
            tc_ring_walk_wide(&w, k, end);
        else
            walk_plain(&w, k, end);
        k = end;
        if (i == c->few.n)
            break;
        uint64_t h = c->few.hash[i];
        uint32_t item = c->few.item[i];
        /* No other entry of the ring may have a hash of the margin, unless the item goes. */
        if (k < w.from.n && w.from.hash[k] == h && !(state[w.from.item[k]] & TC_RING_REMOVED)) {
            w.fine = false;
            w.ties = true;
        }
        if (item & TC_RING_IN_MARGIN)
            take_margin(&w, old, h, item & ~TC_RING_IN_MARGIN);
        else
            found = take_entry(&w, old, h, item);
    }
    c->entries.n = w.entries.n;
    c->ties = w.ties;
    r->margin.base = w.from.base;
    r->margin.n = w.fine && w.to.n == r->n_items ? w.to.n : 0;
    return found && w.delta == r->size - old->size;
}
