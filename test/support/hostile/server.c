/* Servers that send any bytes, in a process of their own.
 *
 * hostile_new forks. The main thread of the child listens on a port for each play and accepts; a detached thread plays
 * each connection, then closes it and frees what belongs to it. The good backend runs in the child too. Parent and
 * child share a board (addresses, counts). hostile_free kills the child, also while plays run, and unmaps the board.
 *
 * A play talks through struct hostile_peer, whose HTTP/2 side is fakes/h2 on a socket, with TLS underneath if the
 * servers have a certificate. hostile_visit plays the client's side instead, on the thread that calls it. */
#include "support/hostile/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"

#include "base/clock.h"
#include "base/mem.h"

#define PATIENCE_MS 10000
#define VISIT_PATIENCE_MS 1500
#define OVER_NS (20 * TC_NS_PER_S)
#define MUCH ((size_t)64 << 10)

struct port {
    char address[32];
    atomic_uint taken, over; /* connections accepted; of these, how many have ended */
};

/* Memory that both processes see. The child writes the addresses, then sets `ready`; the parent reads them after
 * that. */
struct board {
    struct port ports[HOSTILE_MAX];
    char backend[32];
    atomic_bool ready;
};

struct hostile {
    struct board *board;
    pid_t pid;
};

struct hostile_peer {
    int fd;
    struct fake_h2 *h2;
    SSL *ssl;                          /* NULL: plaintext */
    bool gone, deaf, truncated, keeps; /* gone: the other side counts as closed, for good */
    bool visits;                       /* the play is the client's side */
    size_t number;
    void *arg;
};

/* --- one connection --- */

struct fake_h2 *hostile_frames(struct hostile_peer *p)
{
    return p->h2;
}

size_t hostile_number(const struct hostile_peer *p)
{
    return p->number;
}

void *hostile_arg(const struct hostile_peer *p)
{
    return p->arg;
}

void hostile_shrink(struct hostile_peer *p)
{
    int bytes = 16384;
    setsockopt(p->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

void hostile_deafen(struct hostile_peer *p)
{
    p->deaf = true;
}

struct ssl_st *hostile_ssl(struct hostile_peer *p)
{
    return p->ssl;
}

void hostile_truncate(struct hostile_peer *p)
{
    p->truncated = true;
}

/* Returns the result of a TLS operation in the form of a socket's: 0 at the end, -1 with errno on failure. */
static ssize_t as_socket(struct hostile_peer *p, int n)
{
    if (n > 0)
        return n;
    int error = SSL_get_error(p->ssl, n);
    ERR_clear_error();
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return error == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

static ssize_t take_some(struct hostile_peer *p, void *data, size_t len)
{
    return p->ssl ? as_socket(p, SSL_read(p->ssl, data, (int)len)) : recv(p->fd, data, len, MSG_DONTWAIT);
}

static ssize_t put_some(struct hostile_peer *p, const void *data, size_t len)
{
    return p->ssl ? as_socket(p, SSL_write(p->ssl, data, (int)len))
                  : send(p->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Reads some of the bytes that have come, if any, without waiting. */
static void take_in(struct hostile_peer *p)
{
    char bytes[16384];
    ssize_t n;
    do {
        n = take_some(p, bytes, sizeof(bytes));
        if (n > 0)
            fake_h2_feed(p->h2, bytes, (size_t)n);
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            p->gone = true;
    } while (n > 0 && p->ssl && SSL_pending(p->ssl));
}

/* Waits until the socket has one of these events of poll, for PATIENCE_MS at most (VISIT_PATIENCE_MS in hostile_visit).
 * The other side counts as closed if none comes, if the socket has failed, or, for a deaf peer, if the other side has
 * hung up. Returns false once the other side counts as closed. A signal makes the function return early. */
static bool wait_for(struct hostile_peer *p, int events)
{
    struct pollfd pfd = {.fd = p->fd, .events = (short)events};
    int n = poll(&pfd, 1, p->visits ? VISIT_PATIENCE_MS : PATIENCE_MS);
    if (n == 0 || (n < 0 && errno != EINTR) || (pfd.revents & (POLLERR | POLLNVAL)) ||
        (p->deaf && (pfd.revents & POLLHUP)))
        p->gone = true;
    return !p->gone;
}

bool hostile_flush(struct hostile_peer *p)
{
    struct tc_buf *out = fake_h2_take(p->h2);
    size_t at = 0;
    while (!p->gone && at < out->len) {
        ssize_t n = put_some(p, out->data + at, out->len - at);
        if (n >= 0) {
            at += (size_t)n;
        } else if (errno == EAGAIN) {
            int way = p->ssl && SSL_want_read(p->ssl) ? POLLIN : POLLOUT | (p->deaf ? 0 : POLLIN);
            if (wait_for(p, way) && !p->deaf) {
                take_in(p);
                while (!p->keeps && fake_h2_next(p->h2))
                    ;
            }
        } else if (errno != EINTR) {
            p->gone = true;
        }
    }
    tc_buf_clear(out);
    return !p->gone;
}

bool hostile_flush_much(struct hostile_peer *p)
{
    return fake_h2_take(p->h2)->len < MUCH ? !p->gone : hostile_flush(p);
}

uint32_t hostile_await(struct hostile_peer *p, uint8_t type)
{
    const struct fake_h2_frame *f;
    hostile_flush(p);
    while ((f = hostile_next(p, true)) && f->type != type)
        continue;
    return f ? f->stream : 0;
}

uint32_t hostile_begin(struct hostile_peer *p)
{
    fake_h2_start(p->h2);
    if (!p->visits)
        return hostile_await(p, FAKE_H2_HEADERS);
    fake_h2_headers(p->h2, 1, HOSTILE_REQUEST("/a.B/C"), false);
    return hostile_flush(p) ? 1 : 0;
}

void hostile_settle(struct hostile_peer *p)
{
    hostile_settle_with(p, NULL, NULL);
}

void hostile_settle_with(struct hostile_peer *p, hostile_frame_fn *on_frame, void *arg)
{
    static const char mark[] = "settled?";
    const struct fake_h2_frame *f;
    p->deaf = false;
    fake_h2_ping(p->h2, mark, false);
    hostile_flush(p);
    while ((f = hostile_next(p, true)) &&
           (f->type != FAKE_H2_PING || !(f->flags & FAKE_H2_ACK) || strcmp(f->payload, mark) != 0))
        if (on_frame)
            on_frame(arg, p, f);
}

void hostile_await_close(struct hostile_peer *p)
{
    hostile_flush(p);
    while (!p->gone && wait_for(p, POLLIN)) {
        take_in(p);
        while (fake_h2_next(p->h2))
            ;
    }
}

void hostile_keep(struct hostile_peer *p)
{
    p->keeps = true;
}

const struct fake_h2_frame *hostile_next(struct hostile_peer *p, bool wait)
{
    const struct fake_h2_frame *f = fake_h2_next(p->h2);
    if (f || p->gone)
        return f;
    take_in(p);
    while (!(f = fake_h2_next(p->h2)) && wait && !p->gone && wait_for(p, POLLIN))
        take_in(p);
    return f;
}

bool hostile_is_heard(struct hostile_peer *p)
{
    while (hostile_next(p, false))
        ;
    return !p->gone;
}

bool hostile_put_raw(struct hostile_peer *p, const void *data, size_t len)
{
    for (size_t at = 0; !p->gone && at < len;) {
        ssize_t n = send(p->fd, (const char *)data + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0)
            at += (size_t)n;
        else if (errno == EAGAIN)
            (void)wait_for(p, POLLOUT);
        else if (errno != EINTR)
            p->gone = true;
    }
    return !p->gone;
}

size_t hostile_take_raw(struct hostile_peer *p, void *data, size_t len)
{
    ssize_t n = -1;
    while (n < 0 && !p->gone && wait_for(p, POLLIN)) {
        n = recv(p->fd, data, len, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            p->gone = true;
    }
    return n > 0 ? (size_t)n : 0;
}

void hostile_abort(struct hostile_peer *p)
{
    p->truncated = true;
    const struct linger linger = {.l_onoff = 1};
    setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/* --- the process --- */

static SSL_CTX *tls_of_all; /* of the child; NULL: plaintext */

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                     unsigned in_len, void *arg)
{
    (void)ssl, (void)in, (void)in_len, (void)arg;
    *out = (const unsigned char *)"h2";
    *out_len = 2;
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_tls(const struct kit_cert *cert)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx || SSL_CTX_use_certificate(ctx, cert->x509) != 1 || SSL_CTX_use_PrivateKey(ctx, cert->key) != 1)
        _exit(1);
    SSL_CTX_set_alpn_select_cb(ctx, choose_h2, NULL);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return ctx;
}

/* An accepted connection, for its thread, which frees the struct. */
struct visit {
    int fd;
    hostile_play_fn *play;
    struct port *port;
    size_t number;
};

/* Returns an SSL object for an accepted socket, which becomes non-blocking; NULL if plaintext. The caller frees the
 * object. */
static SSL *speak_tls(int fd)
{
    if (!tls_of_all)
        return NULL;
    SSL *ssl = SSL_new(tls_of_all);
    if (!ssl || fcntl(fd, F_SETFL, O_NONBLOCK) || SSL_set_fd(ssl, fd) != 1)
        _exit(1);
    SSL_set_accept_state(ssl);
    return ssl;
}

/* Plays, sends what was gathered, closes the socket, and frees the HTTP/2 side and the SSL object of *p. */
static void play_and_end(struct hostile_peer *p, hostile_play_fn *play)
{
    play(p);
    hostile_flush(p);
    fake_h2_free(p->h2);
    if (p->ssl && !p->truncated && SSL_is_init_finished(p->ssl))
        SSL_shutdown(p->ssl);
    SSL_free(p->ssl);
    ERR_clear_error();
    close(p->fd);
}

/* The main function of a connection's thread. */
static void *visited(void *arg)
{
    struct visit *v = arg;
    struct hostile_peer p = {.fd = v->fd, .h2 = fake_h2_new_raw(true), .ssl = speak_tls(v->fd), .number = v->number};
    play_and_end(&p, v->play);
    atomic_fetch_add(&v->port->over, 1);
    tc_free(v);
    return NULL;
}

static void take(int listener, hostile_play_fn *play, struct port *port, size_t number)
{
    pthread_t thread;
    int fd = accept(listener, NULL, NULL), on = 1;
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct visit *v = TC_NEW(struct visit);
    *v = (struct visit){fd, play, port, number};
    atomic_fetch_add(&port->taken, 1);
    if (pthread_create(&thread, NULL, visited, v))
        _exit(1);
    pthread_detach(thread);
}

/* Returns a listening socket and stores its address. A failure ends the child. */
static int listen_on(struct port *port)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sin);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sin, len) || listen(fd, 128) ||
        getsockname(fd, (struct sockaddr *)&sin, &len))
        _exit(1);
    snprintf(port->address, sizeof(port->address), "127.0.0.1:%u", (unsigned)ntohs(sin.sin_port));
    return fd;
}

/* The main function of the child: never returns. n: the number of plays. */
static void serve(struct board *board, hostile_play_fn *const *plays, size_t n)
{
    struct pollfd fds[HOSTILE_MAX];
    for (size_t i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = listen_on(&board->ports[i]), .events = POLLIN};
    struct kit_backends *kit = kit_backends_new(1, NULL);
    snprintf(board->backend, sizeof(board->backend), "%s", kit_backends_address(kit, 0));
    atomic_store(&board->ready, true);
    for (;;) {
        if (poll(fds, n, -1) < 0 && errno != EINTR)
            _exit(1);
        for (size_t i = 0; i < n; i++)
            if (fds[i].revents)
                take(fds[i].fd, plays[i], &board->ports[i], i);
    }
}

/* --- as a client --- */

/* Returns a connected socket, or -1. */
static int connect_to(const char *address)
{
    unsigned port = 0;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    sscanf(address, "127.0.0.1:%u", &port);
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    sin.sin_port = htons((uint16_t)port);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&sin, sizeof(sin)) == 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static SSL *client_tls(SSL_CTX *ctx, int fd)
{
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL *ssl = SSL_new(ctx);
    if (!ssl || fcntl(fd, F_SETFL, O_NONBLOCK) || SSL_set_fd(ssl, fd) != 1 ||
        SSL_set_alpn_protos(ssl, (const unsigned char *)"\2h2", 3))
        abort();
    SSL_set_connect_state(ssl);
    return ssl;
}

bool hostile_visit(const char *address, bool tls, hostile_play_fn *play, void *arg)
{
    int fd = connect_to(address);
    if (fd < 0)
        return false;
    SSL_CTX *ctx = tls ? SSL_CTX_new(TLS_client_method()) : NULL;
    struct hostile_peer p = {
        .fd = fd, .h2 = fake_h2_new_raw(false), .ssl = ctx ? client_tls(ctx, fd) : NULL, .arg = arg, .visits = true};
    play_and_end(&p, play);
    SSL_CTX_free(ctx);
    return true;
}

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

struct hostile *hostile_new(hostile_play_fn *const *plays, size_t n, const struct kit_cert *tls)
{
    struct hostile *h = TC_NEW(struct hostile);
    assert_true(n <= HOSTILE_MAX);
    h->board = mmap(NULL, sizeof(*h->board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(h->board != MAP_FAILED);
    h->pid = fork();
    assert_true(h->pid >= 0);
    if (h->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
        tls_of_all = tls ? make_tls(tls) : NULL;
        serve(h->board, plays, n);
        _exit(1);
    }
    for (uint64_t begin = now_ns(); !atomic_load(&h->board->ready); (void)poll(NULL, 0, 5))
        assert_true(now_ns() - begin < OVER_NS);
    return h;
}

void hostile_free(struct hostile *h)
{
    kill(h->pid, SIGKILL);
    while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    munmap(h->board, sizeof(*h->board));
    tc_free(h);
}

const char *hostile_address(const struct hostile *h, size_t i)
{
    return h->board->ports[i].address;
}

const char *hostile_backend(const struct hostile *h)
{
    return h->board->backend;
}

unsigned hostile_connections(const struct hostile *h, size_t i)
{
    return atomic_load(&h->board->ports[i].taken);
}

bool hostile_wait_over(const struct hostile *h, size_t i)
{
    const struct port *port = &h->board->ports[i];
    for (uint64_t begin = now_ns(); atomic_load(&port->over) < atomic_load(&port->taken); (void)poll(NULL, 0, 5))
        if (now_ns() - begin > OVER_NS)
            return false;
    return true;
}
