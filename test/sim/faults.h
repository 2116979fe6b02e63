/* Faults of single connections, which the workload chooses; the moment of the network's last fault; and what the oracle
 * hears of attempts to connect. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "base/common.h"

/* Forgets the faults of the run before. */
void sim_faults_begin(void);
/* A fault of the network happened, or goes on until then. */
void sim_net_note_fault(uint64_t until_ns);
/* Tells the oracle that an attempt to connect begins, or was refused. loop: the client's. */
void sim_net_note_connect(const void *loop, const char *address, bool refused);
/* Reset one open connection, chosen by `which`, let it stand still for a time, cut it after so many bytes, or make it
 * half-open. Return false if no connection is open. */
bool sim_net_reset_one(uint64_t which);
bool sim_net_stall_one(uint64_t which, uint64_t us);
bool sim_net_cut_one(uint64_t which, size_t after_bytes);
bool sim_net_silence_one(uint64_t which);
/* Returns how many connections are open. */
size_t sim_net_open(void);
/* Returns the moment of the last fault of a connection, which may be ahead for one that stands still; UINT64_MAX while
 * a connection is half-open and its client does not know. */
uint64_t sim_net_last_fault_ns(void);

#endif
