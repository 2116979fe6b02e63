/* A run of torc call. call.c starts calls and waits; messages.c reads the requests; stream.c is a call on a
 * torc_stream. One thread.
 *
 * Callbacks of calls print nothing. They queue messages and results (run_queue), and drain() prints them after the turn
 * of the loop. The reason: printing may ask the server's reflection for the type of an Any, and a callback must not
 * wait. A stream asks for its next message when the last one was printed. Only the events of channels (--events) are
 * printed in their callback. */
#ifndef TORC_CALL_RUN_H
#define TORC_CALL_RUN_H

#include "call/call.h"
#include "call/cookies.h"
#include "request/placeholders.h"

/* Request messages, in wire format. Owns their bytes. */
struct call_messages {
    TC_VEC(struct tc_buf) list;
    bool ended;              /* the list is complete */
    bool shared;             /* a sent message is kept: another call may send it */
    struct tc_buf text;      /* the rest of the input: not a complete value yet */
    struct request_place at; /* where `text` begins in the input */

    /* The scan of `text` on standard input: `seen` bytes are scanned. The scan is then inside `depth` brackets, perhaps
     * in a string, and perhaps after a backslash in the string. */
    size_t seen, depth;
    bool in_string, escaped;
};

struct one_call;

/* A message or the end of a call, to print after the turn of the loop. Owns its references. */
struct run_item {
    struct one_call *call;
    torc_message *message; /* NULL: the call has ended */
    torc_result *result;   /* NULL: a message */
    uint64_t latency_us;   /* since the call's begin_ns */
};

struct run {
    struct call_args args;
    torc_runtime *runtime;
    torc_csds *csds;
    torc_channel **channels;
    struct call_totals totals;
    struct cookie_jar jar;

    struct request_types types;
    struct placeholders request;   /* the text of the request; any: it has {i} */
    struct call_messages messages; /* of all calls, unless request.any */
    struct one_call *live;         /* the call that sends messages of standard input, until it ends; else NULL */

    TC_VEC(struct run_item) queue;
    uint64_t started, in_flight; /* calls */
    /* made_ns: just before the channels were made; events count from there. begin_ns: when the run began, after
     * reflection. last_progress_ns: when progress or results were last shown; at first begin_ns. */
    uint64_t made_ns, begin_ns, last_progress_ns;
    bool refused;     /* a call could not be started; no further one starts */
    bool failed;      /* a message was missing or could not be read or shown, or standard input could not be read */
    int first_status; /* of the first call that ended with an error; 0: none */
};

/* A call. call.c makes it, and frees it when its end was printed. Callbacks have it as their `arg`. */
struct one_call {
    struct run *run;
    uint64_t i;                          /* its number, from 0 */
    uint64_t begin_ns;                   /* with --rps, the intended start */
    struct call_messages *messages, own; /* `messages` points to run->messages or to `own` */

    /* Only for a call on a torc_stream. */
    torc_stream *stream;           /* NULL: the call has no stream, or has ended */
    size_t next;                   /* index of the message to send next */
    bool closed;                   /* half-closed */
    uint64_t sent, received;       /* messages */
    uint64_t headers_us, first_us; /* when the headers and the first message came, since begin_ns; 0: they have not */
    char *explain;                 /* JSON; NULL: without --explain, or before the first message */
    torc_message *response;        /* of a method with one response; NULL: none yet */
};

/* Returns the time of the monotonic clock. */
uint64_t run_now_ns(void);

/* --- messages.c --- */

/* Makes the messages of the run. Reads standard input to its end if the request is there, except with --dry-run and
 * where run_read_stdin will read it. If the text has {i}, only tries to make the messages of call 0. Called when
 * r->types is set. Returns 0 or the exit status, with the error printed. */
int run_read_messages(struct run *r);
/* Reads standard input once, which waits if it has nothing, and appends the complete messages. If that fails, prints
 * the error, sets r->failed and cancels the live call. */
void run_read_stdin(struct run *r);
/* Makes the messages of call `i` from the text with {i}. *own must be empty before. Returns 0 or the exit status, with
 * the error printed. The caller frees *own with run_messages_fini in both cases. */
int run_own_messages(struct run *r, uint64_t i, struct call_messages *own);
void run_messages_fini(struct call_messages *m);

/* --- stream.c --- */

/* Returns true if the calls of this run use a torc_stream: for methods with streams, and for --timing, but not with
 * --dry-run. */
bool run_uses_streams(const struct run *r);
/* Starts a call. Returns 0, and the end of the call will be queued; or an error code of torc_stream_start, and the
 * caller frees the call. */
int run_start_stream(struct one_call *c, torc_channel *channel, const struct torc_call_options *options);
/* Sends the messages that flow control takes, and half-closes after the last one. */
void run_push(struct one_call *c);

/* --- call.c --- */

/* Queues a message or, with a result, the end of a call; the other argument is NULL. Takes its own references. Called
 * in callbacks. */
void run_queue(struct one_call *c, const torc_message *message, const torc_result *result);

#endif
