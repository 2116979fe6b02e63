/* Trees of LB policies as an xDS channel has them, over a channel that is none: subchannels are READY by word alone, so
 * that picks and changes of state are measured without a network. What a tree lacks its smaller ones lack too, which
 * shows what each policy costs. */
#ifndef TORC_BENCH_TREE_H
#define TORC_BENCH_TREE_H

#include "support/fake_lb.h"

enum tree_kind {
    TREE_RING,        /* ring_hash over pick_first */
    TREE_PRIORITY,    /* priority over it */
    TREE_CLUSTER,     /* cds: cluster_impl (EDS drops, circuit breaking), override_host, priority, ring_hash */
    TREE_LOADS,       /* with lrs_server */
    TREE_MANAGER,     /* cluster_manager over that: as a channel has it */
    TREE_OUTLIERS,    /* with outlier_detection besides */
    TREE_ROUND_ROBIN, /* a manager whose cluster asks for round_robin */
};

struct tree;

enum { TREE_ADDRESS_MAX = 40 };

/* The text of endpoint i's address; its length. */
size_t tree_address(char out[TREE_ADDRESS_MAX], size_t i);
/* The ring's settings for n endpoints. */
struct tree_ring_size {
    unsigned least, most;
} tree_ring_size(size_t n);

/* Of n endpoints in three localities; none is connected. The ring has two entries for each, but 1,024 to 65,536. */
struct tree *tree_new(enum tree_kind kind, size_t n);
void tree_free(struct tree *t);
/* Its policy, picker and pick arguments, which name the cluster. */
struct fake_lb *tree_lb(struct tree *t);
/* A hash that the ring gives to endpoint i. */
uint64_t tree_hash_of(size_t i);
/* One RPC with its hash, which is over at once; its trackers are told. NULL: it waits. Ends the program when it fails.
 */
struct tc_subchannel *tree_pick(struct tree *t, uint64_t hash);
/* An RPC wants endpoint i of a ring, which is then connected, READY, and picked by it. False when something else came
 * of it. */
bool tree_connect(struct tree *t, size_t i);
/* All of them, one after another. */
bool tree_connect_all(struct tree *t);

#endif
