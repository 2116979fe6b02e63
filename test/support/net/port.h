/* A TCP port that stays reserved for the test. Many tests stop a server and start it again on its port, or need a port
 * where nobody listens. Without the reservation the kernel could give that port to another process. */
#ifndef TC_SUPPORT_NET_PORT_H
#define TC_SUPPORT_NET_PORT_H

#include <stdint.h>

/* Takes a free TCP port on all IPv4 addresses, and stores its number in *port, in the byte order of the machine.
 * Returns a socket that holds the port until the caller closes it. The socket does not listen: connections are refused
 * until a server listens on the port. The server must set SO_REUSEADDR, as Torc's servers do. Fails the test if it
 * cannot take a port. */
int port_hold(uint16_t *port);

#endif
