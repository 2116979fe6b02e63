/* The trees of LB policies of an xDS channel, over a fake channel: benchmarks set subchannels to READY without a
 * network, so that picks and changes of state are measured alone. From TREE_RING to TREE_OUTLIERS each tree adds
 * something to the one before, which shows what that costs. */
#ifndef TORC_BENCH_TREE_H
#define TORC_BENCH_TREE_H

#include "support/fakes/lb.h"

enum tree_kind {
    TREE_WEIGHTED,    /* weighted_round_robin over pick_first; the end of each RPC brings a report */
    TREE_LEAST,       /* least_request over pick_first */
    TREE_SCAN,        /* least_request with FULL_SCAN over pick_first */
    TREE_RING,        /* ring_hash over pick_first */
    TREE_PRIORITY,    /* priority over ring_hash */
    TREE_CLUSTER,     /* cds: cluster_impl (EDS drops, circuit breaking), override_host, priority, ring_hash */
    TREE_LOADS,       /* TREE_CLUSTER with lrs_server */
    TREE_MANAGER,     /* cluster_manager over TREE_LOADS: the tree of a channel */
    TREE_OUTLIERS,    /* TREE_MANAGER with outlier_detection */
    TREE_ROUND_ROBIN, /* a manager whose cluster asks for round_robin */
};

struct tree;

enum { TREE_ADDRESS_MAX = 40 };

/* Writes the address of endpoint i. Returns its length. */
size_t tree_address(char out[TREE_ADDRESS_MAX], size_t i);
/* The ring sizes for n endpoints. */
struct tree_ring_size {
    unsigned least, most;
} tree_ring_size(size_t n);

/* Makes a tree of n endpoints in three localities, none connected. The ring has two entries for each endpoint, within
 * 1,024 to 65,536. */
struct tree *tree_new(enum tree_kind kind, size_t n);
void tree_free(struct tree *t);
/* The fake channel: its policy, picker and pick arguments, which name the cluster. */
struct fake_lb *tree_lb(struct tree *t);
/* A hash that belongs to endpoint i on the ring. */
uint64_t tree_hash_of(size_t i);
/* Makes one RPC with this hash that ends at once and tells its trackers. Returns NULL if the pick was queued. Ends the
 * program if the pick failed. */
struct tc_subchannel *tree_pick(struct tree *t, uint64_t hash);
/* Connects endpoint i of a ring: an RPC asks for it, it becomes READY, and the next pick by its hash is complete.
 * Returns false if anything else happens. */
bool tree_connect(struct tree *t, size_t i);
/* Connects all endpoints, one after another. Those of TREE_WEIGHTED have reported different loads then. */
bool tree_connect_all(struct tree *t);

#endif
