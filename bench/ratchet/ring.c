/* The ring's part of the ratchet: `ratchet_ring build|update|pick|table|slot ENTRIES ROUNDS` does one of these ROUNDS
 * times, on the same keys in each run of the program. Rings and tables are over 1,000 endpoints, those of `update` over
 * 10,000 or 10,001. `build` and `pick` take ENTRIES as the ring's minimum size: the ring has ENTRIES if that is a
 * multiple of 1,000, else more. `table` builds a Maglev table of ENTRIES slots, `slot` finds slots in one; ENTRIES must
 * be a prime then. Instructions are counted from outside (check.py). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring/maglev.h"
#include "ring/update.h"

enum {
    ENDPOINTS = 1000,
    KEY_MAX = 32,
    UPDATED = 10000,    /* endpoints of the smaller ring in `update` */
    PLACE = UPDATED / 3 /* index of the endpoint that is removed and added */
};

static char keys[UPDATED + 1][KEY_MAX];
static struct tc_ring_item items[UPDATED + 1];

/* Sets the first n items; those of another round (modulo 256) have other keys. */
static void set_items(unsigned n, unsigned round)
{
    for (unsigned i = 0; i < n; i++) {
        int len = snprintf(keys[i], KEY_MAX, "10.%u.%u.%u:8080", round & 255u, i >> 8, i & 255u);
        items[i] = (struct tc_ring_item){tc_slice_of(keys[i], (size_t)len), 1};
    }
}

static struct tc_ring *build(unsigned entries, unsigned round)
{
    set_items(ENDPOINTS, round);
    return tc_ring_new(items, ENDPOINTS, entries, TC_RING_SIZE_MAX, TC_RING_SIZE_MAX);
}

/* Removes one of 10,001 endpoints and adds it again, in turns. The ring has ENTRIES entries throughout, as minimum and
 * maximum. */
static uint64_t update(unsigned entries, unsigned rounds)
{
    static struct tc_ring_item fewer[UPDATED];
    static uint32_t going[UPDATED], coming[UPDATED + 1];
    set_items(UPDATED + 1, 0);
    for (uint32_t i = 0; i < UPDATED; i++) {
        going[i] = i + (i >= PLACE);
        fewer[i] = items[going[i]];
        coming[going[i]] = i;
    }
    coming[PLACE] = TC_RING_ADDED;
    uint64_t sum = 0;
    struct tc_ring *ring = tc_ring_new(items, UPDATED + 1, entries, entries, TC_RING_SIZE_MAX), *next;
    for (unsigned i = 0; i < rounds; i++, ring = next) {
        if (i % 2 == 0)
            next = tc_ring_update(ring, items, going, fewer, UPDATED, entries, entries, TC_RING_SIZE_MAX);
        else
            next = tc_ring_update(ring, fewer, coming, items, UPDATED + 1, entries, entries, TC_RING_SIZE_MAX);
        sum += tc_ring_hash_at(next, i);
        tc_ring_unref(ring);
    }
    tc_ring_unref(ring);
    return sum;
}

static struct tc_ring *build_table(unsigned slots, unsigned round)
{
    static double weights[ENDPOINTS];
    set_items(ENDPOINTS, round);
    for (unsigned i = 0; i < ENDPOINTS; i++)
        weights[i] = 1.0 / ENDPOINTS;
    return tc_maglev_new(items, weights, ENDPOINTS, slots);
}

/* Searches the ring or table, `rounds` times. Takes ownership of the ring. */
static uint64_t pick(struct tc_ring *ring, unsigned rounds)
{
    uint64_t hash = 1, sum = 0;
    for (unsigned i = 0; i < rounds; i++) {
        uint32_t found = tc_ring_item_at(ring, tc_ring_find(ring, hash));
        sum += found;
        hash = (hash ^ found) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    tc_ring_unref(ring);
    return sum;
}

int main(int argc, char **argv)
{
    unsigned entries = argc == 4 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned rounds = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    uint64_t sum = 0;
    bool table = argc == 4 && strcmp(argv[1], "table") == 0;
    if (entries && rounds && (table || strcmp(argv[1], "build") == 0)) {
        for (unsigned i = 0; i < rounds; i++) {
            struct tc_ring *ring = (table ? build_table : build)(entries, i);
            sum += tc_ring_size(ring);
            tc_ring_unref(ring);
        }
    } else if (entries && rounds && strcmp(argv[1], "update") == 0) {
        sum = update(entries, rounds);
    } else if (entries && rounds && strcmp(argv[1], "pick") == 0) {
        sum = pick(build(entries, 0), rounds);
    } else if (entries && rounds && strcmp(argv[1], "slot") == 0) {
        sum = pick(build_table(entries, 0), rounds);
    } else {
        fprintf(stderr, "usage: %s build|update|pick|table|slot ENTRIES ROUNDS\n", argv[0]);
        return 2;
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
