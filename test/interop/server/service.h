/* grpc.testing.TestService as gRPC's interop suite describes it. */
#ifndef INTEROP_SERVICE_H
#define INTEROP_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <torc/protobuf_c.h>
#include <torc/torc.h>

#include "services.torc.h"

enum { INTEROP_THREADS = 32 }; /* of the pool that is given to interop_service_add */

/* Adds the service to a server whose option gzip is on. Methods that wait for their client run on the pool. Clients of
 * FullDuplexCall may set the server's load in `orca`, which must outlive the server and the pool. */
void interop_service_add(torc_server *server, torc_pool *pool, torc_orca *orca, torc_error **error);

#endif
