/* The control plane of a world, which serves what a test puts (torc/testing.h). Any thread of the world
 * (testing/threads.h). */
#ifndef TC_TESTING_RESOURCES_H
#define TC_TESTING_RESOURCES_H

#include <torc/error.h>

#include "base/common.h"

struct tc_resources;

/* The address of the control plane. */
#define TC_RESOURCES_ADDRESS "10.255.255.1:15010"

/* Begins to serve, on a loop of its own; but if a server of the test listens at TC_RESOURCES_ADDRESS, clients find that
 * server instead. Never returns NULL. The caller frees the control plane. */
struct tc_resources *tc_resources_new(void);
/* Ends the control plane. NULL is allowed. */
void tc_resources_free(struct tc_resources *r);
/* Returns how many loops the control plane has in the world; NULL: 0. */
size_t tc_resources_loops(const struct tc_resources *r);
/* Adds or replaces the resources of a text in the form of `torc serve-xds`. Returns 0, or TORC_EPARSE with the error:
 * nothing has changed then. `text` is borrowed for the call; `error` may be NULL. */
int tc_resources_put(struct tc_resources *r, const char *text, torc_error **error);
/* Removes a resource. Returns 0 or TORC_ENOTFOUND. */
int tc_resources_remove(struct tc_resources *r, const char *type_url, const char *name);
/* Returns the bootstrap of clients in the world, as JSON; static. */
const char *tc_resources_bootstrap(void);

#endif
