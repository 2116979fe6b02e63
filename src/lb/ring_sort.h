/* Makes entries in the order of their hashes; those of equal hash keep the order in which they came. Expected linear
 * time on uniform hashes; on others, which a control plane that chooses keys may give, that of a radix sort. Internal
 * to the ring. */
#ifndef TC_LB_RING_SORT_H
#define TC_LB_RING_SORT_H

#include "lb/ring_keys.h"

/* Entries being collected: each in the group of its hash's top bits, or, as they are few or not uniform, in a list. */
struct tc_ring_sort {
    uint32_t n;    /* to come in all */
    uint32_t come; /* to the list */
    bool list;
    unsigned group_bits; /* top bits that say the group */
    uint32_t capacity;   /* of a group */
    struct tc_ring_group *groups;
    uint64_t *chunk; /* what comes next, before it goes to groups */
    uint64_t *hash;  /* the list, or each group's entries, `capacity` apart */
    uint32_t *item;
    unsigned slot_bits; /* by which a group, or the list, is sorted */
    uint64_t *v;        /* and where */
    uint16_t *slots;
};

/* For n entries. */
void tc_ring_sort_init(struct tc_ring_sort *s, uint32_t n);
/* Makes the parts' entries; nothing may be spare. */
void tc_ring_sort_keys(struct tc_ring_sort *s, const struct tc_ring_part *parts, size_t n);
/* That in two steps: where the hashes of the next entries are to be written, no more than *most of them; and that they
 * were, being those of the parts. Between them may stand
 * what is spare, unless they go to a list. */
uint64_t *tc_ring_sort_room(struct tc_ring_sort *s, uint32_t *most);
void tc_ring_sort_add(struct tc_ring_sort *s, const struct tc_ring_part *parts, size_t n);
/* Instead of all that: one entry of each item, n of them. */
void tc_ring_sort_each(struct tc_ring_sort *s, const uint64_t *hash);
/* Writes out the n entries of init, all of which were added, and ends it. index (may be NULL) gets the first entry of
 * each of the 2^index_bits buckets of a hash's top bits, and n at the end. False: there may be equal hashes, and the
 * index is not filled. */
bool tc_ring_sort_finish(struct tc_ring_sort *s, uint64_t *out_hash, uint32_t *out_item, uint32_t *index,
                         unsigned index_bits);

#endif
