/* Counts glitches: frames that move no RPC on, weighted by their cost to us.
 *
 *   on_bytes   reads the head of each frame before nghttp2 does, and adds its cost to `hidden`. A frame of an unknown
 *              type counts at once.
 *   on_frame   nghttp2 shows the frame: its cost leaves `hidden` (HEADERS: in on_block), and the frame may count.
 *              HEADERS and CONTINUATION do not count here. RST_STREAM counts if the stream is over for us. DATA counts
 *              in on_data, if it is empty and does not end the stream.
 *   on_hidden  nghttp2 skipped the rest of `hidden` without a callback (frames of closed streams, for the most part).
 *              It counts, except bytes that the peer may still send on streams that we reset (late_bytes). HEADERS of
 *              which nghttp2 does not yet have the padding's length and the priority wait for the next bytes.
 *
 * A glitch adds to the peer's rate (glitch_rate.h). DATA and RST_STREAM that we send, and new requests, give credit,
 * since they bring about such frames. Header fields that nobody takes count by the cost of decoding them. RPCs that a
 * client cancels count in a rate of their own (`cancels`).
 *
 * The functions end nothing: they record a violation, the first of which counts. Loop thread only. */
#include "http2/glitches.h"

#include <string.h>

#include "base/common.h"

enum {
    HEAD_BYTES = 9,
    PREFACE_BYTES = 24,
    PRIORITY_BYTES = 5,
    LAST_KNOWN_TYPE = NGHTTP2_CONTINUATION,
    GLITCH_BYTES = 1024,       /* bytes of content that count as another glitch */
    CREDIT = 4,                /* one more than a frame of ours may bring about: two WINDOW_UPDATE and a PING */
    MAX_CREDIT = 1 << 20,      /* no credit is given beyond this */
    MAX_LATE_BYTES = 16 << 20, /* the connection's window */
    /* The cost of header fields that nobody takes, in frames. A frame stands for a microsecond, in which nghttp2 checks
     * some 2,000 bytes of values; to find a field and hand it over takes as long as 256 bytes. A block whose dropped
     * fields cost more than BLOCK_FRAMES is not read to its end. */
    DROPPED_BYTES = 2048,
    FIELD_BYTES = 256,
    BLOCK_FRAMES = 2500
};

static uint32_t be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

void tc_h2_glitches_init(struct tc_h2_glitches *g, struct tc_loop *loop, struct tc_h2_glitch_rate *rate, bool server)
{
    g->loop = loop;
    g->rate = rate;
    g->left = server ? PREFACE_BYTES : 0;
}

void tc_h2_glitches_violation(struct tc_h2_glitches *g, uint32_t error_code, const char *text)
{
    if (g->violation)
        return;
    g->violation = text;
    g->error_code = error_code;
}

static const char too_many_glitches[] = "too many frames that carry nothing";

/* Counts `frames` glitches with `bytes` of content. Records a violation with `text` if the count exceeds the allowance
 * of two seconds. */
static void glitches_add(struct tc_h2_glitches *g, uint32_t frames, size_t bytes, const char *text)
{
    if (!tc_h2_glitch_rate_add(g->rate, (int64_t)(frames + bytes / GLITCH_BYTES), g->frames_per_second,
                               tc_loop_now_ms(g->loop)))
        tc_h2_glitches_violation(g, NGHTTP2_ENHANCE_YOUR_CALM, text);
}

/* RFC 9113 5.1: no DATA and no HEADERS follow END_STREAM. Only the peer's own frames are compared, so frames that cross
 * ours never count against an honest peer. */
static void glitches_on_message_frame(struct tc_h2_glitches *g, const uint8_t *head)
{
    uint32_t id = be32(head + 5) & INT32_MAX;
    uint32_t *ended = &g->ended[id / 2 % TC_ARRAY_LEN(g->ended)];
    if (*ended == id && id)
        tc_h2_glitches_violation(g, NGHTTP2_STREAM_CLOSED,
                                 head[3] == NGHTTP2_DATA ? "DATA after the end of its stream"
                                                         : "HEADERS after the end of its stream");
    if (head[4] & NGHTTP2_FLAG_END_STREAM)
        *ended = id;
}

/* Counts a frame by its head. Returns the length of the frame's content. */
static uint32_t glitches_on_head(struct tc_h2_glitches *g, const uint8_t *head)
{
    uint32_t type = head[3], len = be32(head) >> 8, before = 0;
    if (type == NGHTTP2_HEADERS)
        before = (head[4] & NGHTTP2_FLAG_PADDED ? 1u : 0) + (head[4] & NGHTTP2_FLAG_PRIORITY ? PRIORITY_BYTES : 0u);
    g->length = len;
    g->unshown = TC_MIN(before, len);
    if (type <= LAST_KNOWN_TYPE)
        g->hidden += tc_h2_frame_cost(type, len);
    else
        glitches_add(g, 1, len, too_many_glitches);
    if (type <= NGHTTP2_HEADERS)
        glitches_on_message_frame(g, head);
    return len;
}

/* Collects a head that arrives in pieces. Returns how many bytes of `at` belong to it; the head is complete when `have`
 * is 0 again. */
static size_t glitches_head_piece(struct tc_h2_glitches *g, const uint8_t *at, size_t n)
{
    n = TC_MIN(n, (size_t)(HEAD_BYTES - g->have));
    memcpy(g->piece + g->have, at, n);
    g->have = (uint8_t)((g->have + n) % HEAD_BYTES);
    return n;
}

void tc_h2_glitches_on_bytes(struct tc_h2_glitches *g, const uint8_t *at, size_t n)
{
    const uint8_t *end = at + n;
    size_t left = g->left;
    while ((size_t)(end - at) > left) {
        at += left;
        left = 0;
        const uint8_t *head = at;
        if (g->have || end - at < HEAD_BYTES) {
            at += glitches_head_piece(g, at, (size_t)(end - at));
            head = g->piece;
            if (g->have)
                continue;
        } else {
            at += HEAD_BYTES;
        }
        left = glitches_on_head(g, head);
    }
    g->left = (uint32_t)(left - (size_t)(end - at));
}

/* CVE-2019-9518: DATA without content costs us and moves nothing, unless it ends the stream. */
void tc_h2_glitches_on_data(struct tc_h2_glitches *g, const nghttp2_data *data)
{
    if (data->hd.length > data->padlen || data->hd.flags & NGHTTP2_FLAG_END_STREAM)
        return;
    glitches_add(g, 1, data->hd.length, too_many_glitches);
    if (++g->empty_frames > g->max_empty_frames)
        tc_h2_glitches_violation(g, NGHTTP2_ENHANCE_YOUR_CALM, "too many empty frames");
}

int tc_h2_glitches_on_frame(struct tc_h2_glitches *g, nghttp2_session *ng, const nghttp2_frame_hd *hd)
{
    switch (hd->type) {
    case NGHTTP2_HEADERS:
        g->block_shown = false;
        return 0; /* its cost leaves `hidden` in tc_h2_glitches_on_block, if nghttp2 shows the block */
    case NGHTTP2_CONTINUATION:
        if (!g->block_shown)
            return 0;
        break;
    case NGHTTP2_DATA: /* judged by tc_h2_glitches_on_data, when its padding is known */
        break;
    case NGHTTP2_RST_STREAM:
        if (!nghttp2_session_get_stream_user_data(ng, hd->stream_id))
            glitches_add(g, 1, 0, too_many_glitches);
        break;
    case NGHTTP2_PRIORITY:
        /* RFC 9113 6.3, which nghttp2 does not check where priorities are off. */
        if (hd->stream_id == 0)
            tc_h2_glitches_violation(g, NGHTTP2_PROTOCOL_ERROR, "PRIORITY of stream 0");
        glitches_add(g, 1, hd->length, too_many_glitches);
        break;
    default:
        glitches_add(g, 1, hd->length, too_many_glitches);
        break;
    }
    g->hidden -= tc_h2_frame_cost(hd->type, hd->length);
    return 0;
}

/* One byte of a header block that refers to the compression table may become a field of some KiB. */
int tc_h2_glitches_on_dropped(struct tc_h2_glitches *g, size_t bytes)
{
    static const char text[] = "too many header fields beyond the limit";
    size_t dropped = g->dropped + bytes + FIELD_BYTES;
    uint32_t frames = (uint32_t)(dropped / DROPPED_BYTES);
    g->dropped = (uint32_t)(dropped % DROPPED_BYTES);
    g->block += frames;
    /* Credit is for frames that answer ours: none of it pays for fields. */
    g->rate->frames = TC_MAX(g->rate->frames, INT64_C(0));
    if (frames)
        glitches_add(g, frames, 0, text);
    if (g->block > BLOCK_FRAMES)
        tc_h2_glitches_violation(g, NGHTTP2_ENHANCE_YOUR_CALM, text);
    return g->violation ? NGHTTP2_ERR_PAUSE : 0; /* nghttp2 pauses: the rest of what was read may hold as much again */
}

void tc_h2_glitches_on_hidden(struct tc_h2_glitches *g, bool over)
{
    int64_t waits = g->length - g->left < g->unshown ? tc_h2_frame_cost(NGHTTP2_HEADERS, g->length) : 0;
    int64_t skipped = g->hidden - waits;
    uint64_t frames = (uint64_t)(skipped >> 32), bytes = (uint32_t)skipped, whole = bytes + frames * HEAD_BYTES;
    uint64_t late = TC_MIN(whole, (uint64_t)g->late_bytes), rest = whole - late;
    g->hidden = waits;
    /* A session that is over skips everything; nothing is held against the peer. */
    if (over)
        return;
    g->late_bytes -= (uint32_t)late;
    if (rest)
        glitches_add(g, (uint32_t)(frames * rest / whole), (size_t)(bytes * rest / whole), too_many_glitches);
}

void tc_h2_glitches_on_cancel(struct tc_h2_glitches *g)
{
    if (!tc_h2_glitch_rate_add(&g->cancels, 1, g->cancels_per_second, tc_loop_now_ms(g->loop)))
        tc_h2_glitches_violation(g, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_rststreams");
}

void tc_h2_glitches_on_reset(struct tc_h2_glitches *g, uint32_t window_bytes)
{
    g->late_bytes = TC_MIN(g->late_bytes + window_bytes, (uint32_t)MAX_LATE_BYTES);
    tc_h2_glitches_on_carried(g);
}

void tc_h2_glitches_on_carried(struct tc_h2_glitches *g)
{
    if (g->rate->frames > -MAX_CREDIT)
        g->rate->frames -= CREDIT;
}
