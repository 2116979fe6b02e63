/* Listening and its limits, for the subcommands that serve. */
#ifndef TORC_SERVE_H
#define TORC_SERVE_H

#include "server/call.h"
#include "server/server.h"

/* Limits the command's server: connections to three quarters of RLIMIT_NOFILE, unsent output to 512 MiB in all, and the
 * limits of tc_server_opts_guard. */
void cli_guard_server(struct tc_server_opts *opts);
/* Listens on an address literal and prints "listening ADDR". Prints the error and returns the exit status. */
int cli_listen(const char *command, struct tc_server *server, const char *addr);

#endif
