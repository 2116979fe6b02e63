/* Sorts the entries of a ring by hash while they are made. Entries of equal hash keep the order in which they were
 * added.
 *
 * Linear time on uniform hashes. A control plane can choose keys whose hashes are uneven, which take the time of a
 * radix sort. Internal to the ring.
 *
 * Use: tc_ring_sort_init with the number of entries, tc_ring_sort_keys (or tc_ring_sort_room and tc_ring_sort_add)
 * until all are added, tc_ring_sort_finish. One thread at a time. */
#ifndef TC_RING_SORT_H
#define TC_RING_SORT_H

#include "ring/keys.h"

/* The entries added so far: each in the group of its hash's top bits, or in one list if the entries are few or their
 * hashes not uniform. All arrays are in one block of memory, which begins at `hash`. Once the groups were given up for
 * a list, the block holds `hash` and `item` alone, and the other arrays must not be used. */
struct tc_ring_sort {
    uint32_t n;    /* entries in all */
    uint32_t come; /* entries in the list so far */
    bool list;
    unsigned group_bits; /* this many top bits of a hash are the number of its group */
    uint32_t capacity;   /* entries that a group has room for */
    struct tc_ring_group *groups;
    uint64_t *chunk; /* room for the next hashes, before they go to their groups */
    uint64_t *hash;  /* the list, or the groups `capacity` apart */
    uint32_t *item;
    unsigned slot_bits; /* a group, or the list, has 2^slot_bits slots */
    uint64_t *v;        /* the numbers by which a group is sorted */
    uint16_t *slots;    /* where each slot begins; after the group was sorted, where it ends */
};

/* Begins to sort n entries. tc_ring_sort_finish must follow, since it frees the memory. */
void tc_ring_sort_init(struct tc_ring_sort *s, uint32_t n);
/* Hashes and adds the parts' entries. */
void tc_ring_sort_keys(struct tc_ring_sort *s, const struct tc_ring_part *parts, size_t n);
/* The two halves of tc_ring_sort_keys: tc_ring_sort_room returns where to write the hashes of the next entries, at most
 * *most; the room is valid until tc_ring_sort_add. tc_ring_sort_add adds these hashes as the entries of the n parts, in
 * their order. */
uint64_t *tc_ring_sort_room(const struct tc_ring_sort *s, uint32_t *most);
void tc_ring_sort_add(struct tc_ring_sort *s, const struct tc_ring_part *parts, size_t n);
/* Writes out the sorted entries, and frees what `s` holds. index (may be NULL) gets the first entry of each of the
 * 2^index_bits buckets of a hash's top bits, and n at the end. Returns false if there may be equal hashes, or if the
 * index, which was asked for, is not complete: a caller that asked for it then calls tc_ring_index. */
bool tc_ring_sort_finish(struct tc_ring_sort *s, uint64_t *out_hash, uint32_t *out_item, uint32_t *index,
                         unsigned index_bits);

#endif
