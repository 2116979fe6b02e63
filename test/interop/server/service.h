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

enum { INTEROP_THREADS = 32 }; /* of the pool */

/* Adds the service to a server whose option gzip is on. Calls that wait for their client run on the pool. Clients may
 * set the server's load. */
void interop_service_add(torc_server *server, torc_pool *pool, torc_orca *orca, torc_error **error);

#endif
