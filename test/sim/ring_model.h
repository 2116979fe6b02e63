/* The ring of ring_hash as A42, A61 and A113 describe it, written for the oracle alone: slow, and without any code of
 * src. */
#ifndef SIM_RING_MODEL_H
#define SIM_RING_MODEL_H

#include "sim/mesh.h"

/* Returns the host that the ring of this priority of the cluster gives to the header value, when those hosts can be
 * reached: the first one from the key's place on. -1: none can be reached. */
int ring_model_host(const struct sim_cluster *cluster, unsigned priority, const char *value,
                    const bool reachable[SIM_HOSTS]);

#endif
