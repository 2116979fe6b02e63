/* Products and sums of 128 bits, as two words of 64 bits: compilers have no __int128 for 32-bit machines. Any
 * thread. */
#ifndef TC_BASE_WIDE_H
#define TC_BASE_WIDE_H

#include <math.h>
#include <stdint.h>

/* Returns the upper 64 bits of a * b. */
static inline uint64_t tc_mul_high(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
#else
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t middle = a_high * b_low + (a_low * b_low >> 32), other = a_low * b_high + (uint32_t)middle;
    return a_high * b_high + (middle >> 32) + (other >> 32);
#endif
}

/* A sum of 64-bit numbers, 2^64 of them at most. Zero-initialised: 0. */
struct tc_wide {
    uint64_t high, low;
};

static inline void tc_wide_add(struct tc_wide *sum, uint64_t n)
{
    sum->low += n;
    sum->high += sum->low < n;
}

/* Returns the nearest double; between two equally near ones, the even one. */
static inline double tc_wide_double(struct tc_wide sum)
{
    if (sum.high == 0)
        return (double)sum.low;
    /* The conversion rounds the first 64 bits. A bit set behind them sets their last one, which decides a tie. */
    int shift = __builtin_clzll(sum.high);
    uint64_t first = shift ? sum.high << shift | sum.low >> (64 - shift) : sum.high;
    return ldexp((double)(first | (sum.low << shift != 0)), 64 - shift);
}

#endif
