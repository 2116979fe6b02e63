/* bench/rpc's client on nghttp2 alone (client.h): one connection, one thread, a poll loop, large reads, and as few
 * writes as the buffer allows. The client has neither load balancing nor deadlines, so its cost is about the least that
 * an HTTP/2 client on nghttp2 can have.
 *
 * There are OUTSTANDING slots; each has one HTTP/2 stream at a time. A slot of unary RPCs starts its next RPC when its
 * stream closes (on_close). A slot of another kind keeps its stream, and goes on with each message (on_message). No
 * slot goes on after client_over. The program ends when no stream is open (`under_way` is 0), or at the first failure.
 * All callbacks run inside the functions of nghttp2 that flush and turn call.
 *
 * main owns the slots and the message; a stream's user data and its source of DATA borrow its slot. Read turn first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "client.h"
#include "measure.h"
#include "nghttp2_wire.h"

enum {
    PREFIX = 5, /* bytes before a message: a flag and the length */
    BUFFER = 256 << 10,
    FRAME = 32768,    /* more bytes than nghttp2 gives to be sent at a time */
    WINDOW = 16 << 20 /* the connection's receive window, in bytes */
};

/* A unary RPC, or a stream with one message at a time. */
struct slot {
    uint64_t started_ns;   /* when the RPC began, or the present message of a stream */
    int32_t id;            /* of the HTTP/2 stream */
    size_t sent, received; /* bytes of the present message and of its answer, prefixes included */
    bool ok, last;         /* ok: the status is OK, or the client cancelled; last: no message follows the present one */
};

struct run {
    struct client c;
    nghttp2_session *session;
    struct wire wire;
    unsigned under_way; /* HTTP/2 streams that are open */
    bool failed;
    unsigned char *message; /* the prefix and the payload; owned */
    size_t message_size;
    unsigned char out[BUFFER];
    size_t out_len, out_at; /* out[out_at] to out[out_len - 1] are yet to be sent */
    unsigned char in[BUFFER];
};

/* Gives nghttp2 the rest of the slot's present message. A stream pauses at the end of a message unless the message is
 * the last. */
static ssize_t on_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                       nghttp2_data_source *source, void *arg)
{
    (void)session, (void)id;
    struct run *r = arg;
    struct slot *s = source->ptr;
    size_t n = r->message_size - s->sent < room ? r->message_size - s->sent : room;
    memcpy(to, r->message + s->sent, n);
    s->sent += n;
    if (s->last && s->sent == r->message_size)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return n == 0 && !s->last ? NGHTTP2_ERR_DEFERRED : (ssize_t)n;
}

#define FIELD(n, v)                                                                                                    \
    {                                                                                                                  \
        (uint8_t *)(n), (uint8_t *)(v), sizeof(n) - 1, sizeof(v) - 1, NGHTTP2_NV_FLAG_NONE                             \
    }

/* Starts an RPC or a stream in the slot. Sets `failed` if nghttp2 refuses. */
static void start(struct run *r, struct slot *s)
{
    static const nghttp2_nv echo = FIELD(":path", CLIENT_METHOD), repeat = FIELD(":path", CLIENT_METHOD_REPEAT);
    nghttp2_nv fields[] = {
        FIELD(":method", "POST"),         FIELD(":scheme", "http"), r->c.kind == CLIENT_REPEAT ? repeat : echo,
        FIELD(":authority", "localhost"), FIELD("te", "trailers"),  FIELD("content-type", "application/grpc"),
        FIELD("user-agent", "bench/1"),
    };
    nghttp2_data_provider body = {.source.ptr = s, .read_callback = on_body};
    *s = (struct slot){.started_ns = measure_wall_ns(), .last = r->c.kind != CLIENT_BIDI};
    r->under_way++;
    s->id = nghttp2_submit_request(r->session, NULL, fields, sizeof(fields) / sizeof(fields[0]), &body, s);
    if (s->id < 0)
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

/* Counts a received message of a stream. Then the next one is sent, or the stream ends; the stream of kind repeat sends
 * nothing more, and is cancelled at the end. */
static void on_message(struct run *r, struct slot *s)
{
    uint64_t now = client_done(&r->c, s->started_ns);
    bool over = client_over(&r->c, now);
    s->started_ns = now;
    if (r->c.kind == CLIENT_REPEAT) {
        if (over && !s->ok) /* the stream has no end of its own */
            nghttp2_submit_rst_stream(r->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
        s->ok = s->ok || over;
        return;
    }
    if (over)
        s->last = true;
    else
        s->sent = 0;
    nghttp2_session_resume_data(r->session, s->id);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len, void *arg)
{
    (void)flags, (void)data;
    struct run *r = arg;
    struct slot *s = nghttp2_session_get_stream_user_data(session, id);
    if (!s)
        return 0;
    s->received += len;
    for (; r->c.kind != CLIENT_UNARY && s->received >= r->message_size; s->received -= r->message_size)
        on_message(r, s);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
    struct run *r = arg;
    struct slot *s = nghttp2_session_get_stream_user_data(session, id);
    bool unary = r->c.kind == CLIENT_UNARY;
    r->under_way--;
    if (!s || !s->ok || (error && r->c.kind != CLIENT_REPEAT) || (unary && s->received != r->message_size))
        r->failed = true;
    else if (unary && !client_over(&r->c, client_done(&r->c, s->started_ns)))
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
    return rc == 0 && nghttp2_submit_settings(r->session, NGHTTP2_FLAG_NONE, settings, 2) == 0 &&
           nghttp2_session_set_local_window_size(r->session, NGHTTP2_FLAG_NONE, 0, WINDOW) == 0;
}

static bool make_message(struct run *r)
{
    size_t n = r->c.payload_size;
    r->message_size = PREFIX + n;
    r->message = calloc(1, r->message_size);
    if (!r->message)
        return false;
    for (int i = 0; i < 4; i++)
        r->message[4 - i] = (unsigned char)(n >> (8 * i));
    memcpy(r->message + PREFIX, r->c.payload, n);
    return true;
}

/* Writes all that the session has to send, in as few writes as the buffer allows, until the socket blocks. Returns
 * false if the session or the connection failed. */
static bool flush(struct run *r)
{
    const uint8_t *data;
    for (;;) {
        ssize_t n = 0;
        while (r->out_len + FRAME < BUFFER && (n = nghttp2_session_mem_send(r->session, &data)) > 0) {
            memcpy(r->out + r->out_len, data, (size_t)n);
            r->out_len += (size_t)n;
        }
        if (n < 0)
            return false;
        while (r->out_at < r->out_len && (n = wire_send(&r->wire, r->out + r->out_at, r->out_len - r->out_at)) > 0)
            r->out_at += (size_t)n;
        if (r->out_at < r->out_len)
            return n == 0;
        bool more = r->out_len + FRAME >= BUFFER;
        r->out_at = r->out_len = 0;
        if (!more)
            return true;
    }
}

/* Writes, waits, and reads once. Returns false if the session or the connection failed, or if the server was silent for
 * ten seconds. The last stream may close while writing: a cancelled one closes when its RST_STREAM leaves. */
static bool turn(struct run *r)
{
    if (!flush(r))
        return false;
    if (r->under_way == 0)
        return true;
    if (!wire_wait(&r->wire, r->out_len > 0))
        return false;
    ssize_t n = wire_receive(&r->wire, r->in, BUFFER);
    return n >= 0 && nghttp2_session_mem_recv(r->session, r->in, (size_t)n) >= 0;
}

int main(int argc, char **argv)
{
    static struct run r;
    if (!client_init(&r.c, argc, argv))
        return 2;
    if (!make_message(&r) || !wire_open(&r.wire, r.c.host, r.c.port, r.c.roots) || !make_session(&r))
        return 1;
    struct slot *slots = calloc(r.c.outstanding, sizeof(*slots));
    for (unsigned i = 0; slots && i < r.c.outstanding; i++)
        start(&r, &slots[i]);
    while (!r.failed && r.under_way)
        r.failed = !turn(&r) || r.failed;
    if (r.failed)
        fprintf(stderr, "bench/nghttp2_client: an RPC failed\n");
    int rc = client_report(&r.c);
    nghttp2_session_del(r.session);
    wire_close(&r.wire);
    free(slots);
    free(r.message);
    return r.failed ? 1 : rc;
}
