/* The network of the world, behind tc_connect_start, tc_listen_socket_new and byte streams.
 *
 * A host is an address. A connection has one delay in both directions, and carries bytes in order; connections overtake
 * one another. Faults are set here, by the workload; delays are drawn from the network's own stream of random
 * numbers. */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "io/addr.h"

enum sim_host_mode {
    SIM_HOST_UP,
    SIM_HOST_REFUSES, /* nobody listens */
    SIM_HOST_SILENT,  /* nothing comes back */
};

/* How the network of a seed is. Times in microseconds. */
struct sim_net_options {
    uint64_t delay_min_us, delay_max_us; /* one way */
    size_t buffer_bytes;                 /* that wait between two ends at most */
    unsigned cut_per_mille;              /* connections that break at a byte of chance */
};

void sim_net_begin(const struct sim_net_options *options);
/* All loops must have ended: connections that are left are a finding. */
void sim_net_end(void);

/* Makes a host known; connections to other addresses are refused. */
void sim_host_set(const char *address, enum sim_host_mode mode);
enum sim_host_mode sim_host_mode(const char *address);
/* Breaks every connection to the address, with a reset or (`silent`) without a word. */
void sim_host_break(const char *address, bool silent);
/* Returns how many connections to the address are open. */
size_t sim_host_connections(const char *address);
/* Returns how many attempts to connect to the address there were. */
uint64_t sim_host_attempts(const char *address);
/* How many of its connections became half-open, each by itself. */
unsigned sim_host_silenced(const char *address);

/* Reset or stall one open connection, chosen by `which`. Return false if no connection is open. */
bool sim_net_reset_one(uint64_t which);
bool sim_net_stall_one(uint64_t which, uint64_t us);
bool sim_net_cut_one(uint64_t which, size_t after_bytes);
bool sim_net_silence_one(uint64_t which);
size_t sim_net_open(void);
/* Returns the moment of the last fault of a connection, which may be ahead for one that stands still; UINT64_MAX while
 * a connection is half-open and its client does not know. */
uint64_t sim_net_last_fault_ns(void);

#endif
