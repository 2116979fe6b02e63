/* A run of torc call. call.c starts calls and waits; messages.c reads the requests; stream.c is a call on a
 * torc_stream. One thread.
 *
 * Callbacks of calls print nothing: they queue what has come (run_queue), and the run prints it behind the turn of the
 * loop. There, a message may ask the server's reflection for the type of an Any, which waits and so cannot be done in a
 * callback. A stream's next message is asked for when the last was printed. Only events of channels (--events) are
 * printed in their callback. */
#ifndef TORC_CALL_RUN_H
#define TORC_CALL_RUN_H

#include "call/call.h"
#include "call/cookies.h"
#include "request/placeholders.h"

/* The request messages, in wire format. */
struct call_messages {
    TC_VEC(struct tc_buf) list;
    bool ended;              /* no further one comes */
    bool shared;             /* several calls send them, so they are kept */
    struct tc_buf text;      /* JSON that is not a whole value yet */
    struct request_place at; /* of `text` */

    /* How many bytes of `text` were looked at, and the state behind them: within `depth` brackets, in a string, behind
     * a backslash in it. */
    size_t seen, depth;
    bool in_string, escaped;
};

struct one_call;

/* A message or an end that a callback has left for the run loop to print. */
struct run_item {
    struct one_call *call;
    torc_message *message; /* NULL: the call has ended */
    torc_result *result;   /* NULL: a message */
    uint64_t latency_us;   /* from the begin of the call */
};

struct run {
    struct call_args args;
    torc_runtime *runtime;
    torc_csds *csds;
    torc_channel **channels;
    struct call_totals totals;
    struct cookie_jar jar;

    struct request_types types;
    struct placeholders request;   /* the text of the request, if it has {i} */
    struct call_messages messages; /* of all calls, unless the text has {i} */
    struct one_call *live;         /* the only call, while it reads standard input */

    TC_VEC(struct run_item) queue;
    uint64_t started, in_flight;
    uint64_t begin_ns, last_progress_ns;
    bool refused;     /* a call could not be started */
    bool failed;      /* a message was missing or could not be read or shown, or standard input could not be read */
    int first_status; /* of the first call that failed */
};

struct one_call {
    struct run *run;
    uint64_t i;
    uint64_t begin_ns;                   /* the intended start, with --rps */
    struct call_messages *messages, own; /* those of the run, or `own` */

    /* On a torc_stream. */
    torc_stream *stream; /* NULL: a unary call that has no stream, or the stream has ended */
    size_t next;         /* the message to send next */
    bool closed;
    uint64_t sent, received;
    uint64_t headers_us, first_us;
    char *explain;
    torc_message *response; /* of a method with one response */
};

uint64_t run_now_ns(void);

/* --- messages.c --- */

/* Reads the requests of the command line; of standard input too, unless its messages are sent as they come. Returns 0
 * or the exit status, with the error printed. */
int run_read_messages(struct run *r);
/* Reads what has come on standard input, and waits if nothing has. If it cannot be read, or a message cannot, prints
 * the error, sets r->failed and cancels the call. */
void run_read_stdin(struct run *r);
/* Makes the messages of call `i` out of a text with {i}. Returns 0 or the exit status, with the error printed. */
int run_own_messages(struct run *r, uint64_t i, struct call_messages *own);
void run_messages_fini(struct call_messages *m);

/* --- stream.c --- */

/* Returns true if calls take a torc_stream: for streams of messages, and to see when each thing came. */
bool run_uses_streams(const struct run *r);
/* Starts a call. Returns 0 or an error of torc_stream_start, and then the call is the caller's. */
int run_start_stream(struct one_call *c, torc_channel *channel, const struct torc_call_options *options);
/* Sends what can be sent. */
void run_push(struct one_call *c);

/* --- call.c --- */

/* Queues a message or the end of a call, with references of its own. Called in callbacks. */
void run_queue(struct one_call *c, const torc_message *message, const torc_result *result);

#endif
