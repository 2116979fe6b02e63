/* The static stride scheduler of weighted_round_robin: a sequence in which each of n places comes as often as its
 * weight says, and evenly spread (A58, with the limits that gRPC C-core puts on weights). Immutable. */
#ifndef TC_LB_WEIGHTED_ROUND_ROBIN_SCHEDULER_H
#define TC_LB_WEIGHTED_ROUND_ROBIN_SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

/* A smaller weight could not be scaled in a float. */
#define TC_WRR_WEIGHT_MIN 1e-30

struct tc_wrr_scheduler {
    uint32_t n;
    uint16_t weights[]; /* of the n places, 65535 at most and at least 1 */
};

/* Makes a scheduler. A weight that is not above 0 is unknown, and counts as the mean of the known ones, which must be
 * finite and at least TC_WRR_WEIGHT_MIN. Returns NULL if there is nothing to weigh: fewer than two places, or all
 * weights unknown. Freed with tc_free. */
struct tc_wrr_scheduler *tc_wrr_scheduler_new(const float *weights, size_t n);
/* Returns the next place, and advances the sequence. O(1) on average; one pick may pass over all n places. */
uint32_t tc_wrr_scheduler_pick(const struct tc_wrr_scheduler *s, uint32_t *sequence);

#endif
