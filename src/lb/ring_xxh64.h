/* XXH64's constants and steps. Internal to the ring. */
#ifndef TC_LB_RING_XXH64_H
#define TC_LB_RING_XXH64_H

#include <stdint.h>

#define P1 0x9E3779B185EBCA87u
#define P2 0xC2B2AE3D27D4EB4Fu
#define P3 0x165667B19E3779F9u
#define P4 0x85EBCA77C2B2AE63u
#define P5 0x27D4EB2F165667C5u

/* How far each step turns. */
enum { TURN_WORD = 31, TURN8 = 27, TURN4 = 23, TURN1 = 11 };

static inline uint64_t rotl(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static inline uint64_t round64(uint64_t acc, uint64_t word)
{
    return rotl(acc + word * P2, TURN_WORD) * P1;
}

static inline uint64_t step8(uint64_t h, uint64_t word)
{
    return rotl(h ^ round64(0, word), TURN8) * P1 + P4;
}

static inline uint64_t step4(uint64_t h, uint32_t word)
{
    return rotl(h ^ word * P1, TURN4) * P2 + P3;
}

static inline uint64_t step1(uint64_t h, uint64_t byte)
{
    return rotl(h ^ byte * P5, TURN1) * P1;
}

static inline uint64_t avalanche(uint64_t h)
{
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

#endif
