/* The insides of a call, for the files of src/channel and src/api. call.c has the stages. Loop thread only, except what
 * prepares a call before it begins (call_setup.h), and tc_call_fini. */
#ifndef TC_CHANNEL_CALL_INTERNAL_H
#define TC_CHANNEL_CALL_INTERNAL_H

#include "channel/call.h"
#include "channel/call_credentials.h"
#include "channel/call_filters.h"
#include "channel/channel_internal.h"
#include "channel/hedge_ops.h"
#include "channel/retry.h"
#include "channel/rpc.h"
#include "channel/send_buffer.h"
#include "http2/client_stream.h"
#include "subchannel/transport.h"

enum tc_call_stage {
    TC_CALL_NEW,
    TC_CALL_WAIT_INTERCEPTOR, /* before the RPC or an attempt begins */
    TC_CALL_WAIT_CONFIG,      /* for the resolver */
    TC_CALL_WAIT_FILTER,      /* for an HTTP filter that delays the call */
    TC_CALL_WAIT_PICK,        /* for a picker that can place the call */
    TC_CALL_WAIT_AUTH,        /* for call credentials */
    TC_CALL_WAIT_STREAM,      /* for a stream on the chosen connection */
    TC_CALL_RUNNING,
    TC_CALL_HEDGING,    /* attempts run side by side (hedge.h) */
    TC_CALL_WAIT_RETRY, /* for the backoff before another attempt */
    TC_CALL_DONE,
};

/* The request of the call; fixed when the call begins, except that interceptors and HTTP filters add metadata. */
struct tc_call_asked {
    struct tc_slice path; /* "/package.Service/Method", NUL-terminated */
    struct tc_headers metadata;
    int wait_for_ready; /* 1; -1: no, whatever the config says; 0: as the config says */
    bool gzip;
    bool explain;
    bool dry;                   /* ends at the pick and is not sent; explain is set */
    bool watch_picks;           /* interceptors have on_pick */
    bool watch_wire;            /* interceptors have on_wire */
    uint64_t max_receive_bytes; /* of a message; 0: the channel's; UINT64_MAX: no limit */
};

struct tc_call_deadline {
    uint64_t started_ns; /* when the call was made, by tc_loop_clock_ns: timeouts count from here */
    uint64_t at_ns;      /* in the same time; 0: it has passed; UINT64_MAX: none */
    struct tc_timer timer;
    struct tc_task expired; /* the timer has fired; the call ends behind what the loop has queued already */
};

/* The present attempt: a pick and its stream. */
struct tc_call_attempt {
    uint64_t random; /* for the pick: kept while the pick is queued; each attempt draws its own */
    bool has_random;
    struct tc_h2_request request;
    struct tc_h2_stream *stream;      /* in the call's arena; NULL: not opened, or over */
    struct tc_call_tracker *trackers; /* of the pick, until they are notified of the attempt's end */
    struct tc_pick_trace trace;       /* of the last pick, if asked.explain is set */
    const char *outcome;              /* of a dry call's pick ("send", ...); NULL: the call did not come to its pick */
    struct tc_rstr *peer;             /* text of the backend's address, a reference; NULL: no stream was opened */
    const struct tc_headers *headers; /* of the response; NULL: none came */
    struct tc_walk *walk;             /* past the interceptors' on_attempt; NULL: none has it, or no attempt began */
    uint32_t number;                  /* as interceptors count; 0: there are none */
    uint32_t n;                       /* see tc_call_end.attempts */
    bool refused; /* a size limit, or an interceptor's on_attempt, refused the request: no other attempt follows */
};

/* Messages both ways. */
struct tc_call_messages {
    struct tc_send_buffer send;
    uint32_t n_written;     /* in this attempt */
    uint32_t n_notified;    /* for which on_written was called, in all attempts */
    bool committed;         /* another attempt is no longer possible: written messages are not kept */
    bool writing;           /* the stream has a message */
    bool sending;           /* the owner waits for on_written */
    bool half_close;        /* after the last message */
    bool end_sent;          /* the half-close was given to the stream */
    struct tc_task dropped; /* the stream was over and refused a message, which counts as written by this task */
    uint32_t reads;         /* messages asked for that have not come; one that an interceptor holds up has come */
    uint32_t reads_given;   /* of `reads`, asked of the stream, or of the attempt that won */
};

struct tc_call {
    torc_channel *channel; /* a reference */
    struct tc_arena arena;
    enum tc_call_stage stage;
    struct tc_channel_call member;
    struct tc_queued queue; /* WAIT_CONFIG, WAIT_PICK */
    struct tc_capacity_wait capacity;

    const struct tc_call_events *events;
    void *arg;
    /* Called when the call is gone (after on_done, or cancelled): gives back the memory, or a reference to it. */
    void (*release)(struct tc_call *c);

    torc_rpc *rpc; /* NULL: no interceptors, the call is dry, a hedged attempt or refused, or has not begun */
    struct tc_call_asked asked;
    struct tc_call_deadline deadline;

    /* The config that was chosen for the call. */
    bool waits; /* wait-for-ready, by options or method config */
    struct tc_call_config config;
    struct tc_call_filters *filters;         /* NULL: none */
    struct tc_call_credentials *credentials; /* NULL: none */
    struct tc_retry retry;
    struct tc_timer retry_timer;
    bool retried; /* no transparent retry after a send: used up, or tc_call_opts.once; of a hedged RPC: the parent's */
    struct tc_hedge *hedge; /* NULL: one attempt at a time */
    struct tc_call *parent; /* the call of which this one is a hedged attempt; NULL: an RPC of its own */

    struct tc_call_attempt attempt;
    struct tc_call_messages messages;

    /* The end. */
    struct tc_status status;           /* in WAIT_RETRY that of the attempt before */
    const struct tc_headers *trailers; /* in the arena of the call or of a hedged attempt; NULL: none came */
    struct tc_task done;
};

/* Ends the call; on_done comes by the serial queue. Takes over the status. In stage DONE it may replace an outcome that
 * waits with interceptors (call.c), and else does nothing. */
void tc_call_fail(struct tc_call *c, struct tc_status status);
/* Ends the call as tc_call_fail does, but the outcome comes behind a received message that an interceptor holds up.
 * Never for a call in stage DONE. Takes over the status. */
void tc_call_fail_in_order(struct tc_call *c, struct tc_status status);
/* Lets an outcome go on that waits behind a received message. `failure` (borrowed) replaces the outcome: an interceptor
 * refused the message; NULL: the message has passed. */
void tc_call_outcome_next(struct tc_call *c, const struct tc_status *failure);
/* Ends the call at once, with on_done from inside (unless interceptors hold up the outcome), after which the call is
 * gone. For events of the stream, never for a call in stage DONE. Takes over the status; `trailers` (may be NULL) must
 * live until on_done has returned. */
void tc_call_finish(struct tc_call *c, struct tc_status status, const struct tc_headers *trailers);
/* Records an event of the attempt (enum torc_wire_kind) for the interceptors with on_wire, which see it later
 * (tc_rpc_sight). tc_call_tell_wire_now needs watch_wire. */
void tc_call_tell_wire_now(struct tc_call *c, int event, size_t bytes, int code);
static inline void tc_call_tell_wire(struct tc_call *c, int event, size_t bytes, int code)
{
    if (TC_UNLIKELY(c->asked.watch_wire))
        tc_call_tell_wire_now(c, event, bytes, code);
}
/* Tells the pick's trackers that the attempt is over (status NULL: the pick led to no RPC). */
void tc_call_tell_trackers(struct tc_call *c, const struct tc_status *status, const struct tc_headers *trailers);
/* Gives back what a call that is gone, or never began, still holds: hedged attempts, credentials, status, peer. The
 * caller then frees the arena, in which headers and trailers lie, and unrefs the channel. Any thread. */
void tc_call_fini(struct tc_call *c);
/* Returns the status, or INTERNAL instead of a code that only servers may give to RPCs (A54), or of OK. `source` is the
 * part that gave the status, for the text. Takes over the status; the caller owns the result. */
struct tc_status tc_status_legal(struct tc_status status, const char *source);

#endif
