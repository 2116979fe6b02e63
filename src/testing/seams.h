/* The machine of a world: clocks, the environment and background jobs. Most of it is functions of src that seams.c
 * defines instead of the library (docs/internals/simulation.md has the list); this header has what the world itself and
 * its owners call. The thread of the world. */
#ifndef TC_TESTING_SEAMS_H
#define TC_TESTING_SEAMS_H

#include "base/common.h"

/* Returns whether a background job could run now. */
bool tc_world_job_ready(void);
/* Runs a background job: the one whose moment came first, or inside tc_world_end also one whose moment has not come.
 * Returns false when there is none. */
bool tc_world_job_run(void);
/* Background jobs that are queued from now on wait a random time below most_ns before they can run; 0: no time. */
void tc_world_set_job_delay(uint64_t most_ns);
/* From now on a random time below most_ns of CPU time passes before each reading of it (tc_thread_cpu_ns); 0: none. */
void tc_world_set_cpu_cost(uint64_t most_ns);

/* From now on `fn` returns the values of environment variables, NULL for one that is not set. The values must stay
 * valid, as those of getenv do. `fn` NULL: none is set; so it is at first. */
void tc_world_set_environment(const char *(*fn)(const char *name));

#endif
