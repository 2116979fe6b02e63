/* torc bench: load from one thread, which drives the runtime itself (bench.h).
 *
 * prepare() connects the channels, finds the method's types and reads the requests. run() runs the warm-up, if there is
 * one, and then the counted phase, each by run_phase(). A phase alternates between starting the RPCs that are due and
 * waiting for the loop.
 *
 * The counted phase ends with -n, with --duration or with the last --stage, and run() then waits for the RPCs under
 * way. A signal ends the phase or the wait at once, and so does an RPC that cannot be started or a message that cannot
 * be made: `unfinished` has the number of RPCs that were then under way.
 *
 * RPCs that began in the warm-up are in no figure, but for three: those that still run when the counted phase begins
 * count in most_in_flight, their work in that phase counts in cpu_seconds, and those that run at the end count in
 * `unfinished`. */
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "cli.h"
#include "commands.h"
#include "runtime/runtime.h"
#include "signals.h"

#define NAME BENCH_NAME
#define CONNECT_MS 10000
#define LINE_NS (TC_NS_PER_S / 2) /* between two states of the live line */

/* Converts a time of the plan to a time of bench_now_ns; UINT64_MAX stays so. */
static uint64_t clock_ns(const struct bench *b, uint64_t plan_ns)
{
    return plan_ns > UINT64_MAX - b->begin_ns ? UINT64_MAX : b->begin_ns + plan_ns;
}

/* Returns the intended start of RPC n, counted from 0; UINT64_MAX: never. */
static uint64_t due_ns(const struct bench *b, uint64_t n)
{
    return clock_ns(b, bench_plan_due_ns(b->plan, n));
}

/* Waits for activity on the loop until `until_ns`, and handles it; returns earlier for the loop's timers, for those of
 * streams.c and for the live line. ppoll has a finer clock than the loop's own timers, which have milliseconds. */
static void wait_until(struct bench *b, uint64_t until_ns)
{
    struct pollfd p = {.fd = torc_runtime_fd(b->runtime), .events = POLLIN};
    int loop_ms = torc_runtime_timeout_ms(b->runtime);
    uint64_t now = bench_now_ns();
    until_ns = TC_MIN(until_ns, bench_streams_due_ns(b));
    uint64_t wait = until_ns > now ? until_ns - now : 0;
    wait = TC_MIN(wait, LINE_NS);
    if (loop_ms >= 0 && (uint64_t)loop_ms * TC_NS_PER_MS < wait)
        wait = (uint64_t)loop_ms * TC_NS_PER_MS;
    struct timespec t = {(time_t)(wait / TC_NS_PER_S), (long)(wait % TC_NS_PER_S)};
    ppoll(&p, 1, &t, NULL); /* a failure is EINTR: the caller checks for signals */
    torc_runtime_poll(b->runtime, 0);
    bench_streams_turn(b);
}

/* Sets b->interrupted after a signal, and shows the live line when it is time. Returns false if b->interrupted or
 * b->refused is set. */
static bool look(struct bench *b)
{
    uint64_t now = bench_now_ns();
    b->interrupted = b->interrupted || signals_stop();
    if (b->shows && now - b->shown_ns >= LINE_NS)
        bench_show_line(b);
    return !b->interrupted && !b->refused;
}

/* Counts the RPCs that were due before the phase stopped and were not started, in all and in each stage. */
static void count_not_started(struct bench *b)
{
    uint64_t due = TC_MIN(bench_plan_calls(b->plan, b->stopped_ns - b->begin_ns), b->count);
    uint64_t from = b->started;
    b->not_started = due > from ? due - from : 0;
    for (size_t i = 0; b->stages && i < b->plan->stages.len; i++) {
        uint64_t to = TC_MIN(bench_plan_calls(b->plan, b->plan->stages.data[i].end_ns), due);
        b->stages[i].not_started = to > from ? to - from : 0;
        from = TC_MAX(from, to);
    }
}

static void run_open(struct bench *b)
{
    uint64_t now = b->begin_ns, due;
    while (look(b) && b->started < b->count) {
        now = bench_now_ns();
        while (b->started < b->count && (due = due_ns(b, b->started)) <= now && due < b->end_ns &&
               b->in_flight < b->args.concurrency && !b->refused)
            bench_start_call(b, due);
        due = due_ns(b, b->started);
        if (b->started == b->count || now >= b->end_ns || due >= b->end_ns)
            break;
        /* With as many calls in flight as -c allows, only an answer can start another. */
        wait_until(b, b->in_flight < b->args.concurrency ? due : b->end_ns);
    }
}

void bench_set_limit(struct bench *b, uint64_t now_ns)
{
    uint64_t until_ns;
    b->limit = bench_plan_concurrency(b->plan, now_ns - b->begin_ns, &until_ns);
    b->limit_until_ns = clock_ns(b, until_ns);
}

static void run_closed(struct bench *b)
{
    uint64_t now = b->begin_ns;
    for (; look(b) && b->started < b->count && now < b->end_ns; now = bench_now_ns()) {
        bench_set_limit(b, now);
        while (b->in_flight < b->limit && b->started < b->count && !b->refused)
            bench_start_call(b, bench_now_ns());
        wait_until(b, b->limit_until_ns); /* meanwhile each result starts the next call */
    }
}

/* Starts the RPCs of one phase, at most `count`. RPCs may still be under way when it returns. b->plan borrows the plan.
 */
static void run_phase(struct bench *b, enum bench_phase phase, const struct bench_plan *plan, uint64_t count)
{
    b->phase = phase;
    b->plan = plan;
    b->begin_ns = b->over_ns = b->shown_ns = bench_now_ns();
    b->end_ns = clock_ns(b, bench_plan_end_ns(plan));
    b->count = count;
    b->started = b->shown_calls = b->limit = 0;
    b->most_in_flight = b->in_flight;
    if (plan->closed)
        run_closed(b);
    else
        run_open(b);
    bool early = b->interrupted || b->refused || b->started == b->count;
    b->stopped_ns = early ? TC_MIN(bench_now_ns(), b->end_ns) : b->end_ns;
    if (!plan->closed && phase == BENCH_COUNTED && !b->refused)
        count_not_started(b);
}

static void warm_up(struct bench *b)
{
    struct bench_plan plan = {.closed = b->args.plan.closed};
    double load = b->args.plan.stages.data[0].from;
    bench_plan_add(&plan, load, load, cli_end_ns(0, b->args.warmup_ms));
    run_phase(b, BENCH_WARMUP, &plan, UINT64_MAX);
    b->plan = &b->args.plan;
    bench_plan_fini(&plan);
}

/* Runs the phases, then waits until the last RPC has ended, at the latest by its deadline. A signal or b->refused ends
 * the wait. */
static void run(struct bench *b)
{
    signals_catch(tc_runtime_loop(b->runtime));
    b->shows = !b->args.quiet && isatty(STDERR_FILENO);
    if (b->args.warmup_ms)
        warm_up(b);
    double cpu = cli_cpu_seconds();
    b->start_unix_ms = (uint64_t)tc_system_clock.realtime_ns(NULL) / TC_NS_PER_MS;
    if (!b->interrupted && !b->refused)
        run_phase(b, BENCH_COUNTED, &b->args.plan, b->args.count ? b->args.count : UINT64_MAX);
    else
        b->begin_ns = b->over_ns = b->stopped_ns = bench_now_ns(); /* no stage ran: the times were the warm-up's */
    while (b->in_flight && look(b))
        wait_until(b, UINT64_MAX);
    b->cpu_seconds = cli_cpu_seconds() - cpu;
    signals_release();
    bench_clear_line(b);
}

/* Returns how long the wait for connections may take. */
static uint64_t connect_ms(const struct bench *b)
{
    return TC_MIN(b->args.deadline_ms, (uint64_t)CONNECT_MS);
}

/* Returns 0 if an RPC would be sent now or would wait; else prints the status that it would have, and returns
 * CLI_FAILED. is_over: the time to connect is over, and an RPC that waits for name resolution is a failure too. */
static int why_not(struct bench *b, torc_channel *channel, bool is_over)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 1,
                                  .wait_for_ready = b->args.wait_for_ready};
    torc_result *result = torc_explain(channel, b->types.path, &o);
    bool waits = torc_result_code(result) == TORC_STATUS_DEADLINE_EXCEEDED && !is_over;
    int rc = torc_result_code(result) == TORC_STATUS_OK || waits
                 ? 0
                 : cli_fail(NAME, "cannot connect to %s: %s: %s", b->args.connect.target,
                            torc_status_code_name(torc_result_code(result)), torc_result_text(result));
    torc_result_free(result);
    return rc;
}

/* Waits until the channel is READY. Returns 0, or CLI_FAILED with the error printed if an RPC would fail or the time is
 * over. */
static int connect_one(struct bench *b, torc_channel *channel, uint64_t until_ns)
{
    enum torc_connectivity state;
    while ((state = torc_channel_state(channel, true)) != TORC_CONNECTIVITY_READY) {
        int rc = state == TORC_CONNECTIVITY_TRANSIENT_FAILURE ? why_not(b, channel, false) : 0;
        if (rc != 0)
            return rc;
        uint64_t now = bench_now_ns();
        if (now < until_ns) {
            torc_channel_wait_state(channel, state, cli_wait_ms(now, until_ns), NULL);
            continue;
        }
        rc = why_not(b, channel, true);
        return rc ? rc
                  : cli_fail(NAME, "cannot connect to %s within %.1f s: still %s", b->args.connect.target,
                             (double)connect_ms(b) / 1e3, torc_connectivity_name(state));
    }
    return 0;
}

static int connect_all(struct bench *b)
{
    struct bench_args *a = &b->args;
    int rc = connect_channels(NAME, &a->connect, b->runtime, a->channels, &b->channels);
    uint64_t until_ns = cli_end_ns(bench_now_ns(), connect_ms(b));
    for (uint64_t i = 0; i < a->channels && rc == 0; i++)
        rc = connect_one(b, b->channels[i], until_ns);
    return rc;
}

static int prepare(struct bench *b)
{
    struct bench_args *a = &b->args;
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_error *error = NULL;
    b->runtime = torc_runtime_new(&o, &error);
    if (!b->runtime)
        return cli_fail_error(NAME, error);
    if (a->has_stages)
        b->stages = tc_calloc(a->plan.stages.len, sizeof(*b->stages));
    prctl(PR_SET_TIMERSLACK, 1UL); /* ppoll wakes on time instead of up to 50 us late */
    tc_rng_init_system(&b->rng);
    if (!a->request.headers.rpc.differ)
        b->metadata = headers_make(&a->request.headers.rpc, 0, &b->rng);
    b->call_options = (struct torc_call_options){TORC_SIZE(torc_call_options), .timeout_ms = (int64_t)a->deadline_ms,
                                                 .wait_for_ready = a->wait_for_ready, .metadata = b->metadata};
    int rc = connect_all(b);
    if (rc == 0)
        rc = request_find_method(&b->types, b->channels[0]);
    if (rc == 0)
        rc = bench_requests_read(b);
    /* Reading the requests has fetched the types in Any. Later messages must not wait for reflection. */
    b->types.schema.reflect.channel = NULL;
    return rc;
}

static void fini(struct bench *b)
{
    for (struct bench_call *c = b->streaming; c; c = c->next)
        torc_stream_cancel(c->stream);
    connect_channels_free(b->channels, b->args.channels);
    torc_runtime_free(b->runtime); /* the last events of streams come here, and use b->types */
    request_types_fini(&b->types);
    bench_calls_fini(b);
    bench_requests_fini(&b->requests);
    torc_metadata_free(b->metadata);
    for (size_t i = 0; i < BENCH_REPORTS; i++)
        if (b->reports[i])
            fclose(b->reports[i]);
    bench_args_fini(&b->args);
    tc_free(b);
}

int cmd_bench(int argc, char **argv)
{
    struct bench *b = TC_NEW(struct bench);
    int rc = bench_args_parse(&b->args, argc, argv);
    b->types = (struct request_types){.command = NAME,
                                      .args = &b->args.request,
                                      .path = b->args.connect.method,
                                      .timeout_ms = (int64_t)b->args.deadline_ms};
    if (rc == 0)
        rc = bench_open_reports(b);
    if (rc == 0)
        rc = prepare(b);
    if (rc == 0) {
        bench_find_localities(b);
        run(b);
        bench_find_localities(b);
        b->unfinished = b->in_flight;
        b->phase = BENCH_OVER; /* RPCs that end from here on are in no figure */
        rc = bench_report(b);
        if (rc == 0)
            rc = b->refused || b->counts.by_code[TORC_STATUS_OK] != b->counts.calls ? CLI_FAILED : CLI_OK;
    }
    fini(b);
    return rc < 0 ? CLI_OK : rc;
}
