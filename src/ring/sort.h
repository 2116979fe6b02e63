/* Sorts the entries of a ring by hash while they are made. Entries of equal hash keep the order in which they were
 * added.
 *
 * Linear time on uniform hashes; on hashes that a control plane's choice of keys made uneven, the time of a radix sort.
 * Internal to the ring.
 *
 * Use: tc_ring_sort_init with the number of entries, tc_ring_sort_keys (or room and add) until all are there,
 * tc_ring_sort_finish. One thread at a time. */
#ifndef TC_RING_SORT_H
#define TC_RING_SORT_H

#include "ring/keys.h"

/* Entries that were added: each in the group of its hash's top bits, or in one list if they are few or not uniform. */
struct tc_ring_sort {
    uint32_t n;    /* entries in all */
    uint32_t come; /* entries in the list so far */
    bool list;
    unsigned group_bits; /* a hash's group is this number of its top bits */
    uint32_t capacity;   /* entries that a group has room for */
    struct tc_ring_group *groups;
    uint64_t *chunk; /* hashes that are written next, on their way to the groups */
    uint64_t *hash;  /* the list, or the groups `capacity` apart */
    uint32_t *item;
    unsigned slot_bits; /* a group, or the list, has 2^slot_bits slots */
    uint64_t *v;        /* the numbers by which a group is sorted */
    uint16_t *slots;    /* where each slot begins, and once the group is sorted, ends */
};

/* Begins to sort n entries. tc_ring_sort_finish must follow, since it frees the memory. */
void tc_ring_sort_init(struct tc_ring_sort *s, uint32_t n);
/* Hashes and adds the parts' entries. */
void tc_ring_sort_keys(struct tc_ring_sort *s, const struct tc_ring_part *parts, size_t n);
/* The two halves of tc_ring_sort_keys: tc_ring_sort_room returns where to write the hashes of the next entries, of
 * which there may be at most *most. tc_ring_sort_add takes these hashes as those of the parts' entries, in their
 * order. */
uint64_t *tc_ring_sort_room(const struct tc_ring_sort *s, uint32_t *most);
void tc_ring_sort_add(struct tc_ring_sort *s, const struct tc_ring_part *parts, size_t n);
/* Writes the n entries out, and frees what `s` holds. index (may be NULL) gets the first entry of each of the
 * 2^index_bits buckets of a hash's top bits, and n at the end. Returns false if there may be equal hashes, or if there
 * are so few or so many buckets that the groups do not give them: the caller then fills the index (tc_ring_index). */
bool tc_ring_sort_finish(struct tc_ring_sort *s, uint64_t *out_hash, uint32_t *out_item, uint32_t *index,
                         unsigned index_bits);

#endif
