/* Pickers: what a policy publishes so that each RPC finds its subchannel. A pick reads the picker and its arguments and
 * writes nothing but counters; what it wants from the policy (connect this endpoint) it queues as a task of the policy.
 * Loop thread only. */
#ifndef TC_LB_PICKER_H
#define TC_LB_PICKER_H

#include "base/headers.h"
#include "lb/subchannel.h"

enum tc_pick_kind {
    TC_PICK_COMPLETE, /* out->subchannel */
    TC_PICK_QUEUE,    /* try again with the next picker */
    TC_PICK_FAIL,     /* out->status: fails the RPC unless it is wait-for-ready, which queues */
    TC_PICK_DROP,     /* out->status: fails the RPC in any case */
};

/* What explains a pick (torc call --explain); filled by the policies that it passes. Strings live in the arena. */
struct tc_pick_trace {
    struct tc_arena *arena;
    struct tc_slice policy;  /* of the policy that chose the endpoint: "ring_hash" */
    struct tc_slice cluster; /* set by cds or the cluster manager */
    struct tc_slice leaf;    /* of these the one whose endpoints it is: differs where that is an aggregate */
    bool has_hash;
    uint64_t hash;
    bool has_ring_index;
    uint32_t ring_index;
    struct tc_slice endpoint;  /* address text of the chosen endpoint, or of the one whose connection is waited for */
    struct tc_slice authority; /* of the request, rewritten; empty: the channel's */
    struct {
        struct tc_slice endpoint;
        struct tc_slice reason; /* "TRANSIENT_FAILURE", ... */
        struct tc_slice error;  /* why it failed; empty: it did not */
    } * walked;                 /* endpoints passed over, in order, at most 64 */
    size_t n_walked;
};

struct tc_session;

struct tc_pick_args {
    struct tc_slice path;             /* "/package.Service/Method" */
    const struct tc_headers *headers; /* the request's metadata */
    struct tc_slice cluster;          /* attribute for xds_cluster_manager; empty outside xDS */
    bool has_hash;                    /* attribute for ring_hash (A42): set by the xDS config selector */
    uint64_t hash;
    uint64_t random;             /* one random number for the RPC, the same on every re-pick */
    struct tc_arena *arena;      /* the call's, for trackers */
    struct tc_session *session;  /* of the stateful session filter (lb/session.h); NULL: the RPC has none */
    bool auto_host_rewrite;      /* A81: the endpoint's hostname becomes the :authority */
    struct tc_pick_trace *trace; /* NULL unless someone asks */
    bool dry;                    /* what would be picked: nothing is counted, queued, connected or tracked */
};

/* Someone in the tree who wants to hear of the RPC's end (load reports, circuit breakers, outlier detection). Allocated
 * in the call's arena by the picker that adds it. Called once for each COMPLETE pick, in any case; status is NULL when
 * the pick led to no RPC, since the connection takes none any more, and another pick follows. */
struct tc_call_tracker {
    struct tc_call_tracker *next;
    void (*on_done)(struct tc_call_tracker *tracker, const struct tc_status *status, const struct tc_headers *trailers);
};

struct tc_pick {
    struct tc_subchannel *subchannel; /* borrowed, valid for the present turn of the loop */
    struct tc_slice authority;        /* the :authority in place of the channel's, in the arena; empty: none */
    struct tc_status status;          /* owned by the caller of pick */
    struct tc_call_tracker *trackers; /* innermost first */
};

struct tc_picker;

struct tc_picker_ops {
    enum tc_pick_kind (*pick)(struct tc_picker *picker, const struct tc_pick_args *args, struct tc_pick *out);
    void (*free)(struct tc_picker *picker);
};

struct tc_picker {
    const struct tc_picker_ops *ops;
    struct tc_lref ref;
};

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

static inline void tc_picker_unref(struct tc_picker *p)
{
    if (p && tc_lref_dec(&p->ref))
        p->ops->free(p);
}

/* Pickers that every policy needs. */
struct tc_picker *tc_picker_queue(void);
/* Fails each pick with the status (another owner is made). */
struct tc_picker *tc_picker_fail(const struct tc_status *status);

#endif
