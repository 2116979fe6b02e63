/* The names of connectivity states. Pure functions, any thread. */
#ifndef TC_LB_CONNECTIVITY_H
#define TC_LB_CONNECTIVITY_H

#include <torc/connectivity.h>

/* Returns the name as gRPC's documents write it, "READY" for example, and "UNKNOWN" for a value that is not a state.
 * The string is static. */
const char *tc_connectivity_name(enum torc_connectivity state);

#endif
