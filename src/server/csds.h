/* The client status discovery service of the embedded control plane (CSDS): for each client that is connected, what it
 * was served and what it made of it, as the control plane knows it. */
#ifndef TC_SERVER_CSDS_H
#define TC_SERVER_CSDS_H

#include "server/control_plane.h"

/* Registers FetchClientStatus and StreamClientStatus with the control plane's server. What it answers comes from the
 * control plane, which must live as long as the server takes calls. */
void tc_csds_register(struct tc_server *server, struct tc_control_plane *cp);

#endif
