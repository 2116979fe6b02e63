/* Paths with faults beneath the kernel's TCP, for tests of what a network does that no proxy can: delay, loss, packets
 * that vanish in one direction.
 *
 * In a network namespace of the process's own stands a tun device, 10.9.0.1/24. What the kernel sends to 10.9.0.2 and
 * on comes to a thread of the test, which swaps source and destination and, if the path lets it, hands it back:
 * so 10.9.0.1 talks to itself, and each of its names, 10.9.0.(2 + path), is a path of its own. What serves a path must
 * listen on 0.0.0.0. */
#ifndef TC_SUPPORT_WIRE_H
#define TC_SUPPORT_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#define WIRE_PATHS 8

struct wire;

/* Moves the process, which has one thread yet, to namespaces of its own, where only loopback is. NULL, or the reason
 * why the system does not permit it. */
const char *wire_enter(void);
/* `seed` decides what is lost. */
struct wire *wire_new(uint64_t seed);
void wire_free(struct wire *w);
/* The address of path i to what listens on that port, "10.9.0.N:PORT"; borrowed. The path lets everything pass. */
const char *wire_path(struct wire *w, unsigned i, uint16_t port);
/* How long a packet takes, each way. */
void wire_delay(struct wire *w, unsigned i, unsigned ms);
/* The share of packets that are lost, each way: 0 to 1. */
void wire_loss(struct wire *w, unsigned i, double share);
/* Which directions let nothing pass: towards what listens, and from it. */
void wire_cut(struct wire *w, unsigned i, bool to, bool from);
/* Until no packet came for so long, and none is under way. */
void wire_wait_quiet(struct wire *w, unsigned i, unsigned ms);
/* Packets of the path that passed, and that did not, since it was made. */
uint64_t wire_passed(struct wire *w, unsigned i);
uint64_t wire_lost(struct wire *w, unsigned i);

#endif
