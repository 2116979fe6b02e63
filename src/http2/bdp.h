/* The bandwidth-delay product of a path: how many bytes come between a PING and its answer. When they nearly fill the
 * window of a stream, the window doubles (bdp.c). Loop thread only. */
#ifndef TC_HTTP2_BDP_H
#define TC_HTTP2_BDP_H

#include "io/loop.h"

enum { TC_H2_MAX_WINDOW = 16 << 20 };

struct tc_h2_bdp {
    uint32_t window_bytes;  /* of streams, now */
    bool off;               /* the window stays as it is */
    bool running;           /* a PING is out */
    uint64_t bytes;         /* that came since the PING, with the DATA that brought the PING about */
    uint64_t sent_ns;       /* when the PING was queued */
    uint64_t not_before_ms; /* no PING earlier, in the time of tc_loop_now_ms */
    uint64_t delay_ms;      /* between PINGs while the window does not grow */
    double bandwidth;       /* highest seen, bytes a second */
};

/* Begins with that window, cut to TC_H2_MAX_WINDOW. `off`: the window stays as it is. */
void tc_h2_bdp_init(struct tc_h2_bdp *b, uint32_t window_bytes, bool off);
/* Counts DATA. Returns true if a PING should be sent now: then tc_h2_bdp_start follows. */
static inline bool tc_h2_bdp_on_data(struct tc_h2_bdp *b, size_t len, const struct tc_loop *loop)
{
    if (b->off || b->window_bytes >= TC_H2_MAX_WINDOW)
        return false;
    if (b->running) {
        b->bytes += len;
        return false;
    }
    /* Small answers say nothing about the path, and a PING for each would cost more than they do. */
    return len >= 1024 && tc_loop_now_ms(loop) >= b->not_before_ms;
}
/* A PING was queued behind `len` bytes. */
void tc_h2_bdp_start(struct tc_h2_bdp *b, size_t len, uint64_t now_ns);
/* The PING's answer came. Returns true if window_bytes grew: the peer must be told. */
bool tc_h2_bdp_on_ack(struct tc_h2_bdp *b, uint64_t now_ns);

#endif
