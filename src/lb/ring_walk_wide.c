/* Sixteen entries of the margin at a time, where the processor has vectors of 512 bits. */
#include "lb/ring_walk.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* Without optimization a gather is a macro that converts a mask's sign. */
#pragma GCC diagnostic ignored "-Wsign-conversion"

enum { LANES = 16, HALF = LANES / 2 };

#define WIDE __attribute__((target("avx512f"))) static inline

/* Those of the mask one after the other; what is behind them may be written to. */
WIDE void put(uint32_t *out, __m512i v, __mmask16 mask)
{
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(mask, v));
}

WIDE void put_hashes(uint64_t *out, __m512i low, __m512i high, __mmask16 mask)
{
    __mmask8 first = (__mmask8)mask, second = (__mmask8)(mask >> HALF);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi64(first, low));
    _mm512_storeu_si512(out + __builtin_popcount(first), _mm512_maskz_compress_epi64(second, high));
}

/* Of each lane the sum of those before it. */
WIDE __m512i sums_before(__m512i v)
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i sums = _mm512_alignr_epi32(v, zero, LANES - 1);
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, LANES - 1));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, LANES - 2));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, LANES - 4));
    return _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, LANES - 8));
}

__attribute__((target("avx512f"))) void tc_ring_walk_wide(struct tc_ring_walk *walk, uint32_t k, uint32_t end)
{
    const struct tc_ring_walk w = *walk;
    const __m512i one = _mm512_set1_epi32(1), first = _mm512_set1_epi32((int)w.first),
                  shift = _mm512_set1_epi32((int)w.shift), gone = _mm512_set1_epi32((int)TC_RING_GONE);
    uint32_t n = w.to.n, entries = w.entries.n, delta = w.delta;
    for (; k < end; k += LANES) {
        __mmask16 all = (__mmask16)(end - k < LANES ? (1u << (end - k)) - 1 : 0xffff);
        __m512i item = _mm512_maskz_loadu_epi32(all, w.from.item + k),
                at = _mm512_maskz_loadu_epi32(all, w.from.at + k);
        __m512i low = _mm512_maskz_loadu_epi64((__mmask8)all, w.from.hash + k),
                high = _mm512_maskz_loadu_epi64((__mmask8)(all >> HALF), w.from.hash + k + HALF);
        /* Of lanes beyond the end those of item 0, which are left out below. */
        __m512i bits = _mm512_i32gather_epi32(item, w.state, 1), moved;
        if (w.item_to)
            moved = _mm512_i32gather_epi32(item, w.item_to, sizeof(*w.item_to));
        else
            moved = _mm512_mask_add_epi32(item, _mm512_cmpge_epu32_mask(item, first), item, shift);
        __mmask16 toggles = _mm512_mask_test_epi32_mask(all, bits, _mm512_set1_epi32(TC_RING_TOGGLES)),
                  goes = _mm512_mask_test_epi32_mask(all, bits, _mm512_set1_epi32(TC_RING_GOES)),
                  stays = _mm512_mask_testn_epi32_mask(all, bits, _mm512_set1_epi32(TC_RING_REMOVED));
        __mmask16 comes = (__mmask16)(toggles & ~goes);
        put_hashes(w.entries.hash + entries, low, high, toggles);
        put(w.entries.item + entries, _mm512_mask_or_epi32(moved, goes, item, gone), toggles);
        put(w.entries.at + entries, at, toggles);
        entries += (uint32_t)__builtin_popcount(toggles);
        /* One more, or one less. */
        __m512i moves = _mm512_mask_sub_epi32(_mm512_maskz_mov_epi32(comes, one), goes, _mm512_setzero_si512(), one);
        __m512i now = _mm512_add_epi32(at, _mm512_add_epi32(_mm512_set1_epi32((int)delta), sums_before(moves)));
        put_hashes(w.to.hash + n, low, high, stays);
        put(w.to.item + n, moved, stays);
        put(w.to.at + n, now, stays);
        n += (uint32_t)__builtin_popcount(stays);
        delta += (uint32_t)(__builtin_popcount(comes) - __builtin_popcount(goes));
    }
    walk->to.n = n;
    walk->entries.n = entries;
    walk->delta = delta;
}

__attribute__((target("avx512f"))) void tc_ring_positions_wide(const struct tc_ring *r, const uint64_t *hash,
                                                               uint32_t n, uint32_t *at)
{
    const struct tc_ring ring = *r;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t from = ring.index[hash[k] >> ring.shift];
        __m512i entries = _mm512_loadu_si512(ring.hash + from);
        __mmask8 below = _mm512_cmplt_epu64_mask(entries, _mm512_set1_epi64((long long)hash[k]));
        at[k] = from + (uint32_t)__builtin_popcount(below);
        if (TC_UNLIKELY(below == 0xff))
            at[k] = tc_ring_position(&ring, hash[k]);
    }
}

#else

void tc_ring_walk_wide(struct tc_ring_walk *w, uint32_t k, uint32_t end)
{
    (void)w, (void)k, (void)end;
}

void tc_ring_positions_wide(const struct tc_ring *r, const uint64_t *hash, uint32_t n, uint32_t *at)
{
    (void)r, (void)hash, (void)n, (void)at;
}

#endif
