/* What bench/pick measures at one number of endpoints: a pick through ever more of an xDS channel, each time with the
 * end of the RPC as the policies see it. */
#ifndef TORC_BENCH_PICK_H
#define TORC_BENCH_PICK_H

#include <stdbool.h>
#include <stddef.h>

enum pick_level {
    PICK_LOOP,      /* what a round takes without a pick */
    PICK_SEARCH,    /* the ring alone: tc_ring_find */
    PICK_RING_HASH, /* ring_hash over pick_first */
    PICK_PRIORITY,
    PICK_CLUSTER,
    PICK_LOADS,
    PICK_MANAGER,  /* the channel's picker */
    PICK_SELECTED, /* config selector, then the channel's picker */
    PICK_FILTERED, /* with a fault filter in between: all */
    PICK_OUTLIERS, /* the channel's picker with outlier detection */
    PICK_PEER,     /* search in a sorted vector */
    PICK_LEVELS,
};

struct pick_world;

/* All endpoints are READY. */
struct pick_world *pick_world_new(size_t endpoints);
void pick_world_free(struct pick_world *w);
/* Each pick is by a key that the one before decides; ends the program when one goes wrong. */
void pick_run(struct pick_world *w, enum pick_level level, unsigned picks);

/* Instructions of a pick at each level and number of endpoints, by running this program under callgrind:
 * out[size][level]. False with a line that says why it is skipped. */
bool pick_count(const size_t *sizes, size_t n_sizes, double (*out)[PICK_LEVELS]);
/* What the program does there. */
int pick_counted(const size_t *sizes, size_t n_sizes);

#endif
