/* An HTTP/2 peer that sends any frames.
 *
 * Sending appends to `out`; pass_on writes `out` to the pipe, unless the peer is held. fake_h2_next pulls bytes into
 * `in` and cuts off one frame, with its header block decoded by nghttp2's inflater. Nothing is answered
 * automatically.
 *
 * A peer without a pipe works on the two buffers alone: the test fills `in` and empties `out`. A server's first bytes
 * of `in` are the preface, which fake_h2_next drops before the first frame. The inflater sees every header block in the
 * order of the frames, also the blocks of frames that fake_h2_expect skips. The peer owns the frame that it returned
 * last. One thread at a time may use a peer: the test's, or the thread of a play (hostile/server.h). */
#include "support/fakes/h2.h"

#include <nghttp2/nghttp2.h>

#include "base/mem.h"

#define HEAD 9 /* bytes of a frame's header */

struct fake_h2 {
    struct fake_pipe *pipe; /* borrowed; NULL: none */
    int end;                /* the peer's end of the pipe */
    bool server, holding, preface_seen;
    struct tc_buf in, out;
    nghttp2_hd_inflater *inflater;
    struct fake_h2_frame frame; /* the one that fake_h2_next returned last */
};

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct fake_h2 *fake_h2_new_raw(bool server)
{
    struct fake_h2 *p = TC_NEW(struct fake_h2);
    p->server = server;
    p->preface_seen = !server;
    nghttp2_hd_inflate_new(&p->inflater);
    return p;
}

struct fake_h2 *fake_h2_new(struct fake_pipe *pipe, int end, bool server)
{
    struct fake_h2 *p = fake_h2_new_raw(server);
    p->pipe = pipe;
    p->end = end;
    return p;
}

static void drop_frame(struct fake_h2 *p)
{
    tc_free(p->frame.payload);
    tc_free(p->frame.headers);
    p->frame = (struct fake_h2_frame){0};
}

void fake_h2_free(struct fake_h2 *p)
{
    drop_frame(p);
    nghttp2_hd_inflate_del(p->inflater);
    tc_buf_fini(&p->in);
    tc_buf_fini(&p->out);
    tc_free(p);
}

static void pass_on(struct fake_h2 *p)
{
    if (p->holding || !p->pipe || !p->out.len)
        return;
    fake_pipe_put(p->pipe, p->end, p->out.data, p->out.len);
    tc_buf_clear(&p->out);
}

void fake_h2_hold(struct fake_h2 *p, bool on)
{
    p->holding = on;
    pass_on(p);
}

void fake_h2_bytes(struct fake_h2 *p, const void *data, size_t len)
{
    tc_buf_append(&p->out, data, len);
    pass_on(p);
}

void fake_h2_frame(struct fake_h2 *p, uint8_t type, uint8_t flags, uint32_t stream, const void *payload, size_t len)
{
    uint8_t head[HEAD] = {
        (uint8_t)(len >> 16),    (uint8_t)(len >> 8),     (uint8_t)len,           type,           flags,
        (uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
    tc_buf_append(&p->out, head, HEAD);
    tc_buf_append(&p->out, payload, len);
    pass_on(p);
}

void fake_h2_start(struct fake_h2 *p)
{
    if (!p->server)
        fake_h2_bytes(p, preface, sizeof(preface) - 1);
    fake_h2_frame(p, FAKE_H2_SETTINGS, 0, 0, NULL, 0);
    fake_h2_frame(p, FAKE_H2_SETTINGS, FAKE_H2_ACK, 0, NULL, 0);
}

void fake_h2_setting(struct fake_h2 *p, uint16_t id, uint32_t value)
{
    uint8_t entry[6] = {(uint8_t)(id >> 8),     (uint8_t)id,           (uint8_t)(value >> 24),
                        (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
    fake_h2_frame(p, FAKE_H2_SETTINGS, 0, 0, entry, sizeof(entry));
}

/* Appends a string literal without Huffman coding: its length, with a prefix of 7 bits, and the bytes (RFC 7541, 5.1
 * and 5.2). */
static void hpack_string(struct tc_buf *out, const char *text, size_t len)
{
    if (len < 127) {
        tc_buf_append_char(out, (char)len);
    } else {
        size_t rest = len - 127;
        tc_buf_append_char(out, 127);
        for (; rest >= 128; rest /= 128)
            tc_buf_append_char(out, (char)(rest % 128 + 128));
        tc_buf_append_char(out, (char)rest);
    }
    tc_buf_append(out, text, len);
}

void fake_h2_hpack(struct tc_buf *out, const char *fields)
{
    while (*fields) {
        const char *colon = strstr(fields, ": ");
        const char *end = strchr(fields, '\n');
        if (!colon || !end)
            return;
        tc_buf_append_char(out, 0);
        hpack_string(out, fields, (size_t)(colon - fields));
        hpack_string(out, colon + 2, (size_t)(end - colon - 2));
        fields = end + 1;
    }
}

void fake_h2_headers(struct fake_h2 *p, uint32_t stream, const char *fields, bool end_stream)
{
    struct tc_buf block = {0};
    fake_h2_hpack(&block, fields);
    size_t at = 0;
    uint8_t type = FAKE_H2_HEADERS;
    do {
        size_t n = TC_MIN(block.len - at, (size_t)16384);
        unsigned flags = at + n == block.len ? FAKE_H2_END_HEADERS : 0;
        if (type == FAKE_H2_HEADERS && end_stream)
            flags |= FAKE_H2_END_STREAM;
        fake_h2_frame(p, type, (uint8_t)flags, stream, block.data + at, n);
        at += n;
        type = FAKE_H2_CONTINUATION;
    } while (at < block.len);
    tc_buf_fini(&block);
}

void fake_h2_data(struct fake_h2 *p, uint32_t stream, const void *data, size_t len, bool end_stream)
{
    const char *at = data;
    do {
        size_t n = TC_MIN(len, (size_t)16384);
        len -= n;
        fake_h2_frame(p, FAKE_H2_DATA, end_stream && len == 0 ? FAKE_H2_END_STREAM : 0, stream, at, n);
        at += n;
    } while (len);
}

void fake_h2_message(struct fake_h2 *p, uint32_t stream, const void *data, size_t len, bool end_stream)
{
    struct tc_buf b = {0};
    uint8_t prefix[5] = {0, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    tc_buf_append(&b, prefix, sizeof(prefix));
    tc_buf_append(&b, data, len);
    fake_h2_data(p, stream, b.data, b.len, end_stream);
    tc_buf_fini(&b);
}

static void put_u32(uint8_t out[4], uint32_t v)
{
    out[0] = (uint8_t)(v >> 24);
    out[1] = (uint8_t)(v >> 16);
    out[2] = (uint8_t)(v >> 8);
    out[3] = (uint8_t)v;
}

void fake_h2_rst(struct fake_h2 *p, uint32_t stream, uint32_t code)
{
    uint8_t payload[4];
    put_u32(payload, code);
    fake_h2_frame(p, FAKE_H2_RST_STREAM, 0, stream, payload, 4);
}

void fake_h2_goaway(struct fake_h2 *p, uint32_t last, uint32_t code, const char *text)
{
    struct tc_buf b = {0};
    uint8_t payload[8];
    put_u32(payload, last);
    put_u32(payload + 4, code);
    tc_buf_append(&b, payload, 8);
    tc_buf_append_str(&b, text);
    fake_h2_frame(p, FAKE_H2_GOAWAY, 0, 0, b.data, b.len);
    tc_buf_fini(&b);
}

void fake_h2_ping(struct fake_h2 *p, const char data[8], bool ack)
{
    fake_h2_frame(p, FAKE_H2_PING, ack ? FAKE_H2_ACK : 0, 0, data, 8);
}

void fake_h2_window(struct fake_h2 *p, uint32_t stream, uint32_t increment)
{
    uint8_t payload[4];
    put_u32(payload, increment);
    fake_h2_frame(p, FAKE_H2_WINDOW_UPDATE, 0, stream, payload, 4);
}

void fake_h2_feed(struct fake_h2 *p, const void *data, size_t len)
{
    tc_buf_append(&p->in, data, len);
}

struct tc_buf *fake_h2_take(struct fake_h2 *p)
{
    return &p->out;
}

static void pull(struct fake_h2 *p)
{
    if (!p->pipe)
        return;
    struct tc_slice got = fake_pipe_unread(p->pipe, p->end);
    if (!got.len)
        return;
    tc_buf_append_slice(&p->in, got);
    fake_pipe_take(p->pipe, p->end, got.len);
}

/* Decodes a whole header block to lines. Returns a string that the caller frees with tc_free. */
static char *decode(struct fake_h2 *p, const void *block, size_t len)
{
    struct tc_buf out = {0};
    const uint8_t *in = block;
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(p->inflater, &nv, &flags, in, len, 1);
        if (n < 0) {
            tc_buf_append_str(&out, "(undecodable)\n");
            break;
        }
        in += n;
        len -= (size_t)n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            tc_buf_printf(&out, "%.*s: %.*s\n", (int)nv.namelen, nv.name, (int)nv.valuelen, nv.value);
        if (flags & NGHTTP2_HD_INFLATE_FINAL) {
            nghttp2_hd_inflate_end_headers(p->inflater);
            break;
        }
        if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && len == 0)
            break;
    }
    return tc_buf_take(&out);
}

const struct fake_h2_frame *fake_h2_next(struct fake_h2 *p)
{
    drop_frame(p);
    pull(p);
    if (!p->preface_seen) {
        if (p->in.len < sizeof(preface) - 1)
            return NULL;
        tc_buf_consume(&p->in, sizeof(preface) - 1);
        p->preface_seen = true;
    }
    if (p->in.len < HEAD)
        return NULL;
    const uint8_t *h = (const uint8_t *)p->in.data;
    size_t len = (size_t)h[0] << 16 | (size_t)h[1] << 8 | h[2];
    if (p->in.len < HEAD + len)
        return NULL;
    struct fake_h2_frame *f = &p->frame;
    f->type = h[3];
    f->flags = h[4];
    f->stream = (uint32_t)h[5] << 24 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 8 | h[8];
    f->len = len;
    f->payload = tc_strndup(p->in.data + HEAD, len);
    if (f->type == FAKE_H2_HEADERS)
        f->headers = decode(p, f->payload, len);
    tc_buf_consume(&p->in, HEAD + len);
    return f;
}

const struct fake_h2_frame *fake_h2_expect(struct fake_h2 *p, uint8_t type, uint32_t stream)
{
    const struct fake_h2_frame *f;
    while ((f = fake_h2_next(p)))
        if (f->type == type && (stream == 0 || f->stream == stream))
            return f;
    return NULL;
}

size_t fake_h2_count(struct fake_h2 *p, uint8_t type, uint32_t stream)
{
    size_t n = 0;
    while (fake_h2_expect(p, type, stream))
        n++;
    return n;
}
