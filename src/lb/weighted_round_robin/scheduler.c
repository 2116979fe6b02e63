/* Static stride scheduling. The sequence number k stands for place k % n in round k / n. A place of weight w, scaled so
 * that the largest is 65535, is taken in a share w / 65535 of the rounds: in round g if the step from w * g to
 * w * (g + 1) reaches a multiple of 65535. An offset of half the range between neighbours keeps places of one weight
 * from coming all in one round.
 *
 * The arithmetic is gRPC C-core's to the last bit: a scale in a float of 32 bits, and lround. A weight of more than ten
 * times the mean is cut to that. So a round takes about a tenth of the places or more, unless the weights are very
 * uneven. A weight of less than a hundredth of the mean is raised to that, so that each endpoint goes on getting RPCs,
 * and with them reports. */
#include "lb/weighted_round_robin/scheduler.h"

#include <math.h>

#include "base/mem.h"

enum { MOST = 65535 };
static const double MAX_RATIO = 10, MIN_RATIO = 0.01;

struct tc_wrr_scheduler *tc_wrr_scheduler_new(const float *weights, size_t n)
{
    double sum = 0;
    float max = 0;
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(weights[i] > 0))
            continue;
        known++;
        sum += (double)weights[i];
        max = weights[i] > max ? weights[i] : max;
    }
    if (n <= 1 || known == 0)
        return NULL;
    double mean = sum / (double)known;
    if ((double)max / mean > MAX_RATIO)
        max = (float)(MAX_RATIO * mean);
    const float scale = (float)MOST / max;
    const long scaled_mean = lround((double)scale * mean);
    const long least = TC_MAX(1L, lround((double)scaled_mean * MIN_RATIO));
    struct tc_wrr_scheduler *s = tc_malloc(sizeof(*s) + n * sizeof(s->weights[0]));
    s->n = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        double w = (double)(weights[i] < max ? weights[i] : max);
        long scaled = weights[i] > 0 ? TC_MAX(lround(w * (double)scale), least) : scaled_mean;
        s->weights[i] = (uint16_t)TC_MIN(scaled, (long)MOST);
    }
    return s;
}

uint32_t tc_wrr_scheduler_pick(const struct tc_wrr_scheduler *s, uint32_t *sequence)
{
    for (;;) {
        uint32_t number = (*sequence)++, place = number % s->n, weight = s->weights[place];
        uint64_t round = number / s->n;
        if ((weight * round + (uint64_t)place * (MOST / 2)) % MOST >= MOST - weight)
            return place;
    }
}
