/* The network of the world, behind tc_connect_start, tc_listen_socket_new and byte streams.
 *
 * A host is an address. A connection has one delay in both directions, and carries bytes in order; connections
 * overtake one another. Callers set faults. Delays, and the connections that break by themselves (cut_per_mille), are
 * drawn from TC_CHANCE_NET. Addresses are texts as tc_addr_text writes them. Any thread of the world
 * (testing/threads.h). */
#ifndef TC_TESTING_NET_H
#define TC_TESTING_NET_H

#include "io/addr.h"

enum tc_host_mode {
    TC_HOST_UP,
    TC_HOST_REFUSES, /* attempts to connect are refused; connections are not touched */
    TC_HOST_SILENT,  /* attempts to connect get no answer; connections are not touched */
};

/* How the network of a seed is. Times in microseconds. */
struct tc_net_options {
    uint64_t delay_min_us, delay_max_us; /* one way */
    size_t buffer_bytes;                 /* the most that one end has sent and the other has not read */
    unsigned cut_per_mille;              /* of 1,000 connections, how many break at one of their first 5,000 bytes */
};

/* Begins a network without hosts. `options` is copied. */
void tc_net_begin(const struct tc_net_options *options);
/* Forgets the hosts. All loops must have ended. Returns false when a connection is left: Torc did not close it. */
bool tc_net_end(void);

/* Sets the delay, one way in microseconds, of the connections whose attempts begin from now on. */
void tc_net_set_delay(uint64_t us);

/* Sets the mode of a host. An address is known from its first tc_host_set on, or from the first listening there, if
 * that comes before: its mode is TC_HOST_UP then. Listening does not change the mode of a known address. Where no
 * server listens, attempts are refused, unless the host is silent or a server listens on a wildcard of the port. */
void tc_host_set(const char *address, enum tc_host_mode mode);
/* Returns the mode of a host; TC_HOST_REFUSES for an unknown address. */
enum tc_host_mode tc_host_mode(const char *address);
/* Breaks every connection to the address, with a reset or (`silent`) without telling either end. Returns how many both
 * ends still held. */
size_t tc_host_break(const char *address, bool silent);
/* Holds up the bytes of every connection to the address that both ends hold, until until_ns of the world's time; of two
 * stalls the later end counts. Returns how many connections these are. */
size_t tc_host_stall(const char *address, uint64_t until_ns);
/* Returns how many connections to the address are open: held by both ends, and not silent. */
size_t tc_host_connections(const char *address);
/* Returns how many attempts to connect to the address began since it became known. */
uint64_t tc_host_attempts(const char *address);
/* Returns how many calls of tc_host_add_silenced there were for the address since it became known. */
unsigned tc_host_silenced(const char *address);

#endif
