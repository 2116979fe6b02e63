/* Ways through an HTTP proxy: HTTP CONNECT (RFC 9110, section 9.3.6; A1, A86). */
#ifndef TC_IO_PROXY_H
#define TC_IO_PROXY_H

#include "io/bytestream.h"
#include "io/loop.h"

/* How an address is reached that is not connected to directly. Immutable, shared; part of the address (io/addr.h). */
struct tc_via {
    struct tc_ref ref;
    struct tc_addr proxy;          /* where to connect; len 0: the address is the proxy's own */
    struct tc_rstr *target;        /* what CONNECT asks for, "host:port"; NULL: the address itself */
    struct tc_rstr *authorization; /* value of Proxy-Authorization; NULL: none */
};

/* Takes references of its own; proxy, target and authorization may be NULL as above. */
struct tc_via *tc_via_new(const struct tc_addr *proxy, struct tc_rstr *target, struct tc_rstr *authorization);
struct tc_via *tc_via_ref(struct tc_via *v); /* NULL stays NULL */
void tc_via_unref(struct tc_via *v);
bool tc_via_eq(const struct tc_via *a, const struct tc_via *b);
/* Where to open a connection for this address: a proxy, or the address; borrowed. */
const struct tc_addr *tc_via_dial(const struct tc_addr *addr);

/* A proxy's answer may have at most so many bytes before the empty line. */
#define TC_HTTP_CONNECT_MAX_HEAD_BYTES 8192

struct tc_http_connect; /* one that runs; freed with its end or by cancel */

/* Called once from the loop, never from inside start: the byte stream as a tunnel to the target, whose first byte is
 * the next to read; or NULL and a status (UNAVAILABLE) that names proxy, target and reason. */
typedef void (*tc_http_connect_fn)(void *arg, struct tc_bytestream *bs, const struct tc_status *error);

/* Asks the proxy at the other end of `bs`, which it takes over. No time limit: that is the caller's. Strings are
 * copied.
 */
struct tc_http_connect *tc_http_connect_start(struct tc_loop *loop, struct tc_bytestream *bs, struct tc_slice target,
                                              struct tc_slice authorization, tc_http_connect_fn fn, void *arg);
/* Gives up and closes the byte stream; no callback. */
void tc_http_connect_cancel(struct tc_http_connect *c);

/* The status of a response's head, "HTTP/1.x NNN reason", which may have more lines; the reason is borrowed from it.
 * TORC_EPARSE. */
int tc_http_parse_status(struct tc_slice head, int *status, struct tc_slice *reason);

#endif
