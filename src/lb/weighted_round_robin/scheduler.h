/* The static stride scheduler of weighted_round_robin: a sequence in which each of n places comes as often as its
 * weight says, and evenly spread (A58, with the limits that gRPC C-core puts on weights). Immutable; any thread. */
#ifndef TC_LB_WEIGHTED_ROUND_ROBIN_SCHEDULER_H
#define TC_LB_WEIGHTED_ROUND_ROBIN_SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

/* The least weight: the scale, 65535 / weight, stays within a float's range. */
#define TC_WRR_WEIGHT_MIN 1e-30

struct tc_wrr_scheduler {
    uint32_t n;
    uint16_t weights[]; /* of the n places, each 1 to 65535 */
};

/* Makes a scheduler. A weight above 0 must be finite and at least TC_WRR_WEIGHT_MIN. Any other weight is unknown and
 * counts as the mean of the known ones. Returns NULL if there are fewer than two places or all weights are unknown. The
 * caller frees the scheduler with tc_free. */
struct tc_wrr_scheduler *tc_wrr_scheduler_new(const float *weights, size_t n);
/* Returns the next place, below s->n, and advances the sequence, which is the caller's and may begin at any number.
 * O(1) on average, O(n) at worst. */
uint32_t tc_wrr_scheduler_pick(const struct tc_wrr_scheduler *s, uint32_t *sequence);

#endif
