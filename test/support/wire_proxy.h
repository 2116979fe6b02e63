/* A TCP proxy on a thread of its own that counts what goes through it, and keeps its beginning. */
#ifndef TC_SUPPORT_WIRE_PROXY_H
#define TC_SUPPORT_WIRE_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct wire_proxy;

/* To "127.0.0.1:PORT"; connections that it cannot make there are closed. */
struct wire_proxy *wire_proxy_new(const char *target);
void wire_proxy_free(struct wire_proxy *p);
/* What comes is neither read nor passed on, in either direction, until `false` is said; connections are taken. From the
 * return on. */
void wire_proxy_hold(struct wire_proxy *p, bool hold);
/* Until it has taken so many connections since it was made. */
void wire_proxy_wait_connections(struct wire_proxy *p, unsigned n);
/* Its own "127.0.0.1:PORT"; borrowed. */
const char *wire_proxy_address(const struct wire_proxy *p);
/* Bytes that came from the target, and that went to it, since the last call of each. */
uint64_t wire_proxy_take_received(struct wire_proxy *p);
uint64_t wire_proxy_take_sent(struct wire_proxy *p);
/* Whether the text went through, in either direction, among the first 16 MiB since the last call of
 * wire_proxy_forget. */
bool wire_proxy_saw(struct wire_proxy *p, const char *text);
void wire_proxy_forget(struct wire_proxy *p);

#endif
