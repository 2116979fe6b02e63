/* bench/update's servers, on one thread of their own: a control plane, and two backends, "old" and "new". Each backend
 * answers at its port on every address of 127.0.0.0/8, and so stands for any number of endpoints. */
#ifndef TORC_BENCH_UPDATE_WORLD_H
#define TORC_BENCH_UPDATE_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "controlplane/resource_set.h"

struct world;

/* Makes and starts the servers. Returns NULL if the system has no loop or no thread for them. A server that cannot
 * listen leaves a message on stderr, and its port is 0. */
struct world *world_new(void);
/* Ends the servers and their thread, and frees all. */
void world_free(struct world *w);
const char *world_control_plane(const struct world *w); /* "127.0.0.1:PORT"; borrowed */
/* Writes an address of the backend "new" that was not used before: "127.2.x.y:PORT". Repeats after 65,536. */
void world_new_address(struct world *w, char *text, size_t size);

/* The mesh of a client: a listener "svc" whose routes send methods of service "cN" ("/c0/Echo") to the cluster cN,
 * hashed by the header "k". Each cluster uses ring_hash with a minimum ring size of `min_ring`. Its endpoints are
 * 127.1.0.0, 127.1.0.1, ... of the backend "old"; 65,536 at most. */
struct world_shape {
    size_t clusters, endpoints; /* endpoints: of each cluster */
    uint64_t min_ring;
};

/* The state of cluster c0. Each field changes one resource. */
struct world_state {
    const char *extra; /* one additional endpoint, "IP:PORT"; NULL: none */
    bool shut;         /* the circuit breaker lets no RPC pass */
};

/* Both return a set of resources that the caller gives to world_push or tc_resource_set_free; NULL with a message on
 * stderr if a resource is not valid. world_resources makes all resources of the mesh. world_change copies `base`, with
 * c0 in this state. */
struct tc_resource_set *world_resources(const struct world *w, const struct world_shape *shape);
struct tc_resource_set *world_change(const struct world *w, const struct tc_resource_set *base,
                                     const struct world_shape *shape, const struct world_state *state);
/* Pushes the set to clients of that node id. Takes ownership of the set; `node` must be a literal. The servers' thread
 * sets *pushed_ns to the start of the push, by measure_wall_ns. *pushed_ns is valid once an effect was seen; until then
 * it must stay in memory, and no other push may start. */
void world_push(struct world *w, const char *node, struct tc_resource_set *set, _Atomic uint64_t *pushed_ns);

#endif
