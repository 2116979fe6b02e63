/* The simulated machine: clocks, threads and background jobs. Most of it are functions of src that seams.c, net.c and
 * names.c define instead of the library (docs/internals/simulation.md has the list); this header has the functions that
 * the world itself calls. */
#ifndef SIM_SEAMS_H
#define SIM_SEAMS_H

#include "base/common.h"

/* Returns whether a background job could run now. */
bool sim_job_ready(void);
/* Runs the oldest background job whose moment has come, or any at the end of the world. Returns false when there is
 * none. */
bool sim_job_run(void);
/* Sets how long a background job waits for its thread, at most. */
void sim_jobs_set_delay(uint64_t most_ns);
/* Sets how much CPU time passes, at most, from one reading of the thread's clock to the next. */
void sim_cpu_set_cost(uint64_t most_ns);

#endif
