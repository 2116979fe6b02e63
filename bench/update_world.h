/* bench/update's servers, on a thread of their own: a control plane, and two backends, "old" and "new", which each
 * answer on their port at every address of 127.0.0.0/8, so that any number of endpoints can be served. */
#ifndef TORC_BENCH_UPDATE_WORLD_H
#define TORC_BENCH_UPDATE_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/resource_set.h"

struct world;

/* NULL with a message on stderr. */
struct world *world_new(void);
void world_free(struct world *w);
const char *world_control_plane(const struct world *w); /* "127.0.0.1:PORT"; borrowed */
/* A new address of the backend "new": "127.2.x.y:PORT". */
void world_new_address(struct world *w, char *text, size_t size);

/* What a client is to have: a listener "svc", whose routes send methods of the services "c0", "c1" and on ("/c0/Echo")
 * to the cluster of that name by the header "k"; ring_hash clusters, whose rings have at least that many entries; each
 * with the endpoints 127.1.0.0 and on of the backend "old". */
struct world_shape {
    size_t clusters, endpoints;
    uint64_t min_ring;
};

/* The three ways in which the cluster c0 may be; each is one resource that changes. */
struct world_state {
    const char *extra; /* one more endpoint, "IP:PORT"; NULL: none */
    bool shut;         /* its circuit breaker lets nothing pass */
};

struct tc_resource_set *world_resources(const struct world *w, const struct world_shape *shape);
/* A copy of the set, of that shape, in which c0 is so. */
struct tc_resource_set *world_change(const struct world *w, const struct tc_resource_set *base,
                                     const struct world_shape *shape, const struct world_state *state);
/* Pushes the set, which it takes over, to the clients of that node id (a literal). `*pushed_ns` becomes the time when
 * that began, and may be read once an effect of it was seen; one push at a time: the next after that. */
void world_push(struct world *w, const char *node, struct tc_resource_set *set, _Atomic uint64_t *pushed_ns);

#endif
