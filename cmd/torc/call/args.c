/* torc call: reads the command line into struct call_args.
 *
 * The table of options covers the subcommand's own and CONNECT_OPTIONS, which connect.c handles. Headers (-H) and
 * message data are decoded here, so that bad ones are usage errors before anything connects. call_args_parse checks at
 * its end that the options fit together. */
#include <getopt.h>
#include <stdio.h>

#include "base/headers.h"
#include "base/mem.h"
#include "base/parse.h"
#include "call.h"
#include "cli.h"
#include "io/addr.h"

#define NAME "call"

static const char help[] =
    "usage: torc call [options] TARGET METHOD\n\n"
    "Sends unary RPCs and shows where each went.\n\n"
    "TARGET  xds:///name, dns:///host:port, ipv4:a:p,b:p, ipv6:[a]:p, unix:/path, vsock:CID:PORT,\n"
    "        fd:N (a connected socket), host:port\n"
    "METHOD  package.Service/Method\n\n"
    "  -d, --data STRING          the request message, raw bytes (default empty)\n"
    "      --data-hex HEX         the same in hexadecimal\n"
    "      --data-file PATH       the same from a file (-: standard input)\n"
    "  -H, --header 'NAME: VALUE' metadata, repeatable; {i} becomes the call's number; a -bin value is base64\n"
    "  -n, --count N              calls in all (1; without a limit when --duration is given)\n"
    "  -c, --concurrency C        calls at a time (1)\n"
    "      --rps R                calls a second at most\n"
    "      --duration T           stop starting calls after this time\n"
    "      --deadline T           for each call\n"
    "      --wait-for-ready       wait through failures of connections\n"
    "      --channels K           channels, calls go round them (1)\n" CONNECT_HELP
    "      --cookies              keep and send cookies: calls are of one session\n"
    "      --hold T               stay connected after the last call\n"
    "      --csds ADDR            serve the state of its xDS resources (CSDS) there meanwhile\n"
    "      --events               state changes and connects, as they happen\n"
    "      --explain              route, cluster, hash, ring entry and why that endpoint; at the end the tree of "
    "policies\n"
    "      --dry-run              explain without sending: where calls would go now, or why they would not\n"
    "  -o text|json               form of the output (text)\n"
    "      --quiet                only the summary\n"
    "  -v, -vv                    log to standard error\n\n"
    "Examples:\n"
    "  torc call 127.0.0.1:50051 echo.Echo/Say -d hello\n"
    "  torc call xds:///orders shop.Orders/Get -H 'user: u{i}' -n 100 -c 8 --explain\n"
    "  torc call ipv4:127.0.0.1:1,127.0.0.1:2 a.B/C --service-config "
    "'{\"loadBalancingConfig\":[{\"round_robin\":{}}]}'\n";

enum {
    OPT_DATA_HEX = 256,
    OPT_DATA_FILE,
    OPT_RPS,
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
};

static const struct option options[] = {
    {"data", required_argument, NULL, 'd'},
    {"data-hex", required_argument, NULL, OPT_DATA_HEX},
    {"data-file", required_argument, NULL, OPT_DATA_FILE},
    {"header", required_argument, NULL, 'H'},
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

static int add_header(struct call_args *a, const char *text)
{
    struct tc_slice s = tc_slice_str(text);
    ptrdiff_t colon = tc_slice_find(s, tc_slice_str(":"));
    if (colon <= 0)
        return cli_usage(NAME, "-H: '%s' does not have the form 'name: value'", text);
    struct tc_slice name = tc_slice_trim(tc_slice_of(s.data, (size_t)colon));
    struct tc_slice value = tc_slice_trim(tc_slice_of(s.data + colon + 1, s.len - (size_t)colon - 1));
    struct call_header *h = tc_vec_push(&a->headers);
    h->name = tc_slice_dup(name);
    for (char *p = h->name; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    if (!tc_header_is_binary(tc_slice_str(h->name))) {
        tc_buf_append_slice(&h->value, value);
        h->numbered = tc_slice_find(value, tc_slice_str("{i}")) >= 0;
    } else if (tc_base64_decode(&h->value, value) != 0) {
        return cli_usage(NAME, "-H: the value of '%s' is not base64", h->name);
    }
    /* Metadata that the library would reject on every call is rejected here once, with the option's name. */
    torc_metadata *probe = torc_metadata_new();
    int rc = torc_metadata_add(probe, h->name, h->value.data ? h->value.data : "", h->value.len);
    torc_metadata_free(probe);
    if (rc != 0)
        return cli_usage(
            NAME, "-H: '%s' is not allowed as metadata (reserved name, or characters outside printable ASCII)", text);
    return 0;
}

static int set_csds(struct call_args *a, const char *text)
{
    struct tc_addr addr;
    if (tc_addr_parse(&addr, tc_slice_str(text)) != 0)
        return cli_usage(NAME, "--csds: '%s' is not an address such as 127.0.0.1:0, [::1]:80 or unix:/path", text);
    tc_addr_fini(&addr);
    a->csds = text;
    return 0;
}

static int apply_data(struct call_args *a, int c)
{
    if (a->has_data)
        return cli_usage(NAME, "give one of -d, --data-hex and --data-file, once");
    a->has_data = true;
    if (c == 'd') {
        tc_buf_append_str(&a->data, optarg);
        return 0;
    }
    if (c == OPT_DATA_HEX)
        return tc_hex_decode(&a->data, tc_slice_str(optarg)) == 0
                   ? 0
                   : cli_usage(NAME, "--data-hex: '%s' is not hexadecimal", optarg);
    int rc = cli_path(NAME, "--data-file", optarg);
    return rc ? rc : cli_read_file(NAME, optarg, &a->data);
}

static int apply(struct call_args *a, int c)
{
    uint64_t ms;
    int rc;
    switch (c) {
    case 'd':
    case OPT_DATA_HEX:
    case OPT_DATA_FILE:
        return apply_data(a, c);
    case 'H':
        return add_header(a, optarg);
    case 'n':
        return cli_u64(NAME, "-n", optarg, 1, UINT64_MAX, &a->count);
    case 'c':
        return cli_u64(NAME, "-c", optarg, 1, 100000, &a->concurrency);
    case OPT_RPS:
        return cli_rate(NAME, "--rps", optarg, &a->rps);
    case OPT_DURATION:
        return cli_duration_ms(NAME, "--duration", optarg, &a->duration_ms);
    case OPT_DEADLINE:
        if ((rc = cli_duration_ms(NAME, "--deadline", optarg, &ms)) == 0)
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
        return connect_option(NAME, &a->connect, c, optarg);
    }
}

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
    case 'v':
        (*verbose)++;
        return true;
    default:
        return false;
    }
}

int call_args_parse(struct call_args *a, int argc, char **argv)
{
    int c, rc, verbose = 0;
    *a = (struct call_args){.concurrency = 1, .channels = 1};
    opterr = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":d:H:n:c:o:vh", options, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return -1;
        }
        if (c == '?' || c == ':')
            return cli_bad_option(NAME, c, argv);
        if (!apply_flag(a, c, &verbose) && (rc = apply(a, c)) != 0)
            return rc;
    }
    if ((rc = connect_finish(NAME, &a->connect, argc, argv)) != 0)
        return rc;
    if (a->count == 0 && a->duration_ms == 0)
        a->count = 1;
    cli_verbose(verbose);
    return 0;
}

void call_args_fini(struct call_args *a)
{
    for (size_t i = 0; i < a->headers.len; i++) {
        tc_free(a->headers.data[i].name);
        tc_buf_fini(&a->headers.data[i].value);
    }
    tc_vec_fini(&a->headers);
    tc_buf_fini(&a->data);
    connect_args_fini(&a->connect);
}
