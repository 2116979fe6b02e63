/* Keepalive (gRFC A8, A9), from both sides, and a server's age limit.
 *
 *   our PINGs       After time_ms without a byte from the peer. The connection fails if no byte comes within timeout_ms
 *                   after a PING. A client watches only while a stream is open or without_calls is set; otherwise its
 *                   timer goes dormant. The silence before a stream counts: after time_ms of it the PING leaves right
 *                   behind the stream's HEADERS. If the PING came first, a server would still see no stream, and
 *                   demand two hours between PINGs.
 *   their PINGs     A server tolerates one PING each min_interval_ms. While no stream is open and without_calls is
 *                   unset, it tolerates one each two hours, or each min_interval_ms if that is longer. The third early
 *                   PING ends the connection: ENHANCE_YOUR_CALM, too_many_pings. When the server sends headers or
 *                   data, the count of early PINGs goes back to 0, and a PING may come at once.
 *   age             LIMIT: after max_age_ms a server drains. NOTICE: the first GOAWAY is out, and rejects nothing; the
 *                   second one follows when the PING sent after the first is answered, or after NOTICE_MS. GRACE: calls
 *                   that still run max_age_grace_ms after the age limit and the second GOAWAY are cut off. Only the age
 *                   limit has this grace: a server's stop has its own (server/server.c). On a connection that drains
 *                   for another reason, the wait for the age limit goes on after NOTICE.
 *   the last GOAWAY LAST: no stream is left, or nghttp2 reads no more. The connection ends when the GOAWAY is written,
 *                   or after LAST_MS.
 *
 * The state (keepalive_state.h) is a part of the connection; its two timers stop before the session ends
 * (tc_h2_keepalive_stop). Loop thread only. */
#include "http2/connection_internal.h"

enum {
    MAX_STRIKES = 2,
    IDLE_INTERVAL_MS = 2 * 3600 * 1000, /* as in gRPC: between PINGs while no stream is open, without_calls unset */
    NOTICE_MS = 5000,                   /* for the answer to the PING sent after the first GOAWAY */
    LAST_MS = 5000                      /* for the peer to take the last GOAWAY */
};

const uint8_t tc_h2_ping_keepalive[8] = {'t', 'c', 'a', 'l', 'i', 'v', 'e', 0};
const uint8_t tc_h2_ping_bdp[8] = {'t', 'c', 'b', 'd', 'p', 0, 0, 0};
const uint8_t tc_h2_ping_drain[8] = {'t', 'c', 'd', 'r', 'a', 'i', 'n', 0};

static bool keepalive_wanted(const struct tc_h2_conn *c)
{
    return c->opts.server || c->streams.active || c->opts.keepalive.without_calls;
}

static void keepalive_ping(struct tc_h2_conn *c)
{
    struct tc_h2_keepalive_state *k = &c->keepalive;
    nghttp2_submit_ping(c->ng, NGHTTP2_FLAG_NONE, tc_h2_ping_keepalive);
    tc_h2_conn_flush_later(c);
    k->waiting = true;
    tc_timer_start(&k->timer, c->opts.keepalive.timeout_ms);
}

/* Sends a PING if nothing has been read for time_ms; otherwise starts the timer for the rest. */
static void keepalive_check(struct tc_h2_conn *c)
{
    struct tc_h2_keepalive_state *k = &c->keepalive;
    uint64_t quiet_ms = tc_loop_now_ms(c->loop) - k->last_read_ms;
    if (quiet_ms < c->opts.keepalive.time_ms)
        tc_timer_start(&k->timer, c->opts.keepalive.time_ms - quiet_ms);
    else
        keepalive_ping(c);
}

static void keepalive_on_timer(struct tc_timer *timer)
{
    struct tc_h2_conn *c = TC_CONTAINER_OF(timer, struct tc_h2_conn, keepalive.timer);
    struct tc_h2_keepalive_state *k = &c->keepalive;
    if (k->waiting) {
        tc_h2_conn_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_HTTP2, "keepalive ping timeout"));
        return;
    }
    if (!keepalive_wanted(c)) {
        k->dormant = true;
        return;
    }
    keepalive_check(c);
}

void tc_h2_keepalive_on_read(struct tc_h2_conn *c)
{
    struct tc_h2_keepalive_state *k = &c->keepalive;
    k->last_read_ms = tc_loop_now_ms(c->loop);
    if (!k->waiting)
        return;
    /* Any byte shows that the peer lives. */
    k->waiting = false;
    tc_timer_start(&k->timer, c->opts.keepalive.time_ms);
}

void tc_h2_keepalive_wake(struct tc_h2_conn *c)
{
    struct tc_h2_keepalive_state *k = &c->keepalive;
    if (!k->dormant)
        return;
    k->dormant = false;
    keepalive_check(c);
}

void tc_h2_keepalive_on_sent(struct tc_h2_conn *c)
{
    c->keepalive.pinged = false;
    c->keepalive.strikes = 0;
}

void tc_h2_keepalive_on_ping(struct tc_h2_conn *c)
{
    struct tc_h2_keepalive_state *k = &c->keepalive;
    if (!c->opts.server || c->opts.keepalive.min_interval_ms == 0)
        return;
    uint64_t now_ms = tc_loop_now_ms(c->loop), min_ms = c->opts.keepalive.min_interval_ms;
    if (c->streams.active == 0 && !c->opts.keepalive.without_calls)
        min_ms = TC_MAX(min_ms, (uint64_t)IDLE_INTERVAL_MS);
    if (!k->pinged || now_ms - k->last_ping_ms >= min_ms) {
        k->pinged = true;
        k->last_ping_ms = now_ms;
    } else if (++k->strikes > MAX_STRIKES) {
        tc_h2_glitches_violation(&c->glitches, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
    }
}

static void age_wait(struct tc_h2_conn *c, enum tc_h2_age_state state, uint64_t ms)
{
    c->keepalive.age_state = state;
    tc_timer_start(&c->keepalive.age, ms);
}

static void age_wait_for_grace(struct tc_h2_conn *c)
{
    if (c->opts.keepalive.max_age_grace_ms)
        age_wait(c, TC_H2_AGE_GRACE, c->opts.keepalive.max_age_grace_ms);
}

static void keepalive_on_age(struct tc_timer *timer)
{
    struct tc_h2_conn *c = TC_CONTAINER_OF(timer, struct tc_h2_conn, keepalive.age);
    struct tc_h2_keepalive_state *k = &c->keepalive;
    enum tc_h2_age_state state = k->age_state;
    uint64_t now_ms = tc_loop_now_ms(c->loop);
    k->age_state = TC_H2_AGE_OFF;
    switch (state) {
    case TC_H2_AGE_LIMIT:
        k->aged = true;
        if (c->ending.goaway_sent)
            age_wait_for_grace(c);
        else
            tc_h2_conn_drain(c, "max_age");
        break;
    case TC_H2_AGE_NOTICE:
        tc_h2_conn_send_last_goaway(c);
        if (k->age_state == TC_H2_AGE_LAST)
            break;
        if (k->aged)
            age_wait_for_grace(c);
        else if (k->age_due_ms)
            age_wait(c, TC_H2_AGE_LIMIT, k->age_due_ms - TC_MIN(now_ms, k->age_due_ms));
        break;
    case TC_H2_AGE_GRACE:
        tc_h2_conn_terminate(c, NGHTTP2_NO_ERROR, "max_age");
        break;
    case TC_H2_AGE_LAST:
        tc_h2_conn_fail(c, tc_status_ref(&c->ending.why));
        break;
    case TC_H2_AGE_OFF:
        break;
    }
}

void tc_h2_keepalive_await_notice(struct tc_h2_conn *c)
{
    age_wait(c, TC_H2_AGE_NOTICE, NOTICE_MS);
}

void tc_h2_keepalive_await_last(struct tc_h2_conn *c)
{
    if (c->keepalive.age_state != TC_H2_AGE_LAST)
        age_wait(c, TC_H2_AGE_LAST, LAST_MS);
}

void tc_h2_keepalive_init(struct tc_h2_conn *c)
{
    struct tc_h2_keepalive_state *k = &c->keepalive;
    const struct tc_h2_keepalive *opts = &c->opts.keepalive;
    tc_timer_init(&k->timer, c->loop, keepalive_on_timer);
    tc_timer_init(&c->keepalive.age, c->loop, keepalive_on_age);
    k->last_read_ms = tc_loop_now_ms(c->loop);
    if (opts->time_ms && keepalive_wanted(c))
        tc_timer_start(&k->timer, opts->time_ms);
    else
        k->dormant = opts->time_ms != 0;
    if (c->opts.server && opts->max_age_ms) {
        /* +-10 %, so that connections made together do not end together. */
        double jitter = 0.9 + 0.2 * tc_rng_double(tc_loop_rng(c->loop));
        uint64_t age_ms = (uint64_t)((double)opts->max_age_ms * jitter);
        k->age_due_ms = k->last_read_ms + age_ms;
        age_wait(c, TC_H2_AGE_LIMIT, age_ms);
    }
}

void tc_h2_keepalive_stop(struct tc_h2_conn *c)
{
    tc_timer_stop(&c->keepalive.timer);
    tc_timer_stop(&c->keepalive.age);
}
