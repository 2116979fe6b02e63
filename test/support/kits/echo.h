/* An echo on the internal server: answers each message with the same message, in all methods but those that
 * kit_echo_new lists, and tells its name in the response header x-backend (among the trailers of a call that ends
 * without response headers). The bytes of a request header x-load-metrics-bin come back as the call's load report
 * (trailer endpoint-load-metrics-bin). All functions run on the thread of the server's loop. */
#ifndef TC_SUPPORT_KITS_ECHO_H
#define TC_SUPPORT_KITS_ECHO_H

#include "server/call.h"
#include "server/server.h"

struct kit_echo;

struct kit_echo_opts {
    const char *name;    /* the value of x-backend; copied; not NULL */
    uint64_t delay_ms;   /* before each answer, except those of /Repeat */
    int fail_code;       /* the status of a share of the calls of the default method, which end at once; 0: none */
    double fail_percent; /* that share, 0 to 100; each call is chosen at random */
};

/* Takes the server's default method and torc.test.Backend/Hang (answers nothing until cancelled), /Fail (ends with the
 * status whose number is the request's text), /Count (answers the number of calls so far as text), /Headers (answers
 * the request's header fields, a line for each), /Repeat (answers its first message with itself again and again, as
 * fast as the client takes it, until cancelled). Reflection is UNIMPLEMENTED, without x-backend, and not counted.
 * `opts` is copied. The echo must live as long as the server takes calls. */
struct kit_echo *kit_echo_new(struct tc_server *server, const struct kit_echo_opts *opts);
/* Call after tc_server_free, before the loop is freed. NULL is allowed. */
void kit_echo_free(struct kit_echo *b);
/* Returns how many calls began so far, of all methods but reflection. */
uint64_t kit_echo_requests(const struct kit_echo *b);

#endif
