/* A TCP proxy on a thread of its own. It counts the bytes that pass, and stores some of them for wire_proxy_saw. */
#ifndef TC_SUPPORT_NET_WIRE_PROXY_H
#define TC_SUPPORT_NET_WIRE_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct wire_proxy;

/* Makes a proxy to "127.0.0.1:PORT"; fails the test if the proxy cannot listen. The proxy closes a client at once if it
 * cannot connect to the target, or if it has 8 clients already. */
struct wire_proxy *wire_proxy_new(const char *target);
void wire_proxy_free(struct wire_proxy *p);
/* While hold is true, the proxy accepts connections but reads and passes nothing, in either direction. The change is in
 * force when the function returns. */
void wire_proxy_hold(struct wire_proxy *p, bool hold);
/* wire_proxy_connections returns how many clients the proxy has connected to the target since its start, and
 * wire_proxy_wait_connections waits until there were n. */
unsigned wire_proxy_connections(struct wire_proxy *p);
void wire_proxy_wait_connections(struct wire_proxy *p, unsigned n);
/* Returns the proxy's own "127.0.0.1:PORT"; valid until wire_proxy_free. */
const char *wire_proxy_address(const struct wire_proxy *p);
/* wire_proxy_take_received returns the number of bytes that came from the target, wire_proxy_take_sent the number that
 * came from clients, each since its last call. */
uint64_t wire_proxy_take_received(struct wire_proxy *p);
uint64_t wire_proxy_take_sent(struct wire_proxy *p);
/* Returns true if the stored bytes of either direction contain the text. Stored are the first 8 MiB of each direction,
 * from all connections, since the start or the last wire_proxy_forget. */
bool wire_proxy_saw(struct wire_proxy *p, const char *text);
/* Drops the stored bytes. */
void wire_proxy_forget(struct wire_proxy *p);

#endif
