/* The levels of bench/pick: searches in a ring or table alone, and picks through growing parts of an xDS channel. A
 * pick through a tree includes the end of its RPC as policies see it (tree_pick). */
#ifndef TORC_BENCH_PICK_H
#define TORC_BENCH_PICK_H

#include <stdbool.h>
#include <stddef.h>

enum pick_level {
    PICK_LOOP,      /* the loop alone, without a pick */
    PICK_SEARCH,    /* the ring alone: tc_ring_find */
    PICK_WEIGHTED,  /* weighted_round_robin over pick_first */
    PICK_LEAST,     /* least_request over pick_first */
    PICK_SCAN,      /* least_request over all endpoints */
    PICK_RING_HASH, /* ring_hash over pick_first */
    PICK_PRIORITY,  /* this level and the next two: the trees of the same names (tree.h) */
    PICK_CLUSTER,
    PICK_LOADS,
    PICK_MANAGER,  /* the channel's picker */
    PICK_SELECTED, /* config selector, then the channel's picker */
    PICK_FILTERED, /* config selector with a fault filter, then the channel's picker: the whole path */
    PICK_OUTLIERS, /* the channel's picker with outlier detection */
    PICK_PEER,     /* binary search in a sorted vector (peers/vector_ring.h) */
    PICK_SLOT,     /* Maglev's table instead of the ring: tc_ring_find */
    PICK_LEVELS,
};

struct pick_world;

/* Makes a world for all levels, with all endpoints READY. endpoints: at least 1. Ends the program if that fails. The
 * caller frees the world. One thread uses a world. */
struct pick_world *pick_world_new(size_t endpoints);
void pick_world_free(struct pick_world *w);
/* Makes `picks` picks, each with a hash that depends on the result of the pick before. Ends the program if a pick
 * fails. */
void pick_run(struct pick_world *w, enum pick_level level, unsigned picks);

/* Counts the instructions of a pick at each level and number of endpoints, by running this program under callgrind with
 * the argument "counted": out[i][level] is for the i-th of main's n_sizes sizes. Returns false with a line that says
 * why the count is skipped; `out` is incomplete then. */
bool pick_count(size_t n_sizes, double (*out)[PICK_LEVELS]);
/* The program's work under callgrind: dumps the costs of 1,000 picks for each size and level. Returns the exit status:
 * 0, or 1 if built without valgrind's headers. */
int pick_counted(const size_t *sizes, size_t n_sizes);

#endif
