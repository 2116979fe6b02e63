/* Call credentials inside the library: metadata that proves the caller's identity, for each RPC. Counted, and shared by
 * any number of runtimes; a kind that caches guards its cache by a lock of its own. Any thread. */
#ifndef TC_CREDS_CALL_CALL_H
#define TC_CREDS_CALL_CALL_H

#include <torc/credentials.h>

#include "creds/call/auth_request.h"

/* The RPC that needs metadata. Borrowed for the duration of get. */
struct tc_auth_context {
    const char *service_url; /* "https://host/package.Service"; ":443" is left out */
    const char *method;      /* "Method" */
};

struct tc_call_creds_ops {
    const char *type; /* "jwt_token_file" */
    const char *from; /* the file or URL that get may have to wait for; NULL: not known */
    /* Called on the loop. Returns 0 with a reference in *out; TORC_EAGAIN: w waits, and w->fn follows unless w is
     * cancelled; or another error with a status in *error, for tc_status_fini. */
    int (*get)(torc_call_credentials *c, struct tc_loop *loop, const struct tc_auth_context *context,
               struct tc_auth_waiter *w, struct tc_auth_metadata **out, struct tc_status *error);
    /* Called when the last reference is gone. Any thread; may wait for a fetch to end. */
    void (*free)(torc_call_credentials *c);
};

/* Implementations embed it first. */
struct torc_call_credentials {
    struct tc_ref ref;
    const struct tc_call_creds_ops *ops; /* NULL: a composite */
};

/* Gives credentials their first reference. */
void tc_call_creds_init(torc_call_credentials *c, const struct tc_call_creds_ops *ops);
/* Returns the number of credentials that `c` consists of: 1, or the parts of a composite. */
size_t tc_call_creds_count(const torc_call_credentials *c);
/* Returns part i, borrowed; part 0 of credentials that are not a composite is `c` itself. */
torc_call_credentials *tc_call_creds_at(torc_call_credentials *c, size_t i);
/* Returns a composite of the parts of both, those of `first` first. Takes references of its own to the parts. */
torc_call_credentials *tc_call_creds_join(torc_call_credentials *first, torc_call_credentials *second);

#endif
