/* The servers of benchmarks, `torc backend` and `torc serve-xds`, and the programs that use them. Each server is a
 * separate process, pinned to the last core but one if there is one. */
#ifndef TORC_BENCH_SERVER_H
#define TORC_BENCH_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct server {
    pid_t pid;
    char port[16];      /* decimal */
    char resources[32]; /* a control plane's resource file, or a TLS server's certificate and key as PEM; else empty */
};

/* Returns the folder of the running program, in static memory, or NULL if the system does not tell. Programs of
 * benchmarks share one folder; the command `torc` lies one folder up. */
const char *server_own_folder(void);

/* server_start, server_start_tls and server_start_xds wait until the server listens. They return false if it cannot be
 * started; then server_stop must not be called. server_stop ends the server and removes its file. */

/* Starts `torc backend` on all IPv4 addresses, among them 127.0.0.0/8. `option` with its `value` is passed on; both may
 * be NULL. */
bool server_start(struct server *s, const char *option, const char *value);
/* Starts `torc backend` on 127.0.0.1 alone, with TLS and a certificate for that address. */
bool server_start_tls(struct server *s);
/* Starts `torc serve-xds` with xds:///bench and one cluster, whose only endpoint is 127.0.0.1:`backend_port`.
 * lb_policy: ROUND_ROBIN, or RING_HASH, which hashes the channel's id. Sets the environment so that clients started
 * afterwards find the control plane. */
bool server_start_xds(struct server *s, const char *backend_port, const char *lb_policy);
void server_stop(struct server *s);

/* Runs the program `name` of server_own_folder by the shell, with the arguments that fmt makes, and reads the first n
 * numbers that it prints. Returns false with a message if it prints fewer or fails. A command of 1,024 bytes or more is
 * cut. */
bool server_run_client(const char *name, double *numbers, unsigned n, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Runs a shell command and reads the first n numbers that it prints. Returns false with a message if it prints fewer or
 * fails. */
bool server_run_command(const char *command, double *numbers, unsigned n);
/* Returns true if the program of that name was built. Otherwise prints that `title` is skipped. */
bool server_have_client(const char *name, const char *title);

#endif
