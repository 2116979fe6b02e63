/* Target, credentials and channels of the subcommands that send RPCs (call, bench, list, describe).
 *
 * connect_option reads one option, connect_settle checks that the options agree, connect_channels makes the credentials
 * and the channels. Files are read by connect_option: struct connect_args owns their content, the service config and
 * `method`, and borrows the other texts.
 *
 * If the credentials cannot be made, TLS is tried with --ca alone and with --cert and --key alone (cli_tls.h), so that
 * the error names the option at fault. */
#include "connect.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli.h"
#include "cli_tls.h"

const struct cli_foreign connect_foreign[] = {
    {"insecure", "ghz means plaintext by it and grpcurl unchecked TLS: say --plaintext or --skip-verify"},
    {"B", "use --data-file with --raw"},
    {"D", "use --data-file; with h2load's meaning, --duration"},
    {"M", "use -H 'NAME: VALUE', once for each header"},
    {"O", "use -o text|json, or --report KIND=FILE of torc bench"},
    {"alts", "Torc has no ALTS; --creds has the kinds of credentials"},
    {"alts-", "Torc has no ALTS; --creds has the kinds of credentials"},
    {"async", "--rps and --stage of torc bench are always so"},
    {"b", "use --data-hex, or --data-file with --raw"},
    {"binary", "use --data-hex, or --data-file with --raw"},
    {"binary-file", "use --data-file with --raw"},
    {"call", "write the method behind the target"},
    {"cname", "use --authority"},
    {"concurrency-", "use --stage c=1..64/30s of torc bench"},
    {"config", "there is no file of options: write them on the command line"},
    {"connections", "use --channels"},
    {"count-errors", "RPCs that failed are always in the latencies"},
    {"duration-stop", "RPCs under way at the end are waited for, and counted"},
    {"format-error", "details of errors are always shown; -o json has them as JSON"},
    {"i", "use --import-path, once for each folder"},
    {"import-paths", "use --import-path, once for each folder"},
    {"keepalive", "use --keepalive-time"},
    {"lb-strategy", "use --service-config, such as '{\"loadBalancingConfig\":[{\"round_robin\":{}}]}'"},
    {"load-", "use --stage 100..1000/30s of torc bench"},
    {"m", "use -H 'NAME: VALUE', once for each header"},
    {"max-msg-sz", "use --max-receive-bytes"},
    {"max-recv-message-size", "use --max-receive-bytes"},
    {"max-time", "use --deadline"},
    {"metadata", "use -H 'NAME: VALUE', once for each header"},
    {"metadata-file", "use -H 'NAME: VALUE', once for each header"},
    {"msg-template", "use torc describe TARGET SYMBOL --template"},
    {"r", "use --rps"},
    {"reflect-metadata", "use --reflect-header"},
    {"servername", "use --authority"},
    {"skipTLS", "use --skip-verify"},
    {"skipFirst", "use --warmup T of torc bench, which connects before the clock starts in any case"},
    {"stream-call-count", "use --call-count"},
    {"stream-call-duration", "use --call-duration"},
    {"t", "use --deadline; of threads torc bench has one"},
    {"timeout", "use --deadline"},
    {"total", "use --count"},
    {"unix", "use the target unix:PATH"},
    {"use-reflection",
     "use --reflect; without it a server is asked where -d is @ or begins with {, unless --raw is given"},
    {"x", "use --max-duration"},
    {"z", "use --duration"},
    {NULL, NULL},
};

static int set_service_config(const char *command, struct connect_args *a, const char *text)
{
    tc_buf_clear(&a->service_config);
    if (text[0] == '@') {
        int rc = cli_read_regular(command, "--service-config", text + 1, &a->service_config);
        if (rc == 0 && !a->service_config.len)
            rc = cli_usage(command, "--service-config: %s is empty; write {} for an empty service config", text + 1);
        return rc;
    }
    if (!*text)
        return cli_usage(command, "--service-config: the JSON is empty; write {} for an empty service config");
    tc_buf_append_str(&a->service_config, text);
    return 0;
}

static int set_creds(const char *command, struct connect_args *a, const char *text)
{
    static const char *const types[] = {"insecure", "tls", "xds", "google_default"};
    size_t i = 0;
    while (i < TC_ARRAY_LEN(types) && strcmp(types[i], text) != 0)
        i++;
    if (i == TC_ARRAY_LEN(types))
        return cli_usage(command, "--creds: unknown type '%s'; use insecure, tls, xds or google_default", text);
    a->creds = text;
    return 0;
}

int connect_option(const char *command, struct connect_args *a, int code, const char *value)
{
    int rc;
    switch (code) {
    case CONNECT_CREDS:
        return set_creds(command, a, value);
    case CONNECT_CA:
    case CONNECT_CACERT:
        a->ca_path = value;
        a->ca_option = code == CONNECT_CA ? "--ca" : "--cacert";
        return cli_read_pem(command, a->ca_option, "CERTIFICATE", value, &a->ca);
    case CONNECT_CERT:
        a->cert_path = value;
        return cli_read_pem(command, "--cert", "CERTIFICATE", value, &a->cert);
    case CONNECT_KEY:
        a->key_path = value;
        return cli_read_pem(command, "--key", "PRIVATE KEY", value, &a->key);
    case CONNECT_AUTHORITY:
        a->authority = value;
        return 0;
    case CONNECT_SERVICE_CONFIG:
        return set_service_config(command, a, value);
    case CONNECT_PLAINTEXT:
        a->plaintext = true;
        return 0;
    case CONNECT_SKIP_VERIFY:
        a->skip_verify = true;
        return 0;
    case CONNECT_USER_AGENT:
        a->user_agent = value;
        return 0;
    case CONNECT_CONNECT_TIMEOUT:
        return cli_seconds_ms(command, "--connect-timeout", value, &a->connect_timeout_ms);
    case CONNECT_KEEPALIVE_TIME:
        return cli_seconds_ms(command, "--keepalive-time", value, &a->keepalive_time_ms);
    case CONNECT_MAX_RECEIVE:
        rc = cli_size(command, "--max-receive-bytes", value, &a->max_receive_bytes);
        if (rc == 0 && a->max_receive_bytes == 0)
            rc = cli_usage(command, "--max-receive-bytes: '%s' is not above 0", value);
        return rc;
    default:
        return 0;
    }
}

/* Checks METHOD and stores it as "package.Service/Method". "package.Service.Method" and a leading slash are allowed. */
static int set_method(const char *command, struct connect_args *a, const char *text)
{
    const char *method = text[0] == '/' ? text + 1 : text, *slash = strrchr(method, '/');
    if (!slash)
        slash = strrchr(method, '.');
    if (!slash || slash == method || !slash[1])
        return cli_usage(command, "METHOD '%s' does not have the form package.Service/Method", text);
    if (strlen(method) > 65535)
        return cli_usage(command, "METHOD '%s' is longer than 65535 bytes", text);
    for (const char *p = method; *p; p++)
        if (*p <= ' ' || *p > '~')
            return cli_usage(command, "METHOD '%s' must be printable ASCII without spaces", text);
    a->method = tc_asprintf("%.*s/%s", (int)(slash - method), method, slash + 1);
    return 0;
}

int connect_settle(const char *command, struct connect_args *a)
{
    bool files = a->ca.len || a->cert.len || a->key.len;
    if (a->plaintext && (files || a->skip_verify || (a->creds && strcmp(a->creds, "insecure") != 0)))
        return cli_usage(command, "--plaintext goes with no option of TLS");
    if (!a->creds)
        a->creds = !a->plaintext && (files || a->skip_verify) ? "tls" : "insecure";
    const char *ca = a->ca_option ? a->ca_option : "--ca";
    bool google = strcmp(a->creds, "google_default") == 0, insecure = strcmp(a->creds, "insecure") == 0;
    if ((a->ca.len && insecure) || ((a->cert.len || a->key.len) && (insecure || google)))
        return cli_usage(command, "%s, --cert and --key go with --creds tls or xds; %s with google_default too", ca,
                         ca);
    if (!a->cert.len != !a->key.len)
        return cli_usage(command, "--cert and --key go together");
    if (a->skip_verify && (strcmp(a->creds, "tls") != 0 || a->ca.len))
        return cli_usage(command, "--skip-verify goes with --creds tls, and without %s", ca);
    return 0;
}

int connect_finish(const char *command, struct connect_args *a, int argc, char **argv)
{
    int rc;
    if (argc - optind < 2)
        return cli_usage(command, "give a TARGET and a METHOD");
    if (argc - optind > 2)
        return cli_usage(command, "unexpected argument '%s'", argv[optind + 2]);
    a->target = argv[optind];
    if ((rc = set_method(command, a, argv[optind + 1])) != 0)
        return rc;
    return connect_settle(command, a);
}

void connect_args_fini(struct connect_args *a)
{
    tc_buf_fini(&a->ca);
    tc_buf_fini(&a->cert);
    tc_buf_fini(&a->key);
    tc_buf_fini(&a->service_config);
    tc_free(a->method);
}

/* Prints which files TLS rejects or, if it accepts all, why there are no credentials (`why`). Returns CLI_FAILED. */
static int refused(const char *command, const struct connect_args *a, const char *why)
{
    struct cli_pem ca = {a->ca_option, a->ca_path, &a->ca}, cert = {"--cert", a->cert_path, &a->cert};
    struct cli_pem key = {"--key", a->key_path, &a->key};
    int rc = cli_check_tls(command, ca, cert, key);
    return rc ? rc : cli_fail(command, "--creds %s: %s", a->creds, why);
}

/* Stores credentials with one reference in *out. Returns 0, or CLI_FAILED with the error printed and *out NULL. */
static int make_google_default(const char *command, const struct connect_args *a, torc_credentials **out)
{
    struct tc_buf ca = {0};
    struct torc_google_options o = {TORC_SIZE(torc_google_options)};
    tc_buf_append_slice(&ca, tc_buf_slice(&a->ca));
    o.roots_pem = ca.len ? tc_buf_cstr(&ca) : NULL;
    torc_error *error = NULL;
    *out = torc_credentials_google_default(&o, &error);
    tc_buf_fini(&ca);
    int rc = *out ? 0 : refused(command, a, torc_error_text(error));
    torc_error_clear(&error);
    return rc;
}

/* Stores credentials with one reference in *out. Returns 0, or CLI_FAILED with the error printed and *out NULL. */
static int make_tls(const char *command, const struct connect_args *a, torc_credentials **out)
{
    struct tc_buf ca = {0}, cert = {0}, key = {0};
    struct torc_tls_options o = {TORC_SIZE(torc_tls_options)};
    tc_buf_append_slice(&ca, tc_buf_slice(&a->ca));
    tc_buf_append_slice(&cert, tc_buf_slice(&a->cert));
    tc_buf_append_slice(&key, tc_buf_slice(&a->key));
    o.roots_pem = ca.len ? tc_buf_cstr(&ca) : NULL;
    o.certificate_pem = cert.len ? tc_buf_cstr(&cert) : NULL;
    o.private_key_pem = key.len ? tc_buf_cstr(&key) : NULL;
    o.skip_verify = a->skip_verify;
    torc_error *error = NULL;
    *out = torc_credentials_tls(&o, &error);
    tc_buf_fini(&ca);
    tc_buf_fini(&cert);
    tc_buf_fini(&key);
    int rc = *out ? 0 : refused(command, a, torc_error_text(error));
    torc_error_clear(&error);
    return rc;
}

bool connect_may_be_plaintext(const struct connect_args *a)
{
    bool xds = strcmp(a->creds, "xds") == 0;
    return strcmp(a->creds, "insecure") == 0 || (xds && !a->ca.len && !a->cert.len && !a->key.len);
}

/* Stores the credentials that a->creds names in *out, with one reference. Returns 0, or CLI_FAILED with the error
 * printed. */
static int make_credentials(const char *command, const struct connect_args *a, torc_credentials **out)
{
    bool xds = strcmp(a->creds, "xds") == 0;
    if (strcmp(a->creds, "google_default") == 0)
        return make_google_default(command, a, out);
    if (connect_may_be_plaintext(a))
        *out = torc_credentials_insecure();
    else if (make_tls(command, a, out) != 0)
        return CLI_FAILED;
    if (xds) {
        torc_credentials *fallback = *out;
        *out = torc_credentials_xds(fallback, NULL);
        torc_credentials_unref(fallback);
    }
    return 0;
}

int connect_channels(const char *command, struct connect_args *a, torc_runtime *runtime, size_t n,
                     torc_channel ***channels)
{
    torc_credentials *creds;
    if (a->skip_verify)
        fprintf(stderr, "torc %s: --skip-verify: anybody in between can read and change what is sent\n", command);
    int rc = make_credentials(command, a, &creds);
    if (rc != 0)
        return rc;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options),
                                     .credentials = creds,
                                     .authority = a->authority,
                                     .user_agent = a->user_agent,
                                     .connect_timeout_ms = (int64_t)a->connect_timeout_ms,
                                     .keepalive_time_ms = (int64_t)a->keepalive_time_ms};
    if (a->service_config.len)
        o.service_config_json = tc_buf_cstr(&a->service_config);
    if (a->max_receive_bytes)
        o.max_receive_message_bytes = (int64_t)TC_MIN(a->max_receive_bytes, (uint64_t)INT64_MAX);
    *channels = tc_calloc(n, sizeof(torc_channel *));
    for (size_t i = 0; i < n && rc == 0; i++) {
        torc_error *error = NULL;
        (*channels)[i] = torc_channel_new(runtime, a->target, &o, &error);
        if (!(*channels)[i])
            rc = cli_usage(command, "%s", torc_error_text(error));
        torc_error_free(error);
    }
    torc_credentials_unref(creds);
    return rc;
}

void connect_channels_free(torc_channel **channels, size_t n)
{
    for (size_t i = 0; channels && i < n; i++)
        torc_channel_free(channels[i]);
    tc_free(channels);
}

void connect_call_refused(const char *command, const char *method, int rc)
{
    if (rc == TORC_EINVAL)
        cli_fail(command,
                 "'" TC_SHOWN "' is not a method: expected package.Service/Method, printable ASCII without spaces",
                 TC_SHOW(method));
    else
        cli_fail(command, "cannot start the call " TC_SHOWN ": %s", TC_SHOW(method), torc_strerror(rc));
}
