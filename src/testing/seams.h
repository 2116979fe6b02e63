/* The machine of a world: clocks, threads, the environment and background jobs. Most of it is functions of src that
 * seams.c, net.c, names.c, process.c, blocking.c and pool.c define instead of the library
 * (docs/internals/simulation.md has the list); this header has what the world itself and its owners call. The thread of
 * the world. */
#ifndef TC_TESTING_SEAMS_H
#define TC_TESTING_SEAMS_H

#include "base/common.h"

/* Returns whether a background job could run now. */
bool tc_world_job_ready(void);
/* Runs the oldest background job whose moment has come, or any once the world has ended. Returns false when there is
 * none. */
bool tc_world_job_run(void);
/* Sets how long a background job waits for its thread, below most_ns; 0: not at all. */
void tc_world_set_job_delay(uint64_t most_ns);
/* Sets how much CPU time passes, below most_ns, from one reading of the thread's clock to the next; 0: none. */
void tc_world_set_cpu_cost(uint64_t most_ns);

/* Environment variables are what `fn` returns from now on; NULL: none is set, which is also how a process begins. */
void tc_world_set_environment(const char *(*fn)(const char *name));

#endif
