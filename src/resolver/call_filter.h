/* HTTP filters as a channel runs them (A39): an RPC passes its chain once, between the config selector and the first
 * attempt. The response passes the chain in the opposite order. The filters are in xds/filter. Loop thread only. */
#ifndef TC_RESOLVER_CALL_FILTER_H
#define TC_RESOLVER_CALL_FILTER_H

#include "io/loop.h"
#include "resolver/config_selector.h"

/* A filter's action on an RPC, for `torc call --explain`. */
struct tc_filter_note {
    struct tc_filter_note *next;
    struct tc_slice filter; /* name of the instance */
    struct tc_slice text;
};

/* An RPC as its filters see it. Everything but the answers is borrowed. */
struct tc_filter_call {
    struct tc_loop *loop;
    struct tc_arena *arena; /* the call's, unlimited */
    struct tc_slice path;
    struct tc_headers *metadata; /* may be added to in start and resume */
    /* The config selector's decisions; start and resume may change them. */
    struct tc_call_config *config;
    struct tc_rstr *peer; /* in response: the backend's address as text; NULL before */
    bool explain;         /* notes are wanted */
    /* Answers. */
    uint64_t wait_ns;             /* set with WAIT */
    struct tc_status status;      /* set with FAIL; OK ends the RPC with OK and without a message */
    struct tc_filter_note *notes; /* in the order of tc_filter_note's calls */
};

enum tc_filter_verdict {
    TC_FILTER_NEXT, /* on to the next filter, and at last to the pick */
    TC_FILTER_WAIT, /* resume comes after wait_ns, unless the RPC ends before */
    TC_FILTER_FAIL, /* the RPC ends with the status; nothing retries it */
};

/* A filter of a chain, with its settings merged for the route. Immutable; lives as long as the chain. */
struct tc_call_filter {
    const struct tc_call_filter_ops *ops;
    struct tc_slice name; /* of the instance in the listener; NUL-terminated */
    const void *config;
};

struct tc_call_filter_ops {
    /* Called when the RPC comes to the filter. *state is NULL; the filter may store a pointer there for its other
     * operations. */
    enum tc_filter_verdict (*start)(const struct tc_call_filter *f, struct tc_filter_call *call, void **state);
    /* Called when the wait is over; in a dry run (`torc call --dry-run`) at once. May answer WAIT again. May be NULL
     * if start never answers WAIT. */
    enum tc_filter_verdict (*resume)(const struct tc_call_filter *f, struct tc_filter_call *call, void **state);
    /* Returns what the application gets for `headers`, the response's initial metadata or the trailers of a
     * trailers-only response: `headers`, or another list in the arena. The operation may be NULL: the application gets
     * `headers` as they are. */
    const struct tc_headers *(*response)(const struct tc_call_filter *f, struct tc_filter_call *call, void **state,
                                         const struct tc_headers *headers);
    /* Called when the RPC is over, for whatever reason: once for each filter whose start was called, last filter first.
     * May be NULL. */
    void (*done)(const struct tc_call_filter *f, struct tc_filter_call *call, void **state);
};

/* Immutable. An RPC holds a reference until it is over. */
struct tc_filter_chain {
    struct tc_lref ref;
    size_t n; /* > 0 */
    const struct tc_call_filter *filters;
    void (*free)(struct tc_filter_chain *chain);
};

/* NULL is allowed in both. */
static inline struct tc_filter_chain *tc_filter_chain_ref(struct tc_filter_chain *chain)
{
    if (chain)
        tc_lref_inc(&chain->ref);
    return chain;
}

static inline void tc_filter_chain_unref(struct tc_filter_chain *chain)
{
    if (chain && tc_lref_dec(&chain->ref))
        chain->free(chain);
}

/* Appends a note to call->notes. Called only if call->explain is set. */
void tc_filter_note(const struct tc_call_filter *f, struct tc_filter_call *call, const char *fmt, ...) TC_PRINTF(3, 4);

#endif
