/* Target URIs (gRPC doc/naming.md): scheme:[//authority/]endpoint, and bare "host:port" for dns. Pure functions, any
 * thread. */
#ifndef TC_RESOLVER_TARGET_H
#define TC_RESOLVER_TARGET_H

#include "base/buf.h"

struct tc_target {
    char *text;      /* as given */
    char *scheme;    /* lower case; "dns" for a bare target */
    char *authority; /* percent-decoded; "" when absent */
    char *path;      /* percent-decoded, without the slash that follows an authority */
    bool has_authority;
};

/* `known` returns whether a scheme has a resolver; a target whose scheme has none is tried as "dns:///" + target.
 * Returns TORC_EINVAL with the target and the reason in *why (tc_free). */
int tc_target_parse(struct tc_target *t, const char *text, bool (*known)(void *arg, struct tc_slice scheme), void *arg,
                    char **why);
void tc_target_fini(struct tc_target *t);

#endif
