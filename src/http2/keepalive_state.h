/* The state and the functions of keepalive.c, whose head explains enum tc_h2_age_state. The state is a member of the
 * connection. Loop thread only. */
#ifndef TC_HTTP2_KEEPALIVE_STATE_H
#define TC_HTTP2_KEEPALIVE_STATE_H

#include "io/loop.h"

/* Our PINGs, the peer's PINGs, and the age limit. */
struct tc_h2_keepalive_state {
    struct tc_timer timer;
    bool waiting;      /* a PING is out, and nothing came after it */
    bool dormant;      /* nothing to watch until a stream's HEADERS are sent */
    bool pinged, aged; /* server. pinged: the peer has sent a PING since we last sent headers or data; aged: the age
                          limit was reached */
    uint64_t last_read_ms, last_ping_ms; /* when bytes came last; server: when a PING last came in time. Times of
                                            tc_loop_now_ms */
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

/* --- keepalive.c --- */

struct tc_h2_conn;

void tc_h2_keepalive_init(struct tc_h2_conn *c);
void tc_h2_keepalive_stop(struct tc_h2_conn *c);
void tc_h2_keepalive_on_read(struct tc_h2_conn *c);
/* A stream's HEADERS were sent: watches again if nothing was watched. May submit a PING. */
void tc_h2_keepalive_wake(struct tc_h2_conn *c);
/* The peer sent a PING that is not an answer. May record a violation. */
void tc_h2_keepalive_on_ping(struct tc_h2_conn *c);
/* We sent headers or data: the peer may ping. */
void tc_h2_keepalive_on_sent(struct tc_h2_conn *c);
/* Starts the wait for the answer to the PING that follows the first GOAWAY of a drain. */
void tc_h2_keepalive_await_notice(struct tc_h2_conn *c);
/* Ends the connection after a while, unless it ends before: only our GOAWAY is left to be sent. */
void tc_h2_keepalive_await_last(struct tc_h2_conn *c);

#endif
