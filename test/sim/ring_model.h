/* The ring of ring_hash as A42, A61 and A113 describe it, written for the oracle alone: slow, and without any code of
 * src. */
#ifndef SIM_RING_MODEL_H
#define SIM_RING_MODEL_H

#include "sim/mesh.h"

/* Looks the header value, a NUL-terminated text, up on the ring of this priority of the cluster. Returns the host of
 * the first entry from the value's hash on, around the ring, whose host is reachable; -1 if none is. */
int ring_model_host(const struct sim_cluster *cluster, unsigned priority, const char *value,
                    const bool reachable[SIM_HOSTS]);

#endif
