/* A subchannel belongs to the endpoint with the same set of addresses. A child policy may have put its endpoints
 * together itself (an application's policy), or may still have those of the list before. For such endpoints there is
 * the second map, by single address. */
#include "lb/outlier_detection/endpoints.h"

#include "base/mem.h"

struct tc_outlier *tc_outlier_set_find(const struct tc_outlier_set *set, const struct tc_endpoint *endpoint,
                                       const struct tc_addr *addr)
{
    uint32_t at;
    if (set->n &&
        (tc_endpoint_map_find(&set->by_endpoint, endpoint, &at) || tc_addr_map_find(&set->by_addr, addr, &at)))
        return set->all[at];
    return NULL;
}

static size_t endpoint_list_count(const struct tc_endpoints *list)
{
    size_t n = list->n;
    for (size_t i = 0; i < list->n_children; i++)
        n += endpoint_list_count(list->children[i].list);
    return n;
}

/* Moves the struct tc_outlier of the endpoint out of `before`; NULL if there is none. */
static struct tc_outlier *outlier_set_take(struct tc_outlier_set *before, const struct tc_endpoint *endpoint)
{
    uint32_t at;
    if (!before->n || !tc_endpoint_map_find(&before->by_endpoint, endpoint, &at))
        return NULL;
    struct tc_outlier *o = before->all[at];
    before->all[at] = NULL;
    return o;
}

static void outlier_set_add_endpoints(struct tc_outlier_set *set, struct tc_outlier_set *before,
                                      const struct tc_endpoints *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (tc_endpoint_map_add(&set->by_endpoint, list->at[i], (uint32_t)set->n) != set->n)
            continue;
        struct tc_outlier *o = outlier_set_take(before, list->at[i]);
        if (!o)
            o = TC_NEW(struct tc_outlier);
        o->endpoint = list->at[i];
        set->all[set->n++] = o;
    }
    for (size_t i = 0; i < list->n_children; i++)
        outlier_set_add_endpoints(set, before, list->children[i].list);
}

static void outlier_set_add_addresses(struct tc_outlier_set *set)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++)
        n += set->all[i]->endpoint->n_addrs;
    tc_addr_map_init(&set->by_addr, n);
    for (size_t i = 0; i < set->n; i++)
        for (size_t k = 0; k < set->all[i]->endpoint->n_addrs; k++)
            tc_addr_map_add(&set->by_addr, &set->all[i]->endpoint->addrs[k], (uint32_t)i);
}

void tc_outlier_set_init(struct tc_outlier_set *set, const struct tc_endpoints *list, struct tc_outlier_set *before)
{
    *set = (struct tc_outlier_set){0};
    size_t n = list ? endpoint_list_count(list) : 0;
    if (n == 0)
        return;
    set->all = tc_calloc(n, sizeof(*set->all));
    tc_endpoint_map_init(&set->by_endpoint, n);
    outlier_set_add_endpoints(set, before, list);
    outlier_set_add_addresses(set);
}

void tc_outlier_set_fini(struct tc_outlier_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        tc_free(set->all[i]);
    tc_free(set->all);
    tc_endpoint_map_fini(&set->by_endpoint);
    tc_addr_map_fini(&set->by_addr);
    *set = (struct tc_outlier_set){0};
}
