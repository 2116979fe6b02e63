/* bench/memory's client on nghttp2 alone (memory.h). The program stores nothing for a stream but what nghttp2 stores.
 * Sockets block; a failure ends the program. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "memory.h"

struct connection {
    nghttp2_session *session;
    int fd;
    unsigned answered; /* streams that closed: those of calls that hang do not */
    int acknowledged;  /* 1: the server has acknowledged the client's SETTINGS */
};

#define FIELD(n, v)                                                                                                    \
    {                                                                                                                  \
        (uint8_t *)(n), (uint8_t *)(v), sizeof(n) - 1, sizeof(v) - 1, NGHTTP2_NV_FLAG_NONE                             \
    }

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    (void)session;
    struct connection *c = arg;
    if (frame->hd.type == NGHTTP2_SETTINGS && frame->hd.flags & NGHTTP2_FLAG_ACK)
        c->acknowledged = 1;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
    (void)session, (void)id, (void)error;
    struct connection *c = arg;
    c->answered++;
    return 0;
}

/* Writes all that the session has to send. */
static void flush(struct connection *c)
{
    const uint8_t *data;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(c->session, &data)) > 0)
        for (ssize_t at = 0; at < n;) {
            ssize_t wrote = send(c->fd, data + at, (size_t)(n - at), MSG_NOSIGNAL);
            if (wrote <= 0)
                die("send");
            at += wrote;
        }
}

/* Writes, waits for bytes, reads them once, and writes what they caused. */
static void take_in(struct connection *c)
{
    static uint8_t in[65536];
    flush(c);
    ssize_t n = recv(c->fd, in, sizeof(in), 0);
    if (n <= 0 || nghttp2_session_mem_recv(c->session, in, (size_t)n) < 0)
        die("recv");
    flush(c);
}

/* Submits a request without a body, to MEMORY_HANG if `hang` is not 0, else to the method that echoes. */
static void request(struct connection *c, int hang)
{
    nghttp2_nv fields[] = {
        FIELD(":method", "POST"),         FIELD(":scheme", "http"), FIELD(":path", "/bench.Echo/Echo"),
        FIELD(":authority", "localhost"), FIELD("te", "trailers"),  FIELD("content-type", "application/grpc"),
    };
    if (hang) {
        fields[2].value = (uint8_t *)MEMORY_HANG;
        fields[2].valuelen = sizeof(MEMORY_HANG) - 1;
    }
    if (nghttp2_submit_request(c->session, NULL, fields, sizeof(fields) / sizeof(fields[0]), NULL, NULL) < 0)
        die("request");
}

/* Connects to 127.0.0.1 + i, and waits for the server's acknowledgement of SETTINGS and for the answer to one RPC. */
static void connect_to(struct connection *c, const char *port, unsigned i)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                             .sin_addr.s_addr = htonl(0x7f000001u + i)};
    static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                                      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 4 << 20}};
    nghttp2_session_callbacks *callbacks;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
        nghttp2_session_callbacks_new(&callbacks) != 0)
        die("connect");
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    if (nghttp2_session_client_new(&c->session, callbacks, c) != 0 ||
        nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, 2) != 0)
        die("session");
    nghttp2_session_callbacks_del(callbacks);
    request(c, 0);
    while (!c->acknowledged || !c->answered)
        take_in(c);
}

int main(int argc, char **argv)
{
    unsigned n = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    static struct connection first;
    if (n == 0)
        return 2;
    connect_to(&first, argv[2], 0);
    double before = memory_own();
    if (strcmp(argv[1], "idle") == 0) {
        printf("%.1f\n", memory_resident());
    } else if (strcmp(argv[1], "connections") == 0) {
        struct connection *all = calloc(n, sizeof(*all));
        for (unsigned i = 0; all && i < n; i++)
            connect_to(&all[i], argv[2], i);
        printf("%.1f\n", (memory_own() - before) / n);
    } else if (strcmp(argv[1], "calls") == 0) {
        for (unsigned i = 0; i < n; i++)
            request(&first, 1);
        request(&first, 0);
        for (first.answered = 0; !first.answered;)
            take_in(&first);
        printf("%.1f\n", (memory_own() - before) / n);
    } else {
        return 2;
    }
    fflush(stdout);
    _Exit(0);
}
