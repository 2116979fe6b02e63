#include "support/hostile.h"

#include <errno.h>
#include <netinet/in.h>
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

#include "support/backend_kit.h"
#include "support/cmocka.h"

#include "base/clock.h"
#include "base/mem.h"

#define PATIENCE_MS 10000
#define OVER_NS (20 * TC_NS_PER_S)
#define MUCH ((size_t)64 << 10)

struct port {
    char address[32];
    atomic_uint taken, over;
};

/* What both processes see. */
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
    struct tc_h2_peer *h2;
    bool gone, deaf;
};

/* --- one connection --- */

struct tc_h2_peer *hostile_frames(struct hostile_peer *p)
{
    return p->h2;
}

void hostile_deafen(struct hostile_peer *p)
{
    p->deaf = true;
}

/* What is there, if anything; waits for nothing. */
static void take_in(struct hostile_peer *p)
{
    char bytes[16384];
    ssize_t n = recv(p->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n > 0)
        tc_h2_peer_feed(p->h2, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        p->gone = true;
}

static bool wait_for(struct hostile_peer *p, int events)
{
    struct pollfd pfd = {.fd = p->fd, .events = (short)events};
    int n = poll(&pfd, 1, PATIENCE_MS);
    if (n == 0 || (n < 0 && errno != EINTR) || (pfd.revents & (POLLERR | POLLNVAL)) ||
        (p->deaf && (pfd.revents & POLLHUP)))
        p->gone = true;
    return !p->gone;
}

bool hostile_flush(struct hostile_peer *p)
{
    struct tc_buf *out = tc_h2_peer_take(p->h2);
    size_t at = 0;
    while (!p->gone && at < out->len) {
        ssize_t n = send(p->fd, out->data + at, out->len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            at += (size_t)n;
        } else if (errno == EAGAIN) {
            if (wait_for(p, POLLOUT | (p->deaf ? 0 : POLLIN)) && !p->deaf) {
                take_in(p);
                while (tc_h2_peer_next(p->h2))
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
    return tc_h2_peer_take(p->h2)->len < MUCH ? !p->gone : hostile_flush(p);
}

static bool await_frame(struct hostile_peer *p, uint8_t type, uint8_t flags, uint32_t *stream)
{
    hostile_flush(p);
    for (;;) {
        const struct tc_h2p_frame *f = tc_h2_peer_expect(p->h2, type, 0);
        if (f && (f->flags & flags) == flags) {
            *stream = f->stream;
            return true;
        }
        if (!f && (p->gone || !wait_for(p, POLLIN)))
            return false;
        if (!f)
            take_in(p);
    }
}

uint32_t hostile_await(struct hostile_peer *p, uint8_t type)
{
    uint32_t stream;
    return await_frame(p, type, 0, &stream) ? stream : 0;
}

uint32_t hostile_begin(struct hostile_peer *p)
{
    tc_h2_peer_start(p->h2);
    return hostile_await(p, TC_H2P_HEADERS);
}

void hostile_settle(struct hostile_peer *p)
{
    uint32_t stream;
    p->deaf = false;
    tc_h2_peer_ping(p->h2, "settled?", false);
    await_frame(p, TC_H2P_PING, TC_H2P_ACK, &stream);
}

void hostile_await_close(struct hostile_peer *p)
{
    hostile_flush(p);
    while (!p->gone && wait_for(p, POLLIN)) {
        take_in(p);
        while (tc_h2_peer_next(p->h2))
            ;
    }
}

void hostile_abort(struct hostile_peer *p)
{
    const struct linger linger = {.l_onoff = 1};
    setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/* --- the process --- */

struct visit {
    int fd;
    hostile_play_fn *play;
    struct port *port;
};

static void *visited(void *arg)
{
    struct visit *v = arg;
    struct hostile_peer p = {.fd = v->fd, .h2 = tc_h2_peer_new_raw(true)};
    v->play(&p);
    hostile_flush(&p);
    tc_h2_peer_free(p.h2);
    close(p.fd);
    atomic_fetch_add(&v->port->over, 1);
    tc_free(v);
    return NULL;
}

static void take(int listener, hostile_play_fn *play, struct port *port)
{
    pthread_t thread;
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        return;
    struct visit *v = TC_NEW(struct visit);
    *v = (struct visit){fd, play, port};
    atomic_fetch_add(&port->taken, 1);
    if (pthread_create(&thread, NULL, visited, v))
        _exit(1);
    pthread_detach(thread);
}

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

static void serve(struct board *board, hostile_play_fn *const *plays, size_t n)
{
    struct pollfd fds[HOSTILE_MAX];
    for (size_t i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = listen_on(&board->ports[i]), .events = POLLIN};
    struct tc_kit *kit = tc_kit_new(1, NULL);
    snprintf(board->backend, sizeof(board->backend), "%s", tc_kit_address(kit, 0));
    atomic_store(&board->ready, true);
    for (;;) {
        if (poll(fds, n, -1) < 0 && errno != EINTR)
            _exit(1);
        for (size_t i = 0; i < n; i++)
            if (fds[i].revents)
                take(fds[i].fd, plays[i], &board->ports[i]);
    }
}

static uint64_t now_ns(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg);
}

struct hostile *hostile_new(hostile_play_fn *const *plays, size_t n)
{
    struct hostile *h = TC_NEW(struct hostile);
    assert_true(n <= HOSTILE_MAX);
    h->board = mmap(NULL, sizeof(*h->board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(h->board != MAP_FAILED);
    h->pid = fork();
    assert_true(h->pid >= 0);
    if (h->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
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
