/* The server of benchmarks: `torc backend` in a process of its own, on the last core but one. */
#ifndef TORC_BENCH_SERVER_H
#define TORC_BENCH_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct server {
    pid_t pid;
    char port[16];
    char resources[32]; /* of a control plane: its file; with TLS: the certificate, PEM; else empty */
};

/* Where the running program lies, in memory of its own; the programs of benchmarks lie beside each other, the command
 * `torc` one folder up. NULL when the system does not tell. */
const char *server_own_folder(void);
/* Starts it on all loopback addresses (127.0.0.0/8) and waits until it listens; options may be NULL. False with a
 * message on stderr. */
bool server_start(struct server *s, const char *option, const char *value);
/* The same with TLS, and a certificate of 127.0.0.1. */
bool server_start_tls(struct server *s);
/* `torc serve-xds` with xds:///bench, a cluster of that policy (ROUND_ROBIN, RING_HASH: one hash for each channel)
 * whose one endpoint is the port of 127.0.0.1; the clients that are run from now on find it by their environment. */
bool server_start_xds(struct server *s, const char *backend_port, const char *lb_policy);
void server_stop(struct server *s);
/* Runs `FOLDER/NAME arguments` and reads the first n numbers that it prints; false with a message when it prints fewer
 * or fails. */
bool server_run_client(const char *name, double *numbers, unsigned n, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same of a command as the shell has it. */
bool server_run_command(const char *command, double *numbers, unsigned n);
/* Whether a program of benchmarks was built; says that it is skipped otherwise. */
bool server_have_client(const char *name, const char *title);

#endif
