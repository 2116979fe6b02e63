/* The hashes of a ring's entries. Internal to the ring. */
#ifndef TC_LB_RING_KEYS_H
#define TC_LB_RING_KEYS_H

#include "base/slice.h"

/* Entries of an item: XXH64 (seed 0) of key + "_" + i in decimal, for i = first .. first + n - 1. */
struct tc_ring_part {
    struct tc_slice key;
    uint32_t item, first, n;
    uint32_t spare; /* so many more are hashed, and no entries */
};

/* The hashes of all parts' entries and of what is spare of each, one after the other. */
void tc_ring_keys(const struct tc_ring_part *parts, size_t n, uint64_t *out);
/* The same as a processor does it that has no instructions for several multiplications at a time. */
void tc_ring_keys_plain(const struct tc_ring_part *parts, size_t n, uint64_t *out);

/* The step of XXH64 that takes the last bytes of a text, by how many these are. */
enum tc_ring_step { TC_RING_STEP1, TC_RING_STEP4, TC_RING_STEP8 };

/* Texts that differ in their last byte, which counts up. What the last bytes are multiplied by counts up as well. */
struct tc_ring_run {
    uint64_t h;       /* the state before the last step */
    uint64_t product; /* the first text's last bytes times the step's first constant */
    uint64_t *out;    /* n hashes */
    uint32_t n;
};

/* The last step and the avalanche of all texts, several at a time. Only where tc_ring_keys_can_wide. */
void tc_ring_keys_wide(enum tc_ring_step step, const struct tc_ring_run *runs, unsigned n);
bool tc_ring_keys_can_wide(void);

#endif
