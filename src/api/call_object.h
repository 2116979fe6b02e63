/* torc_stream: a call on the loop, and the requests of other threads to it. For src/api.
 *
 * Once the call is launched, `core` and the members marked "loop" belong to the loop. Other threads may read
 * core.asked.path and core.asked.gzip, which are fixed by then. Requests of other threads are under `mutex`. What
 * waiting threads share with the loop is under the runtime's lock, which is taken before `mutex`. The object is
 * reference-counted (`zeroed`), and its memory goes back to the pool (call_pool.h). */
#ifndef TC_API_CALL_OBJECT_H
#define TC_API_CALL_OBJECT_H

#include <pthread.h>

#include <torc/stream.h>

#include "api/typed.h"
#include "channel/call_internal.h"

enum tc_call_kind {
    TC_CALL_UNARY_BLOCKING, /* has no handle */
    TC_CALL_UNARY_ASYNC,
    TC_CALL_UNARY_ALONE, /* asynchronous, and has no handle */
    TC_STREAM,
};

/* A message that waits for torc_stream_receive. */
struct tc_received {
    struct tc_received *next;
    struct tc_rstr *message;
};

/* The message that torc_stream_receive returned last, which the application borrows, and the codec's struct. */
struct tc_lent {
    struct tc_rstr *bytes;
    _Atomic(struct tc_typed *) typed; /* a codec's (api/typed.h); any thread. NULL: none */
};

/* The initial metadata of a response. */
struct tc_initial {
    const torc_metadata *metadata; /* NULL: has not come */
    const char *peer;              /* address of the server that sent it */
};

struct torc_stream {
    struct tc_call core;    /* the loop's call */
    torc_stream *next_free; /* in the pool; NULL: the last, or the call is in use */
    pthread_mutex_t mutex;

    struct tc_ref zeroed; /* counts references (call.c says whose). The pool zeroes from here to the end */
    enum tc_call_kind kind;
    torc_channel *channel; /* borrowed from core */
    struct tc_task task;
    atomic_bool detached; /* torc_stream_free or torc_stream_close was called: only the last callback comes */

    /* Requests of threads, and how far they have come; under the mutex but for the two members marked "loop". */
    bool task_queued;
    bool want_start, want_end, want_cancel;
    struct tc_rstr *want_message;
    size_t want_oversize; /* size of a message that is too long for gRPC's length prefix, and was not copied; 0: none */
    bool want_last, want_plain;
    bool tell_writable; /* a send returned TORC_EAGAIN: on_writable follows */
    uint32_t want_reads;
    bool write_busy;     /* a message was taken, and on_written has not come */
    bool write_over;     /* half-closed */
    bool over;           /* the call ended */
    uint64_t reads_owed; /* loop: messages that are wanted, and that the loop's call was not asked for yet */
    size_t counted;      /* loop: bytes that the call counts for under the runtime's memory limit */

    /* Unary. */
    struct tc_slice request;
    bool lent; /* options.lend_request: the request stays the caller's memory */
    struct tc_rstr *response;

    /* The application's callbacks. */
    struct torc_stream_events heard;
    torc_result_fn fn; /* of torc_unary_async and torc_explain_async */
    void *arg;

    /* For threads that wait, under the runtime's lock. */
    struct tc_link waits;   /* threads, by tc_wait.owner */
    uint64_t reads_pending; /* messages that were asked for and have not come; only without on_message */
    struct tc_received *first_received, **last_received;
    torc_result *end;            /* the outcome; NULL: the RPC runs */
    struct tc_initial initial;   /* of the response, in core.arena */
    struct tc_lent lent_message; /* of the last torc_stream_receive */
    bool told;                   /* the application has seen the outcome, which must not change any longer */
    bool receiving;              /* a thread is in torc_stream_receive, or between its two steps (api/typed.h) */
    bool draining;               /* torc_stream_finish drops messages; without on_message it keeps one for the result */
    bool delivered;              /* the last callback has returned, or the RPC ended and has no callback */
};

#endif
