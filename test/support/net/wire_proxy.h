/* A TCP proxy on a thread of its own that counts the bytes that pass, and stores the first of them. */
#ifndef TC_SUPPORT_NET_WIRE_PROXY_H
#define TC_SUPPORT_NET_WIRE_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct wire_proxy;

/* Makes a proxy to "127.0.0.1:PORT". It closes a client for which it cannot connect there, or which is the ninth at a
 * time. */
struct wire_proxy *wire_proxy_new(const char *target);
void wire_proxy_free(struct wire_proxy *p);
/* While true, the proxy accepts connections but reads and passes nothing, in either direction. In force when the
 * function returns. */
void wire_proxy_hold(struct wire_proxy *p, bool hold);
/* Waits until the proxy has connected that many clients to the target. */
void wire_proxy_wait_connections(struct wire_proxy *p, unsigned n);
/* Returns the proxy's own "127.0.0.1:PORT"; borrowed. */
const char *wire_proxy_address(const struct wire_proxy *p);
/* Return the numbers of bytes that came from the target, and that went to it, since the last call of each. */
uint64_t wire_proxy_take_received(struct wire_proxy *p);
uint64_t wire_proxy_take_sent(struct wire_proxy *p);
/* Returns true if the text passed in either direction, within the first 8 MiB of that direction since the last
 * wire_proxy_forget. */
bool wire_proxy_saw(struct wire_proxy *p, const char *text);
void wire_proxy_forget(struct wire_proxy *p);

#endif
