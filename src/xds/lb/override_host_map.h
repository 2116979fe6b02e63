/* The addresses of a cluster, by which xds_override_host finds the endpoints of sessions, and what it knows about each
 * address; the text of an endpoint's addresses, for cookies. Loop thread only. */
#ifndef TC_XDS_LB_OVERRIDE_HOST_MAP_H
#define TC_XDS_LB_OVERRIDE_HOST_MAP_H

#include "base/arena.h"
#include "base/list.h"
#include "lb/address_list.h"

/* One address of an endpoint. */
struct tc_override_entry {
    struct tc_endpoint *endpoint; /* borrowed from the list */
    const struct tc_addr *addr;   /* one of the endpoint's */
    struct tc_addr key;           /* `addr` without its proxy (A86); borrows from `addr` */
    struct tc_link subchannels;   /* to `addr`, the child's and the policy's own: list of struct oh_subchannel */
    bool used;                    /* an RPC of a session went to the entry, or a subchannel was made for one */
    uint64_t last_used_ms;        /* if `used`: when that was last, in the loop's time */
    bool awaited;                 /* a queued pick may wait for the entry: its next change publishes a picker */
    bool fallback_logged;         /* the log says that sessions go elsewhere; reset when a session's RPC goes here */
    struct tc_link wanted;        /* in the policy's list of entries to connect */
};

/* Zero-initialised, a set is empty. `by_addr` holds indexes of `all`. */
struct tc_override_set {
    size_t n;
    struct tc_override_entry **all;
    struct tc_addr_map by_addr;
};

/* Fills the set: one entry for each address of the list and of the lists below it. NULL: an empty set. Entries of
 * `before` whose address is in the list move to the new set; the caller frees the rest with tc_override_set_fini. Each
 * list must outlive its set: that of `before` is still alive here. */
void tc_override_set_init(struct tc_override_set *set, const struct tc_endpoints *list, struct tc_override_set *before);
/* Frees the entries, whose lists of subchannels must be empty. The set is empty then. */
void tc_override_set_fini(struct tc_override_set *set);
/* Returns the entry, borrowed, or NULL if the set lacks the address. The address's proxy does not count. */
struct tc_override_entry *tc_override_set_find(const struct tc_override_set *set, const struct tc_addr *addr);
/* Returns at most TC_SESSION_ADDRS_MAX IP addresses of the endpoint as text, "1.1.1.1:1,2.2.2.2:2", in the arena; empty
 * if the endpoint has none, or if the arena is used up. `first`, the address in use, comes first (A61). */
struct tc_slice tc_override_endpoint_text(const struct tc_endpoint *endpoint, const struct tc_addr *first,
                                          struct tc_arena *arena);

#endif
