/* The network of the world, behind tc_connect_start, tc_listen_socket_new and byte streams.
 *
 * A host is an address. A connection has one delay in both directions, and carries bytes in order; connections
 * overtake one another. Faults are set here, by the workload; delays are drawn from the network's own stream of random
 * numbers. */
#ifndef TC_TESTING_NET_H
#define TC_TESTING_NET_H

#include "io/addr.h"

enum tc_host_mode {
    TC_HOST_UP,
    TC_HOST_REFUSES, /* nobody listens */
    TC_HOST_SILENT,  /* nothing comes back */
};

/* How the network of a seed is. Times in microseconds. */
struct tc_net_options {
    uint64_t delay_min_us, delay_max_us; /* one way */
    size_t buffer_bytes;                 /* that wait between two ends at most */
    unsigned cut_per_mille;              /* connections that break at a byte of chance */
};

void tc_net_begin(const struct tc_net_options *options);
/* Forgets the hosts. All loops must have ended. Returns false when a connection is left, which is a fault of Torc. */
bool tc_net_end(void);

/* Sets the delay of connections that are made from now on. */
void tc_net_set_delay(uint64_t us);

/* Makes a host known, as listening there does; connections to other addresses are refused. */
void tc_host_set(const char *address, enum tc_host_mode mode);
enum tc_host_mode tc_host_mode(const char *address);
/* Breaks every connection to the address, with a reset or (`silent`) without a word. Returns how many there were. */
size_t tc_host_break(const char *address, bool silent);
/* Holds up the bytes of every connection to the address until then. Returns how many there are. */
size_t tc_host_stall(const char *address, uint64_t until_ns);
/* Returns how many connections to the address are open. */
size_t tc_host_connections(const char *address);
/* Returns how many attempts to connect to the address there were. */
uint64_t tc_host_attempts(const char *address);
/* How many of its connections became half-open, each by itself. */
unsigned tc_host_silenced(const char *address);

#endif
