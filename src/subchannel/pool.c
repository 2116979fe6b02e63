/* The pool: the table of connections, and how long connections without a policy are kept.
 *
 * Connections are found by key: the address, the way to it (a proxy), the credentials, and the other members of the
 * tc_conn_config that are compared.
 *
 * A subchannel watches its connection. When the last watch goes, the connection is kept if it is READY, or if its
 * history must bind the next subchannel of the address: a backoff that runs, a server that ended connections without an
 * answer, a server that has cost too much (http2/glitch_rate.h). tc_pool_channel_gone has the exceptions. A connection
 * is kept for idle_ms at most; a longer backoff ends with the connection.
 *
 * When more than max_idle connections are kept, those that a policy released during a resolver's update (LEFT) close
 * first, the oldest first: most of their endpoints left the resource. Connections that a policy released at another
 * time (STAYED) close next, the oldest first: the policy may come back to them.
 *
 * The pool owns the connections of its table; connection_drop frees one, and the connection's transports drain. Loop
 * thread only. To read first: on_connection_unused. */
#include "subchannel/pool.h"

#include "base/mem.h"
#include "http2/glitch_rate.h"
#include "io/addr.h"
#include "subchannel/connection.h"

struct tc_pool {
    struct tc_connection_env env;
    struct tc_connection *table; /* by key */
    struct tc_link idle[2];      /* connections that no policy holds, oldest first, LEFT and STAYED */
    size_t n_idle;
    uint64_t idle_ms;
    uint32_t max_idle;
    struct tc_timer timer;
    bool updating; /* a resolver's update is being applied */
};

/* When a policy released a connection: during a resolver's update, or at another time. */
enum { LEFT, STAYED, N_KINDS };

static const struct tc_connector default_connector = {.start = tc_connect_start, .cancel = tc_connect_cancel};

/* Takes a connection without a watch out of the pool, and frees it. */
static void connection_drop(struct tc_connection *c)
{
    struct tc_pool *p = TC_CONTAINER_OF(c->env, struct tc_pool, env);
    if (tc_list_linked(&c->idle)) {
        tc_list_remove(&c->idle);
        p->n_idle--;
    }
    HASH_DELETE(hh, p->table, c);
    tc_connection_free(c);
}

/* Returns the oldest idle connection of the kind, or NULL. */
static struct tc_connection *idle_oldest(struct tc_pool *p, int kind)
{
    struct tc_link *list = &p->idle[kind];
    return tc_list_empty(list) ? NULL : TC_CONTAINER_OF(list->next, struct tc_connection, idle);
}

/* Has the timer run out when the next idle connection's time is over, unless the timer runs already. */
static void idle_timer_arm(struct tc_pool *p)
{
    if (tc_timer_active(&p->timer))
        return;
    uint64_t due_ms = UINT64_MAX, now_ms = tc_loop_now_ms(p->env.loop);
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct tc_connection *c = idle_oldest(p, kind);
        if (c)
            due_ms = TC_MIN(due_ms, c->idle_since_ms + TC_MIN(p->idle_ms, UINT64_MAX - 1 - c->idle_since_ms));
    }
    if (due_ms != UINT64_MAX)
        tc_timer_start(&p->timer, due_ms > now_ms ? due_ms - now_ms : 0);
}

static void on_timer(struct tc_timer *timer)
{
    struct tc_pool *p = TC_CONTAINER_OF(timer, struct tc_pool, timer);
    uint64_t now_ms = tc_loop_now_ms(p->env.loop);
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct tc_connection *c;
        while ((c = idle_oldest(p, kind)) && now_ms - c->idle_since_ms >= p->idle_ms)
            connection_drop(c);
    }
    idle_timer_arm(p);
}

static void on_connection_unused(struct tc_connection *c, struct tc_conn_config *user);

struct tc_pool *tc_pool_new(struct tc_loop *loop, uint64_t idle_ms, uint32_t max_idle)
{
    struct tc_pool *p = TC_NEW(struct tc_pool);
    p->env.loop = loop;
    p->env.connector = &default_connector;
    p->env.unused = on_connection_unused;
    p->idle_ms = idle_ms;
    p->max_idle = max_idle;
    tc_list_init(&p->env.transports);
    tc_list_init(&p->idle[LEFT]);
    tc_list_init(&p->idle[STAYED]);
    tc_connect_queue_init(&p->env.queue, loop);
    tc_timer_init(&p->timer, loop, on_timer);
    return p;
}

void tc_pool_shutdown(struct tc_pool *p)
{
    struct tc_connection *c, *next;
    p->env.shut = true;
    tc_timer_stop(&p->timer);
    tc_connect_queue_stop(&p->env.queue);
    HASH_ITER(hh, p->table, c, next)
    {
        tc_connection_stop(c);
        if (tc_list_empty(&c->watches))
            connection_drop(c);
    }
    while (!tc_list_empty(&p->env.transports))
        tc_transport_close(tc_transport_of_link(p->env.transports.next));
}

void tc_pool_free(struct tc_pool *p)
{
    tc_free(p);
}

void tc_pool_set_connector(struct tc_pool *p, const struct tc_connector *connector)
{
    p->env.connector = connector;
}

void tc_pool_set_updating(struct tc_pool *p, bool updating)
{
    p->updating = updating;
}

size_t tc_pool_idle_count(const struct tc_pool *p)
{
    return p->n_idle;
}

size_t tc_pool_count(const struct tc_pool *p)
{
    return HASH_COUNT(p->table);
}

void tc_pool_private_counts(const struct tc_pool *p, size_t *connections, size_t *idle)
{
    *connections = *idle = 0;
    for (const struct tc_connection *c = p->table; c; c = c->hh.next) {
        bool is_private = tc_connection_is_private(c);
        *connections += is_private;
        *idle += is_private && tc_list_linked(&c->idle);
    }
}

/* Returns the key, a new string: two connections have equal keys if the pool may use one for the other. */
static struct tc_rstr *connection_key(const struct tc_conn_config *k, const struct tc_addr *addr)
{
    struct tc_buf b = {0};
    tc_addr_format(addr, &b);
    tc_buf_append_char(&b, '\0');
    if (addr->proxy_hop) {
        if (addr->proxy_hop->proxy.len)
            tc_addr_format(&addr->proxy_hop->proxy, &b);
        tc_buf_printf(&b, "\n%s\n%s", tc_rstr_cstr(addr->proxy_hop->target),
                      tc_rstr_cstr(addr->proxy_hop->authorization));
    }
    tc_buf_append_char(&b, '\0');
    tc_buf_append_slice(&b, tc_rstr_slice(k->creds->key));
    tc_buf_append_char(&b, '\0');
    if (strcmp(k->creds->scheme, "http") != 0)
        tc_buf_append_slice(&b, tc_rstr_slice(k->server_name));
    const uint64_t numbers[] = {
        k->backoff.initial_ms,    k->backoff.max_ms,           k->connect_timeout_ms,
        k->keepalive_time_ms,     k->keepalive_timeout_ms,     k->keepalive_without_calls,
        k->max_header_list_bytes, k->max_request_header_bytes, k->dialer ? tc_dialer_id(k->dialer) : 0};
    const double reals[] = {k->backoff.multiplier, k->backoff.jitter};
    tc_buf_append_char(&b, '\0');
    tc_buf_append(&b, numbers, sizeof(numbers));
    tc_buf_append(&b, reals, sizeof(reals));
    return tc_rstr_of_buf(&b);
}

/* Replaces the config by another one, perhaps of another channel; takes a reference. Their compared members must be
 * equal. */
static void connection_set_config(struct tc_connection *c, struct tc_conn_config *config)
{
    tc_conn_config_ref(config);
    tc_conn_config_unref(c->config);
    c->config = config;
}

struct tc_connection *tc_pool_connection(struct tc_pool *p, struct tc_conn_config *config, const struct tc_addr *addr)
{
    struct tc_rstr *key = connection_key(config, addr);
    struct tc_connection *c;
    HASH_FIND(hh, p->table, key->data, key->len, c);
    if (c) {
        tc_rstr_unref(key);
        if (tc_list_linked(&c->idle)) {
            tc_list_remove(&c->idle);
            p->n_idle--;
            connection_set_config(c, config);
        }
        return c;
    }
    c = tc_connection_new(&p->env, key, config, addr);
    HASH_ADD_KEYPTR(hh, p->table, key->data, key->len, c);
    return c;
}

/* Returns whether READY connections of this channel are not kept for others once the channel is gone. */
static bool is_unshared(const struct tc_conn_config *config)
{
    return config->is_private || config->dialer;
}

void tc_pool_channel_gone(struct tc_pool *p, struct tc_conn_config *config)
{
    config->gone = true;
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct tc_link *next;
        for (struct tc_link *it = p->idle[kind].next; it != &p->idle[kind]; it = next) {
            struct tc_connection *c = TC_CONTAINER_OF(it, struct tc_connection, idle);
            next = it->next;
            if (tc_conn_config_of_channel(c->config) == config &&
                (c->state != TORC_CONNECTIVITY_READY || is_unshared(config)))
                connection_drop(c);
        }
    }
}

/* `unused` of struct tc_connection_env: keeps the connection, or frees it. */
static void on_connection_unused(struct tc_connection *c, struct tc_conn_config *user)
{
    struct tc_pool *p = TC_CONTAINER_OF(c->env, struct tc_pool, env);
    /* Three kinds of connections that are not READY are kept, so that a policy that comes back to the address waits as
     * it must: a connection in its backoff; a connection that has just been released, if its last transport was barren
     * (connection.c) or is not judged yet; a connection whose server's glitches count against the next one. */
    bool barren = (c->barren->n || c->barren->ref.n > 1) && !tc_list_linked(&c->idle);
    bool charged = tc_h2_glitch_rate_is_high(c->glitch_rate, tc_loop_now_ms(p->env.loop));
    bool failed = (c->state == TORC_CONNECTIVITY_TRANSIENT_FAILURE || barren || charged) &&
                  !tc_conn_config_of_channel(user)->gone;
    bool ready = c->state == TORC_CONNECTIVITY_READY &&
                 !(tc_conn_config_of_channel(user)->gone && is_unshared(tc_conn_config_of_channel(user)));
    bool keep = !p->env.shut && (ready || failed) && p->max_idle > 0;
    if (!keep) {
        connection_drop(c);
        return;
    }
    connection_set_config(c, user);
    if (!tc_list_linked(&c->idle)) {
        c->idle_since_ms = tc_loop_now_ms(p->env.loop);
        tc_list_append(&p->idle[p->updating ? LEFT : STAYED], &c->idle);
        p->n_idle++;
    }
    while (p->n_idle > p->max_idle) {
        struct tc_connection *left = idle_oldest(p, LEFT);
        connection_drop(left ? left : idle_oldest(p, STAYED));
    }
    idle_timer_arm(p);
}
