/* A connection, from connect() to its loss. The pool owns it, and may free it in env->unused. Loop thread only.
 *
 *                 connect                 SETTINGS came
 *   +------> IDLE --------> CONNECTING -----------------> READY --+
 *   |         ^                 | attempt failed                  | GOAWAY, closed, lost
 *   |         | backoff is over v                                 |
 *   |         +------- TRANSIENT_FAILURE                          |
 *   +-------------------------------------------------------------+
 *
 * Several transports (A105): READY lasts while there is a transport. While calls wait and no transport has a stream for
 * them, another transport is attempted, one at a time, up to the largest max_connections of the watches. A failed
 * attempt arms the backoff, although the state stays READY. When the last transport is lost, READY becomes CONNECTING
 * during such an attempt, and TRANSIENT_FAILURE in the backoff. No transport is closed for want of calls.
 *
 * An attempt (struct tc_connection_attempt) waits for its turn in the connect queue. When its turn has come it starts:
 * it goes through TCP or the application's dialer, the proxy's CONNECT if there is one, the credentials' handshake, and
 * HTTP/2 until the server's SETTINGS. connect_timeout_ms bounds these steps together. READY connections attempt as
 * well, without the queue, when their credentials have changed: the new transport replaces the old ones, which drain.
 *
 * The backoff (gRPC's connection-backoff.md) counts from the start of the attempt. READY resets it, but a server that
 * accepts connections only to end them must not make the channel connect without a pause. So READY does not reset the
 * backoff after a barren transport: one that is gone (GOAWAY, closed, lost) within the initial backoff after its
 * attempt started, and has answered no RPC by its end. READY resets it again once a transport that is not barren is
 * gone, or tc_connection_reset_backoff was called. After more than BARREN_MAX barren transports in a row the next
 * attempt fails at once, without connecting, and the one after it comes after the backoff. */
#include "subchannel/connection.h"

#include "base/log.h"
#include "base/mem.h"
#include "creds/handshake.h"
#include "http2/glitch_rate.h"
#include "lb/connectivity.h"

enum { BARREN_MAX = 32 }; /* barren transports in a row */

static struct tc_connection_watch *watch_at(const struct tc_link *link)
{
    return TC_CONTAINER_OF((struct tc_link *)(uintptr_t)link, struct tc_connection_watch, link);
}

bool tc_connection_is_private(const struct tc_connection *c)
{
    if (tc_list_empty(&c->watches))
        return c->config->is_private;
    for (const struct tc_link *it = c->watches.next; it != &c->watches; it = it->next)
        if (!watch_at(it)->is_private)
            return false;
    return true;
}

/* Logs the state, and calls the watches, or env->unused if there is none. Takes over the status. May free the
 * connection, so callers call it last. connection_attempt alone goes on after it: tc_connection_connect's caller has a
 * watch. */
static void connection_set_state(struct tc_connection *c, enum torc_connectivity state, struct tc_status status)
{
    bool end = state == TORC_CONNECTIVITY_READY || state == TORC_CONNECTIVITY_TRANSIENT_FAILURE ||
               c->state == TORC_CONNECTIVITY_READY;
    c->state = state;
    tc_status_set(&c->status, status);
    TC_LOG(TC_LOG_CHANNEL, end ? TORC_LOG_INFO : TORC_LOG_DEBUG, "%s: connection %s%s%s", c->address->data,
           tc_connectivity_name(state), c->status.text ? ": " : "", tc_status_text(&c->status));
    TC_LIST_FOREACH(it, &c->watches)
    watch_at(it)->on_state(watch_at(it));
    if (tc_list_empty(&c->watches))
        c->env->unused(c, c->config);
}

const char *tc_connection_stage(const struct tc_connection *c)
{
    if (!c->attempt.entry.under_way)
        return "its turn to connect";
    if (c->attempt.dialing)
        return "the dialer";
    if (c->attempt.connecting)
        return c->addr.proxy_hop ? "the connection to the proxy" : "the connection";
    if (c->attempt.tunnel)
        return "the proxy's answer to CONNECT";
    return c->attempt.handshake ? tc_creds_handshake_stage(c->attempt.handshake) : "the server's HTTP/2 settings";
}

static void attempt_handshake_over(struct tc_connection *c)
{
    torc_credentials_unref(c->attempt.securing);
    c->attempt.securing = NULL;
    c->attempt.handshake = NULL;
}

/* Stops the timer, and ends the attempt if there is one, in any of its steps or while it waits for its turn. No
 * callback of the attempt comes afterwards. */
static void attempt_give_up(struct tc_connection *c)
{
    tc_connect_queue_over(&c->env->queue, &c->attempt.entry);
    tc_timer_stop(&c->timer);
    if (c->attempt.connecting)
        c->env->connector->cancel(c->attempt.connecting);
    if (c->attempt.dialing)
        tc_dialer_cancel(c->attempt.dialing);
    if (c->attempt.tunnel)
        tc_http_connect_cancel(c->attempt.tunnel);
    if (c->attempt.handshake)
        c->attempt.securing->ops->cancel(c->attempt.handshake);
    if (c->attempt.next)
        tc_transport_close(c->attempt.next);
    c->attempt.connecting = NULL;
    c->attempt.dialing = NULL;
    c->attempt.tunnel = NULL;
    c->attempt.next = NULL;
    c->attempt.replaces = false;
    attempt_handshake_over(c);
}

/* Returns true if an attempt runs, or waits for its turn. */
static bool attempt_wanted(const struct tc_connection *c)
{
    return c->attempt.entry.under_way || tc_list_linked(&c->attempt.entry.due);
}

/* Starts the timer that looks at the credentials again, if they may change: after a quarter to a half of refresh_ns.
 * The random part spreads the connections of a process. */
static void watch_credentials(struct tc_connection *c)
{
    uint64_t quarter_ms = c->config->creds->refresh_ns / TC_NS_PER_MS / 4;
    if (c->config->creds->refresh_ns)
        tc_timer_start(&c->timer, quarter_ms + tc_rng_u64(tc_loop_rng(c->env->loop)) % (quarter_ms + 1) + 1);
}

/* Ends a failed attempt and arms the backoff. An attempt to replace transports arms no backoff: the credentials are
 * looked at again later. Takes over the status. May free the connection. */
static void attempt_fail(struct tc_connection *c, struct tc_status status)
{
    struct tc_loop *loop = c->env->loop;
    bool replaces = c->attempt.replaces;
    attempt_give_up(c);
    if (c->state == TORC_CONNECTIVITY_READY) { /* the transports in use stay */
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "%s: %s: %s", c->address->data,
               replaces ? "connection not replaced, though its credentials have changed" : "no further connection",
               tc_status_text(&status));
        tc_status_fini(&status);
    }
    if (replaces) {
        watch_credentials(c);
        tc_connection_scale(c);
        return;
    }
    uint64_t next_ms = c->attempt.began_ms + tc_backoff_next_ms(&c->backoff, tc_loop_rng(loop));
    uint64_t now_ms = tc_loop_now_ms(loop);
    tc_timer_start(&c->timer, next_ms > now_ms ? next_ms - now_ms : 0);
    c->backing_off = true;
    if (c->state != TORC_CONNECTIVITY_READY)
        connection_set_state(c, TORC_CONNECTIVITY_TRANSIENT_FAILURE, status);
}

static void attempt_begin(struct tc_connection *c);

/* Ends the backoff: TRANSIENT_FAILURE becomes IDLE; READY may attempt to have another transport. May free the
 * connection. */
static void backoff_over(struct tc_connection *c)
{
    c->backing_off = false;
    if (c->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE) {
        connection_set_state(c, TORC_CONNECTIVITY_IDLE, tc_status_ref(&c->status));
    } else {
        watch_credentials(c);
        tc_connection_scale(c);
    }
}

/* Returns true if a step of the attempt is under way. */
static bool attempt_runs(const struct tc_connection *c)
{
    return c->attempt.connecting || c->attempt.dialing || c->attempt.tunnel || c->attempt.handshake || c->attempt.next;
}

static void on_timer(struct tc_timer *timer)
{
    struct tc_connection *c = TC_CONTAINER_OF(timer, struct tc_connection, timer);
    torc_credentials *creds = c->config->creds;
    if (attempt_runs(c))
        attempt_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT,
                                       "failed to connect to %s: timed out after %llu ms, waiting for %s",
                                       c->address->data, (unsigned long long)c->config->connect_timeout_ms,
                                       tc_connection_stage(c)));
    else if (c->backing_off)
        backoff_over(c);
    else if (!tc_list_empty(&c->watches) && !attempt_wanted(c) && creds->ops->epoch(creds) != c->epoch) {
        c->attempt.replaces = true;
        attempt_begin(c);
    } else {
        watch_credentials(c);
    }
}

/* Judges a transport that is gone. A GOAWAY alone proves nothing: a server may send GOAWAY when it takes a connection's
 * last request, and answer that request afterwards. So a young transport without an answer is judged at its end if it
 * has open streams. */
static void count_barren(struct tc_connection *c, struct tc_transport *t)
{
    uint64_t age_ms = tc_loop_now_ms(c->env->loop) - tc_transport_began_ms(t);
    if (tc_h2_conn_answered(tc_transport_h2(t)) || age_ms >= c->config->backoff.initial_ms) {
        c->barren->n = 0;
        tc_backoff_reset(&c->backoff);
    } else if (tc_h2_conn_open_streams(tc_transport_h2(t)) > 0) {
        tc_transport_judge_later(t, c->barren);
    } else {
        c->barren->n++;
    }
}

/* Returns on whose behalf the connection connects. While there is a transport, a further one needs an additional
 * descriptor: was_ready is false. */
static struct tc_connect_asker connection_asker(const struct tc_connection *c)
{
    return (struct tc_connect_asker){
        .channel = tc_conn_config_of_channel(c->config),
        .locality = c->locality,
        .is_private = tc_connection_is_private(c),
        .was_ready = c->was_ready && !tc_transport_group_oldest(&c->group),
    };
}

/* The last transport is gone. An attempt that waits for its turn asks the queue again: it no longer needs an additional
 * descriptor. May free the connection. */
static void connection_lose(struct tc_connection *c, const struct tc_status *why)
{
    enum torc_connectivity state = TORC_CONNECTIVITY_IDLE;
    if (attempt_wanted(c) && !c->attempt.replaces) {
        state = TORC_CONNECTIVITY_CONNECTING;
        if (!c->attempt.entry.under_way) {
            struct tc_connect_asker who = connection_asker(c);
            tc_timer_stop(&c->timer);
            tc_connect_queue_over(&c->env->queue, &c->attempt.entry);
            tc_connect_queue_want(&c->env->queue, &c->attempt.entry, &who);
        }
    } else if (c->backing_off) {
        state = TORC_CONNECTIVITY_TRANSIENT_FAILURE;
    } else {
        attempt_give_up(c);
    }
    connection_set_state(c, state, tc_status_ref(why));
}

/* Returns the keepalive time of a new transport; 0: off. */
static uint64_t next_keepalive_ms(struct tc_conn_config *config)
{
    uint64_t raised_ms = tc_conn_config_of_channel(config)->keepalive_raised_ms;
    return config->keepalive_time_ms ? TC_MAX(config->keepalive_time_ms, raised_ms) : 0;
}

/* A8: the server has ended a transport with ENHANCE_YOUR_CALM, too_many_pings. New connections of the channel use at
 * least double the transport's keepalive time. Transports that began with the same time double it once together,
 * however many of them servers end. */
static void raise_keepalive(struct tc_connection *c, uint64_t time_ms)
{
    struct tc_conn_config *channel = tc_conn_config_of_channel(c->config);
    uint64_t doubled_ms = time_ms > UINT64_MAX / 2 ? UINT64_MAX : time_ms * 2;
    channel->keepalive_raised_ms = TC_MAX(channel->keepalive_raised_ms, doubled_ms);
    TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "%s: too many keepalive pings for the server: now every %llu ms",
           c->address->data, (unsigned long long)channel->keepalive_raised_ms);
}

static void on_gone(void *arg, struct tc_transport *t, const struct tc_status *why, bool too_many_pings)
{
    struct tc_connection *c = arg;
    struct tc_transport *oldest = tc_transport_group_oldest(&c->group);
    count_barren(c, t);
    if (c->side_streams.transport == t)
        tc_side_streams_use(&c->side_streams, oldest);
    if (too_many_pings && tc_transport_keepalive_ms(t))
        raise_keepalive(c, tc_transport_keepalive_ms(t));
    if (!oldest) {
        connection_lose(c, why);
        return;
    }
    tc_status_set(&c->status, tc_status_ref(why));
    TC_LOG(TC_LOG_CHANNEL, TORC_LOG_INFO, "%s: one connection fewer, %zu left: %s", c->address->data,
           tc_transport_group_count(&c->group), tc_status_text(why));
    tc_connection_scale(c);
}

static void on_next_gone(void *arg, struct tc_transport *t, const struct tc_status *why, bool too_many_pings)
{
    struct tc_connection *c = arg;
    (void)t, (void)too_many_pings;
    c->attempt.next = NULL;
    attempt_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, why->layer, "failed to connect to %s: %s", c->address->data,
                                   tc_status_text(why)));
}

static void on_wait(struct tc_transport_group *g)
{
    struct tc_connection *c = TC_CONTAINER_OF(g, struct tc_connection, group);
    tc_side_streams_make_room(&c->side_streams);
    tc_connection_scale(c);
}

static void on_next_ready(void *arg)
{
    static const struct tc_transport_events events = {.on_gone = on_gone};
    struct tc_connection *c = arg;
    struct tc_transport *t = c->attempt.next, *old = tc_transport_group_oldest(&c->group);
    bool replaces = c->attempt.replaces || c->attempt.next_epoch != c->epoch;
    tc_connect_queue_over(&c->env->queue, &c->attempt.entry);
    tc_timer_stop(&c->timer);
    c->was_ready = true;
    if (c->barren->n == 0)
        tc_backoff_reset(&c->backoff);
    c->attempt.next = NULL;
    c->attempt.replaces = false;
    c->epoch = c->attempt.next_epoch;
    tc_transport_group_join(&c->group, t, &events, c->attempt.began_ms);
    if (!old || replaces)
        tc_side_streams_use(&c->side_streams, t);
    watch_credentials(c);
    if (!old) {
        connection_set_state(c, TORC_CONNECTIVITY_READY, (struct tc_status){0});
        return;
    }
    TC_LOG(TC_LOG_CHANNEL, TORC_LOG_INFO, "%s: %s", c->address->data,
           replaces ? "connection replaced, since its credentials have changed"
                    : "another connection, since the server allows no more streams on those that there are");
    /* RPCs on the old transports go on; new RPCs find the new transport. */
    while (replaces && (old = tc_transport_group_oldest(&c->group)) != t)
        tc_transport_drain(old, "the credentials have changed");
    tc_connection_scale(c);
}

static const struct tc_transport_events next_events = {.on_ready = on_next_ready, .on_gone = on_next_gone};

static void on_handshake(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_connection *c = arg;
    attempt_handshake_over(c);
    if (!bs) {
        attempt_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, error->layer, "failed to connect to %s: %s",
                                       c->address->data, tc_status_text(error)));
        return;
    }
    struct tc_h2_opts opts;
    tc_h2_opts_init(&opts, false);
    /* Channels share the connection, so each call brings its own bounds on messages. */
    opts.limits.max_receive_message_bytes = SIZE_MAX;
    opts.limits.max_send_message_bytes = SIZE_MAX;
    opts.limits.max_header_list_bytes = (size_t)TC_MIN(c->config->max_header_list_bytes, SIZE_MAX);
    opts.limits.max_request_header_bytes = (size_t)TC_MIN(c->config->max_request_header_bytes, SIZE_MAX);
    opts.keepalive.time_ms = next_keepalive_ms(c->config);
    opts.keepalive.timeout_ms = c->config->keepalive_timeout_ms;
    opts.glitch_rate = c->glitch_rate;
    opts.keepalive.without_calls = c->config->keepalive_without_calls;
    c->attempt.next = tc_transport_new(c->env->loop, bs, &opts, c->address, &c->env->transports, &next_events, c);
}

static void attempt_secure(struct tc_connection *c, struct tc_bytestream *bs)
{
    uint64_t spent_ms = tc_loop_now_ms(c->env->loop) - c->attempt.began_ms;
    uint64_t limit_ms = c->config->connect_timeout_ms;
    struct tc_creds_peer peer = {
        .server_name = tc_rstr_slice(c->config->server_name),
        .timeout_ms = spent_ms < limit_ms ? limit_ms - spent_ms : 1,
    };
    torc_credentials *creds = c->config->creds;
    c->attempt.next_epoch = creds->ops->epoch ? creds->ops->epoch(creds) : 0;
    c->attempt.securing = torc_credentials_ref(creds);
    c->attempt.handshake = creds->ops->start(creds, c->env->loop, bs, &peer, on_handshake, c);
}

static void on_tunnel(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_connection *c = arg;
    c->attempt.tunnel = NULL;
    if (bs)
        attempt_secure(c, bs);
    else
        attempt_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, error->layer, "failed to connect to %s: %s",
                                       c->address->data, tc_status_text(error)));
}

static void on_connected(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_connection *c = arg;
    const struct tc_proxy_hop *hop = c->addr.proxy_hop;
    c->attempt.connecting = NULL;
    c->attempt.dialing = NULL;
    if (!bs)
        attempt_fail(c, tc_status_ref(error));
    else if (hop)
        c->attempt.tunnel =
            tc_http_connect_start(c->env->loop, bs, tc_rstr_slice(hop->target ? hop->target : c->address),
                                  tc_rstr_slice(hop->authorization), on_tunnel, c);
    else
        attempt_secure(c, bs);
}

/* Starts the first step of an attempt, and connect_timeout_ms. */
static void attempt_begin(struct tc_connection *c)
{
    struct tc_connect_asker who = connection_asker(c);
    c->attempt.began_ms = tc_loop_now_ms(c->env->loop);
    tc_connect_queue_began(&c->env->queue, &c->attempt.entry, &who);
    tc_timer_start(&c->timer, c->config->connect_timeout_ms);
    /* A18: with keepalive on, TCP_USER_TIMEOUT is the keepalive timeout. */
    struct tc_connect_opts opts = {
        .proxy = c->addr.proxy_hop != NULL,
        .user_timeout_ms = c->config->keepalive_time_ms ? c->config->keepalive_timeout_ms : 0,
    };
    const struct tc_addr *to = tc_addr_to_dial(&c->addr);
    if (c->config->dialer)
        c->attempt.dialing =
            tc_dialer_start(c->config->dialer, c->env->loop, to, opts.user_timeout_ms, on_connected, c);
    else
        c->attempt.connecting = c->env->connector->start(c->env->loop, to, &opts, on_connected, c);
}

static void on_turn_to_connect(struct tc_connect_entry *e)
{
    attempt_begin(TC_CONTAINER_OF(e, struct tc_connection, attempt.entry));
}

/* Asks for a turn to connect. After more than BARREN_MAX barren transports the attempt fails at once, and the backoff
 * comes first, counted from the start of the last attempt that had its turn. A connection that is IDLE must have a
 * watch, and becomes CONNECTING. */
static void connection_attempt(struct tc_connection *c)
{
    bool barren = c->barren->n > BARREN_MAX;
    struct tc_status why = {0};
    struct tc_connect_asker who = connection_asker(c);
    if (barren) {
        why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT,
                             "failed to connect to %s: the last %u connections ended without an answer: %s",
                             c->address->data, c->barren->n, tc_status_text(&c->status));
        c->barren->n = BARREN_MAX; /* after the backoff an attempt may connect */
    } else {
        tc_connect_queue_want(&c->env->queue, &c->attempt.entry, &who);
    }
    if (c->state == TORC_CONNECTIVITY_IDLE)
        connection_set_state(c, TORC_CONNECTIVITY_CONNECTING, (struct tc_status){0});
    if (barren)
        attempt_fail(c, why);
}

void tc_connection_connect(struct tc_connection *c)
{
    if (c->state == TORC_CONNECTIVITY_IDLE && !c->env->shut)
        connection_attempt(c);
}

static uint32_t connection_max(const struct tc_connection *c)
{
    uint32_t max = 1;
    for (const struct tc_link *it = c->watches.next; it != &c->watches; it = it->next)
        max = TC_MAX(max, watch_at(it)->max_connections);
    return max;
}

void tc_connection_scale(struct tc_connection *c)
{
    if (c->state == TORC_CONNECTIVITY_READY && !c->backing_off && !attempt_wanted(c) && !c->env->shut &&
        tc_transport_group_starves(&c->group) && tc_transport_group_count(&c->group) < connection_max(c))
        connection_attempt(c);
}

void tc_connection_reset_backoff(struct tc_connection *c)
{
    c->barren->n = 0;
    tc_backoff_reset(&c->backoff);
    tc_side_streams_reset_backoff(&c->side_streams);
    if (!c->backing_off)
        return;
    tc_timer_stop(&c->timer);
    backoff_over(c);
}

struct tc_connection *tc_connection_new(struct tc_connection_env *env, struct tc_rstr *key,
                                        struct tc_conn_config *config, const struct tc_addr *addr)
{
    struct tc_connection *c = TC_NEW(struct tc_connection);
    c->env = env;
    c->key = key;
    c->config = tc_conn_config_ref(config);
    c->addr = tc_addr_ref(addr);
    char *text = tc_addr_text(addr);
    c->address = tc_rstr_str(text);
    tc_free(text);
    tc_list_init(&c->watches);
    tc_transport_group_init(&c->group, c->address, on_wait);
    tc_list_init(&c->idle);
    tc_list_init(&c->attempt.entry.due);
    c->attempt.entry.begin = on_turn_to_connect;
    c->state = TORC_CONNECTIVITY_IDLE;
    c->barren = tc_barren_new();
    tc_backoff_init(&c->backoff, &config->backoff);
    c->glitch_rate = tc_h2_glitch_rate_new();
    tc_timer_init(&c->timer, env->loop, on_timer);
    tc_side_streams_init(&c->side_streams, env->loop, config->server_name->len ? config->server_name : c->address);
    return c;
}

void tc_connection_stop(struct tc_connection *c)
{
    struct tc_transport *t;
    attempt_give_up(c);
    tc_side_streams_use(&c->side_streams, NULL);
    while ((t = tc_transport_group_oldest(&c->group)))
        tc_transport_close(t);
    c->backing_off = false;
    c->state = TORC_CONNECTIVITY_IDLE;
}

void tc_connection_free(struct tc_connection *c)
{
    struct tc_transport *t;
    tc_side_streams_fini(&c->side_streams);
    while ((t = tc_transport_group_oldest(&c->group)))
        tc_transport_drain(t, "connection no longer needed");
    attempt_give_up(c);
    tc_barren_unref(c->barren);
    tc_status_fini(&c->status);
    tc_h2_glitch_rate_unref(c->glitch_rate);
    tc_conn_config_unref(c->config);
    tc_addr_fini(&c->addr);
    tc_rstr_unref(c->address);
    tc_rstr_unref(c->key);
    tc_free(c);
}
