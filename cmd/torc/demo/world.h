/* The servers of torc demo: an embedded control plane and five backends, on a thread of their own. One thread at a time
 * calls these functions. */
#ifndef TORC_DEMO_WORLD_H
#define TORC_DEMO_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#define WORLD_BACKENDS 5

struct world;

/* Starts all servers on ports that the system chooses. On failure returns NULL with a text in *why (tc_free). */
struct world *world_new(char **why);
/* Stops and frees all servers. NULL is allowed. */
void world_free(struct world *w);

/* Return "127.0.0.1:PORT", borrowed; the address of a backend is valid until the backend is started again. */
const char *world_control_plane(const struct world *w);
const char *world_backend(const struct world *w, int i);

/* Adds or replaces resources (YAML). Returns when the control plane has them; clients may get them later. On failure
 * returns false with a text in *why (tc_free). */
bool world_put(struct world *w, const char *yaml, char **why);
/* Closes the backend's port and all its connections, as a crash does. */
void world_stop_backend(struct world *w, int i);
/* Starts a stopped backend again, on the same port. On failure returns false with a text in *why (tc_free). */
bool world_start_backend(struct world *w, int i, char **why);
/* Returns how many RPCs began on the backend, also before it was last stopped. */
uint64_t world_requests(struct world *w, int i);

#endif
