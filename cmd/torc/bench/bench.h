/* torc bench: args.c reads the command line, plan.c computes the load of each moment, bench.c connects and runs the
 * phases, calls.c and streams.c send RPCs and count them, requests.c makes the messages, localities.c finds where
 * backends are, report.c and the files of report.h write the figures. One thread.
 *
 * Closed loop (the default, --stage c=N): each RPC that ends starts the next. Open loop (--rps, --stage RATE): RPCs
 * start by the clock, while fewer than -c are under way. Latency then counts from the intended start, so that a stall
 * of the server or of this program shows in the latencies (no coordinated omission). An RPC counts in the stage in
 * which it was to begin. */
#ifndef TORC_BENCH_H
#define TORC_BENCH_H

#include <stdio.h>

#include "base/table.h"
#include "bench/histogram.h"
#include "bench/plan.h"
#include "bench/timers.h"
#include "request/request.h"

#define BENCH_NAME "bench"

enum { BENCH_CODES = 17 /* gRPC has 17 status codes */ };

enum bench_report { BENCH_CSV, BENCH_HDR, BENCH_HTML, BENCH_PROMETHEUS, BENCH_REPORTS };

struct bench_args {
    struct connect_args connect;
    struct request_args request;
    uint64_t count;       /* 0: not given */
    uint64_t concurrency; /* -c: RPCs under way at most; --stage c=N does not use it; 0 only while parsing */
    /* --call-count, 0: not given. Messages that an RPC sends; if the method takes no stream, responses after which the
     * RPC ends. */
    uint64_t call_count;
    uint64_t stream_interval_ns; /* between two messages that an RPC sends; 0: none */
    uint64_t call_duration_ns;   /* of a stream; UINT64_MAX: no limit */
    uint64_t duration_ms;        /* without --stage; UINT64_MAX: until `count` RPCs were started */
    /* warmup_ms 0: no warm-up. deadline_ms: of each RPC; bounds the wait for connections, too. payload: bytes of each
     * request without -d, --data-hex and --data-file. channels: their number. */
    uint64_t warmup_ms, deadline_ms, payload, channels;
    double rps;                        /* 0: closed loop, or --stage */
    struct bench_plan plan;            /* the counted phase */
    const char *report[BENCH_REPORTS]; /* files; NULL: none; "-": standard output */
    bool json, quiet, wait_for_ready, has_duration, has_payload, has_stages;
};

/* Returns 0 to go on, -1 if --help was printed, else the exit status with the error printed. In each case the caller
 * calls bench_args_fini. *a borrows from argv, which parsing changes. */
int bench_args_parse(struct bench_args *a, int argc, char **argv);
void bench_args_fini(struct bench_args *a);

/* --- requests.c --- */

/* A request: fixed bytes, or a text with placeholders that each RPC fills in. */
struct bench_request {
    struct tc_buf bytes;       /* empty for a text with placeholders */
    struct tc_buf text;        /* as given; `parts` borrows from it */
    struct placeholders parts; /* of the text */
    struct request_place at;   /* where the text begins in the input, for errors */
};

struct bench_requests {
    TC_VEC(struct bench_request) list;
    bool json;             /* texts are JSON of the method's request type */
    uint64_t each;         /* messages of an RPC; UINT64_MAX: until --call-duration is over */
    struct tc_buf scratch; /* the last text that was filled in */
    struct tc_buf made;    /* the bytes of that text, if it is JSON */
};

struct bench;

/* Reads the requests of the command line, as JSON of b->types.method or as bytes. Sets `requests`, `streams`,
 * `takes_stream`, `gives_stream` and `most_received`. Returns 0 or an exit status, with the error printed. */
int bench_requests_read(struct bench *b);
/* Stores request `n` of the list as RPC `i` sends it, valid until the next call. Returns false, with the error printed,
 * if a placeholder made JSON that the method's type refuses. */
bool bench_request_of(struct bench *b, uint64_t i, uint64_t n, struct tc_slice *out);
void bench_requests_fini(struct bench_requests *q);

/* --- counting --- */

/* The counted RPCs that ended: all, or those of one stage, backend or locality. */
struct bench_counts {
    uint64_t calls, by_code[BENCH_CODES];
    struct histogram latency_ns;
};

/* An entry of bench.backends. The entry owns both texts. */
struct bench_backend {
    char *address;  /* "": none was reached */
    char *locality; /* NULL: not known */
    struct bench_counts counts;
    UT_hash_handle hh;
};

/* The RPCs of a stage, and how many were due in the stage and never started. */
struct bench_stage_counts {
    struct bench_counts counts;
    uint64_t not_started;
};

enum bench_phase { BENCH_WARMUP, BENCH_COUNTED, BENCH_OVER };

/* An RPC under way, or in the free list. The members `stream` to `ended` are for methods with streams. */
struct bench_call {
    struct bench *bench;
    uint64_t i;             /* number in its phase, from 0 */
    uint64_t begin_ns;      /* in open loop: the intended start */
    enum bench_phase phase; /* in which the RPC began */
    uint32_t stage;         /* index of bench.stages, by begin_ns; 0 without --stage and in the warm-up */
    torc_stream *stream;    /* owned until on_done */
    struct bench_timer timer;
    uint64_t over_ns;               /* the end of --call-duration; UINT64_MAX: none */
    uint64_t last_ns;               /* when the last message came; before the first, begin_ns */
    uint64_t probe, probe_ns;       /* the request whose response is timed, and when it was sent; probe_ns 0: none */
    uint64_t sent, received;        /* messages */
    bool half_closed, ended;        /* sends no more; cancelled as --call-duration or --call-count asks */
    struct bench_call *next, *prev; /* in `streaming`; `next` also in the free list */
};

/* One run of the command. cmd_bench owns it; fini() of bench.c frees it with all that it holds. Times are those of
 * bench_now_ns, unless a comment says otherwise. */
struct bench {
    struct bench_args args;
    torc_runtime *runtime;
    torc_channel **channels;
    struct request_types types;
    struct bench_requests requests;
    struct torc_call_options call_options; /* of all RPCs, but for metadata that each RPC has of its own */
    torc_metadata *metadata;               /* of all RPCs; NULL: none, or each has its own */
    struct tc_rng rng;                     /* for placeholders */
    bool streams;                          /* the method has a stream of requests or responses */
    bool takes_stream;                     /* the method has a stream of requests */
    bool gives_stream;                     /* the method has a stream of responses */
    uint64_t most_received;                /* --call-count of a method that does not take a stream; UINT64_MAX: all */

    struct bench_call *free_calls;
    struct bench_call *streaming; /* RPCs under way that have a stream */
    struct bench_timers timers;   /* of the RPCs in `streaming` */
    enum bench_phase phase;
    const struct bench_plan *plan;  /* of the phase */
    uint64_t begin_ns;              /* of the phase */
    uint64_t end_ns;                /* from then on the plan has no load */
    uint64_t over_ns;               /* when the last counted RPC of the phase ended; before the first, begin_ns */
    uint64_t shown_ns, shown_calls; /* when the live line was shown last, and how many calls it counted */
    uint64_t stopped_ns;            /* from then on the phase starts no RPC */
    uint64_t count;                 /* RPCs that the phase starts at most */
    uint64_t limit;                 /* closed loop: how many RPCs are to be under way; open loop: 0 */
    uint64_t limit_until_ns;        /* when the plan may change `limit` */
    /* Numbers of RPCs. started: by the phase. in_flight: under way, also those of the warm-up. most_in_flight: the most
     * in the phase. not_started: in open loop, due in the counted phase and not started. unfinished: under way at the
     * end of run(). */
    uint64_t started, in_flight, most_in_flight, not_started, unfinished;
    uint64_t sent, received;           /* messages of counted RPCs with streams */
    struct histogram message_ns;       /* latency of the received messages that are timed (streams.c) */
    struct bench_counts counts;        /* of all counted RPCs */
    struct bench_stage_counts *stages; /* one for each stage of args.plan; NULL: no --stage was given */
    struct bench_backend *backends;    /* by address */
    char *texts[BENCH_CODES];          /* the first text that came with each status but OK; NULL: none came */
    uint64_t start_unix_ms;            /* the begin of the counted phase, in milliseconds since 1970 */
    double cpu_seconds;                /* of the process, from the begin of the counted phase to the end of run() */
    bool shows;                        /* the live line is shown */
    bool refused, interrupted;         /* an RPC could not be started, or a message not be made; a signal came */
    FILE *reports[BENCH_REPORTS];      /* NULL: none, or standard output */
};

/* Returns the time of the monotonic clock. Defined in calls.c. */
uint64_t bench_now_ns(void);
/* Closed loop: sets `limit` to the plan's number of RPCs at this time, and `limit_until_ns`. Defined in bench.c. */
void bench_set_limit(struct bench *b, uint64_t now_ns);

/* --- calls.c --- */

/* Returns the backend of this address, which is created if there is none. b->backends owns it. */
struct bench_backend *bench_backend_of(struct bench *b, const char *address);
/* Starts an RPC. Its latency counts from begin_ns, which also decides its stage. If the RPC cannot be started, prints
 * the error and sets b->refused. */
void bench_start_call(struct bench *b, uint64_t begin_ns);
/* Returns true if the RPC counts: it began in the counted phase, and the phase is not BENCH_OVER yet. */
bool bench_is_counted(const struct bench_call *c);
/* Counts an RPC that has ended, and starts the next one in closed loop. *c goes to the free list. */
void bench_call_ended(struct bench_call *c, const torc_result *result);
/* Frees RPCs, counts and timers. The runtime must have been freed before, so that no RPC is under way. */
void bench_calls_fini(struct bench *b);

/* --- streams.c --- */

/* Starts an RPC with streams and sends the messages that are due. Returns 0 or an error of torc_stream_start. */
int bench_start_stream(struct bench_call *c, torc_channel *channel);
/* Returns when bench_streams_turn has something to do; UINT64_MAX: never. */
uint64_t bench_streams_due_ns(const struct bench *b);
/* Sends the messages that are due, and ends the RPCs whose time is over. */
void bench_streams_turn(struct bench *b);

/* --- localities.c --- */

/* Adds the backends of the xDS resources that the runtime's xDS clients hold, with their localities. A backend that has
 * a locality keeps it. */
void bench_find_localities(struct bench *b);

/* --- report.c --- */

/* Opens the files of --report. Returns 0 or an exit status, with the error printed. */
int bench_open_reports(struct bench *b);
/* Prints the figures, and writes the reports. Returns 0 or an exit status, with the error printed. */
int bench_report(struct bench *b);
/* Prints the live line on standard error. */
void bench_show_line(struct bench *b);
/* Erases the live line if b->shows. */
void bench_clear_line(struct bench *b);

#endif
