/* The insides of a call, for the files of src/channel. Everything here belongs to the loop. */
#ifndef TC_CHANNEL_CALL_STRUCT_H
#define TC_CHANNEL_CALL_STRUCT_H

#include "channel/call.h"
#include "channel/call_auth.h"
#include "channel/call_filters.h"
#include "channel/channel_struct.h"
#include "channel/hedge.h"
#include "channel/transport.h"

enum tc_call_stage {
    TC_CALL_NEW,
    TC_CALL_WAIT_CONFIG, /* for the resolver */
    TC_CALL_WAIT_FILTER, /* for a filter that delays it */
    TC_CALL_WAIT_PICK,   /* for a picker that has a connected endpoint */
    TC_CALL_WAIT_AUTH,   /* for call credentials */
    TC_CALL_WAIT_STREAM, /* for a stream on the chosen connection */
    TC_CALL_RUNNING,
    TC_CALL_HEDGING,    /* its attempts run side by side (hedge.h) */
    TC_CALL_WAIT_RETRY, /* for the backoff before another attempt */
    TC_CALL_DONE,
};

/* A request message; kept until it can not be needed again. */
struct tc_out {
    struct tc_out *next;
    struct tc_slice bytes;
    struct tc_rstr *owner; /* NULL: the bytes live as long as the call */
};

struct tc_call {
    torc_channel *channel; /* a reference */
    struct tc_arena arena;
    enum tc_call_stage stage;
    struct tc_link link;  /* among the channel's calls */
    struct tc_link queue; /* WAIT_CONFIG, WAIT_PICK */
    struct tc_capacity_wait capacity;

    const struct tc_call_events *events;
    void *arg;
    /* Called when the call is gone (after on_done, or cancelled): gives back the memory. */
    void (*release)(struct tc_call *c);

    /* What was asked for. */
    struct tc_slice path;
    struct tc_headers metadata;
    bool wait_for_ready;
    bool gzip;
    bool explain;
    bool dry;                   /* ends at the pick, which is none; explain is set */
    uint64_t max_receive_bytes; /* 0: the channel's */
    uint64_t started_ns;
    uint64_t deadline_ns; /* UINT64_MAX: none */
    struct tc_timer timer;
    struct tc_task expired;

    /* What was decided. */
    bool selected;
    bool waits; /* wait-for-ready, as options or method config have it */
    struct tc_call_config config;
    struct tc_call_filters *filters; /* NULL: none */
    uint64_t max_request_bytes;
    uint64_t random;
    bool has_random;
    struct tc_pick_trace trace;
    const char *outcome; /* of a dry call's pick; NULL: it came to none */
    struct tc_call_tracker *trackers;
    struct tc_call_auth *auth; /* NULL: there are no call credentials */

    /* The attempt. */
    struct tc_h2_request request;
    struct tc_transport *transport; /* WAIT_STREAM, and RUNNING while it is opened */
    struct tc_h2_stream *stream;
    struct tc_rstr *peer;
    uint32_t attempts;
    bool retried; /* transparently, after it had been sent */
    struct tc_retry_policy retry;
    unsigned tries; /* attempts that failed and were followed by another, as the policy has it */
    struct tc_backoff backoff;
    struct tc_timer retry_timer;
    const struct tc_headers *headers;
    struct tc_hedge *hedge; /* NULL: one attempt at a time */
    bool is_attempt;        /* of another call, which hedges */

    /* Request messages: written ones are kept for another attempt until the call is committed. */
    struct tc_out *out_first, *out_last, *out_next, *out_free;
    size_t kept_bytes;
    uint32_t n_written; /* in this attempt */
    uint32_t n_told;    /* on_written told */
    bool committed;
    bool writing;    /* the stream has a message */
    bool sending;    /* the owner waits for on_written */
    bool half_close; /* after the last message */
    bool end_sent;
    struct tc_task dropped; /* the stream refused a message */
    uint32_t reads;         /* demands not yet answered */
    uint32_t reads_given;   /* of them, told to the stream */

    /* The end. */
    struct tc_status status;
    const struct tc_headers *trailers;
    struct tc_task done;
};

/* call.c */
/* Prepares a zeroed call whose arena, channel, loop fields and release are set; the options are filled in then. */
void tc_call_init(struct tc_call *c, torc_channel *ch);
/* Puts it on its way: never calls back from inside. */
void tc_call_begin(struct tc_call *c);
/* The resolver's result came, or failed. */
void tc_call_resolved(struct tc_call *c);
/* Its config is there and its filters are passed: its first attempt. */
void tc_call_attempt(struct tc_call *c);
/* Tries a pick. */
void tc_call_pick(struct tc_call *c);
/* Ends it with a status of our own; on_done comes by the serial queue. */
void tc_call_fail(struct tc_call *c, struct tc_status status);
/* DEADLINE_EXCEEDED, and what the call was waiting for. */
struct tc_status tc_call_deadline_status(struct tc_call *c);
/* The same for calls that a channel's end ends. */
void tc_call_abort(struct tc_call *c, const struct tc_status *status);
/* Ends it at once: on_done from inside. For events of the stream. Takes over the status. */
void tc_call_finish(struct tc_call *c, struct tc_status status, const struct tc_headers *trailers);
/* The attempt is over, or the pick was for nothing (status NULL). */
void tc_call_tell_trackers(struct tc_call *c, const struct tc_status *status, const struct tc_headers *trailers);
/* The same, from inside the events of one of its attempts: on_done comes by the serial queue. The trailers live as long
 * as the call. */
void tc_call_finish_later(struct tc_call *c, struct tc_status status, const struct tc_headers *trailers);
/* Starts a call that is an attempt of `parent`, as far as the pick. */
void tc_call_begin_attempt(struct tc_call *c, const struct tc_call *parent);
/* Waits for another picker. */
void tc_call_queue_pick(struct tc_call *c);
/* Drops everything but what on_done may look at. */
void tc_call_fini(struct tc_call *c);
/* Sends one message whose bytes live as long as the call. */
int tc_call_send_borrowed(struct tc_call *c, struct tc_slice message, bool end);
/* The same, but for statuses that a control plane must not give to RPCs (gRFC A54). */
struct tc_status tc_status_from_control_plane(struct tc_status status);
/* The JSON object of `torc call --explain`, in the arena. */
const char *tc_call_explain(struct tc_call *c);

/* explain.c */
/* In place of the pick of a dry call: ends it. */
void tc_call_explain_pick(struct tc_call *c, const struct tc_pick_args *args);

/* call_stream.c */
/* From here on the request can not be sent again. */
void tc_call_commit(struct tc_call *c);
/* More is kept of requests than may be. */
bool tc_call_over_buffer(const struct tc_call *c);
/* Drops the messages that were written. */
void tc_call_free_written(struct tc_call *c);
/* Opens a stream on the transport of the pick, or waits for one. */
void tc_call_open_stream(struct tc_call *c, struct tc_transport *t);
/* Writes what there is to write. */
void tc_call_pump(struct tc_call *c);
/* Lets the stream know of the reads that are wanted. */
void tc_call_pump_reads(struct tc_call *c);
/* Back to where the attempt began; the messages are there still. */
void tc_call_reset_attempt(struct tc_call *c);
/* Resets the stream, forgets it. */
void tc_call_drop_stream(struct tc_call *c);
void tc_call_on_capacity(struct tc_capacity_wait *wait, bool gone);
void tc_call_on_dropped(struct tc_task *task);
void tc_call_free_messages(struct tc_call *c);

#endif
