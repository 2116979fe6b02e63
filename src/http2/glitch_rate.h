/* The rate of a peer's glitches (nghttp2's word for frames that move no RPC on): their count, reduced as time passes.
 *
 * A server whose connection ended because of its glitches gets no fresh allowance when the client connects again: all
 * transports of a struct tc_connection share the rate. On a server of ours each connection has its own rate, and a
 * second one for the RPCs that the client cancels (glitches.c). Loop thread only. */
#ifndef TC_HTTP2_GLITCH_RATE_H
#define TC_HTTP2_GLITCH_RATE_H

#include "base/ref.h"

struct tc_h2_glitch_rate {
    struct tc_lref ref; /* of the connections to the peer, and of the object that makes them */
    int64_t frames;     /* the count; negative: credit, which glitches.c gives and limits */
    int paid_part;      /* thousandths of a frame, by which `frames` is to be reduced beside whole frames */
    uint64_t at_ms;     /* the time up to which both are reckoned */
};

/* Returns a rate of 0 with one reference. */
struct tc_h2_glitch_rate *tc_h2_glitch_rate_new(void);
struct tc_h2_glitch_rate *tc_h2_glitch_rate_ref(struct tc_h2_glitch_rate *rate);
void tc_h2_glitch_rate_unref(struct tc_h2_glitch_rate *rate); /* NULL is allowed */
/* Reduces a count above 0 by `limit` for each second that has passed, down to 0, and adds `frames`. Returns false if
 * the count exceeds the allowance of two seconds (2 * limit); the count is cut to that allowance then. `now_ms` is a
 * time of tc_loop_now_ms. */
bool tc_h2_glitch_rate_add(struct tc_h2_glitch_rate *rate, int64_t frames, int64_t limit, uint64_t now_ms);
/* Returns true if the count is above 1,000 and less than two seconds old (at_ms): after two seconds nothing would be
 * left of it. The subchannel pool keeps the struct tc_connection of such a rate, so that the next connection to the
 * peer begins with the rate. */
bool tc_h2_glitch_rate_is_high(const struct tc_h2_glitch_rate *rate, uint64_t now_ms);

#endif
