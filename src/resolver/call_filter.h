/* HTTP filters as a channel runs them (A39): an RPC passes its chain once, between the config selector and the first
 * pick, before all its attempts; the response passes the chain back. The filters are in xds/filter. Loop thread only.
 */
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
    /* The cluster and what else was chosen for the RPC; may be changed before the pick. */
    struct tc_call_config *config;
    struct tc_rstr *peer; /* in response: the backend's address as text */
    bool explain;         /* notes are wanted */
    /* Answers. */
    uint64_t wait_ns;             /* with WAIT */
    struct tc_status status;      /* with FAIL; OK is an end of the stream without a message */
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
    struct tc_slice name; /* of the instance in the listener */
    const void *config;
};

struct tc_call_filter_ops {
    /* Called when the RPC comes to the filter. *state is NULL, and the filter's own from here on. */
    enum tc_filter_verdict (*start)(const struct tc_call_filter *f, struct tc_filter_call *call, void **state);
    /* Called when the wait is over; in a dry run (`torc call --dry-run`) at once. May answer WAIT again. NULL: start
     * never asks for a wait. */
    enum tc_filter_verdict (*resume)(const struct tc_call_filter *f, struct tc_filter_call *call, void **state);
    /* Returns what the application shall see of the response's initial metadata, or of the trailers of a trailers-only
     * response: the same list, or another in the arena. May be NULL. */
    const struct tc_headers *(*response)(const struct tc_call_filter *f, struct tc_filter_call *call, void **state,
                                         const struct tc_headers *headers);
    /* Called when the RPC is over, for every reason, once for each start, in the reverse order. May be NULL. */
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

/* Appends a note. For calls with `explain`. */
void tc_filter_note(const struct tc_call_filter *f, struct tc_filter_call *call, const char *fmt, ...) TC_PRINTF(3, 4);

#endif
