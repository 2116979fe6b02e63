/* torc call: args.c reads the command line, call.c sends the RPCs (run.h; with messages.c, stream.c and cookies.c),
 * print.c counts and prints results. One thread. */
#ifndef TORC_CALL_COMMAND_H
#define TORC_CALL_COMMAND_H

#include <torc/torc.h>

#include "base/buf.h"
#include "base/vec.h"
#include "bench/histogram.h"
#include "connect.h"
#include "request/request.h"

struct call_args {
    struct connect_args connect;
    struct request_args request;
    uint64_t count; /* 0: no limit; --duration ends the run */
    uint64_t concurrency;
    uint64_t channels;
    double rps;           /* 0: unlimited */
    uint64_t duration_ms; /* 0: no limit */
    int64_t timeout_ms;   /* as in torc_call_options: 0: no deadline, -1: it has passed */
    uint64_t hold_ms;     /* 0: not given */
    bool wait_for_ready, json, quiet, events, explain, dry_run, cookies;
    bool show_metadata, timing, exit_grpc;
    const char *csds; /* the address of --csds; NULL: not given */
};

/* Stores the command line in *a, which borrows from argv. Returns 0 to go on, -1 if --help was printed, or CLI_USAGE or
 * CLI_FAILED with the error printed. In every case the caller calls call_args_fini. */
int call_args_parse(struct call_args *a, int argc, char **argv);
void call_args_fini(struct call_args *a);

/* How many calls ended with one status, or went to one peer: a line of the summary. `name` is owned. */
struct call_count {
    char *name;
    uint64_t n;
};

struct call_totals {
    uint64_t calls, ok;
    TC_VEC(struct call_count) by_status;
    TC_VEC(struct call_count) by_peer;
    struct histogram latency_us; /* of all calls */
    double seconds, cpu_seconds; /* set by cmd_call; cpu_seconds: of the process, without request_find_method */
};

/* Counts a call that has ended. Calls without a peer are not in by_peer. */
void call_totals_add(struct call_totals *t, const torc_result *result, uint64_t latency_us);
void call_totals_fini(struct call_totals *t);

/* A call that has ended, for call_print_result. Everything is borrowed. */
struct call_outcome {
    uint64_t i, latency_us;
    const torc_result *result;
    const torc_message *response; /* NULL: none, or printed before by call_print_message */
    const char *json;             /* the response as JSON, or as --format text; NULL: print its bytes */
    const char *json_error;       /* why `json` is NULL; NULL: no error */
    const char *details;          /* the details of the status, a JSON array; NULL: none */
    bool is_stream;
    uint64_t sent, received;                  /* messages, if is_stream */
    uint64_t schema_us, headers_us, first_us; /* for --timing; 0: has not happened */
};

/* Message n of call i, a stream, both counted from 0. Everything is borrowed. explain: JSON, or NULL. */
struct call_message {
    uint64_t i, n;
    const torc_message *message;
    const char *json, *json_error, *explain;
};

/* Print nothing with --quiet. */
void call_print_result(const struct call_args *a, const struct call_outcome *o);
void call_print_message(const struct call_args *a, const struct call_message *m);
/* Prints an event of a channel, as torc_channel_event_fn gets it, even with --quiet. t_ms: since the run began;
 * for an event before that, since the channels were made. `reason` may be NULL. */
void call_print_event(const struct call_args *a, uint64_t t_ms, const char *kind, const char *detail,
                      const char *reason);
/* Prints a description of the channel, a JSON object. */
void call_print_channel(const struct call_args *a, const char *json);
/* Prints the summary. As text, a summary of fewer than two calls is printed only with --quiet. */
void call_print_summary(const struct call_args *a, const struct call_totals *t);

#endif
