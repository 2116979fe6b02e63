/* Errors of the C API. SPDX-License-Identifier: Apache-2.0
 *
 * A function whose failure needs an explanation (a constructor, one that begins an RPC, one that converts a message)
 * takes a `torc_error **error` as its last argument. When it fails it returns NULL or a negative number and stores an
 * error there, which the caller frees:
 *
 *     torc_error *error = NULL;
 *     torc_channel *channel = torc_channel_new(NULL, "dns:///orders:50051", NULL, &error); // plaintext
 *     if (!channel) {
 *         fprintf(stderr, "%s\n", torc_error_text(error));
 *         torc_error_clear(&error);
 *     }
 *
 * `error` may be NULL: the reason is lost then. If *error is set already, the function does nothing and fails, so that
 * a chain of calls needs one check at its end. Nothing is stored when a function succeeds.
 *
 * Other functions that can fail, such as those that send and receive on a stream, return an enum torc_code alone, and
 * leave their outputs untouched when they fail. The outcome of an RPC is not stored in *error: it is a torc_result
 * (torc/result.h), with a status, and with an error of its own if the RPC failed. */
#ifndef TORC_ERROR_H
#define TORC_ERROR_H

#include <torc/export.h>
#include <torc/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return values of functions. Later versions add numbers: treat an unknown negative number as a failure. */
enum torc_code {
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
    TORC_ECANCELED = -14,   /* an RPC of a server was over before its answer */
    TORC_EPARSE = -15,      /* text or bytes do not have the form they must have */
    TORC_ESTATUS = -16,     /* an RPC ended with a status other than OK */
};

/* The part of Torc that an error comes from. Later versions add numbers. */
enum torc_layer {
    TORC_LAYER_NONE = 0,        /* of a NULL error: success */
    TORC_LAYER_API = 1,         /* an argument, an option, the state of a handle, a runtime */
    TORC_LAYER_RESOLVER = 2,    /* name resolution, targets, service configs */
    TORC_LAYER_XDS = 3,         /* the bootstrap, the control plane, its resources */
    TORC_LAYER_LB = 4,          /* a load balancing policy */
    TORC_LAYER_CONNECT = 5,     /* sockets, proxies, connection establishment */
    TORC_LAYER_TLS = 6,         /* certificates, keys, handshakes */
    TORC_LAYER_HTTP2 = 7,       /* the transport */
    TORC_LAYER_CREDENTIALS = 8, /* call credentials: tokens and where they come from */
    TORC_LAYER_INTERCEPTOR = 9, /* an interceptor or HTTP filter refused */
    TORC_LAYER_CODEC = 10,      /* messages that cannot be decoded or compressed */
    TORC_LAYER_LIMIT = 11,      /* a limit of this process */
    TORC_LAYER_DEADLINE = 12,   /* time is up, or the caller cancelled */
    TORC_LAYER_PEER = 13,       /* the server answered so */
};

/* Why something failed: immutable, counted, for any thread. NULL is success, in every function here. */
typedef struct torc_error torc_error;

/* Returns an enum torc_code; TORC_OK for NULL. */
TORC_API int torc_error_code(const torc_error *error);

/* Returns an enum torc_status_code, also for errors that no server sent: TORC_EINVAL gives
 * TORC_STATUS_INVALID_ARGUMENT, TORC_ETIMEDOUT TORC_STATUS_DEADLINE_EXCEEDED and so on. TORC_STATUS_OK for NULL. */
TORC_API int torc_error_status(const torc_error *error);

/* Returns an enum torc_layer; TORC_LAYER_NONE for NULL. */
TORC_API int torc_error_layer(const torc_error *error);

/* Returns one sentence for a person that names the thing and the reason; "" for NULL. It lives with the error. A part
 * of it may be what the caller gave (a target, a path), byte for byte: escape it before it goes to a terminal. */
TORC_API const char *torc_error_text(const torc_error *error);

/* Returns an error of the application's own, for functions of Torc that take one. code: a negative enum torc_code, else
 * TORC_EINVAL is used; layer: an enum torc_layer, but TORC_LAYER_NONE and unknown numbers become TORC_LAYER_API; text:
 * copied; NULL: the text of the code. The caller frees it. */
TORC_API torc_error *torc_error_new(int code, int layer, const char *text);

/* Adds a reference, which torc_error_free gives back. Returns `error`. */
TORC_API torc_error *torc_error_ref(const torc_error *error);

/* Gives back one reference. NULL is allowed. */
TORC_API void torc_error_free(torc_error *error);

/* torc_error_free(*error), and sets *error to NULL, so that the variable may serve another chain of calls. NULL is
 * allowed. */
TORC_API void torc_error_clear(torc_error **error);

/* Returns the name of an enum torc_layer ("RESOLVER"), a constant text; "UNKNOWN" for other numbers. Any thread. */
TORC_API const char *torc_layer_name(int layer);

/* Returns a short constant text for an enum torc_code ("invalid argument"); never NULL. Any thread. */
TORC_API const char *torc_strerror(int code);

#ifdef __cplusplus
}
#endif
#endif
