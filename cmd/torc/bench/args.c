/* torc bench: reads the command line into struct bench_args.
 *
 * The options of the load and of its reports are read here. The options of requests and channels are those of torc call
 * (request/options.c, headers.c, connect.c). Texts of options that are read here stay in argv: struct bench_args
 * borrows them.
 *
 * bench_args_parse checks at its end that the options agree. What depends on the method's type waits for requests.c,
 * because reflection may give the type, and needs a connected channel: options about messages are checked, standard
 * input is read and requests are parsed there. */
#include <stdio.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "cli.h"

#define NAME BENCH_NAME

/* clang-format off */
static const char help[] =
    "usage: torc bench [options] TARGET METHOD\n\n"
    "Sends RPCs as load: rate, latency, CPU time of each RPC, errors by status, each backend's share. With types\n"
    "(--protoset, --proto, --reflect) requests are JSON, and methods may be streams.\n\n"
    "TARGET  xds:///name, dns:///host:port, ipv4:a:p,b:p, ipv6:[a]:p, unix:/path, vsock:CID:PORT,\n"
    "        fd:N (a connected socket), host:port\n"
    "METHOD  package.Service/Method\n\n"
    "  -n, --count N              RPCs in all, counted ones (without a limit)\n"
    "  -c, --concurrency C        RPCs at a time (1; with --rps the most at a time, 100000)\n"
    "      --duration T           stop starting RPCs after this time (10s; without a limit when -n is given)\n"
    "      --max-duration T       --duration, in ghz's words\n"
    "      --rps R                RPCs a second, begun by the clock (open loop); latency counts from when an RPC was\n"
    "                             to begin. Without it: as fast as the RPCs at a time go (closed loop)\n"
    "      --stage LOAD/T[,...]   stages of load one after another, repeatable; a row for each. LOAD is RPCs a second:\n"
    "                             500/30s stays, 100..1000/30s is a line, 100..1000/10x5s ten steps of 5s. c=8/10s,\n"
    "                             c=1..64/30s: RPCs at a time. An RPC counts in the stage in which it was to begin\n"
    "      --warmup T             load of this time before the clock starts, which counts in no figure\n"
    "      --channels K           channels, RPCs go round them (1)\n"
    "      --deadline T           for each RPC, and to connect, which takes 10s at most (10s); a bare number is seconds\n"
    "  -d, --data STRING          the request: JSON, or raw bytes (default empty). Several JSON values are requests that\n"
    "                             RPCs send in turn; the messages of an RPC where the method takes a stream\n"
    "                             @FILE: a file of them (bytes: one a line); @: standard input\n"
    "                             {i} becomes the RPC's number from 0, {uuid}, {int:A:B} and {str:N} something random\n"
    REQUEST_HELP
    "      --payload BYTES        size of each request, instead of -d (0)\n"
    "      --call-count N         messages of an RPC that takes a stream, the requests in turn (each of them once); of\n"
    "                             one with a stream of responses alone, responses after which it ends\n"
    "      --stream-interval T    between two messages of an RPC; latency by message counts from when each was to go\n"
    "      --call-duration T      the time of an RPC with streams, less than its deadline: then it sends no more, or ends\n"
    SCHEMA_HELP HEADERS_HELP
    "      --wait-for-ready       wait through failures of connections\n"
    CONNECT_HELP
    "  -o text|json               form of the output (text)\n"
    "      --report KIND=FILE     hdr: the distribution of latency, in milliseconds, as HdrHistogram's plotters read it;\n"
    "                             csv: a row for all RPCs, each status, stage, backend and locality; html: a page;\n"
    "                             prometheus: metrics as text. KIND=FILE,KIND=FILE: several. -: standard output\n"
    "      --quiet                no live line on standard error, which a terminal has else\n"
    "  -v, -vv                    log to standard error\n\n"
    "Examples:\n"
    "  torc bench 127.0.0.1:50051 echo.Echo/Say -c 64 --duration 5s\n"
    "  torc bench 127.0.0.1:50051 shop.Orders/Get -d '{\"id\": \"{i}\"}' -n 10000 --warmup 1s\n"
    "  torc bench 127.0.0.1:50051 echo.Echo/Say --stage 100/10s,100..5000/1m,5000/30s\n"
    "  torc bench xds:///orders shop.Orders/Get -H 'user: u{i}' --rps 2000 --report hdr=orders.hgrm,csv=orders.csv\n";
/* clang-format on */

enum {
    OPT_DURATION = 256,
    OPT_MAX_DURATION,
    OPT_PAYLOAD,
    OPT_CHANNELS,
    OPT_RPS,
    OPT_STAGE,
    OPT_DEADLINE,
    OPT_WARMUP,
    OPT_CALL_COUNT,
    OPT_STREAM_INTERVAL,
    OPT_CALL_DURATION,
    OPT_REPORT,
    OPT_QUIET,
    OPT_WAIT,
};

static const struct option options[] = {
    {"count", required_argument, NULL, 'n'},
    {"concurrency", required_argument, NULL, 'c'},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"max-duration", required_argument, NULL, OPT_MAX_DURATION},
    {"rps", required_argument, NULL, OPT_RPS},
    {"stage", required_argument, NULL, OPT_STAGE},
    {"warmup", required_argument, NULL, OPT_WARMUP},
    {"channels", required_argument, NULL, OPT_CHANNELS},
    {"deadline", required_argument, NULL, OPT_DEADLINE},
    REQUEST_OPTIONS,
    {"payload", required_argument, NULL, OPT_PAYLOAD},
    {"call-count", required_argument, NULL, OPT_CALL_COUNT},
    {"stream-interval", required_argument, NULL, OPT_STREAM_INTERVAL},
    {"call-duration", required_argument, NULL, OPT_CALL_DURATION},
    SCHEMA_OPTIONS,
    HEADERS_OPTIONS,
    {"wait-for-ready", no_argument, NULL, OPT_WAIT},
    CONNECT_OPTIONS,
    {"output", required_argument, NULL, 'o'},
    {"report", required_argument, NULL, OPT_REPORT},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char *const report_kinds[BENCH_REPORTS] = {
    [BENCH_CSV] = "csv", [BENCH_HDR] = "hdr", [BENCH_HTML] = "html", [BENCH_PROMETHEUS] = "prometheus"};

/* Returns the kind if the text begins with KIND=, else BENCH_REPORTS. */
static size_t report_kind(const char *text)
{
    size_t i = 0, len = strcspn(text, "=");
    while (i < BENCH_REPORTS &&
           !(text[len] == '=' && strlen(report_kinds[i]) == len && strncmp(text, report_kinds[i], len) == 0))
        i++;
    return i;
}

/* Reads KIND=FILE,KIND=FILE. A comma is a part of the file's name unless KIND= follows. Ends each name with a NUL in
 * `text`, from which a->report borrows. */
static int set_report(struct bench_args *a, char *text)
{
    while (text) {
        size_t kind = report_kind(text);
        if (kind == BENCH_REPORTS)
            return cli_usage(NAME, "--report: '%s' is not KIND=FILE, KIND csv, hdr, html or prometheus", text);
        char *next = strchr(text, ',');
        while (next && report_kind(next + 1) == BENCH_REPORTS)
            next = strchr(next + 1, ',');
        if (next)
            *next++ = '\0';
        a->report[kind] = text + strlen(report_kinds[kind]) + 1;
        int rc = cli_path(NAME, "--report", a->report[kind]);
        if (rc != 0)
            return rc;
        text = next;
    }
    return 0;
}

/* Reads getopt's optarg as a duration above 0. */
static int set_time(const char *option, uint64_t *out)
{
    int rc = cli_duration_ns(NAME, option, optarg, out);
    return rc || *out ? rc : cli_usage(NAME, "%s: '%s' is not above 0", option, optarg);
}

static int apply(struct bench_args *a, int c)
{
    int rc;
    switch (c) {
    case 'n':
        return cli_u64(NAME, "-n", optarg, 1, UINT64_MAX, &a->count);
    case 'c':
        return cli_u64(NAME, "-c", optarg, 1, BENCH_MOST_CONCURRENT, &a->concurrency);
    case OPT_DURATION:
    case OPT_MAX_DURATION:
        a->has_duration = true;
        return cli_duration_ms(NAME, c == OPT_DURATION ? "--duration" : "--max-duration", optarg, &a->duration_ms);
    case OPT_WARMUP:
        return cli_duration_ms(NAME, "--warmup", optarg, &a->warmup_ms);
    case OPT_PAYLOAD:
        a->has_payload = true;
        return cli_size(NAME, "--payload", optarg, &a->payload);
    case OPT_CHANNELS:
        return cli_u64(NAME, "--channels", optarg, 1, 10000, &a->channels);
    case OPT_RPS:
        return cli_rate(NAME, "--rps", optarg, &a->rps);
    case OPT_STAGE:
        a->has_stages = true;
        return bench_plan_read(&a->plan, NAME, optarg);
    case OPT_DEADLINE:
        return cli_seconds_ms(NAME, "--deadline", optarg, &a->deadline_ms);
    case OPT_CALL_COUNT:
        return cli_u64(NAME, "--call-count", optarg, 1, UINT32_MAX, &a->call_count);
    case OPT_STREAM_INTERVAL:
        return set_time("--stream-interval", &a->stream_interval_ns);
    case OPT_CALL_DURATION:
        return set_time("--call-duration", &a->call_duration_ns);
    case OPT_REPORT:
        return set_report(a, optarg);
    case OPT_QUIET:
        a->quiet = true;
        return 0;
    case OPT_WAIT:
        a->wait_for_ready = true;
        return 0;
    case 'o':
        return cli_output(NAME, optarg, &a->json);
    default:
        rc = request_option(NAME, &a->request, c, optarg);
        return rc < 0 ? connect_option(NAME, &a->connect, c, optarg) : rc;
    }
}

/* Checks --stage against the other options of load. Sets the default of -c; -n without --duration has no limit
 * of time. Without --stage, makes one stage: its load is --rps or else -c, and its length is --duration. */
static int settle_plan(struct bench_args *a)
{
    if (a->has_stages && a->rps > 0)
        return cli_usage(NAME, "--rps and --stage contradict: --stage has the rate");
    if (a->has_stages && a->has_duration)
        return cli_usage(NAME, "--duration and --stage contradict: each stage has its time");
    if (a->has_stages && a->plan.closed && a->concurrency)
        return cli_usage(NAME, "-c and --stage c= contradict: each stage has its RPCs at a time");
    if (a->has_stages && !bench_plan_any(&a->plan))
        return cli_usage(NAME, "--stage: no stage has a load above 0");
    if (a->has_stages && a->warmup_ms && a->plan.stages.data[0].from <= 0)
        return cli_usage(NAME, "--warmup is load as at the beginning of the first --stage, and that is 0");
    if (a->count && !a->has_duration)
        a->duration_ms = UINT64_MAX;
    if (!a->has_stages)
        a->plan.closed = a->rps <= 0;
    if (!a->concurrency)
        a->concurrency = a->plan.closed ? 1 : BENCH_MOST_CONCURRENT;
    if (!a->has_stages) {
        double load = a->plan.closed ? (double)a->concurrency : a->rps;
        bench_plan_add(&a->plan, load, load, cli_end_ns(0, a->duration_ms));
    }
    return 0;
}

static int settle(struct bench_args *a, int argc, char **argv)
{
    int rc;
    if ((rc = connect_finish(NAME, &a->connect, argc, argv)) != 0 || (rc = request_settle(NAME, &a->request)) != 0)
        return rc;
    if (a->duration_ms == 0 || a->deadline_ms == 0)
        return cli_usage(NAME, "--duration and --deadline must be more than 0");
    if (a->call_duration_ns != UINT64_MAX && a->call_duration_ns / TC_NS_PER_MS >= a->deadline_ms)
        return cli_usage(NAME, "--call-duration: the deadline of an RPC, %.10g s, is not later: say --deadline",
                         (double)a->deadline_ms / 1e3);
    if (a->payload > UINT32_MAX)
        return cli_usage(NAME, "--payload: a message has at most 4294967295 bytes");
    if (a->has_payload && a->request.kind != REQUEST_NONE)
        return cli_usage(NAME, "--payload goes with none of -d, --data-hex and --data-file");
    if (a->request.text)
        return cli_usage(NAME, "--format text is not for load: protoc would read each message");
    return settle_plan(a);
}

int bench_args_parse(struct bench_args *a, int argc, char **argv)
{
    static const char letters[] = ":n:c:d:H:o:vh";
    int c, rc, verbose = 0;
    *a = (struct bench_args){.duration_ms = 10000, .deadline_ms = 10000, .channels = 1, .call_duration_ns = UINT64_MAX};
    a->request.lines = a->request.headers.all_placeholders = true;
    if ((rc = cli_long_options(NAME, argc, argv, letters, options, connect_foreign)) != 0)
        return rc;
    while ((c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        if (c == 'h')
            return cli_help(help);
        if (c == '?' || c == ':')
            return cli_bad_option(NAME, c, argv);
        if (c == 'v')
            verbose++;
        else if ((rc = apply(a, c)) != 0)
            return rc;
    }
    if ((rc = settle(a, argc, argv)) == 0)
        cli_verbose(verbose);
    return rc;
}

void bench_args_fini(struct bench_args *a)
{
    bench_plan_fini(&a->plan);
    request_args_fini(&a->request);
    connect_args_fini(&a->connect);
}
