/* Network paths with faults below the kernel's TCP: delay, loss, packets that vanish in one direction; no proxy can do
 * this.
 *
 * The process moves to its own network namespace with a tun device, 10.9.0.1/24. The kernel's packets to 10.9.0.2 and
 * higher reach a thread of the test, which swaps source and destination and, unless the path drops the packet, hands it
 * back. So 10.9.0.1 talks to itself, and each address 10.9.0.(2 + path) is a separate path. Servers reached by a path
 * must listen on 10.9.0.1 or 0.0.0.0. */
#ifndef TC_SUPPORT_NET_WIRE_H
#define TC_SUPPORT_NET_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#define WIRE_PATHS 8

struct wire;

/* Moves the process, which must still have one thread, to its own namespaces with loopback only. Returns NULL, or the
 * reason why the system does not permit it. */
const char *wire_enter(void);
/* `seed` decides which packets are lost. */
struct wire *wire_new(uint64_t seed);
void wire_free(struct wire *w);
/* Returns the address of path i to the listener on that port, "10.9.0.N:PORT"; borrowed. The path then drops and delays
 * nothing, and its counts are 0. */
const char *wire_path(struct wire *w, unsigned i, uint16_t port);
/* Sets the delay of a packet, in each direction. */
void wire_delay(struct wire *w, unsigned i, unsigned ms);
/* Sets the share of packets lost in each direction, 0 to 1. */
void wire_loss(struct wire *w, unsigned i, double share);
/* Sets which directions drop everything: towards the listener, and from it. */
void wire_cut(struct wire *w, unsigned i, bool to, bool from);
/* Waits until no packet has come for that long and none is delayed. */
void wire_wait_quiet(struct wire *w, unsigned i, unsigned ms);
/* Return the numbers of packets of the path that passed, and that were dropped, since it was made. */
uint64_t wire_passed(struct wire *w, unsigned i);
uint64_t wire_lost(struct wire *w, unsigned i);

#endif
