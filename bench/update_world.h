/* bench/update's servers, on a thread of their own: a control plane, and one backend that answers on its port at every
 * address of 127.0.0.0/8, so that any number of endpoints can be served. */
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
unsigned world_backend_port(const struct world *w);

/* What the client is to have: a listener "svc" whose route hashes by the header "k", a ring_hash cluster whose ring has
 * at least that many entries, and its endpoints 127.1.0.0 and on; `extra`: one more address (NULL: none). */
struct tc_resource_set *world_resources(const struct world *w, size_t endpoints, uint64_t min_ring, const char *extra);
/* Pushes the set, which it takes over; *pushed_ns becomes the time when that began. One push at a time: the next after
 * its effect was seen. */
void world_push(struct world *w, struct tc_resource_set *set, _Atomic uint64_t *pushed_ns);

#endif
