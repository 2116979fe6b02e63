/* One HTTP request, blocking, for the fetching threads of tokens: by libcurl, which is loaded with the first request,
 * so that programs that never ask for a token do not carry it. */
#ifndef TC_CREDS_HTTP_H
#define TC_CREDS_HTTP_H

#include <pthread.h>

#include "base/buf.h"

/* What an endpoint's answer may have at most. */
#define TC_HTTP_MAX_BODY_BYTES 65536

struct tc_http_request {
    const char *url;        /* https, or http */
    const char *header;     /* "Name: value"; NULL: none */
    const char *form;       /* a body of application/x-www-form-urlencoded, sent by POST; NULL: GET */
    const char *roots_file; /* trusted roots, PEM; NULL: the system's */
    bool direct;            /* by no proxy, whatever the environment says */
    uint64_t timeout_ms;    /* for all of it */
    const char *marked;     /* "Name: value" that an answer of status 200 must have among its headers; NULL: none */
};

/* Ends requests from another thread: those that run and those that come. */
struct tc_http_stop {
    pthread_mutex_t mutex;
    bool stopped;
    void *running;
};

void tc_http_stop_init(struct tc_http_stop *s);
void tc_http_stop_fini(struct tc_http_stop *s);
void tc_http_stop_now(struct tc_http_stop *s);

/* 0 with the status and the body appended; TORC_EIO with the reason in *why (tc_free); TORC_EPARSE likewise: the answer
 * has not the header that it must have. Redirects are not followed; nothing but http and https is ever spoken. */
int tc_http_fetch(const struct tc_http_request *request, struct tc_http_stop *stop, int *status, struct tc_buf *body,
                  char **why);

#endif
