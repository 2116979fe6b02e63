/* torc bench: load from one thread, which drives the runtime itself.
 *
 * Closed loop: each call that ends starts the next. Open loop (--rps): calls start by the clock, whether or not earlier
 * calls have ended, and latency counts from the intended start, so that a stall of the server (or of this program)
 * shows in the latencies (no coordinated omission).
 *
 * run() alternates between starting what is due and waiting for the loop. bench_call objects are reused through a free
 * list. Latencies go to a histogram of fixed size. */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli.h"
#include "commands.h"
#include "connect.h"
#include "histogram.h"

#define NAME "bench"
#define CODES 17 /* gRPC has 17 status codes */
#define MOST_CONCURRENT 100000
#define CONNECT_MS 10000

/* clang-format off */
static const char help[] =
    "usage: torc bench [options] TARGET METHOD\n\n"
    "Sends unary RPCs as load: rate, latency, CPU time of each RPC, errors by status.\n\n"
    "TARGET  xds:///name, dns:///host:port, ipv4:a:p,b:p, ipv6:[a]:p, unix:/path, vsock:CID:PORT,\n"
    "        fd:N (a connected socket), host:port\n"
    "METHOD  package.Service/Method\n\n"
    "  -c, --concurrency C        calls at a time (1; with --rps the most at a time, 100000)\n"
    "      --duration T           stop starting calls after this time (10s)\n"
    "      --payload BYTES        size of each request (0)\n"
    "      --channels K           channels, calls go round them (1)\n"
    "      --rps R                calls a second, begun by the clock (open loop); latency counts from when a call was\n"
    "                             to begin. Without it: as fast as the calls at a time go (closed loop)\n"
    "      --deadline T           for each call, and to connect, which takes 10s at most (10s)\n"
    CONNECT_HELP
    "  -o text|json               form of the output (text)\n"
    "  -v, -vv                    log to standard error\n\n"
    "Examples:\n"
    "  torc bench 127.0.0.1:50051 echo.Echo/Say -c 64 --duration 5s\n"
    "  torc bench xds:///orders shop.Orders/Get --rps 2000 --payload 1k -o json\n";
/* clang-format on */

enum { OPT_DURATION = 256, OPT_PAYLOAD, OPT_CHANNELS, OPT_RPS, OPT_DEADLINE };

static const struct option options[] = {
    {"concurrency", required_argument, NULL, 'c'},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"payload", required_argument, NULL, OPT_PAYLOAD},
    {"channels", required_argument, NULL, OPT_CHANNELS},
    {"rps", required_argument, NULL, OPT_RPS},
    {"deadline", required_argument, NULL, OPT_DEADLINE},
    CONNECT_OPTIONS,
    {"output", required_argument, NULL, 'o'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct bench_args {
    struct connect_args connect;
    uint64_t concurrency; /* 0: not given */
    uint64_t duration_ms, deadline_ms, payload, channels;
    double rps; /* 0: closed loop */
    bool json;
};

struct bench_call {
    struct bench *bench;
    uint64_t begin_ns;       /* with --rps: the intended start */
    struct bench_call *next; /* next in the free list */
};

struct bench {
    struct bench_args args;
    torc_runtime *runtime;
    torc_channel **channels;
    char *payload;
    struct torc_call_options call_options;
    struct bench_call *free_calls;
    uint64_t begin_ns, end_ns, over_ns, shown_ns;
    uint64_t started, in_flight, done, most_in_flight, not_started;
    uint64_t by_code[CODES];
    struct histogram latency_ns;
    double cpu_seconds;
    bool progress;
    bool refused; /* a call could not be started */
};

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(NULL);
}

static int apply(struct bench_args *a, int c)
{
    switch (c) {
    case 'c':
        return cli_u64(NAME, "-c", optarg, 1, MOST_CONCURRENT, &a->concurrency);
    case OPT_DURATION:
        return cli_duration_ms(NAME, "--duration", optarg, &a->duration_ms);
    case OPT_PAYLOAD:
        return cli_size(NAME, "--payload", optarg, &a->payload);
    case OPT_CHANNELS:
        return cli_u64(NAME, "--channels", optarg, 1, 10000, &a->channels);
    case OPT_RPS:
        return cli_rate(NAME, "--rps", optarg, &a->rps);
    case OPT_DEADLINE:
        return cli_duration_ms(NAME, "--deadline", optarg, &a->deadline_ms);
    case 'o':
        return cli_output(NAME, optarg, &a->json);
    default:
        return connect_option(NAME, &a->connect, c, optarg);
    }
}

/* Returns 0 to go on; otherwise the exit status, with the error printed; -1 if --help was printed. */
static int parse(struct bench_args *a, int argc, char **argv)
{
    int c, rc, verbose = 0;
    *a = (struct bench_args){.duration_ms = 10000, .deadline_ms = 10000, .channels = 1};
    opterr = 0;
    optind = 1;
    if ((rc = cli_long_options(NAME, argc, argv, ":c:o:vh", options, connect_foreign)) != 0)
        return rc;
    while ((c = getopt_long(argc, argv, ":c:o:vh", options, NULL)) != -1) {
        if (c == 'h')
            return cli_help(help);
        if (c == '?' || c == ':')
            return cli_bad_option(NAME, c, argv);
        if (c == 'v')
            verbose++;
        else if ((rc = apply(a, c)) != 0)
            return rc;
    }
    if ((rc = connect_finish(NAME, &a->connect, argc, argv)) != 0)
        return rc;
    if (a->duration_ms == 0 || a->deadline_ms == 0)
        return cli_usage(NAME, "--duration and --deadline must be more than 0");
    if (a->payload > UINT32_MAX)
        return cli_usage(NAME, "--payload: a message has at most 4294967295 bytes");
    if (!a->concurrency)
        a->concurrency = a->rps > 0 ? MOST_CONCURRENT : 1;
    cli_verbose(verbose);
    return 0;
}

static void start_call(struct bench *b, uint64_t begin_ns);

static void on_result(const torc_result *result, void *arg)
{
    struct bench_call *c = arg;
    struct bench *b = c->bench;
    uint64_t now = now_ns();
    histogram_add(&b->latency_ns, now - c->begin_ns);
    b->by_code[torc_result_code(result) >= 0 && torc_result_code(result) < CODES ? torc_result_code(result)
                                                                                 : TORC_STATUS_UNKNOWN]++;
    b->done++;
    b->in_flight--;
    b->over_ns = now;
    c->next = b->free_calls;
    b->free_calls = c;
    if (b->args.rps <= 0 && now < b->end_ns && !b->refused)
        start_call(b, now);
}

static void start_call(struct bench *b, uint64_t begin_ns)
{
    struct bench_call *c = b->free_calls;
    if (c)
        b->free_calls = c->next;
    else
        c = TC_NEW(struct bench_call);
    *c = (struct bench_call){.bench = b, .begin_ns = begin_ns};
    torc_channel *channel = b->channels[b->started % b->args.channels];
    int rc = torc_unary_async(channel, b->args.connect.method, b->payload, b->args.payload, &b->call_options, on_result,
                              c, NULL, NULL);
    if (rc != 0) {
        connect_call_refused(NAME, b->args.connect.method, rc);
        b->refused = true;
        tc_free(c);
        return;
    }
    b->started++;
    if (++b->in_flight > b->most_in_flight)
        b->most_in_flight = b->in_flight;
}

/* Returns the intended start of the nth call. */
static uint64_t due_ns(const struct bench *b, uint64_t n)
{
    return b->begin_ns + (uint64_t)((double)n * 1e9 / b->args.rps);
}

/* Waits for activity on the loop, at most until `until_ns`, with a precision of microseconds: the loop's own timers are
 * coarser. */
static void wait_until(struct bench *b, uint64_t until_ns)
{
    struct pollfd p = {.fd = torc_runtime_fd(b->runtime), .events = POLLIN};
    int loop_ms = torc_runtime_timeout_ms(b->runtime);
    uint64_t now = now_ns();
    uint64_t wait = until_ns > now ? until_ns - now : 0;
    if (loop_ms >= 0 && (uint64_t)loop_ms * TC_NS_PER_MS < wait)
        wait = (uint64_t)loop_ms * TC_NS_PER_MS;
    struct timespec t = {(time_t)(wait / TC_NS_PER_S), (long)(wait % TC_NS_PER_S)};
    ppoll(&p, 1, &t, NULL); /* interrupted by a signal: the caller looks again */
    torc_runtime_poll(b->runtime, 0);
}

static void show_progress(struct bench *b)
{
    uint64_t now = now_ns();
    if (!b->progress || now - b->shown_ns < 2 * TC_NS_PER_S)
        return;
    b->shown_ns = now;
    fprintf(stderr, "torc bench: %.0f s, %llu calls done, %llu OK\n", (double)(now - b->begin_ns) / 1e9,
            (unsigned long long)b->done, (unsigned long long)b->by_code[TORC_STATUS_OK]);
}

static void run_open(struct bench *b)
{
    while (!b->refused) {
        uint64_t now = now_ns(), due;
        while ((due = due_ns(b, b->started)) <= now && due < b->end_ns && b->in_flight < b->args.concurrency &&
               !b->refused)
            start_call(b, due);
        if (now >= b->end_ns || due >= b->end_ns)
            break;
        /* With as many calls in flight as -c allows, only an answer can start another. */
        wait_until(b, b->in_flight < b->args.concurrency ? due : b->end_ns);
        show_progress(b);
    }
    for (uint64_t n = b->started; !b->refused && due_ns(b, n) < b->end_ns; n++)
        b->not_started++;
}

static void run_closed(struct bench *b)
{
    while (b->in_flight < b->args.concurrency && !b->refused)
        start_call(b, now_ns());
}

/* Waits for the last call to end. Deadlines bound the wait. */
static void run(struct bench *b)
{
    double cpu = cli_cpu_seconds();
    b->progress = isatty(STDERR_FILENO);
    b->begin_ns = b->over_ns = b->shown_ns = now_ns();
    b->end_ns = cli_end_ns(b->begin_ns, b->args.duration_ms);
    if (b->args.rps > 0)
        run_open(b);
    else
        run_closed(b);
    while (b->in_flight) {
        torc_runtime_poll(b->runtime, 500);
        show_progress(b);
    }
    b->cpu_seconds = cli_cpu_seconds() - cpu;
}

static const struct {
    const char *name, *title;
    double q;
} quantiles[] = {
    {"p50", "p50", 0.5},      {"p90", "p90", 0.9},         {"p99", "p99", 0.99},
    {"p999", "p99.9", 0.999}, {"p9999", "p99.99", 0.9999}, {"max", "max", 1},
};

static double per_call(const struct bench *b, double v)
{
    return b->done ? v / (double)b->done : 0;
}

static void print_json(const struct bench *b, double seconds)
{
    struct tc_buf out = {0};
    tc_buf_printf(&out, "{\"bench\":{\"calls\":%llu,\"ok\":%llu,\"not_started\":%llu,\"by_status\":{",
                  (unsigned long long)b->done, (unsigned long long)b->by_code[TORC_STATUS_OK],
                  (unsigned long long)b->not_started);
    const char *comma = "";
    for (int i = 0; i < CODES; i++) {
        if (b->by_code[i]) {
            tc_buf_printf(&out, "%s\"%s\":%llu", comma, torc_status_code_name(i), (unsigned long long)b->by_code[i]);
            comma = ",";
        }
    }
    tc_buf_printf(&out, "},\"rps\":%.1f,\"latency_us\":{", seconds > 0 ? (double)b->done / seconds : 0);
    for (size_t i = 0; i < TC_ARRAY_LEN(quantiles); i++)
        tc_buf_printf(&out, "%s\"%s\":%.1f", i ? "," : "", quantiles[i].name,
                      (double)histogram_at(&b->latency_ns, quantiles[i].q) / 1e3);
    tc_buf_printf(&out, "},\"most_in_flight\":%llu,\"seconds\":%.3f,\"cpu_seconds\":%.3f,\"cpu_us_per_call\":%.2f}}",
                  (unsigned long long)b->most_in_flight, seconds, b->cpu_seconds, per_call(b, b->cpu_seconds * 1e6));
    puts(tc_buf_cstr(&out));
    tc_buf_fini(&out);
}

static void print_text(const struct bench *b, double seconds)
{
    printf("%llu calls in %.3f s: %.0f a second, at most %llu at a time\n", (unsigned long long)b->done, seconds,
           seconds > 0 ? (double)b->done / seconds : 0, (unsigned long long)b->most_in_flight);
    if (b->not_started)
        printf("%llu calls were due but not started: -c calls were in flight\n", (unsigned long long)b->not_started);
    printf("CPU        %.2f us a call\n", per_call(b, b->cpu_seconds * 1e6));
    for (size_t i = 0; i < TC_ARRAY_LEN(quantiles); i++) {
        struct tc_buf time = {0};
        cli_format_us(&time, histogram_at(&b->latency_ns, quantiles[i].q) / 1000);
        printf("%-10s %-6s %10s\n", i ? "" : "latency", quantiles[i].title, tc_buf_cstr(&time));
        tc_buf_fini(&time);
    }
    bool first = true;
    for (int i = 0; i < CODES; i++) {
        if (b->by_code[i])
            printf("%-10s %-20s %10llu  %5.1f %%\n", first ? "status" : "", torc_status_code_name(i),
                   (unsigned long long)b->by_code[i], per_call(b, 100.0 * (double)b->by_code[i]));
        first = first && !b->by_code[i];
    }
}

/* Returns the wait for a connection: as long as a call would wait, bounded by the patience of a person who watches. */
static uint64_t connect_ms(const struct bench *b)
{
    return TC_MIN(b->args.deadline_ms, (uint64_t)CONNECT_MS);
}

/* Returns the status that a call of the method would fail with now, or 0 if it would wait or be sent. */
static int why_not(struct bench *b, torc_channel *channel)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 1};
    torc_result *result = torc_explain(channel, b->args.connect.method, &o);
    int rc = torc_result_code(result) == TORC_STATUS_OK
                 ? 0
                 : cli_fail(NAME, "cannot connect to %s: %s: %s", b->args.connect.target,
                            torc_status_code_name(torc_result_code(result)), torc_result_text(result));
    torc_result_free(result);
    return rc;
}

/* Waits until the channel is READY, a call would fail, or the time is over. */
static int connect_one(struct bench *b, torc_channel *channel, uint64_t until_ns)
{
    enum torc_connectivity state;
    while ((state = torc_channel_state(channel, true)) != TORC_CONNECTIVITY_READY) {
        int rc = state == TORC_CONNECTIVITY_TRANSIENT_FAILURE ? why_not(b, channel) : 0;
        if (rc != 0)
            return rc;
        uint64_t now = now_ns();
        if (now < until_ns) {
            torc_channel_wait_state(channel, state, cli_wait_ms(now, until_ns), NULL);
            continue;
        }
        rc = why_not(b, channel);
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
    uint64_t until_ns = cli_end_ns(now_ns(), connect_ms(b));
    for (uint64_t i = 0; i < a->channels && rc == 0; i++)
        rc = connect_one(b, b->channels[i], until_ns);
    return rc;
}

static int prepare(struct bench *b)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    torc_error *error = NULL;
    b->runtime = torc_runtime_new(&o, &error);
    if (!b->runtime)
        return cli_fail_error(NAME, error);
    prctl(PR_SET_TIMERSLACK, 1UL); /* ppoll wakes on time instead of up to 50 us late */
    b->call_options =
        (struct torc_call_options){TORC_SIZE(torc_call_options), .timeout_ms = (int64_t)b->args.deadline_ms};
    b->payload = tc_calloc(b->args.payload + 1, 1);
    memset(b->payload, 'x', b->args.payload);
    return connect_all(b);
}

static void fini(struct bench *b)
{
    connect_channels_free(b->channels, b->args.channels);
    torc_runtime_free(b->runtime);
    while (b->free_calls) {
        struct bench_call *c = b->free_calls;
        b->free_calls = c->next;
        tc_free(c);
    }
    tc_free(b->payload);
    connect_args_fini(&b->args.connect);
    tc_free(b);
}

int cmd_bench(int argc, char **argv)
{
    struct bench *b = TC_NEW(struct bench);
    int rc = parse(&b->args, argc, argv);
    if (rc == 0)
        rc = prepare(b);
    if (rc == 0) {
        run(b);
        double seconds = (double)(b->over_ns - b->begin_ns) / 1e9;
        if (b->args.json)
            print_json(b, seconds);
        else
            print_text(b, seconds);
        rc = b->refused || b->by_code[TORC_STATUS_OK] != b->done ? CLI_FAILED : CLI_OK;
    }
    fini(b);
    return rc < 0 ? CLI_OK : rc;
}
