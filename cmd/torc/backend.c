/* torc backend: an echo server for tries and tests.
 *
 * One thread, one loop: a tc_backend behind a tc_server on each --listen address. SIGINT and SIGTERM end the loop, and
 * calls in progress get DRAIN_MS to end. --count-log prints the counts afterwards, when no connection can change
 * them. */
#include "controlplane/backend.h"

#include <getopt.h>
#include <stdio.h>

#include "base/headers.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/vec.h"
#include "cli.h"
#include "cli_tls.h"
#include "commands.h"
#include "serve.h"
#include "signals.h"
#include "tls/san.h"
#include "tls/tls.h"

#define NAME "backend"
#define DRAIN_MS 1000u

static const char help[] =
    "usage: torc backend [options]\n\n"
    "An echo server: any method, unary or streaming, answers each message with itself; the response header x-backend\n"
    "says who answered. Prints 'listening ADDR' for each listener once it is ready. A request has at most 4 MiB.\n\n"
    "      --listen ADDR                 repeatable (127.0.0.1:0)\n"
    "      --name NAME                   in x-backend (backend)\n"
    "      --delay T                     before each answer\n"
    "      --fail CODE[:PERCENT]         end calls with this status, by number or name (100)\n"
    "      --max-concurrent-streams N    for each connection (100)\n"
    "      --max-connection-age T        then GOAWAY\n"
    "      --tls-cert FILE --tls-key FILE [--client-ca FILE]\n"
    "      --count-log                   on exit, requests and connections as one JSON line; with --client-ca also\n"
    "                                    the serial numbers of the clients' certificates, in the order they came\n"
    "  -v, -vv                           log to standard error\n\n"
    "Methods with a meaning of their own: torc.test.Backend/Hang, /Fail (the request is the status's number), "
    "/Count, /Headers, /Repeat.\n\n"
    "Example:\n"
    "  torc backend --listen 127.0.0.1:10001 --name b1 --delay 5ms --count-log\n";

enum { OPT_LISTEN = 256, OPT_NAME, OPT_DELAY, OPT_FAIL, OPT_STREAMS, OPT_AGE, OPT_CERT, OPT_KEY, OPT_CA, OPT_COUNT };

static const struct option options[] = {
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"name", required_argument, NULL, OPT_NAME},
    {"delay", required_argument, NULL, OPT_DELAY},
    {"fail", required_argument, NULL, OPT_FAIL},
    {"max-concurrent-streams", required_argument, NULL, OPT_STREAMS},
    {"max-connection-age", required_argument, NULL, OPT_AGE},
    {"tls-cert", required_argument, NULL, OPT_CERT},
    {"tls-key", required_argument, NULL, OPT_KEY},
    {"client-ca", required_argument, NULL, OPT_CA},
    {"count-log", no_argument, NULL, OPT_COUNT},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct args {
    TC_VEC(const char *) listen;
    struct tc_backend_opts backend;
    uint64_t max_streams, max_age_ms;
    struct tc_buf cert, key, ca;
    const char *ca_path, *cert_path, *key_path;
    bool count_log;
    int verbose;
};

/* A client's certificate, by its serial number, and the number of connections that presented it. */
struct client {
    char *serial;
    uint64_t connections;
};

struct clients {
    TC_VEC(struct client) seen;
};

static int set_fail(struct args *a, const char *text)
{
    struct tc_slice rest = tc_slice_str(text), code_text;
    bool more = true;
    uint64_t number;
    tc_slice_split(&rest, &more, ':', &code_text);
    char *name = tc_slice_dup(code_text);
    int code = tc_parse_u64(code_text, 16, &number) == 0 ? (int)number : torc_status_code_from_name(name);
    tc_free(name);
    a->backend.fail_percent = 100;
    if (code <= 0)
        return cli_usage(NAME, "--fail: '%s' does not begin with a status such as UNAVAILABLE or 14", text);
    if (more && (tc_parse_double(rest, &a->backend.fail_percent) != 0 || a->backend.fail_percent > 100 ||
                 a->backend.fail_percent < 0))
        return cli_usage(NAME, "--fail: '%s' does not end with a percentage from 0 to 100", text);
    a->backend.fail_code = code;
    return 0;
}

static int apply(struct args *a, int c)
{
    int rc;
    switch (c) {
    case OPT_LISTEN:
        *tc_vec_push(&a->listen) = optarg;
        return 0;
    case OPT_NAME:
        a->backend.name = optarg;
        if (!tc_header_value_valid(tc_slice_str(optarg)))
            return cli_usage(NAME, "--name: '%s' is not printable ASCII, as the header x-backend must be", optarg);
        return 0;
    case OPT_DELAY:
        return cli_duration_ms(NAME, "--delay", optarg, &a->backend.delay_ms);
    case OPT_FAIL:
        return set_fail(a, optarg);
    case OPT_STREAMS:
        return cli_u64(NAME, "--max-concurrent-streams", optarg, 1, INT32_MAX, &a->max_streams);
    case OPT_AGE:
        rc = cli_duration_ms(NAME, "--max-connection-age", optarg, &a->max_age_ms);
        if (rc == 0 && a->max_age_ms == 0)
            rc = cli_usage(NAME, "--max-connection-age: '%s' is not above 0", optarg);
        return rc;
    case OPT_CERT:
        a->cert_path = optarg;
        return cli_read_pem(NAME, "--tls-cert", "CERTIFICATE", optarg, &a->cert);
    case OPT_KEY:
        a->key_path = optarg;
        return cli_read_pem(NAME, "--tls-key", "PRIVATE KEY", optarg, &a->key);
    case OPT_CA:
        a->ca_path = optarg;
        return cli_read_pem(NAME, "--client-ca", "CERTIFICATE", optarg, &a->ca);
    case OPT_COUNT:
        a->count_log = true;
        return 0;
    default:
        a->verbose++;
        return 0;
    }
}

static int parse_args(struct args *a, int argc, char **argv)
{
    int c, rc;
    opterr = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":vh", options, NULL)) != -1) {
        if (c == 'h')
            return cli_help(help);
        if (c == '?' || c == ':')
            return cli_bad_option(NAME, c, argv);
        if ((rc = apply(a, c)) != 0)
            return rc;
    }
    if (optind != argc)
        return cli_usage(NAME, "unexpected argument '%s'", argv[optind]);
    if (!a->cert.len != !a->key.len || (a->ca.len && !a->cert.len))
        return cli_usage(NAME, "--tls-cert and --tls-key go together, and --client-ca with them");
    if (a->listen.len == 0)
        *tc_vec_push(&a->listen) = "127.0.0.1:0";
    cli_verbose(a->verbose);
    return 0;
}

static bool on_client(void *arg, struct x509_st *leaf, const char *name, struct tc_buf *why)
{
    struct clients *c = arg;
    struct tc_buf serial = {0};
    size_t i = 0;
    (void)name, (void)why;
    tc_cert_serial(leaf, &serial);
    while (i < c->seen.len && strcmp(c->seen.data[i].serial, tc_buf_cstr(&serial)) != 0)
        i++;
    if (i == c->seen.len)
        tc_vec_push(&c->seen)->serial = tc_strdup(tc_buf_cstr(&serial));
    c->seen.data[i].connections++;
    tc_buf_fini(&serial);
    return true;
}

static struct tc_tls_context *make_tls(const struct args *a, struct clients *clients, struct tc_status *error)
{
    struct tc_tls_opts o = {
        .server = true,
        .verify = a->ca.len ? TC_TLS_VERIFY_FULL : TC_TLS_VERIFY_NONE,
        .roots_pem = tc_buf_slice(&a->ca),
        .certificate_pem = tc_buf_slice(&a->cert),
        .private_key_pem = tc_buf_slice(&a->key),
        .verify_fn = a->ca.len ? on_client : NULL,
        .verify_arg = clients,
    };
    return tc_tls_context_new(&o, error);
}

static int refused(const struct args *a, const char *why)
{
    struct cli_pem ca = {"--client-ca", a->ca_path, &a->ca}, cert = {"--tls-cert", a->cert_path, &a->cert};
    struct cli_pem key = {"--tls-key", a->key_path, &a->key};
    int rc = cli_check_tls(NAME, ca, cert, key);
    return rc ? rc : cli_fail(NAME, "%s", why);
}

static int serve(struct tc_loop *loop, struct tc_server *server, const struct args *a)
{
    int rc = 0;
    signals_catch(loop); /* before a caller can know that this process listens, and end it */
    for (size_t i = 0; i < a->listen.len && rc == 0; i++)
        rc = cli_listen(NAME, server, a->listen.data[i]);
    while (rc == 0 && !signals_stop())
        tc_loop_turn(loop, -1);
    signals_release();
    return rc;
}

static void on_drained(void *arg)
{
    *(bool *)arg = true;
}

/* Gives calls in progress a moment to end. */
static void drain(struct tc_loop *loop, struct tc_server *server)
{
    bool drained = false;
    tc_server_drain(server, DRAIN_MS, on_drained, &drained);
    while (!drained)
        tc_loop_turn(loop, -1);
}

static void print_counts(const struct args *a, struct tc_server *server, const struct clients *clients)
{
    struct tc_server_counts counts;
    struct tc_buf b = {0};
    tc_server_counts(server, &counts);
    tc_buf_append_str(&b, "{\"backend\":{\"name\":");
    cli_json_string(&b, a->backend.name, strlen(a->backend.name));
    tc_buf_printf(&b, ",\"requests\":%llu,\"connections\":%llu", (unsigned long long)counts.requests,
                  (unsigned long long)counts.connections);
    for (size_t i = 0; i < clients->seen.len; i++)
        tc_buf_printf(&b, "%s{\"serial\":\"%s\",\"connections\":%llu}", i ? "," : ",\"client_certificates\":[",
                      clients->seen.data[i].serial, (unsigned long long)clients->seen.data[i].connections);
    tc_buf_append_str(&b, clients->seen.len ? "]}}" : "}}");
    puts(tc_buf_cstr(&b));
    cli_flush();
    tc_buf_fini(&b);
}

static int run(const struct args *a)
{
    struct tc_server_opts opts;
    struct tc_status error = {0};
    struct tc_tls_context *tls = NULL;
    struct clients clients = {0};
    tc_server_opts_init(&opts);
    cli_guard_server(&opts);
    if (a->max_streams)
        opts.http2.limits.max_concurrent_streams = (uint32_t)a->max_streams;
    opts.http2.keepalive.max_age_ms = a->max_age_ms;
    if (a->cert.len) {
        tls = make_tls(a, &clients, &error);
        if (!tls) {
            int rc = refused(a, tc_status_text(&error));
            tc_status_fini(&error);
            return rc;
        }
        opts.tls = tls;
    }
    struct tc_loop *loop = tc_loop_new(NULL);
    if (!loop) {
        tc_tls_context_unref(tls);
        return cli_fail(NAME, "cannot make an event loop: %m");
    }
    struct tc_server *server = tc_server_new(loop, &opts);
    struct tc_backend *backend = tc_backend_new(server, &a->backend);
    int rc = serve(loop, server, a);
    if (rc == 0)
        drain(loop, server);
    if (rc == 0 && a->count_log)
        print_counts(a, server, &clients);
    tc_server_free(server);
    tc_backend_free(backend);
    tc_loop_free(loop);
    tc_tls_context_unref(tls);
    for (size_t i = 0; i < clients.seen.len; i++)
        tc_free(clients.seen.data[i].serial);
    tc_vec_fini(&clients.seen);
    return rc;
}

int cmd_backend(int argc, char **argv)
{
    struct args a = {.backend = {.name = "backend"}};
    int rc = parse_args(&a, argc, argv);
    if (rc == 0)
        rc = run(&a);
    tc_vec_fini(&a.listen);
    tc_buf_fini(&a.cert);
    tc_buf_fini(&a.key);
    tc_buf_fini(&a.ca);
    return rc < 0 ? CLI_OK : rc;
}
