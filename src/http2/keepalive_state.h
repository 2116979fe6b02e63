/* The state of keepalive.c, whose head explains enum tc_h2_age_state. Loop thread only. */
#ifndef TC_HTTP2_KEEPALIVE_STATE_H
#define TC_HTTP2_KEEPALIVE_STATE_H

#include "io/loop.h"

/* Our PINGs, the peer's PINGs, and the age limit. */
struct tc_h2_keepalive_state {
    struct tc_timer timer;
    bool waiting;      /* a PING is out, and nothing came after it */
    bool dormant;      /* nothing to watch until a stream opens */
    bool pinged, aged; /* server. pinged: the peer has sent a PING since we last sent headers or data; aged: the age
                          limit was reached */
    uint64_t last_read_ms, last_ping_ms; /* when bytes came last, or `dormant` ended; server: when a PING last came in
                                            time. Times of tc_loop_now_ms */
    unsigned strikes;                    /* server: PINGs that came too early, since we last sent headers or data */
    struct tc_timer age;                 /* ends the wait that age_state names */
    enum tc_h2_age_state {
        TC_H2_AGE_OFF, /* no wait */
        TC_H2_AGE_LIMIT,
        TC_H2_AGE_NOTICE,
        TC_H2_AGE_GRACE,
        TC_H2_AGE_LAST
    } age_state;
    uint64_t age_due_ms; /* server: when the age reaches its limit, in the time of tc_loop_now_ms; 0: never */
};

#endif
