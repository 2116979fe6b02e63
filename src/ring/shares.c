/* A42: min_norm = least weight / sum of weights, scale = min(ceil(min_norm * min) / min_norm, max). Item i gets entries
 * until the number of all entries reaches the sum of scale * (weight / sum of weights) over the items up to i. Where
 * this sum is near a whole number, rounding errors decide, so all implementations must make the same ones. */
#include "ring/shares.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#include <math.h>

#include "base/wide.h"

enum {
    TARGETS = 64, /* running sums (targets) that are computed before their entries are counted */
    LANES = 4
};

/* A42's "while current < target: add an entry; current += 1" for each target: sets counts[k] to the number of entries
 * that target k adds. Returns the last current. Targets ascend, and fit an int32_t. */
static int32_t targets_count(const double *targets, size_t n, int32_t current, uint32_t *counts)
{
    size_t k = 0;
#if defined(__SSE2__)
    __m128i before = _mm_cvtsi32_si128(current);
    for (; k + LANES <= n; k += LANES) {
        __m128d low = _mm_loadu_pd(targets + k), high = _mm_loadu_pd(targets + k + LANES / 2);
        __m128i low_int = _mm_cvttpd_epi32(low), high_int = _mm_cvttpd_epi32(high);
        __m128d low_less = _mm_cmplt_pd(_mm_cvtepi32_pd(low_int), low),
                high_less = _mm_cmplt_pd(_mm_cvtepi32_pd(high_int), high); /* -1 where low_int < low */
        __m128i less = _mm_castps_si128(
            _mm_shuffle_ps(_mm_castpd_ps(low_less), _mm_castpd_ps(high_less), _MM_SHUFFLE(2, 0, 2, 0)));
        __m128i upto = _mm_sub_epi32(_mm_unpacklo_epi64(low_int, high_int), less);
        __m128i from = _mm_or_si128(_mm_slli_si128(upto, sizeof(int32_t)), before);
        _mm_storeu_si128((void *)(counts + k), _mm_sub_epi32(upto, from));
        before = _mm_srli_si128(upto, (LANES - 1) * sizeof(int32_t));
    }
    current = _mm_cvtsi128_si32(before);
#endif
    for (; k < n; k++) {
        int32_t upto = (int32_t)targets[k];
        upto += (double)upto < targets[k];
        counts[k] = (uint32_t)(upto - current);
        current = upto;
    }
    return current;
}

uint32_t tc_ring_shares(const struct tc_ring_item *items, size_t n, uint64_t min, uint64_t max, uint64_t cap,
                        uint32_t *counts)
{
    if (n == 0)
        return 0;
    tc_ring_clamp(&min, &max, &cap);
    struct tc_wide sum = {0};
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        uint64_t w = TC_MAX(items[i].weight, 1);
        tc_wide_add(&sum, w);
        least = TC_MIN(least, w);
    }
    /* Plain IEEE doubles in A42's order: a fused or reordered operation would change the counts. */
    double total = tc_wide_double(sum);
    double min_norm = (double)least / total;
    double scale = fmin(ceil(min_norm * (double)min) / min_norm, (double)max);
    double targets[TARGETS], target = 0, norm = 0;
    int32_t current = 0;
    uint64_t weight = 0;
    for (size_t i = 0; i < n;) {
        size_t k = 0, first = i;
        for (; k < TARGETS && i < n; k++, i++) {
            if (items[i].weight != weight || i == 0) {
                weight = items[i].weight;
                norm = (double)TC_MAX(weight, 1) / total;
            }
            target += scale * norm;
            targets[k] = target;
        }
        current = targets_count(targets, k, current, counts + first);
    }
    return (uint32_t)current;
}
