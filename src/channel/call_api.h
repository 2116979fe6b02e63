/* The public call object: the loop's call, and what other threads ask of it. Inside src/channel. */
#ifndef TC_CHANNEL_CALL_API_H
#define TC_CHANNEL_CALL_API_H

#include <torc/call.h>

#include "base/json.h"
#include "channel/call_pool.h"
#include "channel/call_struct.h"

enum tc_call_kind {
    TC_CALL_UNARY_BLOCKING,
    TC_CALL_UNARY_ASYNC,
    TC_CALL_STREAM,
    TC_CALL_STREAM_BLOCKING,
};

/* A received message that a blocking reader has not fetched. */
struct tc_received {
    struct tc_received *next;
    struct tc_rstr *message;
};

struct torc_call {
    struct tc_call core; /* the loop's */
    torc_call *next_free;
    pthread_mutex_t mutex;

    struct tc_ref zeroed; /* counts the handle, the loop while the call runs, and a task on its way */
    enum tc_call_kind kind;
    torc_channel *channel; /* borrowed of core */
    struct tc_task task;
    atomic_bool detached; /* the handle was given up: no callbacks */

    /* What other threads asked for and the loop has not taken; under the mutex. */
    bool task_queued;
    bool want_start, want_end, want_cancel;
    struct tc_rstr *want_message;
    bool want_last;
    uint32_t want_reads;
    bool write_busy; /* a message is under way */
    bool write_over; /* half-closed */
    bool over;       /* the call ended */

    /* Unary. */
    struct tc_slice request;
    bool lent; /* the request is the caller's until it hears of the end */
    struct tc_rstr *response;
    torc_unary_fn unary_fn;
    void *arg;
    struct torc_result *result; /* UNARY_BLOCKING: where the outcome goes */

    /* STREAM. */
    const struct torc_call_events *events;

    /* Blocking: under the runtime's lock. */
    struct tc_link waits; /* threads, by tc_wait.owner */
    bool written, done, finished;
    uint32_t reads_pending;
    struct tc_received *first_received, **last_received;
    struct torc_result outcome;
};

/* call_api.c */
/* A new call with the options, checked; the caller's reference. NULL with *error. */
torc_call *tc_call_make(torc_channel *ch, const char *method, const struct torc_call_options *options,
                        enum tc_call_kind kind, int *error);
/* torc_call_write, torc_call_write_done and torc_call_read. `quietly`: without waking the loop, for a thread that
 * drives it next, or else wakes it. */
int tc_call_want_write(torc_call *call, struct tc_slice message, bool last, bool quietly);
int tc_call_want_end(torc_call *call, bool quietly);
int tc_call_want_read(torc_call *call, bool quietly);
void tc_call_drop(torc_call *call);
/* Starts it: the loop's reference is added. */
void tc_call_launch(torc_call *call);
/* The same, of a call without a handle, for a thread that drives the loop next, or else wakes it. */
void tc_call_launch_quietly(torc_call *call);

/* call_unary.c: what torc_call_unary and torc_call_explain have in common; `dry`: it is explained and not sent. */
int tc_call_unary_blocking(torc_channel *ch, const char *method, struct tc_slice request,
                           const struct torc_call_options *options, bool dry, struct torc_result *result);
int tc_call_unary_async(torc_channel *ch, const char *method, struct tc_slice request,
                        const struct torc_call_options *options, bool dry, torc_unary_fn fn, void *arg,
                        torc_call **handle);

/* call_result.c */
/* The outcome in memory that torc_result_fini frees. Takes over the response. */
void tc_result_own(struct torc_result *r, torc_call *call, const struct tc_call_end *end, struct tc_rstr *response);
/* The outcome in the call's arena, for the length of a callback. */
void tc_result_borrow(struct torc_result *r, torc_call *call, const struct tc_call_end *end, struct tc_rstr *response);

/* explain.c: the addresses whose connections a call waits for that no policy has placed, 16 at most; of the channel as
 * tc_channel_describe shows it. */
json_t *tc_call_awaited(const struct tc_call *c, const char *channel_json);

/* call_unary.c, call_blocking.c: the events of the loop's call for the kinds that need their own. */
extern const struct tc_call_events tc_call_unary_events;
extern const struct tc_call_events tc_call_blocking_events;

#endif
