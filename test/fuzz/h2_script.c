/* An input as a script: bytes choose frames of the peer, actions of the loop and of the socket.
 *
 * The first two bytes are the settings of the run. The rest are steps (tc_fuzz_h2_step), each a byte with its arguments
 * behind it. The lower four bits of the byte choose the step: 0 to 10 are here, 11 to 14 are the connection's owner's,
 * 15 is for both. What the connection writes is checked for its preface and for the frames' sizes and types alone.
 *
 * struct tc_fuzz_h2 owns the loop, the pipe and, if tc_fuzz_h2_init made it, the connection. Read tc_fuzz_h2_step
 * first. */
#include "h2_script.h"

#define MESSAGE_MAX_BYTES 4096u
#define HEAD_BYTES 9u

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* Header fields of good requests and responses, and some bad ones. */
static const char *const fields[][2] = {
    {":status", "200"},        {":status", "503"},     {":status", "100"},    {":method", "POST"},
    {":path", "/a.B/C"},       {":scheme", "http"},    {":authority", "a"},   {"content-type", "application/grpc"},
    {"te", "trailers"},        {"grpc-status", "0"},   {"grpc-status", "14"}, {"grpc-message", "a%20b%"},
    {"grpc-encoding", "gzip"}, {"grpc-timeout", "5m"}, {"k-bin", "AAEC,Aw"},  {"content-length", "3"},
};

void tc_fuzz_h2_begin(struct tc_fuzz_h2 *h, const uint8_t *data, size_t size, bool server, struct tc_h2_opts *out)
{
    struct tc_h2_opts opts;
    *h = (struct tc_fuzz_h2){.in = {data, size}, .server = server};
    uint8_t flags = tc_fuzz_u8(&h->in), chunk = tc_fuzz_u8(&h->in);
    h->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = flags});
    h->pipe = fake_pipe_new(h->loop);
    tc_h2_opts_init(&opts, server);
    opts.limits.max_receive_message_bytes = MESSAGE_MAX_BYTES;
    opts.limits.max_header_list_bytes = 1024;
    opts.limits.max_concurrent_streams = 4;
    opts.limits.max_queued_control = 50;
    opts.no_bdp = flags & 1;
    if (flags & 32)
        opts.limits.initial_window_bytes = 2048;
    if (flags & 2)
        opts.keepalive = (struct tc_h2_keepalive){.time_ms = 1000, .timeout_ms = 500, .without_calls = flags & 4};
    if (server && flags & 4)
        opts.keepalive.max_age_ms = 5000;
    fake_pipe_set_read_chunk(h->pipe, chunk & 15);
    fake_pipe_set_write_chunk(h->pipe, (chunk >> 4) * 8);
    if (flags & 8)
        fake_pipe_set_capacity(h->pipe, 256);
    h->silent = flags & 16;
    *out = opts;
}

void tc_fuzz_h2_greet(struct tc_fuzz_h2 *h)
{
    static const uint8_t settings[] = {0, 0, 0, SETTINGS, 0, 0, 0, 0, 0};
    if (h->silent)
        return;
    if (h->server)
        fake_pipe_put(h->pipe, 1, preface, sizeof(preface) - 1);
    fake_pipe_put(h->pipe, 1, settings, sizeof(settings));
    tc_loop_drain(h->loop);
}

void tc_fuzz_h2_init(struct tc_fuzz_h2 *h, const uint8_t *data, size_t size, bool server,
                     const struct tc_h2_conn_events *events, void *arg)
{
    struct tc_h2_opts opts;
    tc_fuzz_h2_begin(h, data, size, server, &opts);
    h->conn = tc_h2_conn_new(h->loop, fake_pipe_end(h->pipe, 0), &opts, events, arg);
    tc_fuzz_h2_greet(h);
}

void tc_fuzz_h2_close(struct tc_fuzz_h2 *h)
{
    if (h->conn)
        tc_h2_conn_close(h->conn);
    h->conn = NULL;
}

void tc_fuzz_h2_fini(struct tc_fuzz_h2 *h)
{
    tc_loop_drain(h->loop);
    TC_FUZZ_CHECK(!h->conn && fake_pipe_closed(h->pipe, 0));
    tc_buf_fini(&h->seen);
    fake_pipe_free(h->pipe);
    tc_loop_free(h->loop);
}

static void frame(struct tc_fuzz_h2 *h, unsigned type, unsigned flags, unsigned stream, struct tc_slice payload)
{
    uint8_t head[HEAD_BYTES] = {(uint8_t)(payload.len >> 16),
                                (uint8_t)(payload.len >> 8),
                                (uint8_t)payload.len,
                                (uint8_t)type,
                                (uint8_t)flags,
                                0,
                                0,
                                (uint8_t)(stream >> 8),
                                (uint8_t)stream};
    fake_pipe_put(h->pipe, 1, head, sizeof(head));
    fake_pipe_put(h->pipe, 1, payload.data, payload.len);
}

/* Sends the header fields that two bytes of the script choose, as HPACK literals without indexing. With leave_open the
 * next call continues the block. */
static void headers(struct tc_fuzz_h2 *h, unsigned stream, bool end_stream, bool leave_open)
{
    struct tc_buf block = {0};
    uint32_t which = (uint32_t)tc_fuzz_uint(&h->in, 2);
    for (size_t i = 0; i < TC_ARRAY_LEN(fields); i++) {
        if (!(which & (1u << i)))
            continue;
        tc_buf_append_char(&block, 0);
        for (size_t k = 0; k < 2; k++) {
            tc_buf_append_char(&block, (char)strlen(fields[i][k]));
            tc_buf_append_str(&block, fields[i][k]);
        }
    }
    unsigned end_headers = leave_open ? 0u : END_HEADERS;
    if (h->block_open)
        frame(h, CONTINUATION, end_headers, h->block_open, tc_buf_slice(&block));
    else
        frame(h, HEADERS, end_headers | (end_stream ? END_STREAM : 0u), stream, tc_buf_slice(&block));
    if (!leave_open)
        h->block_open = 0;
    else if (!h->block_open)
        h->block_open = stream;
    tc_buf_fini(&block);
}

/* Sends one message in a DATA frame. The script gives the flag byte, a byte whose upper two bits choose how much
 * filling ends the message, and the bytes before the filling. */
static void message(struct tc_fuzz_h2 *h, unsigned stream, bool end_stream)
{
    struct tc_buf bytes = {0};
    uint8_t compressed = tc_fuzz_u8(&h->in), more = tc_fuzz_u8(&h->in);
    struct tc_slice payload = tc_fuzz_short(&h->in);
    size_t filling = (size_t)(more >> 6) * 512, total = payload.len + filling;
    const char prefix[5] = {(char)compressed, 0, 0, (char)(total >> 8), (char)total};
    tc_buf_append(&bytes, prefix, sizeof(prefix));
    tc_buf_append_slice(&bytes, payload);
    memset(tc_buf_reserve(&bytes, filling), 'f', filling);
    bytes.len += filling;
    frame(h, DATA, end_stream ? END_STREAM : 0u, stream, tc_buf_slice(&bytes));
    tc_buf_fini(&bytes);
}

/* The peer reads the bytes that have come and, if `polite`, answers PING and SETTINGS. */
static void take(struct tc_fuzz_h2 *h, bool polite)
{
    struct tc_slice unread = fake_pipe_unread(h->pipe, 1);
    tc_buf_append_slice(&h->seen, unread);
    fake_pipe_take(h->pipe, 1, unread.len);
    if (!h->server && !h->preface_seen && h->seen.len >= sizeof(preface) - 1) {
        TC_FUZZ_CHECK(memcmp(h->seen.data, preface, sizeof(preface) - 1) == 0);
        tc_buf_consume(&h->seen, sizeof(preface) - 1);
        h->preface_seen = true;
    }
    while ((h->server || h->preface_seen) && h->seen.len >= HEAD_BYTES) {
        const uint8_t *head = (const uint8_t *)h->seen.data;
        size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        TC_FUZZ_CHECK(len <= 16384 && head[3] <= CONTINUATION); /* RFC 9113 4.2: every peer takes frames of this size */
        if (h->seen.len < HEAD_BYTES + len)
            break;
        if (polite && (head[3] == PING || head[3] == SETTINGS) && !(head[4] & ACK))
            frame(h, head[3], ACK, 0, tc_slice_of(head + HEAD_BYTES, head[3] == PING ? len : 0));
        tc_buf_consume(&h->seen, HEAD_BYTES + len);
    }
}

/* Does what the loop or the socket does at this step, if anything. */
static void world(struct tc_fuzz_h2 *h, unsigned what)
{
    switch (what) {
    case 0:
        h->holding = !h->holding;
        break;
    case 1: /* nothing can be sent */
        fake_pipe_set_capacity(h->pipe, 0);
        break;
    case 2:
        fake_pipe_set_capacity(h->pipe, SIZE_MAX);
        break;
    case 3:
        tc_loop_turn(h->loop, 0);
        break;
    default:
        break;
    }
}

void tc_fuzz_h2_step(struct tc_fuzz_h2 *h, uint8_t op)
{
    struct tc_slice part;
    unsigned stream = 1 + 2 * (op >> 4 & 3u);
    bool end = op & 0x40;
    switch (op & 15) {
    case 0:
        part = tc_fuzz_short(&h->in);
        fake_pipe_put(h->pipe, 1, part.data, part.len);
        break;
    case 1: {
        unsigned type = tc_fuzz_u8(&h->in), flags = tc_fuzz_u8(&h->in), id = (unsigned)tc_fuzz_uint(&h->in, 2);
        frame(h, type % 12, flags, id, tc_fuzz_short(&h->in));
        break;
    }
    case 2:
        headers(h, stream, end, op & 0x80);
        break;
    case 3:
        message(h, stream, end);
        break;
    case 4:
        frame(h, RST_STREAM, 0, stream, tc_fuzz_take(&h->in, 4));
        break;
    case 5:
        frame(h, WINDOW_UPDATE, 0, end ? 0 : stream, tc_fuzz_take(&h->in, 4));
        break;
    case 6:
        for (unsigned i = 0; i <= (op >> 4) * 8u; i++)
            frame(h, PING, 0, 0, tc_slice_of("12345678", 8));
        break;
    case 7:
        frame(h, SETTINGS, 0, 0, tc_fuzz_take(&h->in, 6));
        break;
    case 8:
        tc_loop_advance(h->loop, (uint64_t)tc_fuzz_u8(&h->in) * (end ? 100 : 1));
        break;
    case 9:
        take(h, end);
        break;
    case 10:
        if (end)
            fake_pipe_finish(h->pipe, 1);
        else
            fake_pipe_fail(h->pipe, 0, TORC_ECLOSED, "reset", op & 0x80);
        break;
    case 15:
        world(h, op >> 4);
        break;
    default:
        break;
    }
    if (!h->holding)
        tc_loop_drain(h->loop);
}
