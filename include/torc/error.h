/* Error numbers of the C API. SPDX-License-Identifier: Apache-2.0
 *
 * Functions that can fail return 0 or one of these negative numbers, and leave their outputs untouched when they
 * fail. Outcomes of RPCs are not errors of this kind: they are a torc_status (see status.h). */
#ifndef TORC_ERROR_H
#define TORC_ERROR_H

#include <torc/export.h>
#include <torc/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

enum torc_error_code {
    TORC_OK = 0,
    TORC_EINVAL = -1,       /* an argument is malformed or out of range */
    TORC_ENOTFOUND = -2,    /* the named thing does not exist */
    TORC_EEXIST = -3,       /* the named thing exists already */
    TORC_EAGAIN = -4,       /* nothing to do now, try again when told to */
    TORC_ECLOSED = -5,      /* the object was shut down, or the peer closed */
    TORC_EIO = -6,          /* an operating system call failed */
    TORC_EPROTO = -7,       /* the peer broke the protocol */
    TORC_ELIMIT = -8,       /* a configured limit would be exceeded */
    TORC_EUNSUPPORTED = -9, /* known, and not supported here */
    TORC_ESTATE = -10,      /* not allowed in the object's present state */
    TORC_EDEADLK = -11,     /* a blocking call from inside a callback of the same runtime */
    TORC_EFORK = -12,       /* the object belongs to the parent process, or the process is exiting */
    TORC_ETIMEDOUT = -13,   /* a time limit passed */
    TORC_ECANCELED = -14,   /* given up at the caller's request */
    TORC_EPARSE = -15,      /* text or bytes do not have the form they must have */
};

/* A short constant text for an error number ("invalid argument"); never NULL. Any thread. */
TORC_API const char *torc_strerror(int error);

#ifdef __cplusplus
}
#endif
#endif
