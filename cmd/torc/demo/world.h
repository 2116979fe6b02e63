/* The servers of torc demo: an embedded control plane and five backends, on a thread of their own. */
#ifndef TORC_DEMO_WORLD_H
#define TORC_DEMO_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#define WORLD_BACKENDS 5

struct world;

/* Starts all servers on ports that the system chooses. Returns NULL with a text in *why (tc_free). */
struct world *world_new(char **why);
void world_free(struct world *w);

/* Returns "127.0.0.1:PORT", borrowed. */
const char *world_control_plane(const struct world *w);
const char *world_backend(const struct world *w, int i);

/* Functions that can fail return false with a text in *why (tc_free).
 *
 * Adds or replaces resources (YAML), and returns when the servers' thread has done it. */
bool world_put(struct world *w, const char *yaml, char **why);
/* Closes the port and all connections, as a crash does. */
void world_stop_backend(struct world *w, int i);
/* Listens on the backend's port again. */
bool world_start_backend(struct world *w, int i, char **why);
/* Returns the number of RPCs that the backend has counted. */
uint64_t world_requests(struct world *w, int i);

#endif
