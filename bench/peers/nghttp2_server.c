/* The server of bench/server on nghttp2 alone: one thread, epoll, and one write for all that a read caused unless that
 * exceeds the buffer. The server answers every request with the request's body and status OK; a body of more than
 * MAX_BODY bytes ends the connection. The server has no deadlines and ignores the method, so its cost is about the
 * least that a server on nghttp2 can have.
 *
 * Prints its port, and runs until it is killed. The epoll data of a connection's socket is its struct conn, which
 * conn_close frees; that of the listening socket is NULL. A stream's struct stream is the user data of the nghttp2
 * stream and stands in its connection's list; on_close frees it, or conn_close if the connection closes first. While a
 * connection has unsent bytes, the server takes no more frames from the connection's session. A connection for which
 * there is no memory is closed. Read conn_turn first. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

enum { MAX_BODY = 4096, MAX_EVENTS = 64, BUFFER = 256 << 10 };

struct conn {
    nghttp2_session *session;
    int fd;
    uint8_t *unsent; /* what the socket did not take; owned; NULL: nothing */
    size_t unsent_len;
    struct stream *streams; /* open; owned */
};

/* A request. */
struct stream {
    struct stream *next, **link; /* link: what points at this stream, conn.streams or another stream's `next` */
    size_t len, at;              /* bytes of the body that came, and those of them that were sent back */
    uint8_t body[MAX_BODY];
};

static int epoll;

#define FIELD(n, v)                                                                                                    \
    {                                                                                                                  \
        (uint8_t *)(n), (uint8_t *)(v), sizeof(n) - 1, sizeof(v) - 1, NGHTTP2_NV_FLAG_NONE                             \
    }

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct conn *c = arg;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct stream *s = malloc(sizeof(*s));
    if (!s)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    s->len = s->at = 0;
    s->link = &c->streams;
    s->next = c->streams;
    if (s->next)
        s->next->link = &s->next;
    c->streams = s;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len, void *arg)
{
    (void)flags, (void)arg;
    struct stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (!s || len > sizeof(s->body) - s->len)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    memcpy(s->body + s->len, data, len);
    s->len += len;
    return 0;
}

static ssize_t on_answer(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *arg)
{
    static const nghttp2_nv trailers[] = {FIELD("grpc-status", "0")};
    (void)arg;
    struct stream *s = source->ptr;
    size_t n = s->len - s->at < room ? s->len - s->at : room;
    memcpy(to, s->body + s->at, n);
    s->at += n;
    if (s->at == s->len) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, id, trailers, 1);
    }
    return (ssize_t)n;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    static const nghttp2_nv headers[] = {FIELD(":status", "200"), FIELD("content-type", "application/grpc")};
    (void)arg;
    struct stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    const nghttp2_data_provider body = {.source.ptr = s, .read_callback = on_answer};
    if (s && (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
        frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        nghttp2_submit_response(session, frame->hd.stream_id, headers, 2, &body);
    return 0;
}

static void stream_free(struct stream *s)
{
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    free(s);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
    (void)error, (void)arg;
    struct stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (s)
        stream_free(s);
    return 0;
}

static void conn_close(struct conn *c)
{
    nghttp2_session_del(c->session);
    while (c->streams)
        stream_free(c->streams);
    close(c->fd);
    free(c->unsent);
    free(c);
}

/* Makes the session and submits its SETTINGS. Returns false if there is no memory. */
static bool make_session(struct conn *c)
{
    static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1000}};
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return false;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    int rc = nghttp2_session_server_new(&c->session, callbacks, c);
    nghttp2_session_callbacks_del(callbacks);
    return rc == 0 && nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, 1) == 0;
}

static void conn_accept(int listener)
{
    const int one = 1;
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct conn *c = calloc(1, sizeof(*c));
    if (!c) {
        close(fd);
        return;
    }
    c->fd = fd;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (!make_session(c) || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        conn_close(c);
}

/* Sends the bytes, and keeps in `unsent`, which must be NULL, a copy of those that the socket did not take. Returns
 * false if the connection is gone or there is no memory. */
static bool conn_write(struct conn *c, const uint8_t *data, size_t len)
{
    ssize_t n = len ? send(c->fd, data, len, MSG_NOSIGNAL) : 0;
    if (n < 0 && errno != EAGAIN)
        return false;
    size_t sent = n > 0 ? (size_t)n : 0;
    if (sent == len)
        return true;
    c->unsent_len = len - sent;
    c->unsent = malloc(c->unsent_len);
    if (!c->unsent)
        return false;
    memcpy(c->unsent, data + sent, c->unsent_len);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
    return epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event) == 0;
}

/* Writes what the session has to send, until it has no more or the socket takes no more. Returns false if the session
 * failed, the connection is gone, or there is no memory. */
static bool conn_send(struct conn *c)
{
    static uint8_t out[BUFFER];
    size_t len = 0;
    const uint8_t *frames;
    while (!c->unsent) {
        ssize_t n = nghttp2_session_mem_send(c->session, &frames);
        if (n < 0)
            return false;
        if (n > 0) {
            memcpy(out + len, frames, (size_t)n);
            len += (size_t)n;
        }
        if (n > 0 && len < sizeof(out) - (32 << 10))
            continue;
        if (!conn_write(c, out, len))
            return false;
        if (n == 0)
            break;
        len = 0;
    }
    return true;
}

/* Handles events of epoll: writes unsent bytes, reads once, and writes the answers. Returns false if the connection is
 * to be closed. */
static bool conn_turn(struct conn *c, uint32_t events)
{
    static uint8_t in[BUFFER];
    if (events & EPOLLOUT) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        uint8_t *unsent = c->unsent;
        c->unsent = NULL;
        bool ok = epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event) == 0 && conn_write(c, unsent, c->unsent_len);
        free(unsent);
        if (!ok)
            return false;
    }
    ssize_t n = recv(c->fd, in, sizeof(in), 0);
    if (n == 0 || (n < 0 && errno != EAGAIN))
        return false;
    if (n > 0 && nghttp2_session_mem_recv(c->session, in, (size_t)n) != n)
        return false;
    return conn_send(c);
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[MAX_EVENTS], event = {.events = EPOLLIN};
    if (bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &len) != 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0)
        return perror("bench_server_nghttp2"), 1;
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        int n = epoll_wait(epoll, events, MAX_EVENTS, -1);
        for (int i = 0; i < n; i++)
            if (!events[i].data.ptr)
                conn_accept(listener);
            else if (!conn_turn(events[i].data.ptr, events[i].events))
                conn_close(events[i].data.ptr);
    }
}
