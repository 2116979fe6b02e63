/* The order in which pick_first tries its addresses, and a map from address to index.
 *
 * Three steps: the endpoints are shuffled if the caller asks for it (A62, by weight A113), flattened into one list of
 * distinct addresses, and the address families are interleaved (A61, RFC 8305 section 4). With interleaving, a broken
 * IPv6 costs one Connection Attempt Delay instead of one for each IPv6 address.
 *
 * Lists borrow endpoints and addresses, maps borrow addresses: the caller keeps what they come from. */
#include "lb/address_list.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* At most half of the slots are taken, so each probe ends: it meets an empty slot. */
void tc_addr_map_init(struct tc_addr_map *m, size_t n)
{
    size_t slots = 8;
    while (slots < n * 2)
        slots *= 2;
    m->mask = slots - 1;
    m->slots = tc_calloc(slots, sizeof(*m->slots));
}

void tc_addr_map_fini(struct tc_addr_map *m)
{
    tc_free(m->slots);
    *m = (struct tc_addr_map){0};
}

static size_t addr_map_probe(const struct tc_addr_map *m, const struct tc_addr *a)
{
    size_t i = (size_t)tc_addr_hash(a) & m->mask;
    while (m->slots[i].addr && !tc_addr_eq(m->slots[i].addr, a))
        i = (i + 1) & m->mask;
    return i;
}

uint32_t tc_addr_map_add(struct tc_addr_map *m, const struct tc_addr *a, uint32_t index)
{
    size_t i = addr_map_probe(m, a);
    if (!m->slots[i].addr) {
        m->slots[i].addr = a;
        m->slots[i].index = index;
    }
    return m->slots[i].index;
}

bool tc_addr_map_find(const struct tc_addr_map *m, const struct tc_addr *a, uint32_t *index)
{
    size_t i = addr_map_probe(m, a);
    if (!m->slots[i].addr)
        return false;
    *index = m->slots[i].index;
    return true;
}

/* Stores the distinct addresses in the given order of endpoints, and returns how many. `out` has room for `total`. */
static size_t addr_list_flatten(struct tc_endpoint *const *order, size_t n, size_t total,
                                struct tc_addr_list_entry *out)
{
    struct tc_addr_map seen;
    tc_addr_map_init(&seen, total);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < order[i]->n_addrs; k++) {
            const struct tc_addr *a = &order[i]->addrs[k];
            if (tc_addr_map_add(&seen, a, (uint32_t)len) == len)
                out[len++] = (struct tc_addr_list_entry){order[i], a};
        }
    }
    tc_addr_map_fini(&seen);
    return len;
}

/* RFC 8305 section 4: takes an address of each family in turn. Families are in the order of their first addresses. */
static void addr_list_interleave(struct tc_addr_list_entry *list, size_t n)
{
    int families[TC_ADDR_FAMILIES];
    size_t next[TC_ADDR_FAMILIES], n_families = 0;
    for (size_t i = 0; i < n && n_families < TC_ADDR_FAMILIES; i++) {
        size_t f = 0;
        while (f < n_families && families[f] != tc_addr_family(list[i].addr))
            f++;
        if (f == n_families) {
            families[f] = tc_addr_family(list[i].addr);
            next[n_families++] = i;
        }
    }
    if (n_families < 2)
        return;
    struct tc_addr_list_entry *out = tc_reallocarray(NULL, n, sizeof(*out));
    size_t len = 0;
    for (size_t f = 0; len < n; f = (f + 1) % n_families) {
        while (next[f] < n && tc_addr_family(list[next[f]].addr) != families[f])
            next[f]++;
        if (next[f] < n)
            out[len++] = list[next[f]++];
    }
    memcpy(list, out, n * sizeof(*out));
    tc_free(out);
}

/* Fisher-Yates shuffle (A62). */
static void endpoints_shuffle_evenly(struct tc_endpoint **order, size_t n, struct tc_rng *rng)
{
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)tc_rng_below(rng, i);
        struct tc_endpoint *e = order[i - 1];
        order[i - 1] = order[k];
        order[k] = e;
    }
}

struct drawn {
    double key;
    struct tc_endpoint *endpoint;
};

static int shuffle_key_cmp(const void *pa, const void *pb)
{
    double a = ((const struct drawn *)pa)->key, b = ((const struct drawn *)pb)->key;
    return (a < b) - (a > b);
}

/* A113 (Efraimidis, Spirakis): sorts by u^(1/weight), descending. Compares logarithms, which tell small keys apart. */
static void endpoints_shuffle_weighted(struct tc_endpoint **order, size_t n, struct tc_rng *rng)
{
    struct drawn *drawn = tc_reallocarray(NULL, n, sizeof(*drawn));
    for (size_t i = 0; i < n; i++) {
        double u = 1 - tc_rng_double(rng); /* in (0, 1] */
        drawn[i] = (struct drawn){log(u) / (double)TC_MAX(order[i]->weight, 1), order[i]};
    }
    qsort(drawn, n, sizeof(*drawn), shuffle_key_cmp);
    for (size_t i = 0; i < n; i++)
        order[i] = drawn[i].endpoint;
    tc_free(drawn);
}

struct tc_addr_list_entry *tc_addr_list_new(const struct tc_endpoints *endpoints, enum tc_shuffle shuffle,
                                            struct tc_rng *rng, size_t *n)
{
    size_t total = 0;
    *n = 0;
    for (size_t i = 0; i < endpoints->n; i++)
        total += endpoints->at[i]->n_addrs;
    if (total == 0)
        return NULL;
    struct tc_endpoint **order = tc_reallocarray(NULL, endpoints->n, sizeof(struct tc_endpoint *));
    memcpy(order, endpoints->at, endpoints->n * sizeof(struct tc_endpoint *));
    if (shuffle == TC_SHUFFLE_EVEN)
        endpoints_shuffle_evenly(order, endpoints->n, rng);
    else if (shuffle == TC_SHUFFLE_WEIGHTED)
        endpoints_shuffle_weighted(order, endpoints->n, rng);
    struct tc_addr_list_entry *list = tc_reallocarray(NULL, total, sizeof(*list));
    *n = addr_list_flatten(order, endpoints->n, total, list);
    addr_list_interleave(list, *n);
    tc_free(order);
    return list;
}
