/* Mapping of HTTP and HTTP/2 errors to gRPC statuses, for responses without grpc-status, and for injected faults. Any
 * thread. */
#ifndef TC_HTTP2_STATUS_MAPPING_H
#define TC_HTTP2_STATUS_MAPPING_H

#include "base/status.h"

/* Returns the gRPC status code for an HTTP status (gRPC's http-grpc-status-mapping.md). */
int tc_h2_code_from_http(unsigned http_status);
/* Returns the status of a stream that the server reset with this error code (PROTOCOL-HTTP2.md, "Errors"). The
 * caller ends it with tc_status_fini. */
struct tc_status tc_h2_status_from_rst(uint32_t h2_error);

#endif
