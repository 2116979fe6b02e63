/* Faults of single connections, which the workload chooses; the moment of the network's last fault; and what the oracle
 * is told of attempts to connect. Everything runs on the world's one thread. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "base/common.h"

/* Forgets the faults of the run before. */
void sim_faults_begin(void);
/* Notes a fault of the network that lasts until this moment: the present, or one ahead. */
void sim_net_note_fault(uint64_t until_ns);
/* Tells the oracle that an attempt to connect to a host of the mesh begins, or was refused. Does nothing for other
 * addresses. loop: the client's. */
void sim_net_note_connect(const void *loop, const char *address, bool refused);
/* Each does something to one open connection, chosen by `which`: resets it, lets it stand still for so many
 * microseconds, has it break after so many further bytes, makes it half-open. Return false if no connection is open. */
bool sim_net_reset_one(uint64_t which);
bool sim_net_stall_one(uint64_t which, uint64_t us);
bool sim_net_cut_one(uint64_t which, size_t after_bytes);
bool sim_net_silence_one(uint64_t which);
/* Returns how many connections are open. */
size_t sim_net_open(void);
/* Returns the moment of the last fault that was noted, which may be ahead; 0: there was none. Returns UINT64_MAX while
 * a client still holds a connection that is half-open. */
uint64_t sim_net_last_fault_ns(void);

#endif
