/* The outcome of an RPC: gRPC's status codes. SPDX-License-Identifier: Apache-2.0
 * Source: gRPC status codes (doc/statuscodes.md). */
#ifndef TORC_STATUS_H
#define TORC_STATUS_H

#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are those of grpc-status on the wire. */
enum torc_status_code {
    TORC_STATUS_OK = 0,
    TORC_STATUS_CANCELLED = 1,
    TORC_STATUS_UNKNOWN = 2,
    TORC_STATUS_INVALID_ARGUMENT = 3,
    TORC_STATUS_DEADLINE_EXCEEDED = 4,
    TORC_STATUS_NOT_FOUND = 5,
    TORC_STATUS_ALREADY_EXISTS = 6,
    TORC_STATUS_PERMISSION_DENIED = 7,
    TORC_STATUS_RESOURCE_EXHAUSTED = 8,
    TORC_STATUS_FAILED_PRECONDITION = 9,
    TORC_STATUS_ABORTED = 10,
    TORC_STATUS_OUT_OF_RANGE = 11,
    TORC_STATUS_UNIMPLEMENTED = 12,
    TORC_STATUS_INTERNAL = 13,
    TORC_STATUS_UNAVAILABLE = 14,
    TORC_STATUS_DATA_LOSS = 15,
    TORC_STATUS_UNAUTHENTICATED = 16,
};

/* Returns the name of a code as gRPC writes it ("UNAVAILABLE"); "UNKNOWN" for a number that gRPC does not define.
 * Any thread. */
TORC_API const char *torc_status_code_name(int code);

/* Returns the number of a code name ("UNAVAILABLE", exact), or -1. Any thread. */
TORC_API int torc_status_code_from_name(const char *name);

#ifdef __cplusplus
}
#endif
#endif
