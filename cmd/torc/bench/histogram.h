/* A latency histogram after HDR: buckets of at most 1/128 relative width, for values below 2^41 in the caller's unit
 * (nanoseconds: 36 minutes). Larger values are in the last bucket. */
#ifndef TORC_HISTOGRAM_H
#define TORC_HISTOGRAM_H

#include "base/buf.h"

enum { HISTOGRAM_ROWS = 35, HISTOGRAM_ROW = 128 };

/* Zero-initialised: empty. Values below 128 have a bucket each in the first row; each power of two above has a row,
 * which is made when its first value comes: a histogram for each of thousands of backends stays small. */
struct histogram {
    uint64_t count;
    uint64_t max;
    double sum, squares; /* of the values and of their squares */
    uint64_t *rows[HISTOGRAM_ROWS];
};

void histogram_add(struct histogram *h, uint64_t value);
/* Adds what another histogram holds. */
void histogram_merge(struct histogram *h, const struct histogram *from);
/* Returns the value at quantile q (0 to 1), at most 0.8 % too large; the maximum for q = 1; 0 if the histogram is
 * empty. Values of 2^41 or more count as 2^41 - 1. */
uint64_t histogram_at(const struct histogram *h, double q);
/* Returns how many values are at most `value`. Values in the bucket of `value` are left out, unless the bucket ends
 * with `value` or no value is larger. */
uint64_t histogram_below(const struct histogram *h, uint64_t value);
double histogram_mean(const struct histogram *h);
double histogram_deviation(const struct histogram *h);
/* Appends the percentile distribution in the text form of HdrHistogram, which its plotters read: values divided by
 * `unit`, five steps for each halving of the rest. */
void histogram_append_text(const struct histogram *h, double unit, struct tc_buf *out);
void histogram_fini(struct histogram *h);

#endif
