#include "sim/coverage.h"

#include <stddef.h>

static struct sim_coverage *in;
static uint32_t before; /* the hash of the block before, shifted: A to B is not B to A */

void sim_coverage_count_in(struct sim_coverage *c)
{
    in = c;
}

void __sanitizer_cov_trace_pc(void);

/* Called by each block of code. Takes the address relative to a function of the program: the same in every run,
 * wherever the program is loaded. This file itself is built without these calls (CMakeLists.txt). */
void __sanitizer_cov_trace_pc(void)
{
    if (in == NULL)
        return;
    uint64_t at = (uint64_t)((uintptr_t)__builtin_return_address(0) - (uintptr_t)&sim_coverage_count_in);
    uint32_t here = (uint32_t)((at * UINT64_C(0x9e3779b97f4a7c15)) >> 48);
    in->counts[(here ^ before) % SIM_COVERAGE_EDGES]++;
    before = here >> 1;
}

unsigned sim_coverage_add(uint32_t seen[SIM_COVERAGE_EDGES], const struct sim_coverage *c)
{
    unsigned added = 0;
    for (size_t i = 0; i < SIM_COVERAGE_EDGES; i++) {
        uint32_t bit = c->counts[i] ? UINT32_C(1) << (31 - __builtin_clz(c->counts[i])) : 0;
        added += (seen[i] & bit) != bit;
        seen[i] |= bit;
    }
    return added;
}
