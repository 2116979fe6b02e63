/* The way through a margin, from one ring to the next. Internal to the ring. */
#ifndef TC_LB_RING_WALK_H
#define TC_LB_RING_WALK_H

#include "lb/ring_merge.h"

/* What becomes of an item's entry in the margin: bits. */
enum {
    TC_RING_TOGGLES = 1, /* it comes to the ring, or goes: */
    TC_RING_GOES = 2,
    TC_RING_REMOVED = 4 /* the item goes; its entries are with the others that go */
};
enum { TC_RING_STATE_PADDING = 3 }; /* bytes beyond the states that are read */

/* Completes c's entries that come or go, which has `few`, by those of the old ring's margin (if it has one), and moves
 * the margin to the new ring, which has room for it then: right if each new item's entry in the margin is among the
 * few, with TC_RING_IN_MARGIN, and else none at all. TC_RING_PADDING entries beyond may be written to. False when what
 * was told about the old ring is wrong. state[o]: bits of each old item. */
bool tc_ring_walk(struct tc_ring *r, const struct tc_ring *old, struct tc_ring_change *c, const uint8_t *state,
                  bool wide);

/* Where it has come to. Both margins and the entries are copies; their numbers say what was written. */
struct tc_ring_walk {
    struct tc_ring_margin from, to;
    struct tc_ring_entries entries;
    const uint8_t *state;
    const uint32_t *item_to; /* these of the change */
    uint32_t first, shift;
    uint32_t delta; /* entries that came, less those that went; modulo 2^32 */
    bool ties;      /* the new ring may have entries of equal hash */
    bool fine;      /* it may have a margin */
};

/* Those from k to end of the margin. Only where tc_ring_keys_can_wide. */
void tc_ring_walk_wide(struct tc_ring_walk *w, uint32_t k, uint32_t end);
/* tc_ring_position of each, in a ring that is not sparse. Only there as well. */
void tc_ring_positions_wide(const struct tc_ring *r, const uint64_t *hash, uint32_t n, uint32_t *at);

#endif
