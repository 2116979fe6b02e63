/* Listening sockets that share an address, one for each loop: the system spreads the connections over them. Any
 * thread. */
#ifndef TC_IO_REUSE_PORT_H
#define TC_IO_REUSE_PORT_H

#include "base/status.h"
#include "io/addr.h"

/* Opens a socket that listens on an IPv4 or IPv6 address, with SO_REUSEPORT, for tc_listen_socket_adopt. Stores the
 * address as bound in *bound, for tc_addr_fini. Returns the descriptor; or -1, and in *error a text that names address
 * and reason. */
int tc_reuse_port_listen(const struct tc_addr *addr, struct tc_addr *bound, struct tc_status *error);

#endif
