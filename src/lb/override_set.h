/* The addresses that xds_override_host finds sessions' endpoints by, and what it holds of each. */
#ifndef TC_LB_OVERRIDE_SET_H
#define TC_LB_OVERRIDE_SET_H

#include "base/list.h"
#include "lb/addr_list.h"

/* One address of an endpoint. */
struct tc_override_entry {
    struct tc_endpoint *endpoint; /* borrowed from the list */
    const struct tc_addr *addr;   /* of the endpoint's */
    struct tc_link subchannels;   /* to it: the child's and the policy's own */
    bool used;                    /* for a session, at some time: */
    uint64_t last_used_ms;
    bool awaited;          /* a pick was queued for it */
    struct tc_link wanted; /* on the policy's list: is to be connected */
};

/* Zero-initialised is empty. */
struct tc_override_set {
    size_t n;
    struct tc_override_entry **all;
    struct tc_addr_map by_addr;
};

/* Each address of the list and of those below it once (NULL: none), with what `before` knows of it, which moves over.
 * The lists of both must outlive their sets. */
void tc_override_set_init(struct tc_override_set *set, const struct tc_endpoints *list, struct tc_override_set *before);
/* Frees the entries; the subchannels must be off their lists. */
void tc_override_set_fini(struct tc_override_set *set);
/* NULL: none of that address. */
struct tc_override_entry *tc_override_set_find(const struct tc_override_set *set, const struct tc_addr *addr);

#endif
