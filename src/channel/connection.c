#include "channel/connection.h"

#include "base/log.h"
#include "base/mem.h"
#include "channel/attempts.h"

/* So many connections may end before they carried an RPC, each soon after it was made; the next waits for the backoff.
 */
#define BARREN_MAX 32

static void set_state(struct tc_connection *c, enum torc_connectivity state, struct tc_status status)
{
    c->state = state;
    tc_status_set(&c->status, status);
    TC_LOG(TC_LOG_CHANNEL, TORC_LOG_DEBUG, "connection %s: %s%s%s", c->address->data, torc_connectivity_name(state),
           c->status.text ? ": " : "", tc_status_text(&c->status));
    tc_connection_notify(c);
    if (tc_list_empty(&c->handles))
        tc_pool_unused(c, c->config);
}

static const char *stage(const struct tc_connection *c)
{
    if (c->connecting)
        return c->addr.via ? "the connection to the proxy" : "the connection";
    if (c->tunnel)
        return "the proxy's answer to CONNECT";
    return c->handshake ? "the TLS handshake" : "the server's HTTP/2 settings";
}

static void handshake_over(struct tc_connection *c)
{
    torc_credentials_unref(c->securing);
    c->securing = NULL;
    c->handshake = NULL;
}

static void give_up_attempt(struct tc_connection *c)
{
    tc_attempts_over(tc_pool_attempts(c->pool), c);
    tc_timer_stop(&c->timer);
    if (c->connecting)
        tc_pool_connector(c->pool)->cancel(c->connecting);
    if (c->tunnel)
        tc_http_connect_cancel(c->tunnel);
    if (c->handshake)
        c->securing->ops->cancel(c->handshake);
    if (c->next)
        tc_transport_close(c->next);
    c->connecting = NULL;
    c->tunnel = NULL;
    c->next = NULL;
    handshake_over(c);
}

/* READY, and the credentials may change: looks at them again before their refresh interval is over, not at the same
 * time as all the other connections. */
static void watch_credentials(struct tc_connection *c)
{
    uint64_t quarter_ms = c->config->creds->refresh_ns / TC_NS_PER_MS / 4;
    if (c->config->creds->refresh_ns)
        tc_timer_start(&c->timer, quarter_ms + tc_rng_u64(tc_loop_rng(tc_pool_loop(c->pool))) % (quarter_ms + 1) + 1);
}

/* The attempt failed; the next may begin when the backoff, counted from this one's start, is over
 * (connection-backoff.md). Takes over the status. */
static void fail(struct tc_connection *c, struct tc_status status)
{
    struct tc_loop *loop = tc_pool_loop(c->pool);
    give_up_attempt(c);
    if (c->state == TORC_READY) { /* that was to replace the transport, which goes on */
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "the connection stays as it is, though its credentials have changed: %s",
               tc_status_text(&status));
        tc_status_fini(&status);
        watch_credentials(c);
        return;
    }
    uint64_t next_ms = c->attempt_ms + tc_backoff_next_ms(&c->backoff, tc_loop_rng(loop));
    uint64_t now_ms = tc_loop_now_ms(loop);
    tc_timer_start(&c->timer, next_ms > now_ms ? next_ms - now_ms : 0);
    set_state(c, TORC_TRANSIENT_FAILURE, status);
}

static bool attempting(const struct tc_connection *c)
{
    return c->connecting || c->tunnel || c->handshake || c->next;
}

static void on_timer(struct tc_timer *timer)
{
    struct tc_connection *c = TC_CONTAINER_OF(timer, struct tc_connection, timer);
    torc_credentials *creds = c->config->creds;
    if (attempting(c))
        fail(c,
             tc_status_make(TORC_STATUS_UNAVAILABLE, "failed to connect to %s: timed out after %llu ms, waiting for %s",
                            c->address->data, (unsigned long long)c->config->connect_timeout_ms, stage(c)));
    else if (c->state == TORC_TRANSIENT_FAILURE)
        set_state(c, TORC_IDLE, tc_status_ref(&c->status));
    else if (!tc_list_empty(&c->handles) && creds->ops->epoch(creds) != c->epoch)
        tc_connection_begin(c);
    else
        watch_credentials(c);
}

/* A server that takes connections only to end them would have us connect as fast as the network goes. */
static void count_barren(struct tc_connection *c)
{
    uint64_t age_ms = tc_loop_now_ms(tc_pool_loop(c->pool)) - c->attempt_ms;
    if (!tc_transport_used(c->transport) && age_ms < c->config->backoff.initial_ms) {
        c->barren++;
    } else {
        c->barren = 0;
        tc_backoff_reset(&c->backoff);
    }
}

static void on_gone(void *arg, const struct tc_status *why, bool too_many_pings)
{
    struct tc_connection *c = arg;
    count_barren(c);
    c->transport = NULL;
    give_up_attempt(c);
    if (too_many_pings && c->keepalive_time_ms) {
        /* A8: the server finds our pings too many. */
        c->keepalive_time_ms = c->keepalive_time_ms > UINT64_MAX / 2 ? UINT64_MAX : c->keepalive_time_ms * 2;
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_WARN, "%s finds keepalive pings too many: now every %llu ms", c->address->data,
               (unsigned long long)c->keepalive_time_ms);
    }
    set_state(c, TORC_IDLE, tc_status_ref(why));
}

static void on_next_gone(void *arg, const struct tc_status *why, bool too_many_pings)
{
    struct tc_connection *c = arg;
    (void)too_many_pings; /* there was no time for any */
    c->next = NULL;
    fail(c,
         tc_status_make(TORC_STATUS_UNAVAILABLE, "failed to connect to %s: %s", c->address->data, tc_status_text(why)));
}

static void on_next_ready(void *arg)
{
    static const struct tc_transport_events events = {.on_gone = on_gone};
    struct tc_connection *c = arg;
    struct tc_transport *old = c->transport;
    tc_attempts_over(tc_pool_attempts(c->pool), c);
    tc_timer_stop(&c->timer);
    c->was_ready = true;
    if (c->barren == 0)
        tc_backoff_reset(&c->backoff);
    c->transport = c->next;
    c->next = NULL;
    c->epoch = c->next_epoch;
    tc_transport_set_events(c->transport, &events);
    watch_credentials(c);
    if (old) { /* its RPCs go on; new ones find the new transport */
        TC_LOG(TC_LOG_CHANNEL, TORC_LOG_INFO, "connection %s: replaced, since its credentials have changed",
               c->address->data);
        tc_transport_drain(old, "the credentials have changed");
    } else {
        set_state(c, TORC_READY, (struct tc_status){0});
    }
}

static const struct tc_transport_events next_events = {.on_ready = on_next_ready, .on_gone = on_next_gone};

static void on_handshake(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_connection *c = arg;
    handshake_over(c);
    if (!bs) {
        fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, "failed to connect to %s: %s", c->address->data,
                               tc_status_text(error)));
        return;
    }
    struct tc_h2_opts opts;
    tc_h2_opts_init(&opts, false);
    /* Messages are bounded for each call, by its channel: connections are shared. */
    opts.limits.max_receive_message_bytes = SIZE_MAX;
    opts.limits.max_send_message_bytes = SIZE_MAX;
    opts.limits.max_header_list_bytes = (size_t)c->config->max_header_list_bytes;
    opts.keepalive.time_ms = c->keepalive_time_ms;
    opts.keepalive.timeout_ms = c->config->keepalive_timeout_ms;
    opts.keepalive.without_calls = c->config->keepalive_without_calls;
    c->next =
        tc_transport_new(tc_pool_loop(c->pool), bs, &opts, c->address, tc_pool_transports(c->pool), &next_events, c);
}

static void secure(struct tc_connection *c, struct tc_bytestream *bs)
{
    uint64_t spent_ms = tc_loop_now_ms(tc_pool_loop(c->pool)) - c->attempt_ms;
    uint64_t limit_ms = c->config->connect_timeout_ms;
    struct tc_creds_peer peer = {
        .server_name = tc_rstr_slice(c->config->server_name),
        .addr = &c->addr,
        .timeout_ms = spent_ms < limit_ms ? limit_ms - spent_ms : 1,
    };
    torc_credentials *creds = c->config->creds;
    c->next_epoch = creds->ops->epoch ? creds->ops->epoch(creds) : 0;
    c->securing = torc_credentials_ref(creds);
    c->handshake = creds->ops->start(creds, tc_pool_loop(c->pool), bs, &peer, on_handshake, c);
}

static void on_tunnel(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_connection *c = arg;
    c->tunnel = NULL;
    if (bs)
        secure(c, bs);
    else
        fail(c, tc_status_make(TORC_STATUS_UNAVAILABLE, "failed to connect to %s: %s", c->address->data,
                               tc_status_text(error)));
}

static void on_connected(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_connection *c = arg;
    const struct tc_via *via = c->addr.via;
    c->connecting = NULL;
    if (!bs)
        fail(c, tc_status_ref(error));
    else if (via)
        c->tunnel =
            tc_http_connect_start(tc_pool_loop(c->pool), bs, tc_rstr_slice(via->target ? via->target : c->address),
                                  tc_rstr_slice(via->authorization), on_tunnel, c);
    else
        secure(c, bs);
}

void tc_connection_begin(struct tc_connection *c)
{
    struct tc_loop *loop = tc_pool_loop(c->pool);
    c->attempt_ms = tc_loop_now_ms(loop);
    tc_attempts_began(tc_pool_attempts(c->pool), c);
    tc_timer_start(&c->timer, c->config->connect_timeout_ms);
    /* Our timer bounds TCP, TLS and HTTP/2 together. A18: with keepalive, the system gives up as it does. */
    struct tc_connect_opts opts = {
        .proxy = c->addr.via != NULL,
        .user_timeout_ms = c->keepalive_time_ms ? c->config->keepalive_timeout_ms : 0,
    };
    c->connecting = tc_pool_connector(c->pool)->start(loop, tc_via_dial(&c->addr), &opts, on_connected, c);
}

void tc_connection_connect(struct tc_connection *c)
{
    if (c->state != TORC_IDLE || tc_pool_is_shut(c->pool))
        return;
    if (c->barren > BARREN_MAX) {
        struct tc_status why =
            tc_status_make(TORC_STATUS_UNAVAILABLE, "failed to connect to %s: the last %u connections ended unused: %s",
                           c->address->data, c->barren, tc_status_text(&c->status));
        c->barren = BARREN_MAX; /* the next may try */
        set_state(c, TORC_CONNECTING, (struct tc_status){0});
        fail(c, why);
        return;
    }
    tc_attempts_want(tc_pool_attempts(c->pool), c);
    set_state(c, TORC_CONNECTING, (struct tc_status){0});
}

void tc_connection_reset_backoff(struct tc_connection *c)
{
    c->barren = 0;
    tc_backoff_reset(&c->backoff);
    if (c->state != TORC_TRANSIENT_FAILURE)
        return;
    tc_timer_stop(&c->timer);
    set_state(c, TORC_IDLE, tc_status_ref(&c->status));
}

struct tc_connection *tc_connection_new(struct tc_pool *p, struct tc_rstr *key, struct tc_conn_config *config,
                                        const struct tc_addr *addr)
{
    struct tc_connection *c = TC_NEW(struct tc_connection);
    c->pool = p;
    c->key = key;
    c->config = tc_conn_config_ref(config);
    c->addr = tc_addr_ref(addr);
    char *text = tc_addr_text(addr);
    c->address = tc_rstr_str(text);
    tc_free(text);
    tc_list_init(&c->handles);
    tc_list_init(&c->idle);
    tc_list_init(&c->due);
    c->state = TORC_IDLE;
    c->keepalive_time_ms = config->keepalive_time_ms;
    tc_backoff_init(&c->backoff, &config->backoff);
    tc_timer_init(&c->timer, tc_pool_loop(p), on_timer);
    return c;
}

void tc_connection_stop(struct tc_connection *c)
{
    give_up_attempt(c);
    if (c->transport)
        tc_transport_close(c->transport);
    c->transport = NULL;
    c->state = TORC_IDLE;
}

void tc_connection_free(struct tc_connection *c)
{
    if (c->transport)
        tc_transport_drain(c->transport, "connection not needed any more");
    c->transport = NULL;
    give_up_attempt(c);
    tc_status_fini(&c->status);
    tc_conn_config_unref(c->config);
    tc_addr_fini(&c->addr);
    tc_rstr_unref(c->address);
    tc_rstr_unref(c->key);
    tc_free(c);
}
