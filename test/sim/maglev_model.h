/* Envoy's table of Maglev, written for the oracle alone: slow, and without any code of src. */
#ifndef SIM_MAGLEV_MODEL_H
#define SIM_MAGLEV_MODEL_H

#include "sim/mesh.h"

/* Returns the host that the table of this priority of the cluster gives to the header value: from the value's slot on,
 * the first host that is reachable. -1: no host of the table is. */
int maglev_model_host(const struct sim_cluster *cluster, unsigned priority, const char *value,
                      const bool reachable[SIM_HOSTS]);

#endif
