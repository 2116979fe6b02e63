/* The client status discovery service (CSDS) of the embedded control plane: shows for each open ADS stream whose client
 * has sent its node the resources that the client asked for, and whether the client accepted them. Called on the thread
 * of the server's loop. */
#ifndef TC_CONTROLPLANE_CSDS_H
#define TC_CONTROLPLANE_CSDS_H

#include "controlplane/control_plane.h"

struct tc_csds;
struct tc_csds_service;

/* Initialises a service, which is zeroed but for `make` and `max_bytes`, and registers both of its methods with the
 * server. The caller keeps the service, and ends it with tc_csds_service_end after tc_server_free. */
void tc_csds_register(struct tc_server *server, struct tc_csds_service *service);
/* Registers CSDS with a server. The result and the control plane must live as long as the server takes calls. */
struct tc_csds *tc_csds_new(struct tc_server *server, struct tc_control_plane *cp);
/* Call after tc_server_free. NULL is allowed. */
void tc_csds_free(struct tc_csds *c);

#endif
