/* Envoy's table of Maglev, written for the oracle alone: slow, and without any code of src. */
#ifndef SIM_MAGLEV_MODEL_H
#define SIM_MAGLEV_MODEL_H

#include "sim/mesh.h"

/* Returns the host that the table of this priority of the cluster gives to the header value, when those hosts can be
 * reached: the first one from the value's slot on. -1: none of the table's hosts can be reached. */
int maglev_model_host(const struct sim_cluster *cluster, unsigned priority, const char *value,
                      const bool reachable[SIM_HOSTS]);

#endif
