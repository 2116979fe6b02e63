/* The estimate of a path's bandwidth-delay product, by which the window of streams grows (bdp.c). Loop thread only. */
#ifndef TC_HTTP2_BDP_H
#define TC_HTTP2_BDP_H

#include "io/loop.h"

enum { TC_H2_MAX_WINDOW = 16 << 20 };

struct tc_h2_bdp {
    uint32_t window_bytes;  /* of streams, now */
    bool off;               /* the window stays as it is */
    bool running;           /* a PING is out */
    uint64_t bytes;         /* of DATA since the PING was queued, with the DATA that caused the PING */
    uint64_t sent_ns;       /* when the PING was queued, in the time of tc_loop_now_ns */
    uint64_t not_before_ms; /* no PING earlier, in the time of tc_loop_now_ms */
    uint64_t delay_ms;      /* least time from the next answer that brings no growth to the PING after it; each such
                               answer then doubles it */
    double bandwidth;       /* at the last growth of the window, bytes a second; 0: it has not grown */
};

/* Resets *b. The window is `window_bytes`, but at least 1 and at most TC_H2_MAX_WINDOW. `off`: it stays as it is. */
void tc_h2_bdp_init(struct tc_h2_bdp *b, uint32_t window_bytes, bool off);
/* Resets *b and turns it off, but keeps a PING that is out. Once *b is on again, the next PING waits for that PING's
 * answer, which would otherwise be taken for the answer to the next PING. */
void tc_h2_bdp_squeeze(struct tc_h2_bdp *b, uint32_t window_bytes);
/* Counts DATA while a PING is out. Otherwise returns true if a PING should be sent now: the caller queues it and calls
 * tc_h2_bdp_start. */
static inline bool tc_h2_bdp_on_data(struct tc_h2_bdp *b, size_t len, const struct tc_loop *loop)
{
    if (b->off || b->window_bytes >= TC_H2_MAX_WINDOW)
        return false;
    if (b->running) {
        b->bytes += len;
        return false;
    }
    /* Little DATA says nothing about the path: it is not worth a PING. */
    return len >= 1024 && tc_loop_now_ms(loop) >= b->not_before_ms;
}
/* A PING was queued, because `len` bytes of DATA came. now_ns: tc_loop_now_ns. */
void tc_h2_bdp_start(struct tc_h2_bdp *b, size_t len, uint64_t now_ns);
/* The PING's answer came. Returns true if window_bytes grew: the caller must tell the peer. now_ns: tc_loop_now_ns. */
bool tc_h2_bdp_on_ack(struct tc_h2_bdp *b, uint64_t now_ns);

#endif
