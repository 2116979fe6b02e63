/* An HTTP/1 server on a thread of its own that answers each request as the test decides: a metadata server, or a
 * CONNECT proxy to this machine. One request per connection. */
#ifndef TC_SUPPORT_NET_HTTP_SERVER_H
#define TC_SUPPORT_NET_HTTP_SERVER_H

#include <stdint.h>

enum http_server_do {
    HTTP_SERVER_ANSWER, /* sends the text and closes */
    HTTP_SERVER_TUNNEL, /* connects to 127.0.0.1 at the port of the request line, sends the text, then tunnels; closes
                           if it cannot connect */
    HTTP_SERVER_HANG,   /* sends nothing until the client closes */
    HTTP_SERVER_CLOSE   /* closes without an answer */
};

struct http_server_reply {
    enum http_server_do what;
    unsigned delay_ms; /* from the end of the request's headers to the reply */
    char *text;        /* to send; must not be NULL for ANSWER and TUNNEL. The server frees it with tc_free */
};

/* Called on the server's thread. head: what was read of the request: the request line, the headers, and perhaps the
 * beginning of a body; borrowed for the call. */
typedef struct http_server_reply (*http_server_fn)(const char *head, void *arg);

struct http_server;

/* Starts a server on 127.0.0.1 and a port that the system chooses. Fails the test if the server cannot listen. fn
 * is called with `arg`, which must stay valid until http_server_free. */
struct http_server *http_server_new(http_server_fn fn, void *arg);
/* Ends the thread and closes all connections. */
void http_server_free(struct http_server *s);
/* Returns "127.0.0.1:PORT"; valid until http_server_free. */
const char *http_server_address(const struct http_server *s);

#endif
