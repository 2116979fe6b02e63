/* The trees of LB policies of an xDS channel, over a fake channel: benchmarks set subchannels to READY without a
 * network, so that picks and changes of state are measured alone. From TREE_PRIORITY to TREE_OUTLIERS each tree adds
 * something to the tree before it in the list. */
#ifndef TORC_BENCH_TREE_H
#define TORC_BENCH_TREE_H

#include "support/fakes/lb.h"

enum tree_kind {
    TREE_WEIGHTED,    /* weighted_round_robin over pick_first; the end of each RPC brings a report */
    TREE_LEAST,       /* least_request over pick_first */
    TREE_SCAN,        /* least_request with FULL_SCAN over pick_first */
    TREE_RING,        /* ring_hash over pick_first */
    TREE_PRIORITY,    /* priority over ring_hash */
    TREE_CLUSTER,     /* cds: outlier_detection (which does nothing here), cluster_impl (EDS drops, circuit breaking),
                         override_host, priority, ring_hash */
    TREE_LOADS,       /* TREE_CLUSTER with lrs_server */
    TREE_MANAGER,     /* cluster_manager over TREE_LOADS: the tree of a channel */
    TREE_OUTLIERS,    /* TREE_MANAGER with an outlier_detection that counts */
    TREE_ROUND_ROBIN, /* TREE_MANAGER with a cluster that asks for round_robin instead of ring_hash */
};

struct tree;

enum { TREE_ADDRESS_MAX = 40 };

/* Writes the address of endpoint i. Returns its length. */
size_t tree_address(char out[TREE_ADDRESS_MAX], size_t i);
/* Returns the ring sizes of a tree of n endpoints. The minimum is 2n, but at least 1,024 and at most 65,536; the
 * maximum is 65,536. */
struct tree_ring_size {
    unsigned least, most;
} tree_ring_size(size_t n);

/* Makes a tree of n endpoints in three localities, none connected. */
struct tree *tree_new(enum tree_kind kind, size_t n);
void tree_free(struct tree *t);
/* Returns the fake channel, borrowed. Its pick arguments name the tree's cluster. */
struct fake_lb *tree_lb(struct tree *t);
/* Returns the hash of an entry that endpoint i has on the ring. */
uint64_t tree_hash_of(size_t i);
/* Picks for an RPC with this hash, ends the RPC with OK, and tells its trackers. Returns the subchannel, borrowed until
 * the loop turns, or NULL if the pick was queued. Ends the program if the pick failed. */
struct tc_subchannel *tree_pick(struct tree *t, uint64_t hash);
/* Connects endpoint i of a tree with ring_hash. The endpoint must not be connected: a pick asks for it and is queued,
 * the endpoint becomes READY, and the next pick by its hash is complete. Returns false if anything else happens. */
bool tree_connect(struct tree *t, size_t i);
/* Connects all endpoints. Those of TREE_WEIGHTED have reported loads afterwards, and have weights. Returns false if a
 * pick gave something else than expected. */
bool tree_connect_all(struct tree *t);

#endif
