/* Rows of 128 buckets: the first for the values below 128, and one for each range from a power of two to the next,
 * 128 to 255 first and 2^40 to 2^41 - 1 last. */
#include "histogram.h"

#include <math.h>

#include "base/mem.h"

enum { TICKS = 5 }; /* lines of the text form for each halving of the distance to 100 % */

static unsigned bucket_of(uint64_t v)
{
    if (v < 128)
        return (unsigned)v;
    unsigned shift = 63u - (unsigned)__builtin_clzll(v) - 7u;
    unsigned b = (shift + 1) * 128u + (unsigned)((v >> shift) - 128u);
    return TC_MIN(b, (unsigned)HISTOGRAM_ROWS * HISTOGRAM_ROW - 1);
}

static uint64_t upper_bound_of(unsigned b)
{
    if (b < 128)
        return b;
    unsigned shift = b / 128 - 1;
    return ((uint64_t)(b % 128 + 129) << shift) - 1;
}

static uint64_t *row(struct histogram *h, unsigned i)
{
    if (!h->rows[i])
        h->rows[i] = tc_calloc(HISTOGRAM_ROW, sizeof(uint64_t));
    return h->rows[i];
}

void histogram_add(struct histogram *h, uint64_t value)
{
    unsigned b = bucket_of(value);
    h->count++;
    h->max = TC_MAX(h->max, value);
    h->sum += (double)value;
    h->squares += (double)value * (double)value;
    row(h, b / HISTOGRAM_ROW)[b % HISTOGRAM_ROW]++;
}

void histogram_merge(struct histogram *h, const struct histogram *from)
{
    h->count += from->count;
    h->max = TC_MAX(h->max, from->max);
    h->sum += from->sum;
    h->squares += from->squares;
    for (unsigned i = 0; i < HISTOGRAM_ROWS; i++)
        for (unsigned k = 0; from->rows[i] && k < HISTOGRAM_ROW; k++)
            row(h, i)[k] += from->rows[i][k];
}

/* Adds up the buckets from the lowest on, until they have `rank` values and at least one. Returns the largest value of
 * the last bucket added, or the histogram's maximum if that is less. Stores the sum in *seen. */
static uint64_t value_of(const struct histogram *h, uint64_t rank, uint64_t *seen)
{
    *seen = 0;
    for (unsigned b = 0; b < HISTOGRAM_ROWS * HISTOGRAM_ROW; b++) {
        const uint64_t *at = h->rows[b / HISTOGRAM_ROW];
        *seen += at ? at[b % HISTOGRAM_ROW] : 0;
        if (*seen >= rank && *seen)
            return TC_MIN(upper_bound_of(b), h->max);
    }
    return h->max;
}

/* Returns the rank of a quantile, counted from 1; 0 for q = 0. Rounds up, but not for a fraction that may be a rounding
 * error of q, up to 10^-12 of the rank. */
static uint64_t rank_of(const struct histogram *h, double q)
{
    return (uint64_t)ceil(q * (double)h->count * (1 - 1e-12));
}

uint64_t histogram_at(const struct histogram *h, double q)
{
    uint64_t seen;
    return value_of(h, rank_of(h, q), &seen);
}

uint64_t histogram_below(const struct histogram *h, uint64_t value)
{
    uint64_t n = 0;
    if (value >= h->max)
        return h->count;
    for (unsigned b = 0; b < HISTOGRAM_ROWS * HISTOGRAM_ROW - 1 && upper_bound_of(b) <= value; b++)
        n += h->rows[b / HISTOGRAM_ROW] ? h->rows[b / HISTOGRAM_ROW][b % HISTOGRAM_ROW] : 0;
    return n;
}

double histogram_mean(const struct histogram *h)
{
    return h->count ? h->sum / (double)h->count : 0;
}

double histogram_deviation(const struct histogram *h)
{
    double mean = histogram_mean(h), variance = h->count ? h->squares / (double)h->count - mean * mean : 0;
    return variance > 0 ? sqrt(variance) : 0;
}

void histogram_append_text(const struct histogram *h, double unit, struct tc_buf *out)
{
    uint64_t seen = 0;
    tc_buf_append_str(out, "       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    for (double q = 0; seen < h->count;) {
        double value = (double)value_of(h, rank_of(h, q), &seen) / unit;
        if (seen == h->count)
            break;
        tc_buf_printf(out, "%12.3f %14.12f %10llu %14.2f\n", value, q, (unsigned long long)seen, 1 / (1 - q));
        q += 1 / (TICKS * exp2(floor(log2(1 / (1 - q))) + 1));
    }
    if (h->count)
        tc_buf_printf(out, "%12.3f %14.12f %10llu\n", (double)h->max / unit, 1.0, (unsigned long long)h->count);
    tc_buf_printf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", histogram_mean(h) / unit,
                  histogram_deviation(h) / unit);
    tc_buf_printf(out, "#[Max     = %12.3f, Total count    = %12llu]\n", (double)h->max / unit,
                  (unsigned long long)h->count);
    tc_buf_printf(out, "#[Buckets = %12d, SubBuckets     = %12d]\n", HISTOGRAM_ROWS, HISTOGRAM_ROW);
}

void histogram_fini(struct histogram *h)
{
    for (unsigned i = 0; i < HISTOGRAM_ROWS; i++)
        tc_free(h->rows[i]);
}
