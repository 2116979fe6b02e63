/* The outcome of an RPC: gRPC's status codes. SPDX-License-Identifier: Apache-2.0
 *
 *     int code = torc_result_code(result);
 *     if (code == TORC_STATUS_UNAVAILABLE)
 *         try_again_later();
 *     else if (code != TORC_STATUS_OK)
 *         fprintf(stderr, "%s: %s\n", torc_status_code_name(code), torc_result_text(result));
 *
 * A status comes from the server, or from Torc when something failed on the way: torc_error_layer of torc_result_error
 * tells which (TORC_LAYER_PEER: the server). What each code is for is a convention: a server may answer with any of
 * them. Source: gRPC status codes (doc/statuscodes.md). */
#ifndef TORC_STATUS_H
#define TORC_STATUS_H

#include <torc/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are those of grpc-status on the wire. */
enum torc_status_code {
    TORC_STATUS_OK = 0,                  /* success */
    TORC_STATUS_CANCELLED = 1,           /* given up, usually by the caller */
    TORC_STATUS_UNKNOWN = 2,             /* no reason is known, or the code is not one of these */
    TORC_STATUS_INVALID_ARGUMENT = 3,    /* the request is wrong, whatever the state of the server */
    TORC_STATUS_DEADLINE_EXCEEDED = 4,   /* the time is up; the server may have done the work */
    TORC_STATUS_NOT_FOUND = 5,           /* what was asked for does not exist */
    TORC_STATUS_ALREADY_EXISTS = 6,      /* what was to be made exists */
    TORC_STATUS_PERMISSION_DENIED = 7,   /* the caller is known, and not allowed */
    TORC_STATUS_RESOURCE_EXHAUSTED = 8,  /* a quota or a limit, of either side: memory, the size of a message, RPCs */
    TORC_STATUS_FAILED_PRECONDITION = 9, /* not in this state of the server; change it before another try */
    TORC_STATUS_ABORTED = 10,            /* a conflict, as of transactions; begin again at a higher level */
    TORC_STATUS_OUT_OF_RANGE = 11,       /* past the end, which may move */
    TORC_STATUS_UNIMPLEMENTED = 12,      /* the server does not have the method */
    TORC_STATUS_INTERNAL = 13,           /* something is broken: a malformed message, a protocol error */
    TORC_STATUS_UNAVAILABLE = 14,        /* not now: no connection, a server that stops. Another try may succeed */
    TORC_STATUS_DATA_LOSS = 15,          /* data is lost or corrupt for good */
    TORC_STATUS_UNAUTHENTICATED = 16,    /* the caller is not known: credentials are missing or not valid */
};

/* Returns the name of a code as gRPC writes it ("UNAVAILABLE"); "UNKNOWN" for a number that gRPC does not define. A
 * constant text, never NULL. Any thread. */
TORC_API const char *torc_status_code_name(int code);

/* Returns the number of a code name ("UNAVAILABLE"; upper and lower case differ), or -1 if there is no such name or it
 * is NULL. Any thread. */
TORC_API int torc_status_code_from_name(const char *name);

#ifdef __cplusplus
}
#endif
#endif
