/* The interceptors of a channel (torc/interceptor.h), frozen when the channel is made: an array for each hook, so that
 * a hook that nobody has costs a load and a branch. Immutable: any thread may read it while the channel lives. */
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
    struct torc_interceptor app; /* a copy, with a copy of `name` */
    uint32_t index;              /* in the list */
    size_t state_at;             /* where its state begins among those of an RPC */
};

/* The interceptors that have a hook, outermost first. */
struct tc_hook_row {
    uint32_t n;
    const struct tc_interceptor **at;
};

struct tc_interceptors {
    struct tc_hook_row rows[TC_HOOKS];
    size_t state_bytes; /* of an RPC, for all of them */
    uint32_t n;
    struct tc_interceptor list[];
};

/* Copies a list that ends with NULL, and has one interceptor at least. Returns NULL with an error if one of them is
 * malformed, or the list is too long. */
struct tc_interceptors *tc_interceptors_new(const struct torc_interceptor *const *list, torc_error **error);
/* Calls each `release`. NULL is allowed. */
void tc_interceptors_free(struct tc_interceptors *list);

#endif
