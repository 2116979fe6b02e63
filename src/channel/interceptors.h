/* The interceptors of a channel or a server (torc/interceptor.h), with an array for each hook: a hook that no
 * interceptor has costs a load and a branch. Immutable: any thread may read the list while its owner lives. */
#ifndef TC_CHANNEL_INTERCEPTORS_H
#define TC_CHANNEL_INTERCEPTORS_H

#include <torc/interceptor.h>

#include "base/common.h"

enum tc_hook {
    TC_HOOK_START,
    TC_HOOK_ATTEMPT,
    TC_HOOK_MESSAGE,
    TC_HOOK_STATUS,
    TC_HOOK_PICK,
    TC_HOOK_WIRE,
    TC_HOOK_END,
    TC_HOOKS
};

struct tc_interceptor {
    struct torc_interceptor app; /* a copy; `name` is a copy, never NULL */
    uint32_t index;              /* in the list */
    size_t state_at;             /* where its state begins in torc_rpc.states */
};

/* The interceptors that have a hook, outermost first. */
struct tc_hook_row {
    uint32_t n;
    const struct tc_interceptor **at;
};

struct tc_interceptors {
    struct tc_hook_row rows[TC_HOOKS];
    size_t state_bytes; /* of the states of all interceptors, for one RPC */
    uint32_t n;
    struct tc_interceptor list[];
};

/* Copies a list that ends with NULL and has at least one interceptor. The caller owns the result. Returns NULL with an
 * error if an interceptor is malformed, or the list has more than 64; no `release` is called then. */
struct tc_interceptors *tc_interceptors_new(const struct torc_interceptor *const *list, torc_error **error);
/* Calls each `release`, from the innermost interceptor to the outermost, and frees the list. NULL is allowed. */
void tc_interceptors_free(struct tc_interceptors *list);

#endif
