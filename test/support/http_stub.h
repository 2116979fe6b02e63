/* An HTTP/1 server on a thread of its own that does with each request what the test says: a metadata server, or a proxy
 * for CONNECT to this machine. One request a connection. */
#ifndef TC_SUPPORT_HTTP_STUB_H
#define TC_SUPPORT_HTTP_STUB_H

#include <stdint.h>

enum http_stub_do {
    HTTP_STUB_ANSWER, /* the text, then the end */
    HTTP_STUB_TUNNEL, /* the text, then bytes to and from 127.0.0.1 at the port of the request line */
    HTTP_STUB_HANG,   /* nothing, as long as the client stays */
    HTTP_STUB_CLOSE
};

struct http_stub_reply {
    enum http_stub_do what;
    unsigned delay_ms; /* before all that */
    char *text;        /* tc_free */
};

/* `head`: the request line and its headers. On the server's thread. */
typedef struct http_stub_reply (*http_stub_fn)(const char *head, void *arg);

struct http_stub;

struct http_stub *http_stub_new(http_stub_fn fn, void *arg);
void http_stub_free(struct http_stub *s);
/* "127.0.0.1:PORT"; borrowed. */
const char *http_stub_address(const struct http_stub *s);

#endif
