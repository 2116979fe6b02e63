/* A gRPC status inside the library: a code, the part that made it, and a shared text. Zero-initialised is OK. A status
 * is for one thread at a time; copies of it share the text, which is counted and may be on several threads. Used where
 * a text must reach a person; plain internals return TORC_E* numbers. */
#ifndef TC_BASE_STATUS_H
#define TC_BASE_STATUS_H

#include <torc/error.h>
#include <torc/status.h>

#include "base/rstr.h"

struct tc_status {
    int code;             /* enum torc_status_code */
    int layer;            /* enum torc_layer: the part that made the status, or the peer; means nothing for OK */
    struct tc_rstr *text; /* NULL: empty */
};

/* Returns a status with a formatted text; the caller owns it and ends it with tc_status_fini. */
struct tc_status tc_status_make(int code, int layer, const char *fmt, ...) TC_PRINTF(3, 4);
/* Returns a copy that shares the text. The caller ends it with tc_status_fini. */
static inline struct tc_status tc_status_ref(const struct tc_status *s)
{
    return (struct tc_status){s->code, s->layer, tc_rstr_ref(s->text)};
}
static inline void tc_status_fini(struct tc_status *s)
{
    tc_rstr_unref(s->text);
    *s = (struct tc_status){0};
}
/* Moves `src` into `*dst`. Releases the old value of `*dst`. */
static inline void tc_status_set(struct tc_status *dst, struct tc_status src)
{
    tc_rstr_unref(dst->text);
    *dst = src;
}

static inline bool tc_status_ok(const struct tc_status *s)
{
    return s->code == TORC_STATUS_OK;
}

static inline const char *tc_status_text(const struct tc_status *s)
{
    return tc_rstr_cstr(s->text);
}

/* Compares codes and texts; layers do not count. */
bool tc_status_eq(const struct tc_status *a, const struct tc_status *b);

/* --- errors that public functions give to the application (torc/error.h) ---
 *
 * Made at the boundary: inside the library reasons are texts (char **why) and statuses. Any thread. */

/* Returns whether an earlier function of the chain has failed: the caller must then do nothing. */
static inline bool tc_error_pending(torc_error *const *error)
{
    return error && *error;
}

/* Stores a new error in *error, which must not hold one (tc_error_pending), unless `error` is NULL. Returns false, as
 * tc_error_take and tc_error_set_code do, so that a caller can write `return tc_error_set(...)`. */
bool tc_error_set(torc_error **error, enum torc_code code, enum torc_layer layer, const char *fmt, ...) TC_PRINTF(4, 5);

/* Returns the error of an RPC that ended with the status, which is not OK. The caller owns it. */
torc_error *tc_error_of_status(const struct tc_status *s);
/* Returns the error that stands for one that could not be allocated: static, "out of memory". A caller that hands it
 * on adds a reference (torc_error_ref). */
const torc_error *tc_error_no_memory(void);

/* Stores a new error as tc_error_set does, with the text `why`, which is freed (tc_free) in any case; NULL: the text of
 * the code. */
bool tc_error_take(torc_error **error, enum torc_code code, enum torc_layer layer, char *why);
/* Stores a new error of the API's layer, as tc_error_set does, about a handle or an argument: "WHAT: the reason that
 * the code stands for", such as "channel: it is NULL" for TORC_EINVAL. */
bool tc_error_set_code(torc_error **error, int code, const char *what);

#endif
