/* Call credentials inside the library: metadata that proves who calls, for each RPC. Immutable and shared, by any
 * number of runtimes; what they cache is behind a mutex of theirs. */
#ifndef TC_CREDS_CALL_H
#define TC_CREDS_CALL_H

#include <torc/credentials.h>

#include "base/ref.h"
#include "base/rstr.h"
#include "base/status.h"
#include "io/loop.h"

/* The RPC that asks. Borrowed for the call of get. */
struct tc_auth_context {
    const char *service_url; /* "https://host/package.Service"; ":443" is left out */
    const char *method;      /* "Method" */
};

struct tc_auth_field {
    struct tc_rstr *name; /* as tc_header_name_valid has it */
    struct tc_rstr *value;
};

/* What is added to an RPC. Immutable, may cross threads. */
struct tc_auth_metadata {
    struct tc_ref ref;
    size_t n;
    struct tc_auth_field fields[];
};

/* Takes over the references of the fields. */
struct tc_auth_metadata *tc_auth_metadata_new(const struct tc_auth_field *fields, size_t n);
/* "authorization: TYPE TOKEN". NULL when the two make no header value. */
struct tc_auth_metadata *tc_auth_metadata_token(const char *type, struct tc_slice token);
struct tc_auth_metadata *tc_auth_metadata_ref(struct tc_auth_metadata *m);
void tc_auth_metadata_unref(struct tc_auth_metadata *m);

struct tc_auth_ticket;

/* One that waits for metadata; embedded in the call. */
struct tc_auth_request {
    struct tc_auth_ticket *ticket; /* NULL: it does not wait */
    /* Once, from the loop, never from inside get: borrowed metadata, or NULL and a status. */
    void (*fn)(struct tc_auth_request *r, struct tc_auth_metadata *metadata, const struct tc_status *error);
};

/* The other end of a request that waits: whoever answers it holds it, from any thread. */
struct tc_auth_ticket *tc_auth_ticket_new(struct tc_loop *loop, struct tc_auth_request *r);
/* Answers and gives up the ticket: a reference to metadata, or NULL and a status (copied). Any thread, once. A request
 * that was cancelled does not hear of it. */
void tc_auth_ticket_complete(struct tc_auth_ticket *t, struct tc_auth_metadata *metadata,
                             const struct tc_status *error);
/* On the loop: the request waits no more. Harmless when it does not wait. */
void tc_auth_request_cancel(struct tc_auth_request *r);

struct tc_call_creds_ops {
    const char *type; /* "jwt_token_file" */
    const char *from; /* the file or URL that an answer may have to be waited for; NULL: not known */
    /* On the loop. 0 with a reference in *out; TORC_EAGAIN: r->fn follows; another error with a status in *error. */
    int (*get)(torc_call_credentials *c, struct tc_loop *loop, const struct tc_auth_context *context,
               struct tc_auth_request *r, struct tc_auth_metadata **out, struct tc_status *error);
    void (*free)(torc_call_credentials *c);
};

/* Implementations embed it first. */
struct torc_call_credentials {
    struct tc_ref ref;
    const struct tc_call_creds_ops *ops; /* NULL: a composite */
};

void tc_call_creds_init(torc_call_credentials *c, const struct tc_call_creds_ops *ops);
/* The credentials of which these consist, in their order: 1, or those of a composite. */
size_t tc_call_creds_count(const torc_call_credentials *c);
torc_call_credentials *tc_call_creds_at(torc_call_credentials *c, size_t i);

/* Credentials by a name and JSON config, as the bootstrap's call_creds have them (A97: "jwt_token_file"). NULL with the
 * text of the faults in *why (tc_free). */
torc_call_credentials *tc_call_creds_from_config(const char *type, const char *config_json, char **why);
bool tc_call_creds_type_supported(const char *type);

#endif
