/* The endpoints of a consistent hashing policy with their states, and the look-up over them, a ring or a table (both
 * are a struct tc_ring): shared by the policy and its pickers.
 *
 * The policy writes states in place and pickers read them, so the cost of a change hardly grows with the number of
 * endpoints (lb/index_set.h). A new list of endpoints makes a new set; the old one keeps its states for pickers that
 * still hold it. Loop thread only, unless a comment says otherwise. */
#ifndef TC_LB_RING_HASH_ENDPOINTS_H
#define TC_LB_RING_HASH_ENDPOINTS_H

#include "base/random.h"
#include "base/vec.h"
#include "lb/active_requests.h"
#include "lb/index_set.h"
#include "lb/policies/endpoint_child.h"
#include "lb/ring_hash/config.h"
#include "ring/update.h"

/* One endpoint. Small, since most endpoints of a large ring are never connected. No pick can reach an endpoint without
 * an entry on the ring: it has no child and is not counted. */
struct tc_rh_endpoint {
    struct tc_endpoint *endpoint;    /* a reference */
    struct tc_endpoint_child *child; /* owned; NULL until the first attempt to connect (A61), and in a replaced set */
    struct tc_picker *picker;        /* of the child's last report that counted, a reference; NULL before the first */
    uint64_t weight;                 /* at least 1; of endpoints with the same addresses the sum, at most UINT64_MAX */
    uint8_t state;                   /* enum torc_connectivity */
    bool wanted;                     /* a pick asked to connect the endpoint */
    bool changed;                    /* during an update: the child must get a new endpoint */
};

/* The counts of a set whose config bounds loads (balance.h), an element for each endpoint. */
struct tc_rh_balance {
    bool waiting;                       /* a pick that was passed on is queued */
    bool retry;                         /* want_task has picks tried again: an RPC has ended since */
    uint32_t seen;                      /* total->n after its last change */
    struct tc_active_requests *total;   /* RPCs of all endpoints of the policy, also of those that left; a reference */
    struct tc_active_requests **active; /* RPCs of each endpoint, references; the next set shares the counts */
    double *weights;                    /* parts of the whole weight (tc_rh_set_weights) */
    /* The sum of `weights` over the endpoints that a pick may choose. [0]: endpoints with an entry that are not in
     * TRANSIENT_FAILURE; [1]: READY endpoints, for a pick that takes no others. */
    double serving[2];
    uint32_t *order, *swaps; /* scratch of tc_rh_balance_choose; between its calls order[i] is i */
};

struct tc_ring_hash;

struct tc_rh_set {
    struct tc_lref ref;
    struct tc_ring_hash *owner;         /* NULL before the set is in use, and after it was replaced */
    struct tc_ring *ring;               /* a reference; NULL before tc_rh_set_take_ring */
    struct tc_ring_hash_config *config; /* a reference */
    struct tc_rh_balance *balance;      /* owned; NULL: loads do not count */
    struct tc_rstr *resolution_note;    /* a reference; NULL: none */
    struct tc_loop *loop;
    struct tc_task want_task; /* the owner's: connects the endpoints in `wanted`, and has picks tried again */
    TC_VEC(uint32_t) wanted;  /* endpoints that picks asked to connect */
    uint32_t on_ring;         /* endpoints with an entry */
    uint32_t counts[TORC_CONNECTIVITY_SHUTDOWN]; /* endpoints with an entry, by state */
    struct tc_index_set idle; /* endpoints with an entry that are IDLE; empty before the set has its ring */
    uint32_t n;               /* all endpoints */
    struct tc_picker **ready; /* ready[i]: the picker of endpoint i while it is READY (borrowed), else NULL. Most picks
                                 read nothing else of an endpoint. Always NULL if the config bounds loads. */
    struct tc_rh_endpoint at[];
};

/* --- construction --- */

/* Returns a set without endpoints, with room for `capacity`, and one reference. Takes a reference of the config. The
 * owner sets loop, want_task and resolution_note. */
struct tc_rh_set *tc_rh_set_new(size_t capacity, struct tc_ring_hash_config *config);
/* NULL is allowed. The last reference frees the set, whose children must have ended or moved before. Any thread for a
 * set that was never in use. */
void tc_rh_set_unref(struct tc_rh_set *set);
/* Appends an endpoint in IDLE, for which the set has room; takes a reference. `weight` must be at least 1. */
void tc_rh_set_add(struct tc_rh_set *set, struct tc_endpoint *endpoint, uint64_t weight);
/* Gives the set its ring, of which it takes over a reference. All endpoints must still be IDLE. */
void tc_rh_set_take_ring(struct tc_rh_set *set, struct tc_ring *ring);
/* Gives endpoint i, which was `from` in another set, its child, state and picker. `from` loses the child and keeps
 * state and picker. Sets `changed` if the child must get a new endpoint. Endpoint i must be on the ring, and still as
 * tc_rh_set_take_ring left it. Called before tc_rh_balance_start. */
void tc_rh_set_move(struct tc_rh_set *set, uint32_t i, struct tc_rh_endpoint *from);

/* Adds the endpoints of the list to `set`, which is empty and has room for them. Endpoints with the same addresses
 * become one, whose weight is the sum of theirs (A61). was[i] becomes the index of the set's endpoint i in `old` (may
 * be NULL), TC_RING_ADDED if it is not in there; `was` has room for list->n. */
void tc_rh_set_merge(struct tc_rh_set *set, const struct tc_rh_set *old, const struct tc_endpoints *list,
                     uint32_t *was);
/* Writes to weights[i] the part of the whole weight (1) that endpoint i has, as Envoy computes it, in doubles. With
 * locality_weighted a locality has a part by its locality_weight, and its endpoints divide this part by their own
 * weights. */
void tc_rh_set_weights(const struct tc_rh_set *set, double *weights);
/* Sets a sum in balance->serving to 1 if all endpoints are in it: with the sum's rounding errors some picks would not
 * be Envoy's. */
void tc_rh_set_round_serving(struct tc_rh_set *set);
/* Returns a picker over the set, of which it takes a reference. The set must have its ring. */
struct tc_picker *tc_rh_picker_new(struct tc_rh_set *set);

/* --- comparison --- */

/* Returns true if both endpoints have the same key on a ring by any config: hash_key, hostname and first address are
 * equal. */
bool tc_rh_same_key(const struct tc_endpoint *a, const struct tc_endpoint *b);
/* Returns true if the endpoints of both sets have the same keys, weights, localities and weights of localities in the
 * same order. Then both give the same look-up, if the configs do (tc_rh_config_same_ring). */
bool tc_rh_set_same_keys(const struct tc_rh_set *a, const struct tc_rh_set *b);

/* --- states --- */

/* Sets the state of endpoint i, which must be on the ring. Takes over the picker's reference. */
void tc_rh_set_state(struct tc_rh_set *set, uint32_t i, enum torc_connectivity state, struct tc_picker *picker);
/* Returns the policy's state by the rules of A42 and A61. */
enum torc_connectivity tc_rh_set_aggregate(const struct tc_rh_set *set);
/* Returns the first IDLE endpoint with an entry from a random place on, the last endpoint being followed by the first
 * (A117); TC_INDEX_NONE if there is none. */
uint32_t tc_rh_set_any_idle(const struct tc_rh_set *set, struct tc_rng *rng);
/* Asks the owner, if the set has one, to connect endpoint i. The owner does so after the pick, if the endpoint is IDLE
 * then. */
void tc_rh_set_want(struct tc_rh_set *set, uint32_t i);

#endif
