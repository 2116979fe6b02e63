/* Endpoints as a resolver found them, with their addresses and attributes: immutable snapshots, shared and counted by
 * any thread.
 *
 * A tree of lists replaces gRPC's hierarchical path attribute: the list for a policy with named children (priority,
 * weighted_target) holds one list for each child. Handing a child its endpoints is a search by name, and a child whose
 * endpoints did not change gets the very same pointer, so that a comparison of lists is mostly one of pointers. */
#ifndef TC_LB_ENDPOINT_H
#define TC_LB_ENDPOINT_H

#include "base/buf.h"
#include "base/rstr.h"
#include "io/addr.h"

/* A locality's names: region, zone, sub_zone. Shared; compare by value. */
struct tc_locality {
    struct tc_ref ref;
    struct tc_rstr *region, *zone, *sub_zone;
};

struct tc_locality *tc_locality_new(struct tc_slice region, struct tc_slice zone, struct tc_slice sub_zone);
struct tc_locality *tc_locality_ref(struct tc_locality *l);
void tc_locality_unref(struct tc_locality *l);
/* Returns the order by region, zone, sub_zone, bytewise: <0, 0, >0. NULL sorts as three empty names. */
int tc_locality_cmp(const struct tc_locality *a, const struct tc_locality *b);
/* Appends {region="r", zone="z", sub_zone="s"}. */
void tc_locality_format(const struct tc_locality *l, struct tc_buf *out);

enum tc_health { TC_HEALTH_UNKNOWN = 0, TC_HEALTH_HEALTHY = 1, TC_HEALTH_DRAINING = 3 };

/* An attribute of an endpoint that policies only hand on: shared and immutable. Implementations embed it first. */
struct tc_endpoint_extra {
    struct tc_ref ref;
    void (*free)(struct tc_endpoint_extra *x);
};

/* One endpoint: one or more addresses of the same server, and its attributes. Its identity is the unordered set of
 * addresses (A61), without the attributes. */
struct tc_endpoint {
    struct tc_ref ref;
    /* For ring_hash, pick_first, policies of the application, and maglev where locality_weight is 0. Only the
     * proportions within a list count. Under xDS the weight is A113's share of the priority (1 for all endpoints of a
     * priority whose shares are equal), or A42's product. 1 by default, 0 reads as 1. */
    uint64_t weight;
    struct tc_rstr *hash_key;     /* A76; NULL or empty: the endpoint has none, ring/item.h says what is hashed then */
    struct tc_locality *locality; /* NULL outside xDS; LOGICAL_DNS: its names are empty */
    struct tc_rstr *hostname;     /* A81; NULL: none is known */
    /* How connections to it are secured (subchannel/endpoint_security.h, A29); NULL: as the channel's credentials have
     * it. Comes with a subchannel's endpoint, never in lists. */
    struct tc_endpoint_extra *security;
    enum tc_health health;
    uint32_t lb_weight;       /* of its own, for least_request, and maglev with a locality_weight; 1 by default, 0 reads
                                 as 1 */
    uint32_t locality_weight; /* of its locality (LOGICAL_DNS: 1); 0: none */
    size_t n_addrs;           /* >= 1 */
    struct tc_addr addrs[];
};

/* Returns a new endpoint with copies of the addresses, and weight 1. */
struct tc_endpoint *tc_endpoint_new(const struct tc_addr *addrs, size_t n);
/* Returns a copy of the endpoint with this security. Takes ownership of the security's reference. */
struct tc_endpoint *tc_endpoint_secured(const struct tc_endpoint *e, struct tc_endpoint_extra *security);
struct tc_endpoint *tc_endpoint_ref(struct tc_endpoint *e);
void tc_endpoint_unref(struct tc_endpoint *e);
/* Compares the addresses, in any order. */
bool tc_endpoint_same_addrs(const struct tc_endpoint *a, const struct tc_endpoint *b);
/* Returns a hash of the addresses, the same in any order. */
uint64_t tc_endpoint_addrs_hash(const struct tc_endpoint *e);
/* Compares the addresses in order, and all attributes. */
bool tc_endpoint_eq(const struct tc_endpoint *a, const struct tc_endpoint *b);

struct tc_endpoints;

struct tc_endpoints_child {
    struct tc_rstr *name;
    struct tc_endpoints *list;
};

struct tc_endpoints {
    struct tc_ref ref;
    size_t n; /* endpoints at this level */
    struct tc_endpoint **at;
    size_t n_children; /* lists of named children, sorted by name */
    struct tc_endpoints_child *children;
};

/* Takes ownership of the n references in `at` and of the array (from tc_malloc; may be NULL when n is 0). */
struct tc_endpoints *tc_endpoints_take(struct tc_endpoint **at, size_t n);
/* Returns a list with children only, whose names must differ. Takes ownership of their references and of the array,
 * which it sorts. */
struct tc_endpoints *tc_endpoints_take_children(struct tc_endpoints_child *children, size_t n);
struct tc_endpoints *tc_endpoints_ref(struct tc_endpoints *e);
void tc_endpoints_unref(struct tc_endpoints *e);
/* Returns the child's list, borrowed, or the shared empty list when no child has the name. */
struct tc_endpoints *tc_endpoints_child(const struct tc_endpoints *e, struct tc_slice name);
/* Returns the shared empty list, a new reference. */
struct tc_endpoints *tc_endpoints_empty(void);
/* Compares the endpoints in order with all attributes, and the children with their names. NULL is allowed. */
bool tc_endpoints_eq(const struct tc_endpoints *a, const struct tc_endpoints *b);

#endif
