#include "channel/pool.h"

#include "base/log.h"
#include "base/mem.h"
#include "channel/attempts.h"
#include "channel/connection.h"
#include "io/proxy.h"

struct tc_pool {
    struct tc_loop *loop;
    const struct tc_connector *connector;
    struct tc_connection *table; /* by key */
    struct tc_link transports;   /* all, those that drain included */
    struct tc_link idle[2];      /* connections that no policy holds, oldest first; LEFT, STAYED */
    size_t n_idle;
    uint64_t idle_ms;
    uint32_t max_idle;
    struct tc_timer timer;
    struct tc_attempts attempts;
    bool updating; /* a resolver's update is being applied */
    bool shut;
};

/* Given up by an update: the endpoint is not in the resource any more. Or by a policy's own doing: it may come back. */
enum { LEFT, STAYED, N_KINDS };

static const struct tc_connector default_connector = {.start = tc_connect_start, .cancel = tc_connect_cancel};

static void drop(struct tc_connection *c)
{
    struct tc_pool *p = c->pool;
    if (tc_list_linked(&c->idle)) {
        tc_list_remove(&c->idle);
        p->n_idle--;
    }
    HASH_DELETE(hh, p->table, c);
    tc_connection_free(c);
}

/* The oldest of the kind, or NULL. */
static struct tc_connection *oldest(struct tc_pool *p, int kind)
{
    struct tc_link *list = &p->idle[kind];
    return tc_list_empty(list) ? NULL : TC_CONTAINER_OF(list->next, struct tc_connection, idle);
}

static void arm(struct tc_pool *p)
{
    if (tc_timer_active(&p->timer))
        return;
    uint64_t due_ms = UINT64_MAX, now_ms = tc_loop_now_ms(p->loop);
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct tc_connection *c = oldest(p, kind);
        if (c)
            due_ms = TC_MIN(due_ms, c->idle_since_ms + TC_MIN(p->idle_ms, UINT64_MAX - 1 - c->idle_since_ms));
    }
    if (due_ms != UINT64_MAX)
        tc_timer_start(&p->timer, due_ms > now_ms ? due_ms - now_ms : 0);
}

static void on_timer(struct tc_timer *timer)
{
    struct tc_pool *p = TC_CONTAINER_OF(timer, struct tc_pool, timer);
    uint64_t now_ms = tc_loop_now_ms(p->loop);
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct tc_connection *c;
        while ((c = oldest(p, kind)) && now_ms - c->idle_since_ms >= p->idle_ms)
            drop(c);
    }
    arm(p);
}

struct tc_pool *tc_pool_new(struct tc_loop *loop, uint64_t idle_ms, uint32_t max_idle)
{
    struct tc_pool *p = TC_NEW(struct tc_pool);
    p->loop = loop;
    p->connector = &default_connector;
    p->idle_ms = idle_ms;
    p->max_idle = max_idle;
    tc_list_init(&p->transports);
    tc_list_init(&p->idle[LEFT]);
    tc_list_init(&p->idle[STAYED]);
    tc_attempts_init(&p->attempts, loop);
    tc_timer_init(&p->timer, loop, on_timer);
    return p;
}

void tc_pool_shutdown(struct tc_pool *p)
{
    struct tc_connection *c, *next;
    p->shut = true;
    tc_timer_stop(&p->timer);
    tc_attempts_stop(&p->attempts);
    HASH_ITER(hh, p->table, c, next)
    {
        tc_connection_stop(c);
        if (tc_list_empty(&c->handles))
            drop(c);
    }
    while (!tc_list_empty(&p->transports))
        tc_transport_close(tc_transport_of_link(p->transports.next));
}

void tc_pool_free(struct tc_pool *p)
{
    tc_free(p);
}

void tc_pool_set_connector(struct tc_pool *p, const struct tc_connector *connector)
{
    p->connector = connector;
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

struct tc_loop *tc_pool_loop(const struct tc_pool *p)
{
    return p->loop;
}

const struct tc_connector *tc_pool_connector(const struct tc_pool *p)
{
    return p->connector;
}

struct tc_attempts *tc_pool_attempts(struct tc_pool *p)
{
    return &p->attempts;
}

struct tc_link *tc_pool_transports(struct tc_pool *p)
{
    return &p->transports;
}

bool tc_pool_is_shut(const struct tc_pool *p)
{
    return p->shut;
}

static struct tc_rstr *make_key(const struct tc_conn_config *k, const struct tc_addr *addr)
{
    struct tc_buf b = {0};
    tc_addr_format(addr, &b);
    tc_buf_append_char(&b, '\0');
    if (addr->via) {
        if (addr->via->proxy.len)
            tc_addr_format(&addr->via->proxy, &b);
        tc_buf_printf(&b, "\n%s\n%s", tc_rstr_cstr(addr->via->target), tc_rstr_cstr(addr->via->authorization));
    }
    tc_buf_append_char(&b, '\0');
    tc_buf_append_slice(&b, tc_rstr_slice(k->creds->key));
    tc_buf_append_char(&b, '\0');
    if (strcmp(k->creds->scheme, "http") != 0)
        tc_buf_append_slice(&b, tc_rstr_slice(k->server_name));
    const uint64_t numbers[] = {k->backoff.initial_ms,   k->backoff.max_ms,       k->connect_timeout_ms,
                                k->keepalive_time_ms,    k->keepalive_timeout_ms, k->keepalive_without_calls,
                                k->max_header_list_bytes};
    const double reals[] = {k->backoff.multiplier, k->backoff.jitter};
    tc_buf_append_char(&b, '\0');
    tc_buf_append(&b, numbers, sizeof(numbers));
    tc_buf_append(&b, reals, sizeof(reals));
    struct tc_rstr *key = tc_rstr_new(b.data, b.len);
    tc_buf_fini(&b);
    return key;
}

struct tc_connection *tc_pool_connection(struct tc_pool *p, struct tc_conn_config *config, const struct tc_addr *addr)
{
    struct tc_rstr *key = make_key(config, addr);
    struct tc_connection *c;
    HASH_FIND(hh, p->table, key->data, key->len, c);
    if (c) {
        tc_rstr_unref(key);
        if (tc_list_linked(&c->idle)) {
            tc_list_remove(&c->idle);
            p->n_idle--;
        }
        return c;
    }
    c = tc_connection_new(p, key, config, addr);
    HASH_ADD_KEYPTR(hh, p->table, key->data, key->len, c);
    return c;
}

/* Equal in all that counts for the connection, but another channel's. */
static void set_config(struct tc_connection *c, struct tc_conn_config *config)
{
    tc_conn_config_ref(config);
    tc_conn_config_unref(c->config);
    c->config = config;
}

static const struct tc_conn_config *of_channel(const struct tc_conn_config *c)
{
    return c->channel ? c->channel : c;
}

void tc_pool_forget_failures(struct tc_pool *p, struct tc_conn_config *config)
{
    config->gone = true;
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct tc_link *next;
        for (struct tc_link *it = p->idle[kind].next; it != &p->idle[kind]; it = next) {
            struct tc_connection *c = TC_CONTAINER_OF(it, struct tc_connection, idle);
            next = it->next;
            if (of_channel(c->config) == config && c->state != TORC_READY)
                drop(c);
        }
    }
}

void tc_pool_unused(struct tc_connection *c, struct tc_conn_config *user)
{
    struct tc_pool *p = c->pool;
    /* A failed one is kept through its backoff, so that a policy that comes back to the address waits as it must. So is
     * one that ended unused, while a policy held it. */
    bool barren = c->barren && !tc_list_linked(&c->idle);
    bool failed = (c->state == TORC_TRANSIENT_FAILURE || barren) && !of_channel(user)->gone;
    bool keep = !p->shut && (c->state == TORC_READY || failed) && p->max_idle > 0;
    if (!keep) {
        drop(c);
        return;
    }
    set_config(c, user);
    if (!tc_list_linked(&c->idle)) {
        c->idle_since_ms = tc_loop_now_ms(p->loop);
        tc_list_append(&p->idle[p->updating ? LEFT : STAYED], &c->idle);
        p->n_idle++;
    }
    while (p->n_idle > p->max_idle) {
        struct tc_connection *left = oldest(p, LEFT);
        drop(left ? left : oldest(p, STAYED));
    }
    arm(p);
}

struct tc_conn_config *tc_conn_config_secured(const struct tc_conn_config *c, torc_credentials *creds,
                                              struct tc_rstr *server_name)
{
    struct tc_conn_config *out = TC_NEW(struct tc_conn_config);
    *out = *c;
    out->channel = tc_conn_config_ref((struct tc_conn_config *)(uintptr_t)c);
    out->creds = torc_credentials_ref(creds);
    out->server_name = tc_rstr_ref(server_name);
    tc_ref_init(&out->ref);
    return out;
}

struct tc_conn_config *tc_conn_config_ref(struct tc_conn_config *c)
{
    tc_ref_inc(&c->ref);
    return c;
}

void tc_conn_config_unref(struct tc_conn_config *c)
{
    if (!c || !tc_ref_dec(&c->ref))
        return;
    torc_credentials_unref(c->creds);
    tc_rstr_unref(c->server_name);
    tc_conn_config_unref(c->channel);
    tc_free(c);
}
