/* Listening sockets that share an address, one for each loop; the kernel spreads the connections over them. Any
 * thread. */
#ifndef TC_IO_REUSE_PORT_H
#define TC_IO_REUSE_PORT_H

#include "base/status.h"
#include "io/addr.h"

/* Opens a socket that listens on an IPv4 or IPv6 address, with SO_REUSEPORT, for tc_listen_socket_adopt. Returns the
 * descriptor, which is the caller's, and stores the address as bound in *bound, for tc_addr_fini. On failure returns -1
 * and stores UNAVAILABLE in *error, with a text that names address and reason; *bound is then untouched or empty. */
int tc_reuse_port_listen(const struct tc_addr *addr, struct tc_addr *bound, struct tc_status *error);

#endif
