/* The mesh of torc demo: an embedded control plane and five backends, on a thread of their own. */
#ifndef TORC_DEMO_WORLD_H
#define TORC_DEMO_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#define WORLD_BACKENDS 5

struct world;

/* Starts everything on ports that the system chooses. NULL with a text in *why (tc_free). */
struct world *world_new(char **why);
void world_free(struct world *w);

/* "127.0.0.1:PORT"; borrowed. */
const char *world_control_plane(const struct world *w);
const char *world_backend(const struct world *w, int i);

/* Each of these is done when it returns. */
/* Adds or replaces resources (YAML). False with a text in *why. */
bool world_put(struct world *w, const char *yaml, char **why);
/* As a crash: connections closed, port closed. */
void world_stop_backend(struct world *w, int i);
/* Listens on its port again. */
bool world_start_backend(struct world *w, int i, char **why);
/* Requests that the backend has counted so far. */
uint64_t world_requests(struct world *w, int i);

#endif
