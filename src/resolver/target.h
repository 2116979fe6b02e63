/* Target URIs (gRPC's doc/naming.md): scheme:[//authority/]endpoint, and bare "host[:port]" for dns. Pure functions,
 * any thread. */
#ifndef TC_RESOLVER_TARGET_H
#define TC_RESOLVER_TARGET_H

#include "base/buf.h"

struct tc_target {
    char *text;      /* as given */
    size_t rest_at;  /* where the part behind "scheme:" begins in `text`; 0 for a bare target */
    char *scheme;    /* lower case; "dns" for a bare target */
    char *authority; /* percent-decoded; "" when absent */
    char *path;      /* percent-decoded, without the slash that follows an authority */
    bool has_authority;
};

/* Parses a target into *t, which the caller frees with tc_target_fini. `known` returns whether a scheme, in lower case,
 * has a resolver; if it has none, the whole target is the path of a dns target: "localhost:80" is a host and a port.
 * Returns 0; or TORC_EINVAL, with *t untouched, and a text with target and reason in *why (tc_free; `why` may be NULL).
 */
int tc_target_parse(struct tc_target *t, const char *text, bool (*known)(void *arg, struct tc_slice scheme), void *arg,
                    char **why);
/* Frees the texts, and zeroes *t. */
void tc_target_fini(struct tc_target *t);

#endif
