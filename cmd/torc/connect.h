/* Target, credentials and channels of the subcommands that send RPCs (call, bench, list, describe). One thread. */
#ifndef TORC_CONNECT_H
#define TORC_CONNECT_H

#include <torc/torc.h>

#include "base/buf.h"
#include "cli_options.h"

/* The options. The texts are borrowed from argv or static, unless noted. NULL: not given. */
struct connect_args {
    const char *target;
    char *method;                                   /* "package.Service/Method", owned */
    const char *creds, *authority, *user_agent;     /* creds: never NULL after connect_settle */
    uint64_t max_receive_bytes;                     /* 0: the default */
    uint64_t connect_timeout_ms, keepalive_time_ms; /* 0: the default */
    bool plaintext, skip_verify;
    struct tc_buf ca, cert, key; /* PEM; empty: not given */
    const char *ca_path, *cert_path, *key_path;
    const char *ca_option;        /* "--ca" or "--cacert": the one that was given last */
    struct tc_buf service_config; /* JSON; empty: not given */
};

enum {
    CONNECT_CREDS = 512,
    CONNECT_CA,
    CONNECT_CACERT,
    CONNECT_CERT,
    CONNECT_KEY,
    CONNECT_AUTHORITY,
    CONNECT_SERVICE_CONFIG,
    CONNECT_MAX_RECEIVE,
    CONNECT_PLAINTEXT,
    CONNECT_SKIP_VERIFY,
    CONNECT_USER_AGENT,
    CONNECT_CONNECT_TIMEOUT,
    CONNECT_KEEPALIVE_TIME,
};

/* Options of grpcurl, ghz and h2load that the subcommands which send RPCs lack, with what to use instead. */
extern const struct cli_foreign connect_foreign[];

/* Entries of a getopt_long table. */

/* clang-format off */
#define CONNECT_OPTIONS \
    {"creds", required_argument, NULL, CONNECT_CREDS}, \
    {"plaintext", no_argument, NULL, CONNECT_PLAINTEXT}, \
    {"ca", required_argument, NULL, CONNECT_CA}, \
    {"cacert", required_argument, NULL, CONNECT_CACERT}, \
    {"cert", required_argument, NULL, CONNECT_CERT}, \
    {"key", required_argument, NULL, CONNECT_KEY}, \
    {"skip-verify", no_argument, NULL, CONNECT_SKIP_VERIFY}, \
    {"authority", required_argument, NULL, CONNECT_AUTHORITY}, \
    {"user-agent", required_argument, NULL, CONNECT_USER_AGENT}, \
    {"connect-timeout", required_argument, NULL, CONNECT_CONNECT_TIMEOUT}, \
    {"keepalive-time", required_argument, NULL, CONNECT_KEEPALIVE_TIME}, \
    {"service-config", required_argument, NULL, CONNECT_SERVICE_CONFIG}, \
    {"max-receive-bytes", required_argument, NULL, CONNECT_MAX_RECEIVE}
/* clang-format on */

#define CONNECT_HELP                                                                                                   \
    "      --creds TYPE           insecure, tls, xds or google_default (insecure). xds: as the control plane says "    \
    "for\n"                                                                                                            \
    "                             each cluster, by the bootstrap's certificate providers, and plaintext where it\n"    \
    "                             says nothing (with --ca and so on: tls)\n"                                           \
    "      --plaintext            --creds insecure, in words\n"                                                        \
    "      --ca, --cacert, --cert, --key FILE   PEM files, which imply --creds tls\n"                                  \
    "      --skip-verify          TLS that checks neither the server's certificate nor its name; implies --creds "     \
    "tls\n"                                                                                                            \
    "      --authority NAME       instead of the target's\n"                                                           \
    "      --user-agent TEXT      before Torc's own\n"                                                                 \
    "      --service-config JSON|@FILE\n"                                                                              \
    "      --max-receive-bytes N  largest response (4M)\n"                                                             \
    "      --connect-timeout T    for a connection with its handshakes (20s)\n"                                        \
    "      --keepalive-time T     pings after this time without data (off; 10s at least)\n"

/* `command` names the subcommand in messages. Functions that return an int return 0, or an exit status with the error
 * printed. */

/* Reads one option, and the file that it names. Ignores a code that is not in CONNECT_OPTIONS. `value` is borrowed
 * until connect_args_fini; it is NULL for an option without a value. */
int connect_option(const char *command, struct connect_args *a, int code, const char *value);
/* Checks that the options agree. Without --creds, sets a->creds to what the other options imply. */
int connect_settle(const char *command, struct connect_args *a);
/* Takes TARGET and METHOD, the only arguments from getopt's optind on, and calls connect_settle. */
int connect_finish(const char *command, struct connect_args *a, int argc, char **argv);
void connect_args_fini(struct connect_args *a);
/* Called after connect_settle. Returns true if RPCs may go over a connection without TLS: for insecure, and for xds
 * without --ca, --cert and --key. */
bool connect_may_be_plaintext(const struct connect_args *a);

/* Makes n channels in a new array, after connect_settle. For --skip-verify prints a warning on standard error.
 * *channels must be NULL before the call. After a failure *channels is still NULL, or the array has NULL from the first
 * channel that could not be made. In every case the caller calls connect_channels_free. */
int connect_channels(const char *command, struct connect_args *a, torc_runtime *runtime, size_t n,
                     torc_channel ***channels);
void connect_channels_free(torc_channel **channels, size_t n);
/* Prints why a call of the method could not be started. rc: the error code, such as TORC_EINVAL. */
void connect_call_refused(const char *command, const char *method, int rc);

#endif
