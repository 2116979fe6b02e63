/* The servers of benchmarks: `torc backend` and `torc serve-xds`, each a separate process on the last core but one. */
#ifndef TORC_BENCH_SERVER_H
#define TORC_BENCH_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct server {
    pid_t pid;
    char port[16];
    char resources[32]; /* the resource file of a control plane, or the PEM certificate of a TLS server; else empty */
};

/* The folder of the running program, in static memory, or NULL if the system does not tell. Programs of benchmarks
 * share one folder; the command `torc` lies one folder up. */
const char *server_own_folder(void);
/* Starts the server on all IPv4 addresses, among them 127.0.0.0/8, and waits until it listens. `option` and `value` may
 * be NULL. Returns false with a message on stderr. */
bool server_start(struct server *s, const char *option, const char *value);
/* Starts the server on 127.0.0.1 alone, with TLS and a certificate for that address. */
bool server_start_tls(struct server *s);
/* Starts `torc serve-xds` with xds:///bench and one cluster of the given policy (ROUND_ROBIN, or RING_HASH by channel
 * id) whose only endpoint is the port of 127.0.0.1. Sets the environment so that clients started afterwards find it. */
bool server_start_xds(struct server *s, const char *backend_port, const char *lb_policy);
void server_stop(struct server *s);
/* Runs `FOLDER/NAME arguments` and reads the first n numbers that it prints. Returns false with a message if it prints
 * fewer or fails. */
bool server_run_client(const char *name, double *numbers, unsigned n, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Runs a shell command, and is like server_run_client otherwise. */
bool server_run_command(const char *command, double *numbers, unsigned n);
/* Returns true if a program of benchmarks was built. Otherwise prints that it is skipped. */
bool server_have_client(const char *name, const char *title);

#endif
