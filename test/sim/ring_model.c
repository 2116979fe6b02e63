/* The oracle's ring, in plain steps:
 *
 * An endpoint's weight (A113) is the locality's part of its priority's weights, times the endpoint's part of the
 * locality's weights, both in UQ1.31. Localities without endpoints count in their priority's weights. The size of the
 * ring is the smallest one of at least min_ring_size (1024) that gives the lightest endpoint a whole number of entries;
 * the cap is 4096. An endpoint's share is its weight over the sum of all endpoints' weights. Endpoints get their
 * entries one after the other: an endpoint gets entries until the ring has at least the size times the sum of the
 * shares so far, its own included. The hash of entry N of an endpoint, from 0 on, is XXH64 of "ADDRESS_N" with seed
 * 0. */
#include "sim/ring_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MIN_RING = 1024, RING_CAP = 4096 };

struct share {
    unsigned host;
    uint64_t weight; /* UQ1.31, at least 1 */
};

struct entry {
    uint64_t hash;
    unsigned host;
    size_t order; /* of entries with one hash, the one that was made first comes first */
};

/* Returns weight / sum as UQ1.31. */
static uint64_t share_of(uint64_t weight, uint64_t sum)
{
    return (weight << 31) / sum;
}

/* Fills in the endpoints of the priority, at most SIM_LOCALITIES * SIM_ENDPOINTS. Returns how many. */
static size_t shares_of(const struct sim_cluster *c, unsigned priority, struct share *shares)
{
    uint64_t localities = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->n_localities; i++)
        if (c->localities[i].priority == priority)
            localities += c->localities[i].weight;
    for (size_t i = 0; i < c->n_localities; i++) {
        const struct sim_locality *l = &c->localities[i];
        uint64_t endpoints = 0;
        for (size_t k = 0; k < l->n_endpoints; k++)
            endpoints += l->endpoints[k].weight;
        for (size_t k = 0; l->priority == priority && k < l->n_endpoints; k++) {
            uint64_t product = (share_of(l->weight, localities) * share_of(l->endpoints[k].weight, endpoints)) >> 31;
            shares[n++] = (struct share){l->endpoints[k].host, product ? product : 1};
        }
    }
    return n;
}

static int entry_order(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Fills `ring`, which has room for RING_CAP entries, in the order of the hashes. Returns how many entries there are. */
static size_t ring_fill(const struct share *shares, size_t n, struct entry *ring)
{
    double sum = 0, least = 1, target = 0;
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)shares[i].weight;
    for (size_t i = 0; i < n; i++)
        least = fmin(least, (double)shares[i].weight / sum);
    double scale = fmin(ceil(least * MIN_RING) / least, RING_CAP);
    for (size_t i = 0; i < n; i++) {
        target += scale * ((double)shares[i].weight / sum);
        for (unsigned k = 0; (double)size < target && size < RING_CAP; k++) {
            char key[64];
            int len = snprintf(key, sizeof(key), "%s_%u", sim_host_address(shares[i].host), k);
            ring[size] = (struct entry){XXH64(key, (size_t)len, 0), shares[i].host, size};
            size++;
        }
    }
    qsort(ring, size, sizeof(*ring), entry_order);
    return size;
}

int ring_model_host(const struct sim_cluster *cluster, unsigned priority, const char *value,
                    const bool reachable[SIM_HOSTS])
{
    static struct entry ring[RING_CAP];
    struct share shares[SIM_LOCALITIES * SIM_ENDPOINTS];
    uint64_t hash = XXH64(value, strlen(value), 0);
    size_t size = ring_fill(shares, shares_of(cluster, priority, shares), ring), first = 0;
    while (first < size && ring[first].hash < hash)
        first++;
    for (size_t k = 0; k < size; k++)
        if (reachable[ring[(first + k) % size].host])
            return (int)ring[(first + k) % size].host;
    return -1;
}
