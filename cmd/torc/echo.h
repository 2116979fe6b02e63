/* The echo service of `torc backend` and `torc demo`, on the public API. An echo answers each message with the same
 * message. echo_add names the methods that do something else.
 *
 * Response metadata, which reflection alone lacks: x-backend is the echo's name, in the headers, or in the trailers if
 * a call ends before its headers are sent. The bytes of the request header x-load-metrics-bin come back as the trailer
 * endpoint-load-metrics-bin, the load report of the call. */
#ifndef TORC_ECHO_H
#define TORC_ECHO_H

#include <torc/server.h>

struct echo;

struct echo_opts {
    const char *name;    /* x-backend; printable ASCII; must outlive the echo */
    uint64_t delay_ms;   /* before each answer, and the status of /Fail, but not for /Repeat; if not 0, echo_run_due
                            must be called */
    int fail_code;       /* the status of failed calls, echoes only; 0: no call fails */
    double fail_percent; /* how many calls fail, 0 to 100 */
    size_t max_held; /* bytes of requests that wait to be answered, or are repeated; an RPC whose request goes beyond
                        ends with RESOURCE_EXHAUSTED; 0: 512 MiB */
};

/* Copies the options. Returns an echo, which the caller frees with echo_free. Never NULL. */
struct echo *echo_new(const struct echo_opts *opts);
/* Registers the service with a server, which must have one runtime only. "The loop's thread" below drives the loop of
 * that runtime. May be called again with another server of the same runtime when the first server no longer runs.
 * Methods of torc.test.Backend:
 *
 *     Hang      never answers
 *     Fail      ends with the status whose number is the request's text, INVALID_ARGUMENT for any other text
 *     Count     answers with the number of RPCs so far, as text
 *     Headers   answers with the request's header fields, one a line
 *     Repeat    sends its first message back until the call is cancelled, as fast as the client reads
 *
 * Any other method is an echo, but reflection is UNIMPLEMENTED and not counted. Returns what torc_server_add_method
 * returns: 0, or a TORC_ code with an error. */
int echo_add(struct echo *e, torc_server *server, torc_error **error);
/* The servers, and then their runtime, must have been freed before: until then the runtime may release calls, which use
 * the echo. */
void echo_free(struct echo *e);

/* Returns how many RPCs began so far, without those of reflection. Any thread. */
uint64_t echo_requests(struct echo *e);
/* Returns the milliseconds until the next answer is due, 0 if it is due; -1: no answer waits. The loop's thread. */
int echo_timeout_ms(const struct echo *e);
/* Sends the answers that are due. The loop's thread. */
void echo_run_due(struct echo *e);

#endif
