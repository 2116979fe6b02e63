/* Which code a run reaches: how often the program went from one block of code to another. Only builds with
 * TORC_SIM_COVERAGE count: there the compiler calls a function of coverage.c in each block. */
#ifndef SIM_COVERAGE_H
#define SIM_COVERAGE_H

#include <stdint.h>

enum { SIM_COVERAGE_EDGES = 1 << 16 }; /* several edges may share a count */

struct sim_coverage {
    uint32_t counts[SIM_COVERAGE_EDGES];
};

/* Counts go into `c` from now on, which must be zeroed and is borrowed until the next call. NULL: nothing is
 * counted. */
void sim_coverage_count_in(struct sim_coverage *c);
/* Adds a run to what all runs have reached: seen[i] has a bit for each magnitude (power of two) of count i. Returns how
 * many bits are new. */
unsigned sim_coverage_add(uint32_t seen[SIM_COVERAGE_EDGES], const struct sim_coverage *c);

#endif
