/* The states that a search has found, the first path to each, and the steps between them. In a search that goes breadth
 * first, the first path is a shortest one. Events are copied; the configs in them are borrowed. */
#ifndef MODEL_STATE_GRAPH_H
#define MODEL_STATE_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "tree_model.h"

/* A state is identified by two 64-bit hashes of everything that makes it up. */
struct state_sign {
    uint64_t half[2];
};

struct state_graph;

/* Makes a graph with one state, number 0, where every path begins. */
struct state_graph *state_graph_new(const struct state_sign *first);
void state_graph_free(struct state_graph *g);
/* Returns the number of states. */
size_t state_graph_count(const struct state_graph *g);
/* Adds a step from a state by an event. Returns the number of the state reached: a new state if the number equals the
 * count of states before the call. */
uint32_t state_graph_step(struct state_graph *g, uint32_t from, const struct event *by, const struct state_sign *to);
/* Writes the events of the first path to a state to `out`, which must have room for them. Returns their number. */
size_t state_graph_path(const struct state_graph *g, uint32_t state, struct event *out);
/* Returns the number of sequences of `steps` steps from the first state, by the steps added so far. */
double state_graph_sequences(const struct state_graph *g, int steps);

#endif
