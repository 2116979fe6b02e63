/* Fills the set of an update (tc_rh_set_merge): makes one endpoint of those with the same addresses, and finds each
 * endpoint in the present set, `old`.
 *
 * The lists of an EDS cluster share the objects of endpoints that did not change, so the common update has the same
 * objects in the same order with a few of them added or removed: set_merge_in_order compares pointers. An endpoint that
 * is not found that way is a stranger, and compared by addresses. With more than STRANGERS_MAX strangers, maps by
 * address are cheaper. */
#include "lb/ring_hash/endpoints.h"

#include "lb/endpoint_map.h"

enum { STRANGERS_MAX = 4 }; /* strangers of an update up to which no map is needed */

/* Returns the endpoint's weight, at least 1: in a table an xDS endpoint's own weight, otherwise e->weight, which
 * contains the locality's weight in xDS (lb/endpoint.h). */
static uint64_t endpoint_weight(const struct tc_rh_set *set, const struct tc_endpoint *e)
{
    return TC_MAX(set->config->table_size && e->locality_weight ? e->lb_weight : e->weight, 1);
}

/* Adds the weight of a further endpoint with the addresses of endpoint i, up to UINT64_MAX. */
static void set_add_weight(struct tc_rh_set *set, uint32_t i, const struct tc_endpoint *e)
{
    uint64_t *weight = &set->at[i].weight;
    *weight = endpoint_weight(set, e) > UINT64_MAX - *weight ? UINT64_MAX : *weight + endpoint_weight(set, e);
}

/* tc_rh_set_merge for all cases, by two maps of addresses. `old` may be NULL. */
static void set_merge_by_maps(struct tc_rh_set *set, const struct tc_rh_set *old, const struct tc_endpoints *list,
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
            tc_rh_set_add(set, e, endpoint_weight(set, e));
        } else {
            set_add_weight(set, at, e);
        }
    }
    tc_endpoint_map_fini(&before);
    tc_endpoint_map_fini(&seen);
}

/* --- the common case: the same objects in the same order, except a few --- */

/* Sets places[i] to the index in `old` of the object list->at[i], or to TC_RING_ADDED if list->at[i] is a stranger:
 * `old` does not have the object behind the last one that was found. Returns false if there are more than
 * STRANGERS_MAX strangers. */
static bool set_find_places(const struct tc_rh_set *old, const struct tc_endpoints *list, uint32_t *places)
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
        else if (++strangers > STRANGERS_MAX)
            return false;
    }
    return true;
}

/* Returns the index of the set's endpoint with the addresses of `e`, or TC_RING_ADDED. */
static uint32_t set_find_addrs(const struct tc_rh_set *set, const struct tc_endpoint *e)
{
    for (uint32_t i = 0; i < set->n; i++)
        if (tc_endpoint_same_addrs(set->at[i].endpoint, e))
            return i;
    return TC_RING_ADDED;
}

/* tc_rh_set_merge for a list with few strangers. The endpoints of `old` have different addresses, so of two endpoints
 * of the list with the same addresses at least one is a stranger. Returns false, and has added nothing, if there are
 * too many strangers. */
static bool set_merge_in_order(struct tc_rh_set *set, const struct tc_rh_set *old, const struct tc_endpoints *list,
                               uint32_t *was)
{
    uint32_t strangers[STRANGERS_MAX], n = 0;
    if (!set_find_places(old, list, was))
        return false;
    for (size_t i = 0; i < list->n; i++) {
        struct tc_endpoint *e = list->at[i];
        uint32_t place = was[i],
                 twin = TC_RING_ADDED; /* `was` is written up to i at most, so the places behind are intact */
        if (place == TC_RING_ADDED)
            twin = set_find_addrs(set, e);
        for (uint32_t k = 0; place != TC_RING_ADDED && k < n; k++)
            if (tc_endpoint_same_addrs(set->at[strangers[k]].endpoint, e))
                twin = strangers[k];
        if (twin != TC_RING_ADDED) {
            set_add_weight(set, twin, e);
            continue;
        }
        if (place == TC_RING_ADDED)
            strangers[n++] = set->n;
        was[set->n] = place == TC_RING_ADDED ? set_find_addrs(old, e) : place;
        tc_rh_set_add(set, e, endpoint_weight(set, e));
    }
    return true;
}

void tc_rh_set_merge(struct tc_rh_set *set, const struct tc_rh_set *old, const struct tc_endpoints *list, uint32_t *was)
{
    if (!old || !set_merge_in_order(set, old, list, was))
        set_merge_by_maps(set, old, list, was);
}
