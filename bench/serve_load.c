/* The client of bench/server, on nghttp2: sends unary RPCs of 64 bytes on many connections, and measures what they cost
 * the server's process, PID.
 *
 * bench_server_load PORT PID CONNECTIONS OUTSTANDING SECONDS
 *     Makes RPCs, OUTSTANDING at a time on each connection. Prints the server's CPU time for one RPC, in ns. A warm-up
 *     of a tenth of SECONDS is not counted.
 * bench_server_load PORT PID CONNECTIONS
 *     Prints the bytes of resident memory that a connection adds to the server, idle for QUIET_MS after one RPC.
 *     First opens one connection more, which makes one RPC and stays open, so that what a server allocates once is not
 *     counted.
 *
 * One thread, on the last core that it may use, reads from all connections by epoll; a send waits until the socket
 * takes it. If a connection cannot be made or ends, or an RPC fails, the program ends with 1 and a message. Connections
 * stay open until the program ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "measure.h"

enum { PAYLOAD = 64, MESSAGE = 5 + PAYLOAD, QUIET_MS = 3000, MAX_EVENTS = 64 };

struct conn {
    nghttp2_session *session;
    int fd;
};

static struct {
    unsigned long rpcs, running; /* rpcs: ended, from 0 again once the measured time begins; running: under way */
    bool ending;                 /* no RPC follows one that ended */
    bool failed;
    int epoll;
} load;

static unsigned char message[MESSAGE] = {0, 0, 0, 0, PAYLOAD};

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t len, int flags, void *arg)
{
    (void)session, (void)flags;
    const struct conn *c = arg;
    for (;;) {
        ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0)
            return n;
        if (errno != EAGAIN)
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        struct pollfd p = {c->fd, POLLOUT, 0};
        poll(&p, 1, 1000);
    }
}

static ssize_t on_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                       nghttp2_data_source *source, void *arg)
{
    (void)session, (void)id, (void)room, (void)source, (void)arg;
    memcpy(to, message, MESSAGE);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return MESSAGE;
}

#define FIELD(n, v)                                                                                                    \
    {                                                                                                                  \
        (uint8_t *)(n), (uint8_t *)(v), sizeof(n) - 1, sizeof(v) - 1, NGHTTP2_NV_FLAG_NONE                             \
    }

/* Begins an RPC; nghttp2_session_send then sends it. */
static void start(struct conn *c)
{
    static const nghttp2_nv fields[] = {
        FIELD(":method", "POST"),         FIELD(":scheme", "http"), FIELD(":path", "/bench.Echo/Echo"),
        FIELD(":authority", "localhost"), FIELD("te", "trailers"),  FIELD("content-type", "application/grpc"),
        FIELD("user-agent", "bench/1"),
    };
    const nghttp2_data_provider body = {.read_callback = on_body};
    load.running++;
    if (nghttp2_submit_request(c->session, NULL, fields, sizeof(fields) / sizeof(fields[0]), &body, NULL) < 0)
        load.failed = true;
}

/* The user data of a stream is NULL until its grpc-status has come. An RPC has exactly one, which is 0; anything else
 * is a failure. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
    (void)flags;
    if (name_len != 11 || memcmp(name, "grpc-status", 11) != 0)
        return 0;
    int32_t id = frame->hd.stream_id;
    if (value_len != 1 || *value != '0' || nghttp2_session_get_stream_user_data(session, id))
        load.failed = true;
    return nghttp2_session_set_stream_user_data(session, id, arg);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
    if (error || !nghttp2_session_get_stream_user_data(session, id))
        load.failed = true;
    load.running--;
    load.rpcs++;
    if (!load.ending)
        start(arg);
    return 0;
}

/* Connects to 127.0.0.1 and begins to watch the socket with `c`, which must stay where it is. */
static bool conn_open(struct conn *c, int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0)
        return false;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return false;
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    int rc = nghttp2_session_client_new(&c->session, callbacks, c);
    nghttp2_session_callbacks_del(callbacks);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    return rc == 0 && nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0) == 0 &&
           nghttp2_session_send(c->session) == 0 && epoll_ctl(load.epoll, EPOLL_CTL_ADD, c->fd, &event) == 0;
}

static void conn_read(struct conn *c)
{
    static uint8_t in[256 << 10];
    ssize_t n = recv(c->fd, in, sizeof(in), MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0 || nghttp2_session_mem_recv(c->session, in, (size_t)n) != n || nghttp2_session_send(c->session) != 0)
        load.failed = true;
}

/* Reads from the connections until measure_wall_ns reaches until_ns; 0: until no RPC is under way. Returns false
 * with a message on stderr if something failed or, with 0, nothing came for 20 s. */
static bool turn_until(uint64_t until_ns)
{
    struct epoll_event events[MAX_EVENTS];
    uint64_t stuck_ns = measure_wall_ns();
    while (!load.failed && (until_ns ? measure_wall_ns() < until_ns : load.running > 0)) {
        int n = epoll_wait(load.epoll, events, MAX_EVENTS, 100);
        for (int i = 0; i < n; i++)
            conn_read(events[i].data.ptr);
        if (n > 0)
            stuck_ns = measure_wall_ns();
        else if (!until_ns && measure_wall_ns() - stuck_ns > 20000000000u)
            load.failed = true;
    }
    if (load.failed)
        fprintf(stderr, "bench_server_load: the server does not answer as it should\n");
    return !load.failed;
}

/* Returns the CPU time of all threads of the process since its start; 0 if it cannot be read. */
static double server_cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Returns the resident memory of the process; 0 if it cannot be read. */
static double server_bytes(pid_t pid)
{
    char path[64];
    unsigned long pages = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%*u %lu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void start_all(struct conn *conns, unsigned n, unsigned outstanding)
{
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < outstanding; k++)
            start(&conns[i]);
        if (nghttp2_session_send(conns[i].session) != 0)
            load.failed = true;
    }
}

/* Opens n connections. Returns false with a message on stderr if one cannot be opened. */
static bool conns_open(struct conn *conns, unsigned n, int port)
{
    for (unsigned i = 0; i < n; i++)
        if (!conn_open(&conns[i], port)) {
            fprintf(stderr, "bench_server_load: no connection: %m\n");
            return false;
        }
    return true;
}

static bool measure_cpu(struct conn *conns, unsigned n, unsigned outstanding, double seconds, int port, pid_t pid)
{
    uint64_t warm_ns = (uint64_t)(seconds * 1e8);
    if (!conns_open(conns, n, port))
        return false;
    start_all(conns, n, outstanding);
    if (!turn_until(measure_wall_ns() + warm_ns))
        return false;
    double before_ns = server_cpu_ns(pid);
    load.rpcs = 0;
    bool ok = turn_until(measure_wall_ns() + 10 * warm_ns) && load.rpcs > 0;
    if (ok)
        printf("%.1f\n", (server_cpu_ns(pid) - before_ns) / (double)load.rpcs);
    load.ending = true;
    return ok && turn_until(0);
}

/* `conns` has room for n + 1 connections. */
static bool measure_memory(struct conn *conns, unsigned n, int port, pid_t pid)
{
    load.ending = true;
    if (!conns_open(conns, 1, port))
        return false;
    start_all(conns, 1, 1);
    if (!turn_until(0) || !turn_until(measure_wall_ns() + QUIET_MS * 1000000ull))
        return false;
    double before = server_bytes(pid);
    if (!conns_open(conns + 1, n, port))
        return false;
    start_all(conns + 1, n, 1);
    if (!turn_until(0) || !turn_until(measure_wall_ns() + QUIET_MS * 1000000ull))
        return false;
    printf("%.1f\n", (server_bytes(pid) - before) / n);
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 6) {
        fprintf(stderr, "usage: %s PORT PID CONNECTIONS [OUTSTANDING SECONDS]\n", argv[0]);
        return 2;
    }
    int port = (int)strtol(argv[1], NULL, 10);
    pid_t pid = (pid_t)strtol(argv[2], NULL, 10);
    unsigned n = (unsigned)strtoul(argv[3], NULL, 10);
    struct conn *conns = calloc(n + 1, sizeof(*conns));
    measure_pin(0);
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    bool ok = conns != NULL;
    if (ok && argc == 6)
        ok = measure_cpu(conns, n, (unsigned)strtoul(argv[4], NULL, 10), strtod(argv[5], NULL), port, pid);
    else if (ok)
        ok = measure_memory(conns, n, port, pid);
    if (!ok)
        fprintf(stderr, "bench_server_load: not measured\n");
    return ok ? 0 : 1;
}
