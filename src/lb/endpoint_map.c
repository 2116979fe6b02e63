/* Open addressing with linear probing. At most half of the slots are ever taken, so that a probe ends.
 *
 * The low bits of the hash choose the first slot; the upper half is stored, and spares nearly all comparisons of
 * unequal address sets. Addresses come from outside, but nobody there can choose sets of one hash (tc_addr_hash). */
#include "lb/endpoint_map.h"

#include "base/mem.h"

void tc_endpoint_map_init(struct tc_endpoint_map *m, size_t n)
{
    size_t slots = 8;
    while (slots < n * 2)
        slots *= 2;
    m->mask = slots - 1;
    m->slots = tc_calloc(slots, sizeof(*m->slots));
}

void tc_endpoint_map_fini(struct tc_endpoint_map *m)
{
    tc_free(m->slots);
    *m = (struct tc_endpoint_map){0};
}

/* Returns the slot of the endpoint, or the free one where it belongs. */
static size_t endpoint_map_probe(const struct tc_endpoint_map *m, const struct tc_endpoint *e, uint64_t hash)
{
    size_t i = (size_t)hash & m->mask;
    while (m->slots[i].endpoint &&
           (m->slots[i].hash != (uint32_t)(hash >> 32) || !tc_endpoint_same_addrs(m->slots[i].endpoint, e)))
        i = (i + 1) & m->mask;
    return i;
}

uint32_t tc_endpoint_map_add(struct tc_endpoint_map *m, const struct tc_endpoint *e, uint32_t index)
{
    uint64_t hash = tc_endpoint_addrs_hash(e);
    size_t i = endpoint_map_probe(m, e, hash);
    if (!m->slots[i].endpoint) {
        m->slots[i].endpoint = e;
        m->slots[i].hash = (uint32_t)(hash >> 32);
        m->slots[i].index = index;
    }
    return m->slots[i].index;
}

bool tc_endpoint_map_find(const struct tc_endpoint_map *m, const struct tc_endpoint *e, uint32_t *index)
{
    size_t i = endpoint_map_probe(m, e, tc_endpoint_addrs_hash(e));
    if (!m->slots[i].endpoint)
        return false;
    *index = m->slots[i].index;
    return true;
}
