/* The echo backend: answers each message of any method with itself, and names itself in the response header x-backend
 * (among the trailers if the call fails). The bytes of a request header x-load-metrics-bin come back as its load report
 * (trailer endpoint-load-metrics-bin). For the command, the demo and tests. The thread of its server's loop. */
#ifndef TC_CONTROLPLANE_BACKEND_H
#define TC_CONTROLPLANE_BACKEND_H

#include "server/call.h"
#include "server/server.h"

struct tc_backend;

struct tc_backend_opts {
    const char *name;    /* x-backend; copied */
    uint64_t delay_ms;   /* before each answer */
    int fail_code;       /* a status for a share of the calls; 0: none */
    double fail_percent; /* 0..100 */
};

/* Takes the server's default method and torc.test.Backend/Hang (answers nothing until cancelled), /Fail (ends with the
 * status whose number is the request's text), /Count (answers the number of requests so far as text),
 * /Headers (answers the request's header fields, a line for each), /Repeat (answers its first message with itself again
 * and again, as fast as the client takes it, until cancelled). Reflection is UNIMPLEMENTED, and not counted. */
struct tc_backend *tc_backend_new(struct tc_server *server, const struct tc_backend_opts *opts);
/* Call after tc_server_free. */
void tc_backend_free(struct tc_backend *b);
/* Returns how many calls began so far. */
uint64_t tc_backend_requests(const struct tc_backend *b);

#endif
