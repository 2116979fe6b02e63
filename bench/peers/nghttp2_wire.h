/* The socket of bench/rpc's client on bare nghttp2, in the clear or with OpenSSL. It does not block. */
#ifndef TORC_BENCH_NGHTTP2_WIRE_H
#define TORC_BENCH_NGHTTP2_WIRE_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <sys/types.h>

struct wire {
    int fd;
    SSL *ssl; /* NULL: in the clear */
};

/* Connects; `roots`, when not NULL, is the file of certificates to trust. False with a message on stderr. */
bool wire_open(struct wire *w, const char *host, const char *port, const char *roots);
/* Bytes sent or received; 0: not now; negative: the connection is gone. */
ssize_t wire_send(struct wire *w, const void *data, size_t len);
ssize_t wire_receive(struct wire *w, void *to, size_t room);
/* Waits until there is something to receive, or also room to send; false after ten seconds. */
bool wire_wait(const struct wire *w, bool send);
void wire_close(struct wire *w);

#endif
