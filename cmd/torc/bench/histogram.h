/* A latency histogram after HDR: buckets of at most 1/128 relative width, for values from 1 to 2^40 in the caller's
 * unit (nanoseconds: up to 18 minutes). */
#ifndef TORC_HISTOGRAM_H
#define TORC_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS (35 * 128)

struct histogram {
    uint64_t count;
    uint64_t max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t value);
/* Returns the value at quantile q (0 to 1), at most 0.8 % too large; the maximum for q = 1; 0 if empty. */
uint64_t histogram_at(const struct histogram *h, double q);

#endif
