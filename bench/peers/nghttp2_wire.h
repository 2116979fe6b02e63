/* The socket of bench/rpc's client on bare nghttp2: plaintext, or TLS by OpenSSL. The functions do not block, except
 * wire_open and wire_wait. One thread uses a wire. */
#ifndef TORC_BENCH_NGHTTP2_WIRE_H
#define TORC_BENCH_NGHTTP2_WIRE_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <sys/types.h>

struct wire {
    int fd;
    SSL *ssl; /* NULL: plaintext */
};

/* Connects by IPv4. `roots` is the file of trusted certificates; NULL: no TLS. With TLS, `host` must be an IP address.
 * Returns false with a message on stderr if that fails; nothing is open then, and the wire must not be used. */
bool wire_open(struct wire *w, const char *host, const char *port, const char *roots);
/* Return the number of bytes sent or received; 0 if the call would block; negative if the connection is gone. */
ssize_t wire_send(struct wire *w, const void *data, size_t len);
ssize_t wire_receive(struct wire *w, void *to, size_t room);
/* Waits until the socket is readable, or with `send` until it is readable or writable. Returns at once if OpenSSL has
 * bytes that it read before. Returns false if ten seconds pass, or on a signal. */
bool wire_wait(const struct wire *w, bool send);
/* Closes a wire that wire_open opened. */
void wire_close(struct wire *w);

#endif
