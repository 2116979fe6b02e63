/* Endpoints as a resolver found them, with their addresses and attributes. They and their lists are immutable and
 * counted; any thread may hold references.
 *
 * A tree of lists replaces gRPC's hierarchical path attribute: the list for a policy with named children (priority,
 * weighted_target) holds one list for each child, which is found by the child's name. A list that an EDS update did not
 * change is the very same object afterwards, so that a comparison of lists is mostly one of pointers. */
#ifndef TC_LB_ENDPOINT_H
#define TC_LB_ENDPOINT_H

#include "base/buf.h"
#include "base/rstr.h"
#include "io/addr.h"

/* A locality's names: region, zone, sub_zone. Immutable and counted; two objects may hold equal names. */
struct tc_locality {
    struct tc_ref ref;
    struct tc_rstr *region, *zone, *sub_zone;
};

/* Returns a locality with copies of the names and one reference. */
struct tc_locality *tc_locality_new(struct tc_slice region, struct tc_slice zone, struct tc_slice sub_zone);
/* NULL is allowed in both. */
struct tc_locality *tc_locality_ref(struct tc_locality *l);
void tc_locality_unref(struct tc_locality *l);
/* Returns the order by region, zone, sub_zone, bytewise: <0, 0, >0. NULL sorts as three empty names. */
int tc_locality_cmp(const struct tc_locality *a, const struct tc_locality *b);
/* Appends {region="r", zone="z", sub_zone="s"}. NULL is written as three empty names. */
void tc_locality_format(const struct tc_locality *l, struct tc_buf *out);

/* EDS's HealthStatus, by its numbers; the decoder drops endpoints of any other status. UNKNOWN outside xDS. */
enum tc_health { TC_HEALTH_UNKNOWN = 0, TC_HEALTH_HEALTHY = 1, TC_HEALTH_DRAINING = 3 };

/* An attribute of an endpoint that this folder does not look into: immutable and counted. Implementations embed it
 * first. */
struct tc_endpoint_extra {
    struct tc_ref ref;
    void (*free)(struct tc_endpoint_extra *x); /* frees the object after its last reference has gone; any thread */
};

/* One endpoint: one or more addresses of the same server, and its attributes. Its identity is the unordered set of
 * addresses (A61), without the attributes. */
struct tc_endpoint {
    struct tc_ref ref;
    /* For ring_hash, pick_first, policies of the application, and maglev where locality_weight is 0. Only the
     * proportions within a list count. From EDS: A113's share of the priority (1 for all endpoints of a priority whose
     * shares are equal), or A42's product of the locality's weight and the endpoint's; 1 for a draining endpoint. 1 by
     * default, 0 reads as 1. */
    uint64_t weight;
    struct tc_rstr *hash_key;     /* A76; NULL or empty: the endpoint has none, ring/item.h says what is hashed then */
    struct tc_locality *locality; /* NULL outside xDS; LOGICAL_DNS: its names are empty */
    struct tc_rstr *hostname;     /* A81; NULL: none is known */
    /* How connections to the endpoint are secured (subchannel/endpoint_security.h, A29); NULL: by the channel's
     * credentials. Set only in endpoints that tc_endpoint_secured made for a subchannel, never in lists. */
    struct tc_endpoint_extra *security;
    enum tc_health health;
    uint32_t lb_weight;       /* the endpoint's own, for least_request, and maglev with a locality_weight; 1 by default,
                                 0 reads as 1 */
    uint32_t locality_weight; /* of the endpoint's locality (LOGICAL_DNS: 1); 0: none */
    size_t n_addrs;           /* >= 1 */
    struct tc_addr addrs[];
};

/* Returns a new endpoint with copies of the n >= 1 addresses, one reference, and weights of 1. */
struct tc_endpoint *tc_endpoint_new(const struct tc_addr *addrs, size_t n);
/* Returns a copy of the endpoint with this security, one reference. Takes ownership of the security's reference. */
struct tc_endpoint *tc_endpoint_secured(const struct tc_endpoint *e, struct tc_endpoint_extra *security);
struct tc_endpoint *tc_endpoint_ref(struct tc_endpoint *e);
void tc_endpoint_unref(struct tc_endpoint *e); /* NULL is allowed */
/* Returns true if both have the same set of addresses; order and duplicates do not count. */
bool tc_endpoint_same_addrs(const struct tc_endpoint *a, const struct tc_endpoint *b);
/* Returns a hash of the set of addresses. */
uint64_t tc_endpoint_addrs_hash(const struct tc_endpoint *e);
/* Compares the addresses in order, and all attributes; `security` by pointer. */
bool tc_endpoint_eq(const struct tc_endpoint *a, const struct tc_endpoint *b);

struct tc_endpoints;

struct tc_endpoints_child {
    struct tc_rstr *name;      /* a reference */
    struct tc_endpoints *list; /* a reference */
};

struct tc_endpoints {
    struct tc_ref ref;
    size_t n;                /* endpoints at this level */
    struct tc_endpoint **at; /* n references */
    size_t n_children;       /* lists of named children, sorted by name */
    struct tc_endpoints_child *children;
};

/* Returns a list of the n endpoints, one reference. Takes ownership of the references in `at` and of the array (from
 * tc_malloc; may be NULL when n is 0). */
struct tc_endpoints *tc_endpoints_take(struct tc_endpoint **at, size_t n);
/* Returns a list with children only, one reference. The children's names must differ. Takes ownership of the references
 * in `children` and of the array (from tc_malloc; may be NULL when n is 0), and sorts the array. */
struct tc_endpoints *tc_endpoints_take_children(struct tc_endpoints_child *children, size_t n);
/* NULL is allowed in both. */
struct tc_endpoints *tc_endpoints_ref(struct tc_endpoints *e);
void tc_endpoints_unref(struct tc_endpoints *e);
/* Returns the list of the child of that name, or the shared empty list if there is none or `e` is NULL. Borrowed. */
struct tc_endpoints *tc_endpoints_child(const struct tc_endpoints *e, struct tc_slice name);
/* Returns the shared empty list, a new reference. */
struct tc_endpoints *tc_endpoints_empty(void);
/* Compares the endpoints in order with all attributes, and the children with their names. NULL is allowed. */
bool tc_endpoints_eq(const struct tc_endpoints *a, const struct tc_endpoints *b);

#endif
