/* A TCP port that stays the test's. Servers of a test stop and start on their port again, and "nobody listens" is part
 * of many a test: without a holder the kernel could give the port to another process in between. */
#ifndef TC_SUPPORT_NET_PORT_H
#define TC_SUPPORT_NET_PORT_H

#include <stdint.h>

/* Takes a free port on all addresses. Returns the socket that holds it until it is closed. The socket does not listen:
 * connections are refused, except while a server listens there that sets SO_REUSEADDR, as Torc's do. */
int port_hold(uint16_t *port);

#endif
