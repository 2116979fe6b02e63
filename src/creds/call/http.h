/* One blocking HTTP request by libcurl, for threads that fetch tokens; its stop is for any thread. libcurl is loaded
 * with the first request (creds/call/curl.h). */
#ifndef TC_CREDS_CALL_HTTP_H
#define TC_CREDS_CALL_HTTP_H

#include "base/buf.h"
#include "base/list.h"

/* The largest body of an answer. */
#define TC_HTTP_MAX_BODY_BYTES 65536

/* Borrowed for the call. */
struct tc_http_request {
    const char *url;        /* https, or http */
    const char *header;     /* "Name: value"; NULL: none */
    const char *form;       /* a body of application/x-www-form-urlencoded, sent by POST; NULL: GET */
    const char *roots_file; /* trusted roots, PEM; NULL: the system's */
    bool direct;            /* without a proxy, whatever the environment says */
    uint64_t timeout_ms;    /* for the whole fetch, of which connecting has at most 5 s */
    const char *marked;     /* "Name: value": a header that an answer of status 200 must have; NULL: none */
};

/* Ends requests from another thread: the request that runs, and every later one. One request at a time uses it. The
 * members are under the process's lock of rank TC_RANK_HTTP. */
struct tc_http_stop {
    struct tc_link link; /* among the requests that run */
    bool stopped;
    void *running;       /* the multi handle of the request that runs; NULL: none */
    unsigned generation; /* of the process (tc_fork_generation) that runs it */
};

void tc_http_stop_init(struct tc_http_stop *s);
/* Called when no request runs with it in this process. */
void tc_http_stop_fini(struct tc_http_stop *s);
/* Any thread. Does not wait for the request's end. */
void tc_http_stop_now(struct tc_http_stop *s);

/* Sends the request and waits for the answer. Returns 0 with the HTTP status in *status and the body in `body`, which
 * must be empty before; TORC_EIO when there is no answer, or a body that is too large; TORC_EPARSE when an answer of
 * status 200 lacks the header `marked`. An error has its reason in *why (tc_free), and may leave bytes in `body`. Only
 * http and https are spoken; redirects are not followed. */
int tc_http_fetch(const struct tc_http_request *request, struct tc_http_stop *stop, int *status, struct tc_buf *body,
                  char **why);

#endif
