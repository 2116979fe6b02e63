/* Target, credentials and channels of the subcommands that send RPCs. */
#ifndef TORC_CONNECT_H
#define TORC_CONNECT_H

#include <torc/torc.h>

#include "base/buf.h"

struct connect_args {
    const char *target, *method;
    const char *creds, *authority;
    uint64_t max_receive_bytes;  /* 0: the default */
    struct tc_buf ca, cert, key; /* PEM; empty: not given */
    const char *ca_path, *cert_path, *key_path;
    struct tc_buf service_config; /* JSON; empty: not given */
};

enum {
    CONNECT_CREDS = 512,
    CONNECT_CA,
    CONNECT_CERT,
    CONNECT_KEY,
    CONNECT_AUTHORITY,
    CONNECT_SERVICE_CONFIG,
    CONNECT_MAX_RECEIVE,
    CONNECT_END,
};

/* Entries of a getopt_long table. */

/* clang-format off */
#define CONNECT_OPTIONS \
    {"creds", required_argument, NULL, CONNECT_CREDS}, \
    {"ca", required_argument, NULL, CONNECT_CA}, \
    {"cert", required_argument, NULL, CONNECT_CERT}, \
    {"key", required_argument, NULL, CONNECT_KEY}, \
    {"authority", required_argument, NULL, CONNECT_AUTHORITY}, \
    {"service-config", required_argument, NULL, CONNECT_SERVICE_CONFIG}, \
    {"max-receive-bytes", required_argument, NULL, CONNECT_MAX_RECEIVE}
/* clang-format on */

#define CONNECT_HELP                                                                                                   \
    "      --creds TYPE           insecure, tls, xds or google_default (insecure). xds: as the control plane says "    \
    "for\n"                                                                                                            \
    "                             each cluster, by the bootstrap's certificate providers, and plaintext where it\n"    \
    "                             says nothing (with --ca and so on: tls)\n"                                           \
    "      --ca, --cert, --key FILE   PEM files for tls\n"                                                             \
    "      --authority NAME       instead of the target's\n"                                                           \
    "      --service-config JSON|@FILE\n"                                                                              \
    "      --max-receive-bytes N  largest response (4M)\n"

/* `command` names the subcommand in messages. All functions return 0, or an exit status with the message printed.
 *
 * connect_option takes one option, with a code of CONNECT_OPTIONS. */
int connect_option(const char *command, struct connect_args *a, int code, const char *value);
/* Takes TARGET and METHOD from the rest of the line (from getopt's optind) and checks that the options agree. */
int connect_finish(const char *command, struct connect_args *a, int argc, char **argv);
void connect_args_fini(struct connect_args *a);

/* Makes n channels. After a failure *channels holds NULL from the first channel that could not be made; call
 * connect_channels_free in either case. */
int connect_channels(const char *command, struct connect_args *a, torc_runtime *runtime, size_t n,
                     torc_channel ***channels);
void connect_channels_free(torc_channel **channels, size_t n);
/* Prints why a call of the method could not be started. */
void connect_call_refused(const char *command, const char *method, int rc);

#endif
