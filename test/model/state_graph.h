/* The states that a search has found, each with a shortest way to it, and the steps between them. */
#ifndef MODEL_STATE_GRAPH_H
#define MODEL_STATE_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "tree_model.h"

/* A state is known by two 64-bit hashes of all that makes it up. */
struct state_sign {
    uint64_t half[2];
};

struct state_graph;

/* With one state, number 0, where every way begins. */
struct state_graph *state_graph_new(const struct state_sign *first);
void state_graph_free(struct state_graph *g);
size_t state_graph_count(const struct state_graph *g);
/* A step from a state by an event: the number of the state that it leads to, which is a new one when it is the count of
 * states before the call. */
uint32_t state_graph_step(struct state_graph *g, uint32_t from, const struct event *by, const struct state_sign *to);
/* The events that lead to a state; returns how many. */
size_t state_graph_path(const struct state_graph *g, uint32_t state, struct event *out);
/* How many sequences of so many steps there are from the first state on. */
double state_graph_sequences(const struct state_graph *g, int steps);

#endif
