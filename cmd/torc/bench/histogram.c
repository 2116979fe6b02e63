/* Buckets with a relative width of at most 1/128, in a fixed array. */
#include "histogram.h"

#include <math.h>

/* Values below 128 have a bucket each. Each power of two above has 128 buckets. */
static unsigned bucket_of(uint64_t v)
{
    if (v < 128)
        return (unsigned)v;
    unsigned shift = 63u - (unsigned)__builtin_clzll(v) - 7u;
    unsigned b = (shift + 1) * 128u + (unsigned)((v >> shift) - 128u);
    return b < HISTOGRAM_BUCKETS ? b : HISTOGRAM_BUCKETS - 1;
}

static uint64_t upper_bound_of(unsigned b)
{
    if (b < 128)
        return b;
    unsigned shift = b / 128 - 1;
    return ((uint64_t)(b % 128 + 129) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t value)
{
    h->count++;
    if (value > h->max)
        h->max = value;
    h->buckets[bucket_of(value)]++;
}

uint64_t histogram_at(const struct histogram *h, double q)
{
    if (h->count == 0)
        return 0;
    uint64_t rank = (uint64_t)ceil(q * (double)h->count);
    uint64_t seen = 0;
    for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++) {
        seen += h->buckets[b];
        if (seen >= rank && seen) {
            uint64_t v = upper_bound_of(b);
            return v < h->max ? v : h->max;
        }
    }
    return h->max;
}
