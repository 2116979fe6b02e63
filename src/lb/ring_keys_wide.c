/* Eight hashes at a time, where the processor multiplies eight numbers of 64 bits at a time. */
#include "lb/ring_keys.h"
#include "lb/ring_xxh64.h"

#if defined(__x86_64__)

#include <immintrin.h>

enum { LANES = 8 };

#define WIDE __attribute__((target("avx512f,avx512dq"))) static inline

bool tc_ring_keys_can_wide(void)
{
    return __builtin_cpu_supports("avx512dq");
}

WIDE __m512i all(uint64_t x)
{
    return _mm512_set1_epi64((long long)x);
}

WIDE __m512i times(__m512i a, uint64_t b)
{
    return _mm512_mullo_epi64(a, all(b));
}

WIDE __m512i plus(__m512i a, uint64_t b)
{
    return _mm512_add_epi64(a, all(b));
}

/* The avalanche, and out with the first n. */
WIDE void store(__m512i h, unsigned n, uint64_t *out)
{
    h = times(_mm512_xor_si512(h, _mm512_srli_epi64(h, 33)), P2);
    h = times(_mm512_xor_si512(h, _mm512_srli_epi64(h, 29)), P3);
    h = _mm512_xor_si512(h, _mm512_srli_epi64(h, 32));
    _mm512_mask_storeu_epi64(out, (__mmask8)((1u << TC_MIN(n, LANES)) - 1), h);
}

/* product, product + by, ... */
WIDE __m512i counting(uint64_t product, uint64_t by)
{
    return plus(times(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), by), product);
}

WIDE void wide8(const struct tc_ring_run *r)
{
    const uint64_t by = P2 << 56;
    uint64_t product = r->product;
    for (unsigned i = 0; i < r->n; i += LANES, product += LANES * by) {
        __m512i word = times(_mm512_rol_epi64(counting(product, by), TURN_WORD), P1);
        store(plus(times(_mm512_rol_epi64(_mm512_xor_si512(all(r->h), word), TURN8), P1), P4), r->n - i, r->out + i);
    }
}

WIDE void wide4(const struct tc_ring_run *r)
{
    const uint64_t by = P1 << 24;
    uint64_t product = r->product;
    for (unsigned i = 0; i < r->n; i += LANES, product += LANES * by) {
        __m512i x = _mm512_xor_si512(all(r->h), counting(product, by));
        store(plus(times(_mm512_rol_epi64(x, TURN4), P2), P3), r->n - i, r->out + i);
    }
}

WIDE void wide1(const struct tc_ring_run *r)
{
    uint64_t product = r->product;
    for (unsigned i = 0; i < r->n; i += LANES, product += LANES * P5) {
        __m512i x = _mm512_xor_si512(all(r->h), counting(product, P5));
        store(times(_mm512_rol_epi64(x, TURN1), P1), r->n - i, r->out + i);
    }
}

__attribute__((target("avx512f,avx512dq"))) void tc_ring_keys_wide(enum tc_ring_step step,
                                                                   const struct tc_ring_run *runs, unsigned n)
{
    if (step == TC_RING_STEP8)
        for (unsigned i = 0; i < n; i++)
            wide8(&runs[i]);
    else if (step == TC_RING_STEP4)
        for (unsigned i = 0; i < n; i++)
            wide4(&runs[i]);
    else
        for (unsigned i = 0; i < n; i++)
            wide1(&runs[i]);
}

#else

bool tc_ring_keys_can_wide(void)
{
    return false;
}

void tc_ring_keys_wide(enum tc_ring_step step, const struct tc_ring_run *runs, unsigned n)
{
    (void)step, (void)runs, (void)n;
}

#endif
