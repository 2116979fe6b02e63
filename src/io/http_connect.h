/* Tunnels through an HTTP proxy: HTTP CONNECT (RFC 9110, section 9.3.6; A1, A86). Loop thread only. */
#ifndef TC_IO_HTTP_CONNECT_H
#define TC_IO_HTTP_CONNECT_H

#include "io/bytestream.h"
#include "io/loop.h"

/* The largest head of a proxy's answer, its empty line included. */
#define TC_HTTP_CONNECT_MAX_HEAD_BYTES 8192

struct tc_http_connect; /* a request that runs; freed with its end or by cancel */

/* Called once from the loop, never from inside of start: with the byte stream as a tunnel to the target, whose first
 * byte is the next to read; or with NULL and a status (UNAVAILABLE) that names proxy, target and reason. */
typedef void (*tc_http_connect_fn)(void *arg, struct tc_bytestream *bs, const struct tc_status *error);

/* Asks the proxy at the other end of `bs`, which it takes over, for a tunnel to `target`. `authorization` is the value
 * of Proxy-Authorization; empty: none. There is no time limit: the caller has one. Strings are copied. */
struct tc_http_connect *tc_http_connect_start(struct tc_loop *loop, struct tc_bytestream *bs, struct tc_slice target,
                                              struct tc_slice authorization, tc_http_connect_fn fn, void *arg);
/* Gives up and closes the byte stream: fn is not called. Must not be called after fn. */
void tc_http_connect_cancel(struct tc_http_connect *c);

/* Parses the status of a response's head, "HTTP/1.x NNN reason" with x 0 or 1, which may have more lines. The reason,
 * which may be empty, is borrowed from `head`. Returns 0 or TORC_EPARSE. */
int tc_http_parse_status(struct tc_slice head, int *status, struct tc_slice *reason);

#endif
