/* A latency histogram in the manner of HDR: buckets of at most 1/128 relative width, from 1 to 2^40, in the unit
 * of who adds them (nanoseconds: up to 18 minutes). */
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
/* The value below or at which the share q (0..1) of all lies, at most 0.8 % too large; the largest for q = 1; 0 when
 * empty. */
uint64_t histogram_at(const struct histogram *h, double q);

#endif
