/* The metadata that call credentials add to RPCs, and the requests by which RPCs wait for metadata.
 *
 * A request connects a waiter, which lives on one loop, with an answer, which may come from any thread at any time.
 * Each side lets go of the request by itself. */
#ifndef TC_CREDS_CALL_AUTH_REQUEST_H
#define TC_CREDS_CALL_AUTH_REQUEST_H

#include "base/ref.h"
#include "base/rstr.h"
#include "base/status.h"
#include "io/loop.h"

struct tc_auth_field {
    struct tc_rstr *name; /* a name that passes tc_header_name_valid */
    struct tc_rstr *value;
};

/* Metadata that is added to an RPC. Immutable and counted; any thread. */
struct tc_auth_metadata {
    struct tc_ref ref;
    size_t n;
    struct tc_auth_field fields[];
};

/* Copies the array, and takes over the references to names and values. Returns the first reference. */
struct tc_auth_metadata *tc_auth_metadata_new(const struct tc_auth_field *fields, size_t n);
/* Makes "authorization: TYPE TOKEN" and returns the first reference. Returns NULL if the token is empty or the value is
 * not valid in a header. */
struct tc_auth_metadata *tc_auth_metadata_token(const char *type, struct tc_slice token);
/* NULL is allowed in both. */
struct tc_auth_metadata *tc_auth_metadata_ref(struct tc_auth_metadata *m);
void tc_auth_metadata_unref(struct tc_auth_metadata *m);

struct tc_auth_request;

/* An RPC that waits for metadata, embedded in the call. */
struct tc_auth_waiter {
    struct tc_auth_request *request; /* NULL: the waiter does not wait */
    /* Called at most once for a request, from the loop, never from inside of the credentials' `get` (call.h). Metadata
     * and error are borrowed; `error` counts if `metadata` is NULL. */
    void (*fn)(struct tc_auth_waiter *w, struct tc_auth_metadata *metadata, const struct tc_status *error);
};

/* Makes the request that `w` waits for. Called on the loop. The credentials own the request until they answer, on any
 * thread. */
struct tc_auth_request *tc_auth_request_new(struct tc_loop *loop, struct tc_auth_waiter *w);
/* Answers, and gives up the request. Takes over a reference to `metadata`. If `metadata` is NULL, takes a reference of
 * its own to *error; otherwise `error` is not read and may be NULL. Any thread, once. Does not call a waiter that was
 * cancelled, or whose loop has ended; a waiter whose loop has ended must still cancel. */
void tc_auth_request_complete(struct tc_auth_request *r, struct tc_auth_metadata *metadata,
                              const struct tc_status *error);
/* Ends the wait: fn is not called. Called on the loop; harmless when the waiter does not wait. */
void tc_auth_waiter_cancel(struct tc_auth_waiter *w);

#endif
