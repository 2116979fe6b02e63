/* What the subcommands that listen share. */
#ifndef TORC_SERVE_H
#define TORC_SERVE_H

#include "server/grpc_server.h"

/* Listens on an address literal and prints "listening ADDR"; the error is printed; returns the exit status. */
int cli_listen(const char *command, struct tc_server *server, const char *addr);

#endif
