/* bench/rpc's client on nothing but nghttp2: one connection, a poll loop, large reads, one write a turn. What it costs
 * is about the least that an HTTP/2 client on this library can cost: it has no names, no balancing, no deadlines. */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "client.h"
#include "measure.h"

enum { MESSAGE = 5 + CLIENT_PAYLOAD, BUFFER = 256 << 10 };

struct slot {
    uint64_t started_ns;
    size_t sent, received;
    bool ok;
};

struct run {
    struct client c;
    nghttp2_session *session;
    int fd;
    unsigned under_way;
    bool failed, again;
    unsigned char message[MESSAGE];
    unsigned char out[BUFFER];
    unsigned char in[BUFFER];
};

static ssize_t on_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                       nghttp2_data_source *source, void *arg)
{
    (void)session, (void)id;
    struct run *r = arg;
    struct slot *s = source->ptr;
    size_t n = MESSAGE - s->sent < room ? MESSAGE - s->sent : room;
    memcpy(to, r->message + s->sent, n);
    s->sent += n;
    if (s->sent == MESSAGE)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

#define FIELD(n, v)                                                                                                    \
    {                                                                                                                  \
        (uint8_t *)(n), (uint8_t *)(v), sizeof(n) - 1, sizeof(v) - 1, NGHTTP2_NV_FLAG_NONE                             \
    }

static void start(struct run *r, struct slot *s)
{
    static const nghttp2_nv fields[] = {
        FIELD(":method", "POST"),         FIELD(":scheme", "http"), FIELD(":path", CLIENT_METHOD),
        FIELD(":authority", "localhost"), FIELD("te", "trailers"),  FIELD("content-type", "application/grpc"),
        FIELD("user-agent", "bench/1"),
    };
    nghttp2_data_provider body = {.source.ptr = s, .read_callback = on_body};
    *s = (struct slot){.started_ns = measure_wall_ns()};
    r->under_way++;
    if (nghttp2_submit_request(r->session, NULL, fields, sizeof(fields) / sizeof(fields[0]), &body, s) < 0)
        r->failed = true;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
    (void)flags, (void)arg;
    struct slot *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (s && name_len == 11 && memcmp(name, "grpc-status", 11) == 0)
        s->ok = value_len == 1 && *value == '0';
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len, void *arg)
{
    (void)flags, (void)data, (void)arg;
    struct slot *s = nghttp2_session_get_stream_user_data(session, id);
    if (s)
        s->received += len;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
    struct run *r = arg;
    struct slot *s = nghttp2_session_get_stream_user_data(session, id);
    r->under_way--;
    if (!s || error || !s->ok || s->received != MESSAGE) {
        r->failed = true;
        return 0;
    }
    uint64_t now = client_done(&r->c, s->started_ns);
    if (!client_over(&r->c, now))
        start(r, s);
    return 0;
}

static bool make_session(struct run *r)
{
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return false;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    int rc = nghttp2_session_client_new(&r->session, callbacks, r);
    nghttp2_session_callbacks_del(callbacks);
    static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                                      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 4 << 20}};
    return rc == 0 && nghttp2_submit_settings(r->session, NGHTTP2_FLAG_NONE, settings, 2) == 0;
}

static bool make_connection(struct run *r)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(r->c.host, r->c.port, &hints, &found) != 0)
        return false;
    r->fd = socket(AF_INET, SOCK_STREAM, 0);
    int one = 1;
    bool ok = r->fd >= 0 && connect(r->fd, found->ai_addr, found->ai_addrlen) == 0 &&
              setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0;
    freeaddrinfo(found);
    return ok;
}

/* All that the session has to send, in as few writes as the buffer allows. */
static bool flush(struct run *r)
{
    for (;;) {
        size_t n = 0;
        const uint8_t *data;
        ssize_t len = 0;
        while (n + 32768 < BUFFER && (len = nghttp2_session_mem_send(r->session, &data)) > 0) {
            if ((size_t)len > BUFFER - n)
                return false;
            memcpy(r->out + n, data, (size_t)len);
            n += (size_t)len;
        }
        if (len < 0)
            return false;
        for (size_t at = 0; at < n;) {
            ssize_t wrote = send(r->fd, r->out + at, n - at, MSG_NOSIGNAL);
            if (wrote <= 0)
                return false;
            at += (size_t)wrote;
        }
        if (n + 32768 < BUFFER)
            return true;
    }
}

int main(int argc, char **argv)
{
    static struct run r;
    if (!client_init(&r.c, argc, argv))
        return 2;
    r.message[4] = CLIENT_PAYLOAD;
    if (!make_connection(&r) || !make_session(&r)) {
        fprintf(stderr, "bench/nghttp2_client: no connection\n");
        return 1;
    }
    struct slot *slots = calloc(r.c.outstanding, sizeof(*slots));
    for (unsigned i = 0; slots && i < r.c.outstanding; i++)
        start(&r, &slots[i]);
    while (!r.failed && r.under_way) {
        struct pollfd p = {.fd = r.fd, .events = POLLIN};
        if (!flush(&r) || poll(&p, 1, 10000) <= 0)
            break;
        ssize_t n = recv(r.fd, r.in, BUFFER, MSG_DONTWAIT);
        if (n <= 0 || nghttp2_session_mem_recv(r.session, r.in, (size_t)n) < 0)
            break;
    }
    bool done = !r.failed && r.under_way == 0;
    int rc = client_report(&r.c);
    nghttp2_session_del(r.session);
    close(r.fd);
    free(slots);
    return done ? rc : 1;
}
