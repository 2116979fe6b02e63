/* torc call: reads the command line into struct call_args.
 *
 * The table has the subcommand's own options, those of requests, headers and schemas (request/options.c), and those of
 * connections (connect.c). Bad headers and bad hexadecimal data are usage errors before anything connects. The files of
 * --data-file, --service-config and the PEM options are read here. JSON is parsed later, when its type is known. At the
 * end, settle() checks that the options agree. */
#include <getopt.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/parse.h"
#include "call.h"
#include "cli.h"
#include "io/addr.h"

#define NAME "call"

static const char help[] =
    "usage: torc call [options] TARGET METHOD\n\n"
    "Sends RPCs and shows where each went. With types (--protoset, --proto, --reflect) messages are JSON, and methods\n"
    "may be streams; a request that begins with { is JSON where the server has reflection (-d '{}': an empty one).\n\n"
    "TARGET  xds:///name, dns:///host:port, ipv4:a:p,b:p, ipv6:[a]:p, unix:/path, vsock:CID:PORT,\n"
    "        fd:N (a connected socket), host:port\n"
    "METHOD  package.Service/Method\n\n"
    "  -d, --data STRING          the request message: JSON, or raw bytes (default empty); several JSON values are\n"
    "                             several messages; {i} becomes the call's number from 0 (--raw: stays {i}); @: JSON\n"
    "                             from standard input, each message sent when complete\n" REQUEST_HELP
    "      --emit-defaults        JSON with the fields that have their default values\n" SCHEMA_HELP HEADERS_HELP
    "  -n, --count N              calls in all (1; without a limit when --duration is given)\n"
    "  -c, --concurrency C        calls at a time (1)\n"
    "      --rps R                calls a second at most\n"
    "      --duration T           stop starting calls after this time\n"
    "      --deadline T           for each call (none), all questions of --reflect (10s); a bare number is seconds\n"
    "      --wait-for-ready       wait through failures of connections\n"
    "      --channels K           channels, calls go round them (1)\n" CONNECT_HELP
    "      --cookies              keep and send cookies: calls are of one session\n"
    "      --hold T               stay connected after the last call\n"
    "      --csds ADDR            serve the state of its xDS resources (CSDS) there meanwhile\n"
    "      --events               state changes and connects, as they happen\n"
    "      --explain              route, cluster, hash, ring entry and why that endpoint; at the end the tree of "
    "policies\n"
    "      --dry-run              explain without sending: where calls would go now, or why they would not\n"
    "      --show-metadata        metadata of responses, as text\n"
    "      --timing               when headers and the first message came\n"
    "      --exit-status grpc     exit with 64 + the status of the first call that failed\n"
    "  -o text|json               form of the output (text)\n"
    "      --quiet                only the summary\n"
    "  -v, -vv                    log to standard error\n\n"
    "Examples:\n"
    "  torc call 127.0.0.1:50051 echo.Echo/Say -d hello\n"
    "  torc call 127.0.0.1:50051 shop.Orders/Get -d '{\"id\": \"7\"}'\n"
    "  torc call --proto chat.proto 127.0.0.1:50051 chat.Chat/Talk -d @\n"
    "  torc call xds:///orders shop.Orders/Get -H 'user: u{i}' -n 100 -c 8 --explain\n"
    "  torc call ipv4:127.0.0.1:1,127.0.0.1:2 a.B/C --service-config "
    "'{\"loadBalancingConfig\":[{\"round_robin\":{}}]}'\n";

enum {
    OPT_RPS = 256,
    OPT_DURATION,
    OPT_DEADLINE,
    OPT_WAIT,
    OPT_CHANNELS,
    OPT_COOKIES,
    OPT_HOLD,
    OPT_EVENTS,
    OPT_EXPLAIN,
    OPT_CSDS,
    OPT_DRY_RUN,
    OPT_QUIET,
    OPT_SHOW_METADATA,
    OPT_TIMING,
    OPT_EXIT_STATUS,
};

static const struct option options[] = {
    REQUEST_OPTIONS,
    {"emit-defaults", no_argument, NULL, REQUEST_EMIT_DEFAULTS},
    {"show-metadata", no_argument, NULL, OPT_SHOW_METADATA},
    {"timing", no_argument, NULL, OPT_TIMING},
    {"exit-status", required_argument, NULL, OPT_EXIT_STATUS},
    SCHEMA_OPTIONS,
    HEADERS_OPTIONS,
    {"count", required_argument, NULL, 'n'},
    {"concurrency", required_argument, NULL, 'c'},
    {"rps", required_argument, NULL, OPT_RPS},
    {"duration", required_argument, NULL, OPT_DURATION},
    {"deadline", required_argument, NULL, OPT_DEADLINE},
    {"wait-for-ready", no_argument, NULL, OPT_WAIT},
    {"channels", required_argument, NULL, OPT_CHANNELS},
    CONNECT_OPTIONS,
    {"cookies", no_argument, NULL, OPT_COOKIES},
    {"hold", required_argument, NULL, OPT_HOLD},
    {"events", no_argument, NULL, OPT_EVENTS},
    {"csds", required_argument, NULL, OPT_CSDS},
    {"explain", no_argument, NULL, OPT_EXPLAIN},
    {"dry-run", no_argument, NULL, OPT_DRY_RUN},
    {"output", required_argument, NULL, 'o'},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int set_csds(struct call_args *a, const char *text)
{
    struct tc_addr addr;
    if (tc_addr_parse(&addr, tc_slice_str(text)) != 0)
        return cli_usage(NAME, "--csds: '%s' is not an address such as 127.0.0.1:0, [::1]:80 or unix:/path", text);
    tc_addr_fini(&addr);
    a->csds = text;
    return 0;
}

static int apply(struct call_args *a, int c)
{
    uint64_t ms;
    int rc;
    switch (c) {
    case OPT_EXIT_STATUS:
        a->exit_grpc = true;
        return strcmp(optarg, "grpc") == 0 ? 0 : cli_usage(NAME, "--exit-status: '%s' is not grpc", optarg);
    case 'n':
        return cli_u64(NAME, "-n", optarg, 1, UINT64_MAX, &a->count);
    case 'c':
        return cli_u64(NAME, "-c", optarg, 1, 100000, &a->concurrency);
    case OPT_RPS:
        return cli_rate(NAME, "--rps", optarg, &a->rps);
    case OPT_DURATION:
        return cli_duration_ms(NAME, "--duration", optarg, &a->duration_ms);
    case OPT_DEADLINE:
        if ((rc = cli_seconds_ms(NAME, "--deadline", optarg, &ms)) == 0)
            a->timeout_ms = ms ? (int64_t)ms : -1;
        return rc;
    case OPT_WAIT:
        a->wait_for_ready = true;
        return 0;
    case OPT_CHANNELS:
        return cli_u64(NAME, "--channels", optarg, 1, 10000, &a->channels);
    case OPT_HOLD:
        return cli_duration_ms(NAME, "--hold", optarg, &a->hold_ms);
    case OPT_CSDS:
        return set_csds(a, optarg);
    case 'o':
        return cli_output(NAME, optarg, &a->json);
    default:
        rc = request_option(NAME, &a->request, c, optarg);
        return rc < 0 ? connect_option(NAME, &a->connect, c, optarg) : rc;
    }
}

/* Takes most of the options without a value. Returns false for every other option: apply() takes it. */
static bool apply_flag(struct call_args *a, int c, int *verbose)
{
    switch (c) {
    case OPT_COOKIES:
        a->cookies = true;
        return true;
    case OPT_EVENTS:
        a->events = true;
        return true;
    case OPT_EXPLAIN:
        a->explain = true;
        return true;
    case OPT_DRY_RUN:
        a->explain = a->dry_run = true;
        return true;
    case OPT_QUIET:
        a->quiet = true;
        return true;
    case OPT_SHOW_METADATA:
        a->show_metadata = true;
        return true;
    case OPT_TIMING:
        a->timing = true;
        return true;
    case 'v':
        (*verbose)++;
        return true;
    default:
        return false;
    }
}

/* Takes TARGET and METHOD, checks that the options agree, and sets the default count. */
static int settle(struct call_args *a, int argc, char **argv)
{
    int rc;
    if ((rc = connect_finish(NAME, &a->connect, argc, argv)) != 0 || (rc = request_settle(NAME, &a->request)) != 0)
        return rc;
    if (a->count == 0 && a->duration_ms == 0)
        a->count = 1;
    return 0;
}

int call_args_parse(struct call_args *a, int argc, char **argv)
{
    static const char letters[] = ":d:H:n:c:o:vh";
    int c, rc, verbose = 0;
    *a = (struct call_args){.concurrency = 1, .channels = 1};
    if ((rc = cli_long_options(NAME, argc, argv, letters, options, connect_foreign)) != 0)
        return rc;
    while ((c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        if (c == 'h')
            return cli_help(help);
        if (c == '?' || c == ':')
            return cli_bad_option(NAME, c, argv);
        if (!apply_flag(a, c, &verbose) && (rc = apply(a, c)) != 0)
            return rc;
    }
    if ((rc = settle(a, argc, argv)) == 0)
        cli_verbose(verbose);
    return rc;
}

void call_args_fini(struct call_args *a)
{
    request_args_fini(&a->request);
    connect_args_fini(&a->connect);
}
