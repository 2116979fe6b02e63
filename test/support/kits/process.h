/* `torc call` as a process against a kit_mesh's control plane: 100 calls a second; the process's memory, CPU time and
 * descriptors. Because the process is separate, the servers' memory and CPU time do not count. A failure in the kit
 * fails the test. */
#ifndef TC_SUPPORT_KITS_PROCESS_H
#define TC_SUPPORT_KITS_PROCESS_H

#include "support/kits/mesh.h"

struct kit_process;

/* Makes a mesh for the process: "/good..." and RPCs with the header "to: good" go to the cluster "good" at backend 0,
 * all others to "victim" at backend 1. victim: further fields of that cluster (YAML lines; NULL: RING_HASH). */
struct kit_mesh *kit_process_mesh(const char *victim);

/* Calls "/good.S/M" at "xds:///svc", for five minutes at most. `limits`: the bootstrap's `torc.limits` as JSON; NULL:
 * none. */
struct kit_process *kit_process_new(struct kit_mesh *k, const char *limits);
void kit_process_free(struct kit_process *c);
/* Waits until that many more calls have finished, at most a minute. A failed call fails the test. */
void kit_process_go_on(struct kit_process *c, size_t more);
/* Waits until the log contains the text, at most a minute. */
void kit_process_wait_log(struct kit_process *c, const char *part);
/* Returns the longest of the RPCs that ended since the last call of this function, in ms. */
double kit_process_longest_ms(struct kit_process *c);

/* Return the resident memory in kB, and the CPU time so far in ms, which other load on the machine does not change. */
long kit_process_resident_kb(const struct kit_process *c);
double kit_process_cpu_ms(const struct kit_process *c);
/* Returns the peak of resident memory since the last reset, in kB. */
long kit_process_peak_kb(const struct kit_process *c);
void kit_process_reset_peak(const struct kit_process *c);
/* Returns the number of open descriptors. */
size_t kit_process_descriptors(const struct kit_process *c);

#endif
