/* What ring_hash's policy and its pickers share: the endpoints with their states, and the ring over them. The policy
 * writes, pickers read; so the change of one endpoint costs the same whatever the number of the others. Internal to
 * ring_hash. */
#ifndef TC_LB_RING_HASH_SET_H
#define TC_LB_RING_HASH_SET_H

#include "lb/leaf.h"
#include "lb/ring.h"
#include "lb/ring_hash.h"

#define TC_RH_NONE UINT32_MAX

/* One endpoint. Small: most of a large ring's are never connected. */
struct tc_rh_endpoint {
    struct tc_endpoint *endpoint;
    struct tc_leaf *leaf;     /* NULL until the first attempt to connect (A61), and in a set that was replaced */
    struct tc_picker *picker; /* the leaf's last; NULL without one */
    uint64_t weight;
    uint32_t idle_prev, idle_next; /* the list of those in IDLE */
    uint8_t state;                 /* enum torc_connectivity */
    bool wanted;                   /* a pick asked to connect it */
    bool changed;                  /* while updating: the leaf must hear of a new endpoint */
};

struct tc_ring_hash;

struct tc_rh_set {
    struct tc_lref ref;
    struct tc_ring_hash *owner; /* NULL when the policy ended or has a newer set */
    struct tc_ring *ring;
    uint64_t min_ring_size, max_ring_size; /* as configured */
    struct tc_rstr *header;                /* A76: request_hash_header; NULL: none */
    struct tc_rstr *note;
    uint32_t counts[TORC_SHUTDOWN]; /* endpoints by state */
    uint32_t on_ring;               /* endpoints with an entry */
    uint32_t on_ring_failing;       /* of those, in TRANSIENT_FAILURE */
    uint32_t idle_first, idle_last;
    uint32_t n;
    struct tc_picker **ready; /* of endpoints in READY their pickers, borrowed; else NULL: all that most picks read */
    struct tc_rh_endpoint at[];
};

/* Asks the policy to connect endpoint i of the set; done after the pick, if it is still idle then. */
void tc_ring_hash_want(struct tc_rh_set *set, uint32_t i);

/* A set without endpoints, with room for `capacity` and a reference. */
struct tc_rh_set *tc_rh_set_new(size_t capacity);
void tc_rh_set_unref(struct tc_rh_set *set);
/* Appends an endpoint, IDLE; takes a reference. */
void tc_rh_set_add(struct tc_rh_set *set, struct tc_endpoint *endpoint, uint64_t weight);
/* Appends those of the list to `set`, which has room for them. Endpoints of the same addresses are one, of the summed
 * weight (A61). was[i]: where endpoint i of the set is in `old` (may be NULL), TC_RING_ADDED when it is not; room for
 * list->n of them. */
void tc_rh_set_merge(struct tc_rh_set *set, const struct tc_rh_set *old, const struct tc_endpoints *list,
                     uint32_t *was);
/* Endpoint i gets the leaf of `from`, which it was in another set, with state and picker. Only before the set has its
 * ring. */
void tc_rh_set_move(struct tc_rh_set *set, uint32_t i, struct tc_rh_endpoint *from);
/* Gives the set its ring: a reference that the call takes over. */
void tc_rh_set_take_ring(struct tc_rh_set *set, struct tc_ring *ring);
/* Do both give the same key? */
bool tc_rh_same_key(const struct tc_endpoint *a, const struct tc_endpoint *b);
/* True when both sets' endpoints give the same ring. */
bool tc_rh_set_same_keys(const struct tc_rh_set *a, const struct tc_rh_set *b);
/* Sets the state of endpoint i; takes over the picker's reference. */
void tc_rh_set_state(struct tc_rh_set *set, uint32_t i, enum torc_connectivity state, struct tc_picker *picker);
/* A42's rules for the state of the whole. */
enum torc_connectivity tc_rh_set_aggregate(const struct tc_rh_set *set);

/* A picker over the set; takes a reference. */
struct tc_picker *tc_rh_picker_new(struct tc_rh_set *set);

/* The config's part of the class. */
struct tc_lb_config *tc_ring_hash_config_parse(const struct tc_lb_class *cls, const json_t *json,
                                               const struct tc_lb_registry *registry, unsigned depth,
                                               struct tc_faults *faults);
void tc_ring_hash_config_free(struct tc_lb_config *config);
bool tc_ring_hash_config_equal(const struct tc_lb_config *a, const struct tc_lb_config *b);

#endif
