/* The client status discovery service (CSDS, A40): both of its methods, over whatever makes the answer. Neither
 * watches: each request has one answer. */
#ifndef TC_SERVER_CSDS_SERVICE_H
#define TC_SERVER_CSDS_SERVICE_H

#include "server/grpc_server.h"

/* Embedded in whoever knows. */
struct tc_csds_service {
    /* Appends a serialised ClientStatusResponse; `without_contents`: resources are named and not shown. */
    void (*make)(struct tc_csds_service *service, bool without_contents, struct tc_buf *out);
};

/* Registers FetchClientStatus and StreamClientStatus. The service must live as long as the server takes calls. Requests
 * with node_matchers end with INVALID_ARGUMENT. */
void tc_csds_service_register(struct tc_server *server, struct tc_csds_service *service);

#endif
