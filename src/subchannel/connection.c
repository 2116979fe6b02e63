/* A connection of the pool, from connect() to its loss.
 *
 *                 connect                 SETTINGS came
 *   +------> IDLE --------> CONNECTING -----------------> READY --+
 *   |         ^                 | attempt failed                  | GOAWAY, closed, lost
 *   |         | backoff is over v                                 |
 *   |         +------- TRANSIENT_FAILURE                          |
 *   +-------------------------------------------------------------+
 *
 * An attempt (struct tc_connection_attempt) waits for its turn in the connect queue. When its turn has come it starts:
 * it goes through TCP or the application's dialer, the proxy's CONNECT if there is one, the credentials' handshake, and
 * HTTP/2 until the server's SETTINGS. connect_timeout_ms bounds these steps together. READY connections attempt as
 * well, without the queue, when their credentials have changed: the new transport replaces the old one, which drains.
 *
 * Backoff (gRPC's connection-backoff.md) counts from the start of the attempt, and READY resets it. A connection is
 * barren if it answered no RPC and ended within the initial backoff after its attempt started. A server that accepts
 * connections only to end them would have the channel connect as fast as the network goes. So after a barren connection
 * only one that is not barren resets the backoff, and after more than BARREN_MAX in a row the next attempt waits for
 * the backoff too.
 *
 * The pool owns connections and frees them in env->unused, so set_state may free the connection, and its callers call
 * it last. tc_connection_connect goes on after it: its caller has a watch. */
#include "subchannel/connection.h"

#include "base/log.h"
#include "base/mem.h"
#include "creds/handshake.h"
#include "http2/glitch_rate.h"
#include "lb/connectivity.h"

enum { BARREN_MAX = 32 }; /* connections in a row that ended soon and without an answer to any RPC */

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

/* Takes over the status. May free the connection. */
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
    attempt_handshake_over(c);
}

/* Credentials that may change (refresh_ns) are looked at again before their refresh interval is over. The random part
 * spreads the connections of a process. */
static void watch_credentials(struct tc_connection *c)
{
    uint64_t quarter_ms = c->config->creds->refresh_ns / TC_NS_PER_MS / 4;
    if (c->config->creds->refresh_ns)
        tc_timer_start(&c->timer, quarter_ms + tc_rng_u64(tc_loop_rng(c->env->loop)) % (quarter_ms + 1) + 1);
}

/* Ends a failed attempt and arms the backoff, which is counted from the attempt's start. Takes over the status. May
 * free the connection. */
static void attempt_fail(struct tc_connection *c, struct tc_status status)
{
    struct tc_loop *loop = c->env->loop;
    attempt_give_up(c);
    if (c->state == TORC_CONNECTIVITY_READY) { /* the attempt was to replace the transport, which stays */
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "%s: connection not replaced, though its credentials have changed: %s",
               c->address->data, tc_status_text(&status));
        tc_status_fini(&status);
        watch_credentials(c);
        return;
    }
    uint64_t next_ms = c->attempt.began_ms + tc_backoff_next_ms(&c->backoff, tc_loop_rng(loop));
    uint64_t now_ms = tc_loop_now_ms(loop);
    tc_timer_start(&c->timer, next_ms > now_ms ? next_ms - now_ms : 0);
    connection_set_state(c, TORC_CONNECTIVITY_TRANSIENT_FAILURE, status);
}

static void attempt_begin(struct tc_connection *c);

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
    else if (c->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        connection_set_state(c, TORC_CONNECTIVITY_IDLE, tc_status_ref(&c->status));
    else if (!tc_list_empty(&c->watches) && creds->ops->epoch(creds) != c->epoch)
        attempt_begin(c);
    else
        watch_credentials(c);
}

/* Judges the transport that ends. A GOAWAY alone proves nothing: a server may send it when it takes a connection's last
 * request, and answer that request afterwards, so a transport with open streams is judged at its end. */
static void count_barren(struct tc_connection *c)
{
    uint64_t age_ms = tc_loop_now_ms(c->env->loop) - c->transport_began_ms;
    if (tc_h2_conn_answered(tc_transport_h2(c->transport)) || age_ms >= c->config->backoff.initial_ms) {
        c->barren->n = 0;
        tc_backoff_reset(&c->backoff);
    } else if (tc_h2_conn_open_streams(tc_transport_h2(c->transport)) > 0) {
        tc_transport_judge_later(c->transport, c->barren);
    } else {
        c->barren->n++;
    }
}

static void on_gone(void *arg, const struct tc_status *why, bool too_many_pings)
{
    struct tc_connection *c = arg;
    count_barren(c);
    tc_side_streams_use(&c->side_streams, NULL);
    c->transport = NULL;
    attempt_give_up(c);
    if (too_many_pings && c->keepalive_time_ms) {
        /* A8: the server answered with ENHANCE_YOUR_CALM, too_many_pings. */
        c->keepalive_time_ms = c->keepalive_time_ms > UINT64_MAX / 2 ? UINT64_MAX : c->keepalive_time_ms * 2;
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "%s: too many keepalive pings for the server: now every %llu ms",
               c->address->data, (unsigned long long)c->keepalive_time_ms);
    }
    connection_set_state(c, TORC_CONNECTIVITY_IDLE, tc_status_ref(why));
}

static void on_next_gone(void *arg, const struct tc_status *why, bool too_many_pings)
{
    struct tc_connection *c = arg;
    (void)too_many_pings; /* false: no GOAWAY comes before the SETTINGS that make the transport ready */
    c->attempt.next = NULL;
    attempt_fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, why->layer, "failed to connect to %s: %s", c->address->data,
                                   tc_status_text(why)));
}

static void on_wait(void *arg)
{
    tc_side_streams_make_room(&((struct tc_connection *)arg)->side_streams);
}

static void on_next_ready(void *arg)
{
    static const struct tc_transport_events events = {.on_gone = on_gone, .on_wait = on_wait};
    struct tc_connection *c = arg;
    struct tc_transport *old = c->transport;
    tc_connect_queue_over(&c->env->queue, &c->attempt.entry);
    tc_timer_stop(&c->timer);
    c->was_ready = true;
    if (c->barren->n == 0)
        tc_backoff_reset(&c->backoff);
    c->transport = c->attempt.next;
    c->transport_began_ms = c->attempt.began_ms;
    c->attempt.next = NULL;
    c->epoch = c->attempt.next_epoch;
    tc_transport_set_events(c->transport, &events);
    tc_side_streams_use(&c->side_streams, c->transport);
    watch_credentials(c);
    if (old) { /* its RPCs go on; new RPCs find the new transport */
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_INFO, "%s: connection replaced, since its credentials have changed",
               c->address->data);
        tc_transport_drain(old, "the credentials have changed");
    } else {
        connection_set_state(c, TORC_CONNECTIVITY_READY, (struct tc_status){0});
    }
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
    opts.limits.max_header_list_bytes = (size_t)c->config->max_header_list_bytes;
    opts.limits.max_request_header_bytes = (size_t)c->config->max_request_header_bytes;
    opts.keepalive.time_ms = c->keepalive_time_ms;
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
        .addr = &c->addr,
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

static struct tc_connect_asker connection_asker(const struct tc_connection *c)
{
    return (struct tc_connect_asker){
        .channel = tc_conn_config_of_channel(c->config),
        .locality = c->locality,
        .is_private = tc_connection_is_private(c),
        .was_ready = c->was_ready,
    };
}

static void attempt_begin(struct tc_connection *c)
{
    struct tc_connect_asker who = connection_asker(c);
    c->attempt.began_ms = tc_loop_now_ms(c->env->loop);
    tc_connect_queue_began(&c->env->queue, &c->attempt.entry, &who);
    tc_timer_start(&c->timer, c->config->connect_timeout_ms);
    /* A18: with keepalive on, TCP_USER_TIMEOUT is the keepalive timeout. */
    struct tc_connect_opts opts = {
        .proxy = c->addr.proxy_hop != NULL,
        .user_timeout_ms = c->keepalive_time_ms ? c->config->keepalive_timeout_ms : 0,
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

void tc_connection_connect(struct tc_connection *c)
{
    if (c->state != TORC_CONNECTIVITY_IDLE || c->env->shut)
        return;
    if (c->barren->n > BARREN_MAX) {
        struct tc_status why =
            tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_CONNECT,
                           "failed to connect to %s: the last %u connections ended without an answer: %s",
                           c->address->data, c->barren->n, tc_status_text(&c->status));
        c->barren->n = BARREN_MAX; /* the attempt after the backoff may try */
        connection_set_state(c, TORC_CONNECTIVITY_CONNECTING, (struct tc_status){0});
        attempt_fail(c, why);
        return;
    }
    struct tc_connect_asker who = connection_asker(c);
    tc_connect_queue_want(&c->env->queue, &c->attempt.entry, &who);
    connection_set_state(c, TORC_CONNECTIVITY_CONNECTING, (struct tc_status){0});
}

void tc_connection_reset_backoff(struct tc_connection *c)
{
    c->barren->n = 0;
    tc_backoff_reset(&c->backoff);
    tc_side_streams_reset_backoff(&c->side_streams);
    if (c->state != TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        return;
    tc_timer_stop(&c->timer);
    connection_set_state(c, TORC_CONNECTIVITY_IDLE, tc_status_ref(&c->status));
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
    tc_list_init(&c->idle);
    tc_list_init(&c->attempt.entry.due);
    c->attempt.entry.begin = on_turn_to_connect;
    c->state = TORC_CONNECTIVITY_IDLE;
    c->keepalive_time_ms = config->keepalive_time_ms;
    c->barren = tc_barren_new();
    tc_backoff_init(&c->backoff, &config->backoff);
    c->glitch_rate = tc_h2_glitch_rate_new();
    tc_timer_init(&c->timer, env->loop, on_timer);
    tc_side_streams_init(&c->side_streams, env->loop, config->server_name->len ? config->server_name : c->address);
    return c;
}

void tc_connection_stop(struct tc_connection *c)
{
    attempt_give_up(c);
    tc_side_streams_use(&c->side_streams, NULL);
    if (c->transport)
        tc_transport_close(c->transport);
    c->transport = NULL;
    c->state = TORC_CONNECTIVITY_IDLE;
}

void tc_connection_free(struct tc_connection *c)
{
    tc_side_streams_fini(&c->side_streams);
    if (c->transport)
        tc_transport_drain(c->transport, "connection no longer needed");
    c->transport = NULL;
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
