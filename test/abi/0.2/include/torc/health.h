/* The health of a server: grpc.health.v1. SPDX-License-Identifier: Apache-2.0
 *
 *     torc_health *health = torc_health_new(server, &error); // before torc_server_start
 *     torc_health_set(health, "helloworld.Greeter", TORC_HEALTH_SERVING);
 *     ...
 *     torc_health_free(health);
 *
 * Clients ask by Check, List (gRFC A90) and Watch, which sends each change; a client that reads slowly gets only the
 * newest status. The service "" stands for the whole server, and is SERVING from the start. When the server begins to
 * stop (torc_server_stop), all services are NOT_SERVING for good. A Watch is an RPC without an end: while a client
 * keeps one open, torc_server_stop waits for it until its grace is over. The health of a service that was never set is
 * NOT_FOUND for Check, and SERVICE_UNKNOWN for Watch until it is set. List of more than 100 services ends with
 * RESOURCE_EXHAUSTED. No function waits; each may be called on any thread. In a child of a fork the handle is the
 * parent's: torc_health_set returns TORC_EFORK, and the other functions do nothing with it. In a library that was built
 * without servers (TORC_SERVERS=off) the functions of this header are missing. Source: gRPC doc/health-checking.md. */
#ifndef TORC_HEALTH_H
#define TORC_HEALTH_H

#include <torc/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The health service of one server. */
typedef struct torc_health torc_health;

/* The state of a service, by the numbers of grpc.health.v1. */
enum torc_health_status {
    TORC_HEALTH_UNKNOWN = 0,     /* not known; clients that check health (torc/channel.h: health_checks) send no RPCs */
    TORC_HEALTH_SERVING = 1,     /* RPCs are welcome */
    TORC_HEALTH_NOT_SERVING = 2, /* RPCs would fail */
};

/* Adds the service grpc.health.v1.Health to a server. Returns NULL with an error: those of torc_server_add_method;
 * TORC_EEXIST when the server has the service. With an error nothing of the service is added. The caller frees the
 * handle, before or after the server.
 *
 * Limits of "*" and of "grpc.health.v1.Health" hold for the service, except their pool, which is not used; a request
 * has 4 KiB at most unless the limits set another size. */
TORC_API torc_health *torc_health_new(torc_server *server, torc_error **error);

/* Sets the status of a service ("package.Service", or "" for the server; copied), and tells the clients that watch it.
 * Returns 0; or an error, and nothing changes: TORC_EINVAL (NULL, a status that is not in enum torc_health_status, a
 * name that is not UTF-8 or above 1024 bytes), TORC_ESTATE (after torc_health_shutdown, or once torc_server_stop
 * has begun), TORC_EFORK. */
TORC_API int torc_health_set(torc_health *health, const char *service, int status);

/* Makes all services NOT_SERVING for good, and tells the clients that watch them. NULL is allowed. */
TORC_API void torc_health_shutdown(torc_health *health);

/* Gives the handle up; the service stays with the server as it is. NULL is allowed. */
TORC_API void torc_health_free(torc_health *health);

#ifdef __cplusplus
}
#endif
#endif
