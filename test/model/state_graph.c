/* States are nodes, numbered in the order in which they are found. A hash table finds a node by its sign. Each node
 * keeps its parent: the node from which it was first reached, so that parents lead back to node 0. */
#include "state_graph.h"

#include "base/mem.h"
#include "base/vec.h"

struct node {
    uint32_t parent; /* of node 0: node 0 itself */
    struct event event;
};

struct edge {
    uint32_t from, to;
};

struct known {
    struct state_sign sign;
    uint32_t node; /* the node's number + 1; 0: the slot is free */
};

struct state_graph {
    TC_VEC(struct node) nodes;
    TC_VEC(struct edge) edges;
    struct known *known;
    size_t mask; /* number of slots - 1 */
};

static struct known *slot_of(const struct state_graph *g, const struct state_sign *sign)
{
    size_t i = (size_t)sign->half[0] & g->mask;
    while (g->known[i].node && (g->known[i].sign.half[0] != sign->half[0] || g->known[i].sign.half[1] != sign->half[1]))
        i = (i + 1) & g->mask;
    return &g->known[i];
}

static void grow(struct state_graph *g)
{
    struct known *old = g->known;
    size_t n = old ? g->mask + 1 : 0;
    g->mask = old ? n * 2 - 1 : 4095;
    g->known = tc_calloc(g->mask + 1, sizeof(*g->known));
    for (size_t i = 0; i < n; i++)
        if (old[i].node)
            *slot_of(g, &old[i].sign) = old[i];
    tc_free(old);
}

static void add(struct state_graph *g, struct known *at, const struct state_sign *sign, const struct node *node)
{
    *tc_vec_push(&g->nodes) = *node;
    at->sign = *sign;
    at->node = (uint32_t)g->nodes.len;
}

struct state_graph *state_graph_new(const struct state_sign *first)
{
    struct state_graph *g = TC_NEW(struct state_graph);
    grow(g);
    add(g, slot_of(g, first), first, &(struct node){.parent = 0});
    return g;
}

void state_graph_free(struct state_graph *g)
{
    tc_vec_fini(&g->nodes);
    tc_vec_fini(&g->edges);
    tc_free(g->known);
    tc_free(g);
}

size_t state_graph_count(const struct state_graph *g)
{
    return g->nodes.len;
}

uint32_t state_graph_step(struct state_graph *g, uint32_t from, const struct event *by, const struct state_sign *to)
{
    if (g->nodes.len * 2 >= g->mask)
        grow(g);
    struct known *at = slot_of(g, to);
    if (!at->node)
        add(g, at, to, &(struct node){from, *by});
    *tc_vec_push(&g->edges) = (struct edge){from, at->node - 1};
    return at->node - 1;
}

size_t state_graph_path(const struct state_graph *g, uint32_t state, struct event *out)
{
    size_t n = 0;
    for (uint32_t i = state; i != 0; i = g->nodes.data[i].parent)
        n++;
    for (size_t k = n; k-- > 0; state = g->nodes.data[state].parent)
        out[k] = g->nodes.data[state].event;
    return n;
}

double state_graph_sequences(const struct state_graph *g, int steps)
{
    size_t n = g->nodes.len;
    double *ways = tc_calloc(n, sizeof(*ways)), sum = 0;
    ways[0] = 1;
    for (int i = 0; i < steps; i++) {
        double *next = tc_calloc(n, sizeof(*next));
        for (size_t k = 0; k < g->edges.len; k++)
            next[g->edges.data[k].to] += ways[g->edges.data[k].from];
        tc_free(ways);
        ways = next;
    }
    for (size_t i = 0; i < n; i++)
        sum += ways[i];
    tc_free(ways);
    return sum;
}
