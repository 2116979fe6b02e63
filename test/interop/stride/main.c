/* The scheduler of weighted_round_robin, for suite_loads.py: reads lines "SEQUENCE PICKS WEIGHT WEIGHT ...", of at most
 * 256 weights. Writes a line for each: the places of PICKS picks (none if there is no scheduler for these weights) and
 * the sequence after them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "lb/weighted_round_robin/scheduler.h"

enum { MOST = 256 };

int main(void)
{
    static char line[MOST * 32];
    while (fgets(line, sizeof(line), stdin)) {
        float weights[MOST];
        size_t n = 0;
        char *at = line, *end;
        uint32_t sequence = (uint32_t)strtoul(at, &at, 10);
        unsigned long picks = strtoul(at, &at, 10);
        for (; n < MOST; n++, at = end) {
            weights[n] = strtof(at, &end);
            if (end == at)
                break;
        }
        struct tc_wrr_scheduler *s = tc_wrr_scheduler_new(weights, n);
        for (unsigned long i = 0; s && i < picks; i++)
            printf("%u ", tc_wrr_scheduler_pick(s, &sequence));
        printf("%u\n", sequence);
        fflush(stdout);
        tc_free(s);
    }
    return 0;
}
