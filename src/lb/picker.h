/* Pickers: published by a policy, they give each RPC its subchannel.
 *
 * A pick reads the picker and the RPC's arguments. It writes its answers (the pick, the trace, the session) and the
 * policy's bookkeeping of picks (counters, whose turn it is). It publishes and connects nothing from inside: a request
 * to the policy, such as a connection to an endpoint, is queued as a task of the policy. Every attempt of an RPC makes
 * a pick. While the endpoint that a pick looks at first is READY and within its bound of loads, the pick costs O(log n)
 * on average for n endpoints, and does not walk over them (an application's policy is free to). Loop thread only. */
#ifndef TC_LB_PICKER_H
#define TC_LB_PICKER_H

#include "base/headers.h"
#include "lb/subchannel.h"

enum tc_pick_kind {
    TC_PICK_COMPLETE, /* out->subchannel */
    TC_PICK_QUEUE,    /* try again with the next picker */
    TC_PICK_FAIL,     /* out->status: fails the attempt, which may be retried; queues a wait-for-ready RPC */
    TC_PICK_DROP,     /* out->status: fails the attempt, wait-for-ready or not; no retry policy repeats it (A6) */
};

/* Explains a pick: for torc call --explain, for interceptors, and for texts of what a call waits for. The policies that
 * the pick passes fill it. Strings are in the arena or static. */
struct tc_pick_trace {
    struct tc_arena *arena;
    struct tc_slice policy;  /* the name of the policy that chose the endpoint: "ring_hash" */
    struct tc_slice cluster; /* set by xds_cluster_manager, with `state` and, in TRANSIENT_FAILURE, `error` */
    bool has_state;
    enum torc_connectivity state;
    struct tc_slice error;
    struct tc_slice leaf; /* the leaf cluster that has the endpoint; differs from `cluster` below an aggregate */
    bool has_hash; /* ring_hash and maglev: the RPC's hash, and the entry of the ring or table that it falls on */
    uint64_t hash;
    bool has_ring_index;
    uint32_t ring_index;
    /* The address of the chosen endpoint, or of the endpoint whose connection the pick waits for. */
    struct tc_slice endpoint;
    struct tc_slice authority; /* the request's :authority as rewritten; empty: the channel's */
    struct tc_slice
        security; /* the security that the cluster asks for and the channel's credentials ignore; empty: none */
    /* The subchannel whose connection or health check the pick waits for, borrowed for the present turn of the loop;
     * NULL: unknown. */
    struct tc_subchannel *awaited;
    struct {
        struct tc_slice endpoint;
        struct tc_slice reason; /* "TRANSIENT_FAILURE", ... */
        struct tc_slice error;  /* why the endpoint failed; empty: it did not */
    } * walked;                 /* the endpoints passed over, in order, at most 64 */
    size_t n_walked;
};

/* Returns the address as text, for a trace; empty if the arena is used up. */
struct tc_slice tc_pick_trace_addr(struct tc_arena *arena, const struct tc_addr *addr);

struct tc_session;

struct tc_pick_args {
    struct tc_slice path;             /* "/package.Service/Method" */
    const struct tc_headers *headers; /* the request's metadata */
    struct tc_slice cluster;          /* attribute for xds_cluster_manager; empty outside xDS */
    /* Attribute for ring_hash and maglev (A42): set by the xDS config selector. xds_cluster_impl sets another hash for
     * a cluster that has hash policies of its own. */
    bool has_hash;
    uint64_t hash;
    uint64_t channel_id;         /* for hash policies of a cluster: set by the xDS config selector */
    uint64_t random;             /* the attempt's: the same while its pick is queued, another for each other attempt */
    struct tc_arena *arena;      /* the call's, for trackers and texts */
    struct tc_session *session;  /* the stateful session filter's (lb/session_affinity.h); NULL: there is none */
    bool auto_host_rewrite;      /* A81: the endpoint's hostname becomes the :authority */
    struct tc_pick_trace *trace; /* NULL unless the pick is to be explained */
    bool dry;                    /* nothing is counted, queued, connected or tracked */
    bool waiting; /* with dry: only explains what a queued pick waits for; an application's policy is not asked */
};

/* Tells a policy of the end of an attempt (load reports, circuit breakers, outlier detection). The picker that adds it
 * allocates it in the call's arena. on_done is called exactly once for each COMPLETE pick that is not dry. `status` is
 * NULL when the pick led to no RPC: the connection no longer takes any or the call had to wait for credentials (another
 * pick follows in both cases), or the attempt failed just before it would open a stream. A call that ends while it
 * waits in line for a stream (MAX_CONCURRENT_STREAMS) passes its status. `trailers` may be NULL. Both are borrowed for
 * the call of on_done. */
struct tc_call_tracker {
    struct tc_call_tracker *next; /* set by tc_pick_track */
    void (*on_done)(struct tc_call_tracker *tracker, const struct tc_status *status, const struct tc_headers *trailers);
};

struct tc_pick {
    struct tc_subchannel *subchannel; /* borrowed, valid for the present turn of the loop */
    struct tc_slice authority;        /* the :authority instead of the channel's, in the arena; empty: the channel's */
    struct tc_status status;          /* the caller of the pick ends it */
    struct tc_call_tracker *trackers; /* innermost first */
};

/* Appends a tracker, behind the trackers of the policies below. */
static inline void tc_pick_track(struct tc_pick *pick, struct tc_call_tracker *tracker)
{
    struct tc_call_tracker **tail = &pick->trackers;
    while (*tail)
        tail = &(*tail)->next;
    *tail = tracker;
}

struct tc_picker;

struct tc_picker_ops {
    /* Picks for one attempt. `args` is borrowed for the call; `out` comes zero-initialised. */
    enum tc_pick_kind (*pick)(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out);
    /* Frees the picker after its last reference has gone. */
    void (*free)(struct tc_picker *picker);
};

struct tc_picker {
    const struct tc_picker_ops *ops;
    struct tc_lref ref;
};

/* Prepares a new picker, with one reference. */
static inline void tc_picker_init(struct tc_picker *p, const struct tc_picker_ops *ops)
{
    p->ops = ops;
    tc_lref_init(&p->ref);
}

static inline enum tc_pick_kind tc_picker_pick(struct tc_picker *p, const struct tc_pick_args *args,
                                               struct tc_pick *out)
{
    return p->ops->pick(p, args, out);
}

static inline struct tc_picker *tc_picker_ref(struct tc_picker *p)
{
    tc_lref_inc(&p->ref);
    return p;
}

/* NULL is allowed. */
static inline void tc_picker_unref(struct tc_picker *p)
{
    if (p && tc_lref_dec(&p->ref))
        p->ops->free(p);
}

/* Returns a new picker that queues each pick. */
struct tc_picker *tc_picker_queue(void);
/* Returns a new picker that queues each pick. `waiting`, the picker of a child that is CONNECTING, explains what the
 * pick waits for; takes ownership of its reference. NULL: nothing explains. */
struct tc_picker *tc_picker_queue_for(struct tc_picker *waiting);
/* Returns a new picker that fails each pick with the status. Takes a reference of the status, which is not NULL. */
struct tc_picker *tc_picker_fail(const struct tc_status *status);

#endif
