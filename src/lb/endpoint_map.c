#include "lb/endpoint_map.h"

#include "base/mem.h"

void tc_endpoint_map_init(struct tc_endpoint_map *m, size_t n)
{
    size_t slots = 8;
    while (slots < n * 2)
        slots *= 2;
    m->mask = slots - 1;
    m->slots = tc_calloc(slots, sizeof(*m->slots));
    m->mixer = (uint64_t)(uintptr_t)m->slots * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

void tc_endpoint_map_fini(struct tc_endpoint_map *m)
{
    tc_free(m->slots);
    *m = (struct tc_endpoint_map){0};
}

/* The slot of the endpoint, or the free one where it belongs. */
static size_t probe(const struct tc_endpoint_map *m, const struct tc_endpoint *e, uint64_t hash)
{
    size_t i = (size_t)(hash * m->mixer >> 32) & m->mask;
    while (m->slots[i].endpoint &&
           (m->slots[i].hash != (uint32_t)(hash >> 32) || !tc_endpoint_same_addrs(m->slots[i].endpoint, e)))
        i = (i + 1) & m->mask;
    return i;
}

uint32_t tc_endpoint_map_add(struct tc_endpoint_map *m, const struct tc_endpoint *e, uint32_t index)
{
    uint64_t hash = tc_endpoint_addrs_hash(e);
    size_t i = probe(m, e, hash);
    if (!m->slots[i].endpoint) {
        m->slots[i].endpoint = e;
        m->slots[i].hash = (uint32_t)(hash >> 32);
        m->slots[i].index = index;
    }
    return m->slots[i].index;
}

bool tc_endpoint_map_find(const struct tc_endpoint_map *m, const struct tc_endpoint *e, uint32_t *index)
{
    size_t i = probe(m, e, tc_endpoint_addrs_hash(e));
    if (!m->slots[i].endpoint)
        return false;
    *index = m->slots[i].index;
    return true;
}
