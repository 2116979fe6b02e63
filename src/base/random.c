/* xoshiro256** by Blackman and Vigna, seeded through SplitMix64. getrandom is asked without waiting. If it fails, as it
 * does early in a machine's start, the monotonic clock and the process id are the seed. */
#include "base/random.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* SplitMix64, which spreads a seed over the state. */
static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void tc_rng_init_seed(struct tc_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix(&seed);
}

void tc_rng_init_system(struct tc_rng *r)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed)) {
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        seed = (uint64_t)ts.tv_nsec ^ ((uint64_t)ts.tv_sec << 30) ^ ((uint64_t)getpid() << 48);
    }
    tc_rng_init_seed(r, seed);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t tc_rng_u64(struct tc_rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t tc_rng_below(struct tc_rng *r, uint64_t n)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t x;
    do {
        x = tc_rng_u64(r);
    } while (x >= limit);
    return x % n;
}

double tc_rng_double(struct tc_rng *r)
{
    return (double)(tc_rng_u64(r) >> 11) * 0x1.0p-53;
}
