/* The names of the world: dC.test and dCvVERSION.test have the addresses of the endpoints of cluster C. */
#ifndef SIM_NAMES_H
#define SIM_NAMES_H

#include "sim/mesh.h"

/* Has the world look names up here. */
void sim_names_begin(void);
/* Sets the addresses of the cluster's names to those of the endpoints in `c`. */
void sim_name_set(unsigned cluster, const struct sim_cluster *c);
/* Look-ups of the cluster's names fail from now on, or no longer. */
void sim_name_fail(unsigned cluster, bool fail);

#endif
