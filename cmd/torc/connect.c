/* Target, credentials and channels of the subcommands that send RPCs (call, bench).
 *
 * connect_option collects single options, connect_finish checks them together, connect_channels makes the credentials
 * and the channels. If credentials cannot be made, the files are tried one by one (cli_tls.h) so that the error names
 * the option at fault. */
#include "connect.h"

#include <getopt.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli.h"
#include "cli_tls.h"

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
        a->ca_path = value;
        return cli_read_pem(command, "--ca", "CERTIFICATE", value, &a->ca);
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
    case CONNECT_MAX_RECEIVE:
        rc = cli_size(command, "--max-receive-bytes", value, &a->max_receive_bytes);
        if (rc == 0 && a->max_receive_bytes == 0)
            rc = cli_usage(command, "--max-receive-bytes: '%s' is not above 0", value);
        return rc;
    default:
        return 0;
    }
}

/* Accepts the methods that torc_unary accepts. */
static int check_method(const char *command, const char *text)
{
    const char *method = text[0] == '/' ? text + 1 : text, *slash = strrchr(method, '/');
    if (!slash || slash == method || !slash[1])
        return cli_usage(command, "METHOD '%s' does not have the form package.Service/Method", text);
    if (strlen(method) > 65535)
        return cli_usage(command, "METHOD '%s' is longer than 65535 bytes", text);
    for (const char *p = method; *p; p++)
        if (*p <= ' ' || *p > '~')
            return cli_usage(command, "METHOD '%s' must be printable ASCII without spaces", text);
    return 0;
}

int connect_finish(const char *command, struct connect_args *a, int argc, char **argv)
{
    int rc;
    if (!a->creds)
        a->creds = "insecure";
    if (argc - optind < 2)
        return cli_usage(command, "give a TARGET and a METHOD");
    if (argc - optind > 2)
        return cli_usage(command, "unexpected argument '%s'", argv[optind + 2]);
    a->target = argv[optind];
    a->method = argv[optind + 1];
    if ((rc = check_method(command, a->method)) != 0)
        return rc;
    bool google = strcmp(a->creds, "google_default") == 0, insecure = strcmp(a->creds, "insecure") == 0;
    if ((a->ca.len && insecure) || ((a->cert.len || a->key.len) && (insecure || google)))
        return cli_usage(command, "--ca, --cert and --key go with --creds tls or xds; --ca with google_default too");
    if (!a->cert.len != !a->key.len)
        return cli_usage(command, "--cert and --key go together");
    return 0;
}

void connect_args_fini(struct connect_args *a)
{
    tc_buf_fini(&a->ca);
    tc_buf_fini(&a->cert);
    tc_buf_fini(&a->key);
    tc_buf_fini(&a->service_config);
}

/* Prints which file the credentials failed on or, if the files are good, which other setting. */
static int refused(const char *command, const struct connect_args *a, const char *why)
{
    struct cli_pem ca = {"--ca", a->ca_path, &a->ca}, cert = {"--cert", a->cert_path, &a->cert};
    struct cli_pem key = {"--key", a->key_path, &a->key};
    int rc = cli_check_tls(command, ca, cert, key);
    return rc ? rc : cli_fail(command, "--creds %s: %s", a->creds, why);
}

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
    torc_error *error = NULL;
    *out = torc_credentials_tls(&o, &error);
    tc_buf_fini(&ca);
    tc_buf_fini(&cert);
    tc_buf_fini(&key);
    int rc = *out ? 0 : refused(command, a, torc_error_text(error));
    torc_error_clear(&error);
    return rc;
}

static int make_credentials(const char *command, const struct connect_args *a, torc_credentials **out)
{
    bool xds = strcmp(a->creds, "xds") == 0;
    if (strcmp(a->creds, "google_default") == 0)
        return make_google_default(command, a, out);
    if (strcmp(a->creds, "insecure") == 0 || (xds && !a->ca.len && !a->cert.len && !a->key.len))
        *out = torc_credentials_insecure();
    else if (make_tls(command, a, out) != 0)
        return EXIT_FAILURE;
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
    int rc = make_credentials(command, a, &creds);
    if (rc != 0)
        return rc;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = creds, .authority = a->authority};
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
