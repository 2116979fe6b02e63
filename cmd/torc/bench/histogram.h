/* A latency histogram as HdrHistogram has it: buckets of at most 1/128 relative width, for values below 2^41 in the
 * caller's unit (nanoseconds: 36 minutes). Larger values are in the last bucket. One thread at a time uses a
 * histogram. */
#ifndef TORC_HISTOGRAM_H
#define TORC_HISTOGRAM_H

#include "base/buf.h"

enum { HISTOGRAM_ROWS = 35, HISTOGRAM_ROW = 128 };

/* A zero-initialised histogram is empty. The first row has a bucket for each value below 128. Each further row has the
 * values from a power of two to the next. A row is allocated when its first value comes, so that thousands of
 * histograms stay small. */
struct histogram {
    uint64_t count;
    uint64_t max;
    double sum, squares;            /* of the values and of their squares */
    uint64_t *rows[HISTOGRAM_ROWS]; /* each the counts of HISTOGRAM_ROW buckets, owned; NULL: all are 0 */
};

void histogram_add(struct histogram *h, uint64_t value);
/* Adds the values of another histogram. */
void histogram_merge(struct histogram *h, const struct histogram *from);
/* Returns the value at quantile q (0 to 1): at most 0.8 % too large, exact for q = 1, 0 if the histogram is empty.
 * Values of 2^41 or more count as 2^41 - 1. */
uint64_t histogram_at(const struct histogram *h, double q);
/* Returns how many values are at most `value`. Values in the bucket of `value` are left out, unless the bucket ends
 * with `value` or no value is larger. The last bucket has no end. */
uint64_t histogram_below(const struct histogram *h, uint64_t value);
/* Return the mean and the standard deviation of the values themselves; 0 if the histogram is empty. */
double histogram_mean(const struct histogram *h);
double histogram_deviation(const struct histogram *h);
/* Appends the percentile distribution in the text form that HdrHistogram's plotters read. Values are divided by `unit`.
 * Each halving of the distance to 100 % takes five steps. */
void histogram_append_text(const struct histogram *h, double unit, struct tc_buf *out);
void histogram_fini(struct histogram *h);

#endif
