/* Listening and its limits, for torc serve-xds. */
#ifndef TORC_SERVE_H
#define TORC_SERVE_H

#include "server/call.h"
#include "server/server.h"

/* Sets limits of a server that serves anybody: connections to three quarters of RLIMIT_NOFILE (64 at least, 65,536 at
 * most), unsent output and unread requests to 512 MiB each, and the timeouts of tc_server_opts_guard. */
void cli_guard_server(struct tc_server_opts *opts);
/* Listens on an address literal and prints "listening ADDR". Returns 0, or an exit status with the error
 * printed; CLI_FAILED also if the line could not be written, which cli_end_output reports. */
int cli_listen(const char *command, struct tc_server *server, const char *addr);

#endif
