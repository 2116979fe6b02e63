/* The echo service of `torc backend` and `torc demo`, on the public API: it answers each message of any method with
 * itself, and names itself in the response header x-backend. If a call ends before its response header was sent,
 * x-backend is among the trailers. The bytes of a request header x-load-metrics-bin come back as its load report
 * (trailer endpoint-load-metrics-bin). */
#ifndef TORC_ECHO_H
#define TORC_ECHO_H

#include <torc/server.h>

struct echo;

struct echo_opts {
    const char *name;    /* x-backend; printable ASCII; must outlive the echo */
    uint64_t delay_ms;   /* before each answer but those of /Repeat: the loop's thread calls echo_run_due */
    int fail_code;       /* a status for a share of the calls; 0: none */
    double fail_percent; /* 0..100 */
    size_t max_held; /* bytes of requests that wait to be answered; RPCs beyond are RESOURCE_EXHAUSTED; 0: 512 MiB */
};

/* Copies the options. Never NULL. */
struct echo *echo_new(const struct echo_opts *opts);
/* Registers the service with a server of one runtime. May be called again for another server when the one before no
 * longer runs. The service has torc.test.Backend/Hang (answers nothing until cancelled), /Fail (ends with the status
 * whose number is the request's text), /Count (answers the number of requests so far as text), /Headers (answers the
 * request's header fields, a line for each), /Repeat (answers its first message with itself again and again, as fast as
 * the client takes it, until cancelled). Any other method is an echo. Reflection is UNIMPLEMENTED, and not counted.
 * Returns 0 or a code with an error. */
int echo_add(struct echo *e, torc_server *server, torc_error **error);
/* The servers must have been freed before. */
void echo_free(struct echo *e);

/* Returns how many RPCs began so far. Any thread. */
uint64_t echo_requests(struct echo *e);
/* Returns the milliseconds until an answer is due; -1: no answer waits. The loop's thread. */
int echo_timeout_ms(const struct echo *e);
/* Sends the answers that are due. The loop's thread. */
void echo_run_due(struct echo *e);

#endif
