/* Finds which of the files named by options TLS rejects. */
#ifndef TORC_CLI_TLS_H
#define TORC_CLI_TLS_H

#include "base/buf.h"

struct cli_pem {
    const char *option, *path;
    const struct tc_buf *text; /* empty: not given */
};

/* Returns 0 if TLS accepts the files, else CLI_FAILED with the error printed: it names the option and the file. `cert`
 * and `key` are given together. */
int cli_check_tls(const char *command, struct cli_pem ca, struct cli_pem cert, struct cli_pem key);

#endif
