/* Glitches (nghttp2's word): frames of a peer that move no RPC on. The head of each frame is read on its way to
 * nghttp2, since nghttp2 ignores some frames without a callback.
 *
 * A connection whose peer sends too many glitches ends with GOAWAY (ENHANCE_YOUR_CALM). A single frame ends it, too, if
 * it breaks one of two rules of RFC 9113: DATA or HEADERS after END_STREAM (STREAM_CLOSED), and PRIORITY of stream 0
 * (PROTOCOL_ERROR). nghttp2's callbacks must not end the connection: they record a violation, on which read.c acts.
 * Loop thread only. */
#ifndef TC_HTTP2_GLITCHES_H
#define TC_HTTP2_GLITCHES_H

#include <nghttp2/nghttp2.h>

#include "http2/glitch_rate.h"
#include "io/loop.h"

/* Embedded in the connection. */
struct tc_h2_glitches {
    struct tc_loop *loop;
    struct tc_h2_glitch_rate *rate;   /* of the peer; a reference, which tc_h2_conn_release drops */
    int64_t frames_per_second;        /* how many glitches a peer may cause; twice as many at once */
    int64_t cancels_per_second;       /* how many RPCs a client may cancel; twice as many at once */
    uint32_t max_empty_frames;        /* how many DATA frames without content may come in a row */
    uint32_t empty_frames;            /* DATA frames without content in a row so far */
    const char *violation;            /* why the connection must end; NULL: it goes on. Static text */
    uint32_t error_code;              /* of the GOAWAY */
    struct tc_h2_glitch_rate cancels; /* server: the rate of cancelled RPCs (tc_h2_glitches_on_cancel) */

    /* The heads of frames. */
    uint32_t left;       /* bytes until the next head */
    uint32_t length;     /* of the content of the newest frame */
    uint32_t unshown;    /* bytes of its content that nghttp2 must have before it shows the frame */
    uint8_t have;        /* bytes of `piece` */
    uint8_t piece[9];    /* a head that arrives in pieces */
    bool block_shown;    /* nghttp2 shows the header block under way, it does not skip it */
    uint32_t late_bytes; /* bytes that the peer may still send, in all, on streams that we reset */
    uint32_t dropped;    /* the cost of dropped header fields in bytes, not yet counted as frames */
    uint32_t block;      /* frames that the dropped fields of the block under way count as */
    int64_t hidden;      /* tc_h2_frame_cost of the frames that nghttp2 was given and has not shown */
    uint32_t ended[32];  /* numbers of streams that the peer has ended, on which neither DATA nor HEADERS may follow; of
                          * those that share a place, the newest */
};

/* A byte of a header block that nghttp2 skips may be a field: it costs as much as TC_H2_BLOCK_BYTE other bytes. */
enum { TC_H2_BLOCK_BYTE = 16 };

/* Returns the cost of one frame, which can be added up: 1 in the upper 32 bits, the cost of its bytes in the lower. */
static inline int64_t tc_h2_frame_cost(uint32_t type, size_t bytes)
{
    bool block = type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION;
    return ((int64_t)1 << 32) + (int64_t)(block ? bytes * TC_H2_BLOCK_BYTE : bytes);
}

/* *g must be zeroed. Takes over a reference to `rate`. A server's peer begins with the connection preface, which has no
 * frame head. The caller then sets the three limits. */
void tc_h2_glitches_init(struct tc_h2_glitches *g, struct tc_loop *loop, struct tc_h2_glitch_rate *rate, bool server);
/* Records a violation unless one is recorded already. `text` is static. */
void tc_h2_glitches_violation(struct tc_h2_glitches *g, uint32_t error_code, const char *text);

/* Bytes that are about to be given to nghttp2. */
void tc_h2_glitches_on_bytes(struct tc_h2_glitches *g, const uint8_t *at, size_t n);
/* nghttp2 begins a frame. Returns 0, which nghttp2's callback must return. */
int tc_h2_glitches_on_frame(struct tc_h2_glitches *g, nghttp2_session *ng, const nghttp2_frame_hd *hd);
/* A whole DATA frame has come, of a stream that nghttp2 knows. */
void tc_h2_glitches_on_data(struct tc_h2_glitches *g, const nghttp2_data *data);
/* nghttp2 shows the beginning of a header block: its HEADERS frame leaves `hidden`. */
static inline void tc_h2_glitches_on_block(struct tc_h2_glitches *g, const nghttp2_frame_hd *hd)
{
    g->block_shown = true;
    g->block = 0;
    g->hidden -= tc_h2_frame_cost(hd->type, hd->length);
}
/* A header field of `bytes` bytes, name and value, is dropped: the field is beyond the limit, or its stream is gone or
 * takes no more input. Returns the value for nghttp2's on_header. */
int tc_h2_glitches_on_dropped(struct tc_h2_glitches *g, size_t bytes);
/* nghttp2 has taken the bytes of tc_h2_glitches_on_bytes, and `hidden` is above 0. `over`: the session reads nothing
 * more. */
void tc_h2_glitches_on_hidden(struct tc_h2_glitches *g, bool over);
/* DATA was sent, or a request came: gives credit for the glitches (WINDOW_UPDATE, PING) that the peer may send because
 * of it. */
void tc_h2_glitches_on_carried(struct tc_h2_glitches *g);
/* Server: a stream was reset that we have not ended, by the client (CVE-2023-44487) or by nghttp2 for a fault of the
 * client's (CVE-2025-8671). Such streams leave the limit of concurrent streams at once, and we may have just begun to
 * work for them. */
void tc_h2_glitches_on_cancel(struct tc_h2_glitches *g);
/* An RST_STREAM was sent; the stream's window lets the peer still send this many bytes. Gives the credit of
 * tc_h2_glitches_on_carried, too. */
void tc_h2_glitches_on_reset(struct tc_h2_glitches *g, uint32_t window_bytes);

#endif
