/* Which of the files that options named is the one that TLS cannot be made of. */
#ifndef TORC_CLI_TLS_H
#define TORC_CLI_TLS_H

#include "base/buf.h"

struct cli_pem {
    const char *option, *path;
    const struct tc_buf *text; /* empty: not given */
};

/* 0 when TLS can be made of them, else CLI_FAILED with the error printed: it names option and file. `cert` and `key`
 * are given together. */
int cli_check_tls(const char *command, struct cli_pem ca, struct cli_pem cert, struct cli_pem key);

#endif
