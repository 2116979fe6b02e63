/* Frames of the peer's that carry nothing: how many there are, those among them that nghttp2 passes over without a
 * word. The head of each frame is looked at on its way to nghttp2. */
#include "http2/internal.h"

#define HEAD_BYTES 9
#define PREFACE_BYTES 24
#define LAST_KNOWN_TYPE NGHTTP2_CONTINUATION
/* The time in which frames that carry nothing are counted; so much of their content counts as another; how many of them
 * a frame of ours may bring about, by an update of two windows and a PING at most; and how many such frames are
 * remembered, times that. */
#define BARE_FRAMES_MS 1000
#define BARE_BYTES 1024
/* Of header fields that nobody takes, once decoded, and each field with so much more, for what it costs to look it up.
 */
#define DROPPED_BYTES (8u * 1024u)
#define FIELD_BYTES 128u
#define CREDIT 4
#define MAX_CREDIT (1 << 20)

static uint32_t be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

void tc_h2_flood_init(struct tc_h2_conn *c)
{
    c->heads.left = c->opts.server ? PREFACE_BYTES : 0;
}

static void terminate(struct tc_h2_conn *c, uint32_t code, const char *text)
{
    if (c->terminate_text)
        return;
    c->terminate_text = text;
    c->terminate_code = code;
}

static const char too_many_bare[] = "too many frames that carry nothing";

/* Frames that move no RPC on, with that much in them. As many in a second as nobody needs who has nothing to say end
 * the connection. */
static void on_bare_frames(struct tc_h2_conn *c, uint32_t frames, size_t bytes, const char *text)
{
    c->bare_frames += (int64_t)(frames + bytes / BARE_BYTES);
    if (c->bare_frames <= c->opts.limits.max_bare_frames)
        return;
    uint64_t now_ms = tc_loop_now_ms(c->loop);
    bool at_once = now_ms - c->bare_since_ms < BARE_FRAMES_MS;
    c->bare_since_ms = now_ms;
    c->bare_frames = 0;
    if (at_once)
        terminate(c, NGHTTP2_ENHANCE_YOUR_CALM, text);
}

/* RFC 9113 5.1. The peer's own order tells, whatever we have sent meanwhile, so that no race makes an honest one
 * guilty. */
static void on_message_frame(struct tc_h2_conn *c, const uint8_t *head)
{
    uint32_t id = be32(head + 5) & INT32_MAX;
    uint32_t *ended = &c->heads.ended[id / 2 % TC_ARRAY_LEN(c->heads.ended)];
    if (*ended == id && id)
        terminate(c, NGHTTP2_STREAM_CLOSED,
                  head[3] == NGHTTP2_DATA ? "DATA after the end of its stream" : "HEADERS after the end of its stream");
    if (head[4] & NGHTTP2_FLAG_END_STREAM)
        *ended = id;
}

/* Returns how much is in the frame. */
static uint32_t on_head(struct tc_h2_conn *c, const uint8_t *head)
{
    uint32_t type = head[3], len = be32(head) >> 8;
    if (type <= LAST_KNOWN_TYPE)
        c->heads.hidden += TC_H2_FRAME_OF(len);
    else
        on_bare_frames(c, 1, len, too_many_bare);
    if (type <= NGHTTP2_HEADERS)
        on_message_frame(c, head);
    return len;
}

/* A head that comes in pieces. Returns how much of `at` belongs to it; it is whole when `have` is 0. */
static size_t on_piece(struct tc_h2_heads *h, const uint8_t *at, size_t n)
{
    n = TC_MIN(n, (size_t)(HEAD_BYTES - h->have));
    memcpy(h->piece + h->have, at, n);
    h->have = (uint8_t)((h->have + n) % HEAD_BYTES);
    return n;
}

void tc_h2_flood_on_bytes(struct tc_h2_conn *c, const uint8_t *at, size_t n)
{
    struct tc_h2_heads *h = &c->heads;
    const uint8_t *end = at + n;
    size_t left = h->left;
    while ((size_t)(end - at) > left) {
        at += left;
        left = 0;
        const uint8_t *head = at;
        if (h->have || end - at < HEAD_BYTES) {
            at += on_piece(h, at, (size_t)(end - at));
            head = h->piece;
            if (h->have)
                continue;
        } else {
            at += HEAD_BYTES;
        }
        left = on_head(c, head);
    }
    h->left = (uint32_t)(left - (size_t)(end - at));
}

/* CVE-2019-9518: frames that cost us and carry nothing. An end is something. */
void tc_h2_flood_on_data(struct tc_h2_conn *c, const nghttp2_data *data)
{
    if (data->hd.length > data->padlen || data->hd.flags & NGHTTP2_FLAG_END_STREAM)
        return;
    on_bare_frames(c, 1, data->hd.length, too_many_bare);
    if (++c->empty_frames > c->opts.limits.max_queued_control)
        terminate(c, NGHTTP2_ENHANCE_YOUR_CALM, "too many empty frames");
}

int tc_h2_on_begin_frame(nghttp2_session *ng, const nghttp2_frame_hd *hd, void *user_data)
{
    struct tc_h2_conn *c = user_data;
    switch (hd->type) {
    case NGHTTP2_HEADERS:
        return 0;      /* shown when its block begins, if that is anybody's */
    case NGHTTP2_DATA: /* tc_h2_flood_on_data, when its padding is known */
    case NGHTTP2_CONTINUATION:
        break;
    case NGHTTP2_RST_STREAM:
        if (!nghttp2_session_get_stream_user_data(ng, hd->stream_id))
            on_bare_frames(c, 1, 0, too_many_bare);
        break;
    default:
        on_bare_frames(c, 1, hd->length, too_many_bare);
        break;
    }
    tc_h2_flood_on_shown(c, hd);
    return 0;
}

/* A byte that refers to the compression table may be some KiB of them. */
int tc_h2_flood_on_dropped(struct tc_h2_conn *c, size_t bytes)
{
    size_t dropped = c->heads.dropped + bytes + FIELD_BYTES;
    c->heads.dropped = (uint32_t)(dropped % DROPPED_BYTES);
    if (dropped >= DROPPED_BYTES)
        on_bare_frames(c, (uint32_t)(dropped / DROPPED_BYTES), 0, "too many header fields beyond the limit");
    return c->terminate_text ? NGHTTP2_ERR_PAUSE : 0; /* the rest of what was read may be as much again */
}

void tc_h2_flood_on_hidden(struct tc_h2_conn *c)
{
    struct tc_h2_heads *h = &c->heads;
    uint64_t frames = (uint64_t)(h->hidden >> 32), bytes = (uint32_t)h->hidden, whole = bytes + frames * HEAD_BYTES;
    uint64_t late = TC_MIN(whole, (uint64_t)h->late_bytes), rest = whole - late;
    h->hidden = 0;
    /* A session that is over reads nothing. */
    if (!nghttp2_session_want_read(c->ng))
        return;
    h->late_bytes -= (uint32_t)late;
    if (rest)
        on_bare_frames(c, (uint32_t)(frames * rest / whole), (size_t)(bytes * rest / whole), too_many_bare);
}

/* The peer's own RST_STREAM may be under way, and so may be what the windows of the stream (a larger one was perhaps
 * announced, and not acknowledged yet) and of the connection let it send. */
void tc_h2_flood_on_reset(struct tc_h2_conn *c, int32_t id)
{
    int32_t left = nghttp2_session_get_stream_local_window_size(c->ng, id);
    uint32_t window = TC_MAX((uint32_t)TC_MAX(left, 0), c->bdp.window_bytes);
    c->heads.late_bytes = TC_MIN(c->heads.late_bytes + window, TC_H2_MAX_WINDOW);
    tc_h2_flood_on_carried(c);
}

void tc_h2_flood_on_carried(struct tc_h2_conn *c)
{
    if (c->bare_frames > -MAX_CREDIT)
        c->bare_frames -= CREDIT;
}
