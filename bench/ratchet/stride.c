/* The scheduler of weighted_round_robin in the ratchet: `ratchet_stride ENDPOINTS ROUNDS` picks ROUNDS times among
 * at least two endpoints of fixed weights. Instructions are counted from outside (check.py). */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "lb/weighted_round_robin/scheduler.h"

int main(int argc, char **argv)
{
    size_t n = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long rounds = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    float *weights = tc_calloc(n + 1, sizeof(*weights));
    for (size_t i = 0; i < n; i++)
        weights[i] = (float)(1 + i * 7 % 13);
    struct tc_wrr_scheduler *s = tc_wrr_scheduler_new(weights, n);
    if (!s) {
        fprintf(stderr, "usage: %s ENDPOINTS ROUNDS\n", argv[0]);
        return 2;
    }
    uint32_t sequence = 0;
    uint64_t sum = 0;
    for (unsigned long i = 0; i < rounds; i++)
        sum += tc_wrr_scheduler_pick(s, &sequence);
    printf("%llu\n", (unsigned long long)sum);
    tc_free(weights);
    tc_free(s);
    return 0;
}
