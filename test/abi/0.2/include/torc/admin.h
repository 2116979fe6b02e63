/* The xDS resources that a running process has, as a dump and as a gRPC service (CSDS). SPDX-License-Identifier:
 * Apache-2.0
 *
 *     torc_csds *csds = torc_csds_serve(NULL, "127.0.0.1:50052", &error); // the channels of the default runtime
 *     if (!csds)
 *         fprintf(stderr, "no CSDS: %s\n", torc_error_text(error));
 *     ...
 *     torc_csds_free(csds);
 *
 * grpcdebug and other tools of CSDS ask the service. In a library that was built without xDS (TORC_XDS=off) the
 * functions of this header are missing; without servers (TORC_SERVERS=off) all but torc_csds_dump are. */
#ifndef TORC_ADMIN_H
#define TORC_ADMIN_H

#include <stdbool.h>
#include <stddef.h>

#include <torc/export.h>
#include <torc/runtime.h>
#include <torc/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stores which xDS resources the channels of a runtime asked for (gRFC A40): a serialized
 * envoy.service.status.v3.ClientStatusResponse of *size bytes in *bytes, for torc_free. `runtime` NULL:
 * torc_runtime_default; for a runtime with an xDS domain, the resources of all runtimes of the domain.
 *
 * The message has one ClientConfig for each xDS client: its targets as client_scope (A71; divided by spaces, the first
 * 16 KiB of them), the node as the control plane sees it, and in generic_xds_configs each resource. A resource has its
 * client_status (REQUESTED, DOES_NOT_EXIST, ACKED, NACKED, RECEIVED_ERROR, TIMEOUT), the version and the bytes in use
 * as they were received, and when that was. After a failure, error_state says what is wrong, when it was last found,
 * and the version that it is about if there is one. without_contents leaves the bytes of the resources out.
 *
 * Waits for the runtime's loop; inside a callback of the runtime there is nothing to wait for. With an xDS domain it
 * also waits for the domain's loop, inside a callback too. Returns 0; or TORC_EINVAL, TORC_ECLOSED, TORC_EFORK or
 * TORC_EIO (the default runtime cannot be made), and *bytes and *size are untouched. Any thread. */
TORC_API int torc_csds_dump(torc_runtime *runtime, bool without_contents, void **bytes, size_t *size);

/* Adds envoy.service.status.v3.ClientStatusDiscoveryService to a server, before torc_server_start: FetchClientStatus
 * and StreamClientStatus answer each request with the state of the runtime's xDS clients at that moment, as
 * torc_csds_dump returns it (runtime NULL: torc_runtime_default). Every client that the server's credentials and
 * interceptors let through gets answers, which show names and addresses of the mesh. Limits of "*" and of the service's
 * name (torc_server_limit) hold for the service, but their pool does not. A request has at most 64 KiB unless these
 * limits say another size.
 *
 * The service has a thread of its own, which makes the answers. The loop of the runtime, or of its xDS domain, only
 * collects the state: if nobody drives that loop, there are no answers. The service ends with the server. If the
 * runtime ends first, requests end with UNAVAILABLE from then on. A client costs the application little, however much
 * it asks for: requests that wait share an answer, and docs/operations/limits.md has the bounds.
 *
 * Returns 0; or an error, and nothing is added: TORC_EINVAL (the server is NULL), TORC_EIO (no thread, or the default
 * runtime cannot be made), TORC_ECLOSED and TORC_EFORK (the runtime), and the errors of torc_server_add_method. Waits
 * as torc_csds_dump does. Any thread. */
TORC_API int torc_csds_add(torc_server *server, torc_runtime *runtime, torc_error **error);

/* A gRPC server that has the service of torc_csds_add alone. */
typedef struct torc_csds torc_csds;

/* Starts a server on an address: "127.0.0.1:50052" (port 0: the system chooses), "[::1]:50052", "unix:/path". It has no
 * TLS, and every client that can connect gets answers, so a local address is best. It has a thread of its own; the loop
 * of the runtime (NULL: torc_runtime_default), or of its xDS domain, only collects the state: if nobody drives that
 * loop, there are no answers. The server runs until torc_csds_free or the end of the runtime; the caller frees it in
 * either case.
 *
 * Returns NULL with an error when the address is malformed (TORC_EINVAL) or cannot be listened on (TORC_EIO), there is
 * no thread for the server (TORC_EIO), or the runtime has ended (TORC_ECLOSED), is the parent process's (TORC_EFORK) or
 * cannot be made (TORC_EIO). Waits as torc_csds_dump does. Any thread. */
TORC_API torc_csds *torc_csds_serve(torc_runtime *runtime, const char *address, torc_error **error);
/* Returns the address with the port that the system chose ("127.0.0.1:40123"), borrowed until the server is freed. NULL
 * for NULL. Any thread. */
TORC_API const char *torc_csds_address(const torc_csds *server);
/* Stops the server: its port and connections are closed when the function returns. NULL is allowed. Any thread, but not
 * while another thread is in torc_runtime_free of the runtime. */
TORC_API void torc_csds_free(torc_csds *server);

#ifdef __cplusplus
}
#endif
#endif
