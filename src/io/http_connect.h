/* Tunnels through an HTTP proxy: HTTP CONNECT (RFC 9110, section 9.3.6; A1, A86). Loop thread only. */
#ifndef TC_IO_HTTP_CONNECT_H
#define TC_IO_HTTP_CONNECT_H

#include "io/bytestream.h"
#include "io/loop.h"

/* The largest head of a proxy's answer, with the empty line at its end. */
#define TC_HTTP_CONNECT_MAX_HEAD_BYTES 8192

struct tc_http_connect; /* a running request; freed before fn is called, or by cancel */

/* Called once, from the loop, never from inside of start. On success `bs` is the tunnel: the callee owns it, and the
 * next byte that it reads comes from the target; `error` is NULL. On failure `bs` is NULL, and `error` (valid during
 * the call) is UNAVAILABLE with a text that names proxy, target and reason. */
typedef void (*tc_http_connect_fn)(void *arg, struct tc_bytestream *bs, const struct tc_status *error);

/* Asks the proxy at the other end of `bs` for a tunnel to `target`. Takes ownership of `bs`. `authorization` is the
 * value of Proxy-Authorization; empty: the request has none. There is no time limit: the caller runs a timer, and
 * cancels. Strings are copied. Never returns NULL. */
struct tc_http_connect *tc_http_connect_start(struct tc_loop *loop, struct tc_bytestream *bs, struct tc_slice target,
                                              struct tc_slice authorization, tc_http_connect_fn fn, void *arg);
/* Closes the byte stream and frees the request; fn is not called. Must not be called after fn. */
void tc_http_connect_cancel(struct tc_http_connect *c);

/* Parses the first line of a response's head: "HTTP/1.0 NNN reason" or "HTTP/1.1 NNN reason". *reason may be empty, and
 * points into `head`. Returns 0 or TORC_EPARSE. */
int tc_http_parse_status(struct tc_slice head, int *status, struct tc_slice *reason);

#endif
