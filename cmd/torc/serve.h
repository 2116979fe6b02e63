/* The listeners of torc serve-xds, and the limits of its server. */
#ifndef TORC_SERVE_H
#define TORC_SERVE_H

#include "server/call.h"
#include "server/server.h"

/* Does tc_server_opts_guard for a server that serves anybody: three quarters of RLIMIT_NOFILE connections (at least 64,
 * at most 65,536), and 512 MiB each of unsent output and of unread requests. */
void cli_guard_server(struct tc_server_opts *opts);
/* Listens on an address literal and prints "listening ADDR". Returns 0, or an exit status with the error printed. If
 * the line cannot be written, returns CLI_FAILED and leaves the error to cli_end_output. */
int cli_listen(const char *command, struct tc_server *server, const char *addr);

#endif
