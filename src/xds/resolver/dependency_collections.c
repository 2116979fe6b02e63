/* EDS resources that leave the endpoints of localities to collections (LEDS, A95).
 *
 * The collections of all EDS resources are nodes of the manager, found by name; several localities may name one
 * collection. An EDS node keeps a completed copy of its resource (`merged`), in which the localities have the endpoints
 * of their collections, so that readers need not know of collections. The copy is an immutable resource: the node has
 * one reference, and snapshots of clusters take more. The copy holds references of the resource and the collections.
 * Readers compare pointers, so a new copy is made only when one of these resources changes.
 *
 * If a collection has no value (it does not exist, or no version of it was accepted), its locality has no endpoints,
 * and the resolution note says why. A collection is left out, too, if it is beyond MAX_COLLECTIONS, or if the cluster
 * would have more addresses than a resource may have (`room`): a few resources that are named many times must not
 * become endpoints by the billion. */
#include "base/mem.h"
#include "xds/resolver/dependency_manager_internal.h"

enum { MAX_COLLECTIONS = 65536 }; /* of all EDS resources of a manager */

static struct tc_dep_node *collection_find(const struct tc_dependency_manager *m, const struct tc_eds_locality *l)
{
    struct tc_dep_node *n;
    HASH_FIND(hh, m->collections, l->collection->data, l->collection->len, n);
    return n;
}

/* Marks the collection of a locality, and watches it if it is new. Returns whether the collection is known. Returns
 * true for a collection beyond MAX_COLLECTIONS, and does not mark it. */
static bool collection_walk(struct tc_dependency_manager *m, struct tc_dep_node *eds, const struct tc_eds_locality *l)
{
    struct tc_dep_node *n = collection_find(m, l);
    bool marked = n && n->mark == m->mark;
    if (!marked && m->n_collections == MAX_COLLECTIONS)
        return true;
    m->n_collections += !marked;
    n = tc_dep_node_get(m, &m->collections, &tc_eds_collection_type, tc_rstr_slice(l->collection));
    n->shared = marked && (n->shared || n->user != eds);
    n->user = eds;
    n->mark = m->mark;
    return !tc_dep_node_pending(n);
}

bool tc_dep_eds_walk(struct tc_dependency_manager *m, struct tc_dep_node *eds)
{
    const struct tc_eds *value = eds->value ? tc_eds_of(eds->value) : NULL;
    bool complete = !tc_dep_node_pending(eds);
    for (size_t p = 0; value && value->n_collections && p < value->n_priorities; p++)
        for (size_t i = 0; i < value->priorities[p].n; i++)
            if (value->priorities[p].localities[i].collection)
                complete &= collection_walk(m, eds, &value->priorities[p].localities[i]);
    return complete;
}

/* --- the completed copy --- */

static const struct tc_eds_collection *collection_value(const struct tc_dependency_manager *m,
                                                        const struct tc_eds_locality *l)
{
    const struct tc_dep_node *n = l->collection ? collection_find(m, l) : NULL;
    return n && n->mark == m->mark && n->value ? tc_eds_collection_of(n->value) : NULL;
}

/* Returns whether there is a completed copy, made from the present values of its collections. */
static bool merged_is_current(const struct tc_dependency_manager *m, const struct tc_eds *merged)
{
    for (size_t p = 0; merged && p < merged->n_priorities; p++)
        for (size_t i = 0; i < merged->priorities[p].n; i++)
            if (merged->priorities[p].localities[i].from != collection_value(m, &merged->priorities[p].localities[i]))
                return false;
    return merged != NULL;
}

static void release_resource(void *resource)
{
    tc_xds_resource_unref(resource);
}

/* Makes the copy hold a reference of `part`. */
static void merged_keep(struct tc_eds *e, const struct tc_decoded *part)
{
    struct tc_xds_resource *head = (struct tc_xds_resource *)(uintptr_t)&part->head;
    tc_resource_arena_keep(&e->base.arena, release_resource, tc_xds_resource_ref(head));
}

/* Returns whether the endpoint gets its locality's proxy (A86): it has no proxy of its own, and no Unix socket. */
static bool endpoint_takes_proxy(const struct tc_eds_endpoint *e)
{
    for (size_t i = 0; i < e->n_addrs; i++)
        if (tc_addr_family(&e->addrs[i]) == AF_UNIX)
            return false;
    return !e->proxy;
}

/* Gives the locality the endpoints of its collection (`from`): the same array, or a copy with the locality's proxy. */
static void locality_fill(struct tc_eds *e, struct tc_eds_locality *l)
{
    l->n = l->from->n;
    l->endpoints = l->from->endpoints;
    if (!l->proxy)
        return;
    struct tc_eds_endpoint *copies = TC_RESOURCE_ARRAY(&e->base.arena, l->n, struct tc_eds_endpoint);
    for (size_t i = 0; i < l->n; i++) {
        copies[i] = l->from->endpoints[i];
        if (endpoint_takes_proxy(&copies[i]))
            copies[i].proxy = l->proxy;
    }
    l->endpoints = copies;
}

/* Returns a completed copy of `value`, one reference. */
static struct tc_eds *eds_merge(const struct tc_dependency_manager *m, const struct tc_eds *value)
{
    struct tc_eds *e = TC_NEW(struct tc_eds);
    *e = *value;
    tc_ref_init(&e->base.head.ref);
    tc_resource_arena_init(&e->base.arena);
    merged_keep(e, &value->base);
    struct tc_eds_priority *priorities = TC_RESOURCE_ARRAY(&e->base.arena, e->n_priorities, struct tc_eds_priority);
    for (size_t p = 0; p < e->n_priorities; p++) {
        size_t n = value->priorities[p].n;
        struct tc_eds_locality *localities = TC_RESOURCE_ARRAY(&e->base.arena, n, struct tc_eds_locality);
        memcpy(localities, value->priorities[p].localities, n * sizeof(*localities));
        for (size_t i = 0; i < n; i++) {
            struct tc_eds_locality *l = &localities[i];
            l->from = collection_value(m, l);
            if (l->from)
                merged_keep(e, &l->from->base); /* also if it does not fit: `from` is compared later */
            if (!l->from || l->from->n_addrs > e->room)
                continue;
            e->room -= l->from->n_addrs;
            locality_fill(e, l);
        }
        priorities[p] = (struct tc_eds_priority){.n = n, .localities = localities};
    }
    e->priorities = priorities;
    return e;
}

const struct tc_eds *tc_dep_eds_complete(const struct tc_dependency_manager *m, struct tc_dep_node *eds)
{
    const struct tc_eds *value = tc_eds_of(eds->value);
    if (!value->n_collections)
        return value;
    if (eds->merged_mark == m->mark)
        return eds->merged;
    eds->merged_mark = m->mark;
    if (!merged_is_current(m, eds->merged)) {
        struct tc_eds *merged = eds_merge(m, value);
        if (eds->merged)
            tc_xds_resource_unref(&eds->merged->base.head);
        eds->merged = merged;
    }
    tc_rstr_unref(eds->note);
    eds->note = tc_dep_collections_note(m, eds->merged);
    return eds->merged;
}
