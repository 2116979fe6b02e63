/* Finds which of the files named by options TLS rejects. */
#ifndef TORC_CLI_TLS_H
#define TORC_CLI_TLS_H

#include "base/buf.h"

/* A file that an option names. All members are borrowed for the call. If the option was not given, `text` is empty, and
 * the other members may be NULL. */
struct cli_pem {
    const char *option, *path;
    const struct tc_buf *text; /* PEM; never NULL */
};

/* Returns 0 if TLS accepts the files. Otherwise prints an error that names the option and the file, and returns
 * CLI_FAILED. `cert` and `key` are checked together, if both are given. */
int cli_check_tls(const char *command, struct cli_pem ca, struct cli_pem cert, struct cli_pem key);

#endif
