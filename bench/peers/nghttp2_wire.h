/* The socket of bench/rpc's client on bare nghttp2: plaintext, or TLS by OpenSSL. wire_open and wire_wait block. */
#ifndef TORC_BENCH_NGHTTP2_WIRE_H
#define TORC_BENCH_NGHTTP2_WIRE_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <sys/types.h>

struct wire {
    int fd;
    SSL *ssl; /* NULL: plaintext */
};

/* Connects. `roots`, unless NULL, is the file of trusted certificates. Returns false with a message on stderr. */
bool wire_open(struct wire *w, const char *host, const char *port, const char *roots);
/* Returns the bytes sent or received; 0 if the call would block; negative if the connection is gone. */
ssize_t wire_send(struct wire *w, const void *data, size_t len);
ssize_t wire_receive(struct wire *w, void *to, size_t room);
/* Waits until the socket is readable or, with `send`, writable, or until OpenSSL has bytes that it read before. Returns
 * false after ten seconds. */
bool wire_wait(const struct wire *w, bool send);
void wire_close(struct wire *w);

#endif
