/* ClusterLoadAssignment (A27, A55, A61, A76, A81, A86) and LbEndpointCollection (A95): data. Immutable; all pointers
 * live as long as the resource. Any thread. */
#ifndef TC_XDS_RESOURCE_ENDPOINTS_H
#define TC_XDS_RESOURCE_ENDPOINTS_H

#include "io/addr.h"
#include "xds/client/resource_type.h"
#include "xds/resource/resource_arena.h"

/* Numbers of Envoy's HealthStatus; endpoints of another health are left out. */
enum tc_eds_health { TC_EDS_UNKNOWN = 0, TC_EDS_HEALTHY = 1, TC_EDS_DRAINING = 3 };

struct tc_eds_endpoint {
    size_t n_addrs; /* >= 1: the address and its additional_addresses */
    const struct tc_addr *addrs;
    uint32_t weight;           /* 1 when not given; > 0 */
    enum tc_eds_health health; /* DRAINING: used by xds_override_host alone (A55) */
    struct tc_rstr *hash_key;  /* envoy.lb/hash_key (A76); NULL: none */
    struct tc_slice hostname;  /* A81; may be empty */
    const struct tc_addr
        *proxy; /* A86: of its metadata, else its locality's; NULL: none, or an address is a Unix socket */
};

struct tc_eds_locality {
    struct tc_rstr *region, *zone, *sub_zone; /* may be empty, never NULL */
    uint32_t weight;                          /* > 0; localities without weight are left out */
    size_t n;                                 /* endpoints; may be 0 */
    const struct tc_eds_endpoint *endpoints;
    struct tc_rstr *collection;  /* the name of the collection that has the endpoints (A95); NULL: they stand here */
    const struct tc_addr *proxy; /* A86: of the locality's metadata, for endpoints of the collection */
    /* The collection, in the copy that the dependency manager completes (dependency_collections.c). NULL in the
     * resource itself. NULL in the copy if the locality names no collection, or names one that has no value or is
     * beyond MAX_COLLECTIONS. */
    const struct tc_eds_collection *from;
};

/* Localities in order of region, zone and sub_zone, bytewise: the ring's entries depend on it. */
struct tc_eds_priority {
    size_t n; /* >= 1 */
    const struct tc_eds_locality *localities;
};

struct tc_eds_drop {
    struct tc_rstr *category;
    uint32_t millionths; /* how many of 1,000,000 RPCs are dropped */
};

struct tc_eds {
    struct tc_decoded base; /* first */
    struct tc_rstr *name;   /* cluster_name */
    size_t n_priorities;    /* 0: no localities with a weight; RPCs fail */
    size_t n_unweighted;    /* localities left out: load_balancing_weight is not set, or is 0 (A27) */
    const struct tc_eds_priority *priorities;
    size_t n_drops;
    const struct tc_eds_drop *drops; /* in the order in which random numbers are drawn for them */
    bool drops_all;                  /* a category drops every RPC */
    size_t n_collections;            /* localities whose endpoints are in a collection */
    size_t room; /* how many addresses the collections may add together (up to eds_endpoints in all) */
};

/* The endpoints of a locality as a resource of their own (LEDS, A95). The message has no name: only the Resource
 * wrapper names it. */
struct tc_eds_collection {
    struct tc_decoded base; /* first */
    size_t n;
    size_t n_addrs; /* of all endpoints, for `room` */
    const struct tc_eds_endpoint *endpoints;
};

extern const struct tc_xds_resource_type tc_eds_type, tc_eds_collection_type;

static inline const struct tc_eds *tc_eds_of(const struct tc_xds_resource *r)
{
    return (const struct tc_eds *)(const void *)r;
}

static inline const struct tc_eds_collection *tc_eds_collection_of(const struct tc_xds_resource *r)
{
    return (const struct tc_eds_collection *)(const void *)r;
}

/* Appends {region="r", zone="z", sub_zone="s"}. */
void tc_eds_locality_format(const struct tc_eds_locality *l, struct tc_buf *out);

#endif
