/* Network paths with faults below TCP, which a proxy cannot make: delayed packets, lost packets, packets that vanish in
 * one direction.
 *
 * The process moves to its own network namespace with a tun device, 10.9.0.1/24. The kernel's packets to 10.9.0.2 and
 * higher reach a thread of the test, which swaps source and destination and, unless the path drops the packet, hands it
 * back. So 10.9.0.1 talks to itself, and each address 10.9.0.(2 + path) is a separate path. Servers reached by a path
 * must listen on 10.9.0.1 or 0.0.0.0. `i` is the number of a path, below WIRE_PATHS. */
#ifndef TC_SUPPORT_NET_WIRE_H
#define TC_SUPPORT_NET_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#define WIRE_PATHS 8

struct wire;

/* Moves the process, which must have only one thread, to its own user and network namespaces, with loopback up. Returns
 * NULL, or the reason why the system does not permit it, a static text. The process may have moved even then. */
const char *wire_enter(void);
/* Makes the tun device and starts the thread; one wire at a time. Call it after wire_enter. `seed` decides which
 * packets are lost. */
struct wire *wire_new(uint64_t seed);
void wire_free(struct wire *w);
/* Leads path i to the listener on that port, and resets the path: its counts are 0, and packets that come from now on
 * are not dropped and have no delay of their own. Packets that the path delays already are still handed back when they
 * are due. Returns the path's address "10.9.0.N:PORT", borrowed until the next wire_path of i or wire_free. */
const char *wire_path(struct wire *w, unsigned i, uint16_t port);
/* Sets the delay in each direction, of packets that come from now on. A packet does not overtake an older packet of its
 * path, of either direction: behind one with a longer delay it waits longer. */
void wire_delay(struct wire *w, unsigned i, unsigned ms);
/* Sets the share of packets lost in each direction, 0 to 1. */
void wire_loss(struct wire *w, unsigned i, double share);
/* Sets which directions drop every packet: to the listener, from the listener. */
void wire_cut(struct wire *w, unsigned i, bool to, bool from);
/* Waits, without a limit, until no packet of the path has come for that long and none is delayed. Packets that the path
 * drops have come, too. */
void wire_wait_quiet(struct wire *w, unsigned i, unsigned ms);
/* Return how many packets of the path were let through, and how many were dropped, since wire_path. */
uint64_t wire_passed(struct wire *w, unsigned i);
uint64_t wire_lost(struct wire *w, unsigned i);

#endif
