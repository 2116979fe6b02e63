/* An update's endpoints beside those that the policy has. */
#include "lb/endpoint_map.h"
#include "lb/ring_hash_set.h"

enum { FEW = 4 };

static uint64_t weight_of(const struct tc_endpoint *e)
{
    return TC_MAX(e->weight, 1);
}

static void add_weight(struct tc_rh_set *set, uint32_t i, const struct tc_endpoint *e)
{
    uint64_t *weight = &set->at[i].weight;
    *weight = weight_of(e) > UINT64_MAX - *weight ? UINT64_MAX : *weight + weight_of(e);
}

static void merge_by_maps(struct tc_rh_set *set, const struct tc_rh_set *old, const struct tc_endpoints *list,
                          uint32_t *was)
{
    struct tc_endpoint_map before, seen;
    tc_endpoint_map_init(&before, old ? old->n : 0);
    tc_endpoint_map_init(&seen, list->n);
    for (uint32_t i = 0; old && i < old->n; i++)
        tc_endpoint_map_add(&before, old->at[i].endpoint, i);
    for (size_t i = 0; i < list->n; i++) {
        struct tc_endpoint *e = list->at[i];
        uint32_t at = tc_endpoint_map_add(&seen, e, set->n), from;
        if (at == set->n) {
            was[at] = tc_endpoint_map_find(&before, e, &from) ? from : TC_RING_ADDED;
            tc_rh_set_add(set, e, weight_of(e));
        } else {
            add_weight(set, at, e);
        }
    }
    tc_endpoint_map_fini(&before);
    tc_endpoint_map_fini(&seen);
}

/* --- the common case: the very same objects, in the same order, but for a few --- */

/* places[i]: where list->at[i] itself is in `old`; TC_RING_ADDED: nowhere behind the one before. False when that is so
 * for more than a few. */
static bool find_places(const struct tc_rh_set *old, const struct tc_endpoints *list, uint32_t *places)
{
    uint32_t next = 0;
    unsigned strangers = 0;
    for (size_t i = 0; i < list->n; i++) {
        uint32_t at = next;
        while (at < old->n && old->at[at].endpoint != list->at[i])
            at++;
        places[i] = at < old->n ? at : TC_RING_ADDED;
        if (at < old->n)
            next = at + 1;
        else if (++strangers > FEW)
            return false;
    }
    return true;
}

static uint32_t find_addrs(const struct tc_rh_set *set, const struct tc_endpoint *e)
{
    for (uint32_t i = 0; set && i < set->n; i++)
        if (tc_endpoint_same_addrs(set->at[i].endpoint, e))
            return i;
    return TC_RING_ADDED;
}

/* Those of `old` differ from one another; only strangers may be equal to one of them, or to each other. */
static bool merge_few(struct tc_rh_set *set, const struct tc_rh_set *old, const struct tc_endpoints *list,
                      uint32_t *was)
{
    uint32_t strangers[FEW], n = 0;
    if (!find_places(old, list, was))
        return false;
    for (size_t i = 0; i < list->n; i++) {
        struct tc_endpoint *e = list->at[i];
        uint32_t place = was[i], twin = TC_RING_ADDED; /* was[] is filled up to i at most */
        if (place == TC_RING_ADDED)
            twin = find_addrs(set, e);
        for (uint32_t k = 0; place != TC_RING_ADDED && k < n; k++)
            if (tc_endpoint_same_addrs(set->at[strangers[k]].endpoint, e))
                twin = strangers[k];
        if (twin != TC_RING_ADDED) {
            add_weight(set, twin, e);
            continue;
        }
        if (place == TC_RING_ADDED)
            strangers[n++] = set->n;
        was[set->n] = place == TC_RING_ADDED ? find_addrs(old, e) : place;
        tc_rh_set_add(set, e, weight_of(e));
    }
    return true;
}

void tc_rh_set_merge(struct tc_rh_set *set, const struct tc_rh_set *old, const struct tc_endpoints *list, uint32_t *was)
{
    if (!old || !merge_few(set, old, list, was))
        merge_by_maps(set, old, list, was);
}
