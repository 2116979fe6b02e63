/* Random numbers as a handle: xoshiro256** (Blackman and Vigna), seeded from the system or by number. Not for
 * cryptography. A handle is for one thread at a time; each loop has one (tc_loop_rng). */
#ifndef TC_BASE_RANDOM_H
#define TC_BASE_RANDOM_H

#include "base/common.h"

struct tc_rng {
    uint64_t s[4];
};

void tc_rng_init_system(struct tc_rng *r);
void tc_rng_init_seed(struct tc_rng *r, uint64_t seed);
uint64_t tc_rng_u64(struct tc_rng *r);
/* Uniform in [0, n), n > 0, without modulo bias. */
uint64_t tc_rng_below(struct tc_rng *r, uint64_t n);
/* Uniform in [0, 1). */
double tc_rng_double(struct tc_rng *r);

#endif
