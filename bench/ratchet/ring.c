/* The ring's part of the ratchet: `ratchet_ring build|pick ENTRIES ROUNDS` does that so often, on the same keys each
 * time it is started. What it takes is counted from outside (check.py). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lb/ring.h"

enum { ENDPOINTS = 1000, KEY_MAX = 32 };

static char keys[ENDPOINTS][KEY_MAX];
static struct tc_ring_item items[ENDPOINTS];

static struct tc_ring *build(unsigned entries, unsigned round)
{
    for (unsigned i = 0; i < ENDPOINTS; i++) {
        int n = snprintf(keys[i], KEY_MAX, "10.%u.%u.%u:8080", round & 255u, i >> 8, i & 255u);
        items[i] = (struct tc_ring_item){tc_slice_of(keys[i], (size_t)n), 1};
    }
    return tc_ring_new(items, ENDPOINTS, entries, TC_RING_SIZE_MAX, TC_RING_SIZE_MAX);
}

int main(int argc, char **argv)
{
    unsigned entries = argc == 4 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned rounds = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    uint64_t hash = 1, sum = 0;
    if (entries == 0 || rounds == 0 || (strcmp(argv[1], "build") != 0 && strcmp(argv[1], "pick") != 0)) {
        fprintf(stderr, "usage: %s build|pick ENTRIES ROUNDS\n", argv[0]);
        return 2;
    }
    if (argv[1][0] == 'b') {
        for (unsigned i = 0; i < rounds; i++) {
            struct tc_ring *ring = build(entries, i);
            sum += tc_ring_size(ring);
            tc_ring_unref(ring);
        }
    } else {
        struct tc_ring *ring = build(entries, 0);
        for (unsigned i = 0; i < rounds; i++) {
            uint32_t found = tc_ring_item_at(ring, tc_ring_find(ring, hash));
            sum += found;
            hash = (hash ^ found) * 0x9e3779b97f4a7c15u;
            hash ^= hash >> 29;
        }
        tc_ring_unref(ring);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
