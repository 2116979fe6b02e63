/* A TCP port that stays reserved for the test. Many tests stop a server and start it again on its port, or need a port
 * where nobody listens. Unless the port is held, the kernel could give it to another process in between. */
#ifndef TC_SUPPORT_NET_PORT_H
#define TC_SUPPORT_NET_PORT_H

#include <stdint.h>

/* Takes a free TCP port on all IPv4 addresses. Returns the socket that holds it until it is closed. The socket does not
 * listen: connections are refused, except while a server listens there that sets SO_REUSEADDR, as Torc's do. */
int port_hold(uint16_t *port);

#endif
