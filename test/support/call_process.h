/* The process of `torc call`, whose control plane is a mesh_kit's: 100 calls a second, and what it holds and spends.
 * Its own process, so that what the servers hold does not count. Whatever fails in here fails the test. */
#ifndef TC_SUPPORT_CALL_PROCESS_H
#define TC_SUPPORT_CALL_PROCESS_H

#include "support/mesh_kit.h"

struct call_process;

/* A mesh for it: what is called "/good...", or has the header "to: good", goes to the cluster "good" at backend 0, all
 * else to "victim" at backend 1, with these fields (YAML lines; NULL: RING_HASH). */
struct mesh_kit *call_process_mesh(const char *victim);

/* Calls "/good.S/M" at "xds:///svc". `limits`: what `torc.limits` has in the bootstrap, as JSON; NULL: nothing. */
struct call_process *call_process_new(struct mesh_kit *k, const char *limits);
void call_process_free(struct call_process *c);
/* Until so many more calls have finished (at most a minute); none may have failed. */
void call_process_go_on(struct call_process *c, size_t more);
/* Until its log has the text (at most a minute). */
void call_process_wait_log(struct call_process *c, const char *part);
/* The longest call since the last call of this, in milliseconds. */
double call_process_longest_ms(struct call_process *c);

/* Resident kilobytes and processor time so far; unlike the wall's, that does not count what else the machine does. */
long call_process_resident_kb(const struct call_process *c);
double call_process_cpu_ms(const struct call_process *c);
/* The peak since it was last reset. */
long call_process_peak_kb(const struct call_process *c);
void call_process_reset_peak(const struct call_process *c);
/* How many descriptors it has open. */
size_t call_process_descriptors(const struct call_process *c);

#endif
