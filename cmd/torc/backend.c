/* torc backend: an echo server for trials and tests. The server and the echo service (echo.h) use the public API. The
 * rest of the file also uses the command's own functions (cli.h), base/, and the runtime's loop, which signals wake.
 *
 * One thread drives one runtime. Between two polls the thread sends the answers whose --delay is over. SIGINT and
 * SIGTERM make serve() stop the server: calls in progress get DRAIN_MS to end, and a second signal ends the process.
 * --count-log prints the counts once the server has stopped, when no connection can change them.
 *
 * cmd_backend owns struct args, run() the credentials and the counted certificates, run_with() the server, the echo and
 * the runtime. */
#include <getopt.h>
#include <stdio.h>

#include <torc/torc.h>

#include "base/headers.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/vec.h"
#include "cli.h"
#include "cli_options.h"
#include "cli_tls.h"
#include "commands.h"
#include "echo.h"
#include "runtime/runtime.h"
#include "signals.h"

#define NAME "backend"
#define DRAIN_MS 1000
#define QUIET_MS 300000 /* keepalive time, and idle time after which a connection gets GOAWAY */

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

/* The options. Texts are borrowed from argv, or static. */
struct args {
    TC_VEC(const char *) listen;
    struct echo_opts echo;
    uint64_t max_streams, max_age_ms; /* max_streams 0: 100; max_age_ms 0: no limit */
    struct tc_buf cert, key, ca;      /* PEM; empty: not given */
    const char *ca_path, *cert_path, *key_path;
    bool count_log;
    int verbose;
};

/* A client certificate and the number of connections that presented it. */
struct client {
    char *serial; /* serial_append's text, owned; "": the certificate is malformed */
    uint64_t connections;
};

struct clients {
    TC_VEC(struct client) seen; /* in the order of their first connections */
};

/* Reads CODE[:PERCENT] of --fail. Returns 0, or CLI_USAGE with the error printed. */
static int set_fail(struct args *a, const char *text)
{
    struct tc_slice rest = tc_slice_str(text), code_text;
    bool more = true;
    uint64_t number;
    tc_slice_split(&rest, &more, ':', &code_text);
    char *name = tc_slice_dup(code_text);
    int code = tc_parse_u64(code_text, 16, &number) == 0 ? (int)number : torc_status_code_from_name(name);
    tc_free(name);
    a->echo.fail_percent = 100;
    if (code <= 0)
        return cli_usage(NAME, "--fail: '%s' does not begin with a status such as UNAVAILABLE or 14", text);
    if (more &&
        (tc_parse_double(rest, &a->echo.fail_percent) != 0 || a->echo.fail_percent > 100 || a->echo.fail_percent < 0))
        return cli_usage(NAME, "--fail: '%s' does not end with a percentage from 0 to 100", text);
    a->echo.fail_code = code;
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
        a->echo.name = optarg;
        if (!tc_header_value_valid(tc_slice_str(optarg)))
            return cli_usage(NAME, "--name: '%s' is not printable ASCII, as the header x-backend must be", optarg);
        return 0;
    case OPT_DELAY:
        return cli_duration_ms(NAME, "--delay", optarg, &a->echo.delay_ms);
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

/* Returns 0 to go on, -1 if --help was printed, else an exit status with the error printed. */
static int parse_args(struct args *a, int argc, char **argv)
{
    int c, rc;
    if ((rc = cli_long_options(NAME, argc, argv, ":vh", options, NULL)) != 0)
        return rc;
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

/* Cuts one DER element off the front of *in and stores its content, borrowed, in *value. Returns false, with both
 * unchanged, if the element has another tag or is malformed. */
static bool der_take(struct tc_slice *in, unsigned char tag, struct tc_slice *value)
{
    const unsigned char *at = (const unsigned char *)in->data;
    if (in->len < 2 || at[0] != tag)
        return false;
    size_t head = 2, len = at[1];
    if (len >= 0x80) {
        size_t n = len & 0x7f;
        head += n;
        if (n > sizeof(uint32_t) || in->len < head)
            return false;
        len = 0;
        for (size_t i = 2; i < head; i++)
            len = len << 8 | at[i];
    }
    if (len > in->len - head)
        return false;
    *value = tc_slice_of(in->data + head, len);
    *in = tc_slice_of(in->data + head + len, in->len - head - len);
    return true;
}

/* Appends a certificate's serial number (RFC 5280, 4.1) as `openssl x509 -serial` prints it; nothing if malformed. */
static void serial_append(struct tc_buf *out, struct tc_slice der)
{
    struct tc_slice certificate, fields, version, serial = {0};
    if (der_take(&der, 0x30, &certificate) && der_take(&certificate, 0x30, &fields)) {
        der_take(&fields, 0xa0, &version);
        der_take(&fields, 0x02, &serial);
    }
    size_t sign = serial.len > 1 && serial.data[0] == 0;
    for (size_t i = sign; i < serial.len; i++)
        tc_buf_printf(out, "%02X", (unsigned char)serial.data[i]);
}

/* The `verify` callback of TLS: counts the connection for its client's certificate, and accepts the client. */
static void on_client(torc_tls_peer *peer, void *arg)
{
    struct clients *c = arg;
    struct tc_buf serial = {0};
    const void *der;
    size_t size, i = 0;
    if (torc_tls_peer_certificate(peer, 0, &der, &size) == 0)
        serial_append(&serial, tc_slice_of(der, size));
    while (i < c->seen.len && strcmp(c->seen.data[i].serial, tc_buf_cstr(&serial)) != 0)
        i++;
    if (i == c->seen.len)
        tc_vec_push(&c->seen)->serial = tc_strdup(tc_buf_cstr(&serial));
    c->seen.data[i].connections++;
    tc_buf_fini(&serial);
    torc_tls_peer_accept(peer);
}

/* Returns TLS credentials, or insecure ones without --tls-cert; NULL with an error if TLS rejects the files. `clients`
 * must outlive the credentials. */
static torc_credentials *make_credentials(struct args *a, struct clients *clients, torc_error **error)
{
    struct torc_server_tls_options o = {
        TORC_SIZE(torc_server_tls_options),      .certificate_pem = tc_buf_cstr(&a->cert),
        .private_key_pem = tc_buf_cstr(&a->key), .client_roots_pem = a->ca.len ? tc_buf_cstr(&a->ca) : NULL,
        .verify = a->ca.len ? on_client : NULL,  .verify_arg = clients,
    };
    return a->cert.len ? torc_server_credentials_tls(&o, error) : torc_credentials_insecure();
}

/* Prints which file of the options TLS rejected, or else the error. Frees the error. Returns an exit status. */
static int refused(const struct args *a, torc_error *error)
{
    struct cli_pem ca = {"--client-ca", a->ca_path, &a->ca}, cert = {"--tls-cert", a->cert_path, &a->cert};
    struct cli_pem key = {"--tls-key", a->key_path, &a->key};
    int rc = cli_check_tls(NAME, ca, cert, key);
    if (rc == 0)
        return cli_fail_error(NAME, error);
    torc_error_free(error);
    return rc;
}

/* Listens, and prints where. Returns 0 or an exit status. Fails if the line cannot be written: who started this process
 * may wait for the line. */
static int listen_at(torc_server *server, const char *address, torc_credentials *credentials)
{
    torc_error *error = NULL;
    char *bound = NULL;
    if (torc_server_listen(server, address, credentials, &bound, &error) == 0) {
        printf("listening %s\n", bound);
        torc_free(bound);
        return cli_flush() ? 0 : CLI_FAILED;
    }
    int rc =
        torc_error_code(error) == TORC_EINVAL
            ? cli_usage(NAME, "--listen: '%s' is not an address such as 127.0.0.1:0, [::1]:80 or unix:/path", address)
            : cli_fail(NAME, "cannot listen on %s: %s", address, torc_error_text(error));
    torc_error_free(error);
    return rc;
}

static void on_stopped(void *arg)
{
    *(bool *)arg = true;
}

static void turn(torc_runtime *rt, struct echo *echo)
{
    torc_runtime_poll(rt, echo_timeout_ms(echo));
    echo_run_due(echo);
}

/* Serves until a signal comes, then stops the server, whose calls get DRAIN_MS to end. Returns 0, or an exit status
 * with the error printed if the server could not listen or start, or CLI_FAILED if standard output failed (main.c
 * prints that). */
static int serve(torc_runtime *rt, torc_server *server, struct echo *echo, const struct args *a,
                 torc_credentials *credentials)
{
    torc_error *error = NULL;
    bool stopped = false;
    int rc = 0;
    signals_catch(tc_runtime_loop(rt)); /* before "listening" is printed: a signal may follow at once */
    for (size_t i = 0; i < a->listen.len && rc == 0; i++)
        rc = listen_at(server, a->listen.data[i], credentials);
    if (rc == 0 && torc_server_start(server, &error) != 0)
        rc = cli_fail_error(NAME, error);
    while (rc == 0 && !signals_stop())
        turn(rt, echo);
    signals_release();
    if (rc == 0 && torc_server_stop_async(server, DRAIN_MS, on_stopped, &stopped) == 0)
        while (!stopped)
            turn(rt, echo);
    return rc;
}

static void print_counts(const struct args *a, const torc_server *server, const struct clients *clients)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "{\"backend\":{\"name\":");
    cli_json_string(&b, a->echo.name, strlen(a->echo.name));
    tc_buf_printf(&b, ",\"requests\":%lld,\"connections\":%lld",
                  (long long)torc_server_count(server, TORC_SERVER_CALLS),
                  (long long)torc_server_count(server, TORC_SERVER_CONNECTIONS));
    for (size_t i = 0; i < clients->seen.len; i++)
        tc_buf_printf(&b, "%s{\"serial\":\"%s\",\"connections\":%llu}", i ? "," : ",\"client_certificates\":[",
                      clients->seen.data[i].serial, (unsigned long long)clients->seen.data[i].connections);
    tc_buf_append_str(&b, clients->seen.len ? "]}}" : "}}");
    puts(tc_buf_cstr(&b));
    cli_flush();
    tc_buf_fini(&b);
}

/* Makes the server and the echo, and serves. Returns an exit status, with the error printed, except that of standard
 * output (main.c prints it). Frees `rt`. */
static int run_with(torc_runtime *rt, const struct args *a, torc_credentials *credentials, struct clients *clients)
{
    const struct torc_server_options o = {
        TORC_SIZE(torc_server_options),
        .runtime = rt,
        .max_concurrent_streams = (int64_t)a->max_streams,
        .max_connection_age_ms = (int64_t)TC_MIN(a->max_age_ms, (uint64_t)INT64_MAX),
        .max_connection_idle_ms = QUIET_MS,
        .keepalive_time_ms = QUIET_MS,
        .max_header_list_bytes = 16384,
    };
    torc_error *error = NULL;
    torc_server *server = torc_server_new(&o, &error);
    struct echo *echo = echo_new(&a->echo);
    int rc = server && echo_add(echo, server, &error) == 0 ? serve(rt, server, echo, a, credentials)
                                                           : cli_fail_error(NAME, error);
    if (rc == 0 && a->count_log)
        print_counts(a, server, clients);
    torc_server_free(server);
    torc_runtime_free(rt);
    echo_free(echo);
    return rc;
}

static int run(struct args *a)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    struct clients clients = {0};
    torc_error *error = NULL;
    torc_credentials *credentials = make_credentials(a, &clients, &error);
    if (!credentials)
        return refused(a, error);
    torc_runtime *rt = torc_runtime_new(&o, &error);
    int rc = rt ? run_with(rt, a, credentials, &clients) : cli_fail_error(NAME, error);
    torc_credentials_unref(credentials);
    for (size_t i = 0; i < clients.seen.len; i++)
        tc_free(clients.seen.data[i].serial);
    tc_vec_fini(&clients.seen);
    return rc;
}

int cmd_backend(int argc, char **argv)
{
    struct args a = {.echo = {.name = "backend"}};
    int rc = parse_args(&a, argc, argv);
    if (rc == 0)
        rc = run(&a);
    tc_vec_fini(&a.listen);
    tc_buf_fini(&a.cert);
    tc_buf_fini(&a.key);
    tc_buf_fini(&a.ca);
    return rc < 0 ? CLI_OK : rc;
}
