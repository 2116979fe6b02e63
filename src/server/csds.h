/* The client status discovery service of the embedded control plane (CSDS): for each client that is connected, what it
 * was served and what it made of it, as the control plane knows it. */
#ifndef TC_SERVER_CSDS_H
#define TC_SERVER_CSDS_H

#include "server/control_plane.h"

struct tc_csds;

/* Registers its methods with the control plane's server. What it answers comes from the control plane, which must live
 * as long as the server takes calls. */
struct tc_csds *tc_csds_new(struct tc_server *server, struct tc_control_plane *cp);
/* After tc_server_free. */
void tc_csds_free(struct tc_csds *c);

#endif
