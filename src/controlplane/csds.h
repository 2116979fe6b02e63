/* The client status discovery service of the embedded control plane (CSDS): for each open ADS stream whose client has
 * sent its node, the resources that the client asked for, and whether it accepted them, as the control plane knows it.
 * The thread of the server's loop. */
#ifndef TC_CONTROLPLANE_CSDS_H
#define TC_CONTROLPLANE_CSDS_H

#include "controlplane/control_plane.h"

struct tc_csds;
struct tc_csds_service;

/* Initialises a service whose `make` is set, on the server's loop, and registers both of its methods with the server,
 * which must end before the service does. */
void tc_csds_register(struct tc_server *server, struct tc_csds_service *service);
/* Registers CSDS with the control plane's server. The control plane must live as long as the server takes calls. */
struct tc_csds *tc_csds_new(struct tc_server *server, struct tc_control_plane *cp);
/* Call after tc_server_free. */
void tc_csds_free(struct tc_csds *c);

#endif
