/* Sockets and TLS for the client that uses nghttp2 alone. */
#include "nghttp2_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* The functions connect_to, start_tls and set_nonblocking return false with a message on stderr if they fail. */

static bool connect_to(struct wire *w, const char *host, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0) {
        fprintf(stderr, "bench/nghttp2_client: no address: %s\n", gai_strerror(rc));
        return false;
    }
    int one = 1;
    w->fd = socket(AF_INET, SOCK_STREAM, 0);
    bool ok = w->fd >= 0 && connect(w->fd, found->ai_addr, found->ai_addrlen) == 0 &&
              setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0;
    if (!ok)
        fprintf(stderr, "bench/nghttp2_client: no connection: %m\n");
    freeaddrinfo(found);
    return ok;
}

static bool start_tls(struct wire *w, const char *host, const char *roots)
{
    static const unsigned char h2[] = "\x02h2";
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx && SSL_CTX_load_verify_locations(ctx, roots, NULL) == 1) {
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        w->ssl = SSL_new(ctx);
    }
    SSL_CTX_free(ctx);
    if (w->ssl && X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(w->ssl), host) == 1 &&
        SSL_set_alpn_protos(w->ssl, h2, sizeof(h2) - 1) == 0 && SSL_set_fd(w->ssl, w->fd) == 1 &&
        SSL_connect(w->ssl) == 1)
        return true;
    fprintf(stderr, "bench/nghttp2_client: no TLS connection\n");
    ERR_print_errors_fp(stderr);
    return false;
}

static bool set_nonblocking(const struct wire *w)
{
    if (fcntl(w->fd, F_SETFL, fcntl(w->fd, F_GETFL) | O_NONBLOCK) == 0)
        return true;
    fprintf(stderr, "bench/nghttp2_client: no O_NONBLOCK: %m\n");
    return false;
}

bool wire_open(struct wire *w, const char *host, const char *port, const char *roots)
{
    *w = (struct wire){.fd = -1};
    if (connect_to(w, host, port) && (!roots || start_tls(w, host, roots)) && set_nonblocking(w))
        return true;
    wire_close(w);
    return false;
}

/* Turns what SSL_read or SSL_write returned into what wire_receive and wire_send return. */
static ssize_t result_of_tls(struct wire *w, int n)
{
    if (n > 0)
        return n;
    int error = SSL_get_error(w->ssl, n);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

ssize_t wire_send(struct wire *w, const void *data, size_t len)
{
    if (w->ssl)
        return result_of_tls(w, SSL_write(w->ssl, data, (int)len));
    ssize_t n = send(w->fd, data, len, MSG_NOSIGNAL);
    return n < 0 && errno == EAGAIN ? 0 : n;
}

ssize_t wire_receive(struct wire *w, void *to, size_t room)
{
    if (w->ssl)
        return result_of_tls(w, SSL_read(w->ssl, to, (int)room));
    ssize_t n = recv(w->fd, to, room, 0);
    if (n == 0)
        return -1;
    return n < 0 && errno == EAGAIN ? 0 : n;
}

bool wire_wait(const struct wire *w, bool send)
{
    struct pollfd p = {.fd = w->fd, .events = (short)(send ? POLLIN | POLLOUT : POLLIN)};
    return (w->ssl && SSL_has_pending(w->ssl)) || poll(&p, 1, 10000) > 0;
}

void wire_close(struct wire *w)
{
    SSL_free(w->ssl);
    if (w->fd >= 0)
        close(w->fd);
}
