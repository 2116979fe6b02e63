/* `torc call` as a process that makes 100 calls a second with a kit_mesh's control plane, and measurements of its
 * memory, CPU time and descriptors. The servers' memory and CPU time do not count, as they run in the test's process.
 * A failure in the kit fails the test. */
#ifndef TC_SUPPORT_KITS_PROCESS_H
#define TC_SUPPORT_KITS_PROCESS_H

#include "support/kits/mesh.h"

struct kit_process;

/* Makes a mesh for the process, for kit_mesh_free: methods "/good..." and RPCs with the header "to: good" go to the
 * cluster "good" at backend 0, all others to "victim" at backend 1. victim: further fields of the cluster "victim"
 * (YAML lines; NULL: RING_HASH). */
struct kit_mesh *kit_process_mesh(const char *victim);

/* Starts $TORC_BINARY_DIR/torc, which calls "/good.S/M" at "xds:///svc" for five minutes at most. The process needs the
 * servers of `k`: free `k` after the process. `limits`: the bootstrap's `torc.limits` as JSON; NULL: none. End the
 * process with kit_process_free. */
struct kit_process *kit_process_new(struct kit_mesh *k, const char *limits);
/* Kills the process, waits for its end, and removes its output and its log. */
void kit_process_free(struct kit_process *c);
/* Waits until that many more calls have finished, at most a minute. A failed call fails the test. */
void kit_process_go_on(struct kit_process *c, size_t more);
/* Waits until the log contains the text, at most a minute. */
void kit_process_wait_log(struct kit_process *c, const char *part);
/* Returns the latency of the longest RPC that ended since the last kit_process_longest_ms, in ms; 0 if none ended. */
double kit_process_longest_ms(struct kit_process *c);

/* Return the resident memory in kB, and the CPU time so far in ms, which other load on the machine does not change. */
long kit_process_resident_kb(const struct kit_process *c);
double kit_process_cpu_ms(const struct kit_process *c);
/* Returns the peak of resident memory in kB, since the last kit_process_reset_peak, or since the start without one. */
long kit_process_peak_kb(const struct kit_process *c);
void kit_process_reset_peak(const struct kit_process *c);
/* Returns the number of open descriptors. */
size_t kit_process_descriptors(const struct kit_process *c);

#endif
