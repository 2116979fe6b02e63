/* Envoy's table of Maglev, written for the oracle alone: slow, and without any code of src. */
#ifndef SIM_MAGLEV_MODEL_H
#define SIM_MAGLEV_MODEL_H

#include "sim/mesh.h"

/* Looks the header value, a NUL-terminated text, up in the table of this priority of the cluster. Returns the host of
 * the first slot from the value's slot on, around the table, whose host is reachable; -1 if none is. */
int maglev_model_host(const struct sim_cluster *cluster, unsigned priority, const char *value,
                      const bool reachable[SIM_HOSTS]);

#endif
