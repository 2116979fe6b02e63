/* The server: its methods, its listeners, the bytes that clients make it hold, and the ends of all connections.
 *
 * A server runs until it is freed. tc_server_drain ends its service gracefully: it closes the listeners, sends GOAWAY
 * on every connection (after the handshake, if that is not done), and has on_drained called when the last connection is
 * gone. After grace_ms the remaining connections are closed.
 *
 * Held bytes are counted for the connection, its peer address and the server. Servers that share a limit (opts.share)
 * add their parts to one atomic count, each in steps of SHARE_STEP bytes.
 *
 * The server owns its methods, listeners and connections. Loop thread only. The connections are in connection.c, the
 * calls in call.c. */
#include "server/server.h"

#include "base/mem.h"
#include "server/server_internal.h"

enum { KEEPALIVE_MS = 300000, IDLE_MS = 300000 };

void tc_server_opts_init(struct tc_server_opts *opts)
{
    *opts = (struct tc_server_opts){.handshake_timeout_ms = 20000};
    tc_h2_opts_init(&opts->http2, true);
}

void tc_server_opts_guard(struct tc_server_opts *opts, size_t max_connections, size_t max_held_bytes)
{
    opts->idle_timeout_ms = IDLE_MS;
    opts->http2.keepalive.time_ms = KEEPALIVE_MS;
    opts->max_connections = max_connections;
    opts->max_queued_bytes = opts->max_unread_bytes = max_held_bytes;
}

/* --- bytes that clients make us hold --- */

enum { SHARE_STEP = 64 << 10 };

/* Brings the count of all servers up to date with this server's. */
static void share_tell(struct tc_server *s, enum tc_server_held kind)
{
    atomic_fetch_add_explicit(&s->opts.share->bytes[kind], s->holds[kind] - s->shared[kind], memory_order_relaxed);
    s->shared[kind] = s->holds[kind];
}

void tc_server_hold_bytes(struct tc_server_conn *conn, enum tc_server_held kind, size_t bytes)
{
    struct tc_server *s = conn->server;
    conn->held[kind] += bytes;
    if (conn->peer)
        conn->peer->held[kind] += bytes;
    s->holds[kind] += bytes;
    /* The count of all servers is written in steps: several processors share it. */
    if (s->opts.share && s->holds[kind] - s->shared[kind] + SHARE_STEP > 2 * SHARE_STEP)
        share_tell(s, kind);
}

bool tc_server_holds_too_much(const struct tc_server *s, enum tc_server_held kind, size_t max)
{
    const struct tc_server_share *share = s->opts.share;
    size_t all = s->holds[kind], n = share ? share->n : 1;
    if (share)
        all += atomic_load_explicit(&share->bytes[kind], memory_order_relaxed) - s->shared[kind];
    return max && all > max && s->holds[kind] > max / n;
}

/* --- the server and its methods --- */

static void server_on_grace(struct tc_timer *timer)
{
    tc_server_close_connections(TC_CONTAINER_OF(timer, struct tc_server, grace));
}

void tc_server_check_drained(struct tc_server *s)
{
    if (s->draining && s->on_drained && tc_list_empty(&s->conns))
        tc_loop_defer(s->loop, &s->drained);
}

static void server_on_drained(struct tc_task *task)
{
    struct tc_server *s = TC_CONTAINER_OF(task, struct tc_server, drained);
    tc_timer_stop(&s->grace);
    void (*fn)(void *arg) = s->on_drained;
    s->on_drained = NULL;
    if (fn)
        fn(s->drained_arg);
}

struct tc_server *tc_server_new(struct tc_loop *loop, const struct tc_server_opts *opts)
{
    struct tc_server *s = TC_NEW(struct tc_server);
    s->loop = loop;
    if (opts)
        s->opts = *opts;
    else
        tc_server_opts_init(&s->opts);
    s->opts.http2.server = true;
    s->tally = s->opts.tally ? s->opts.tally : &s->own_tally;
    if (s->opts.tls)
        tc_tls_context_ref(s->opts.tls);
    tc_list_init(&s->listeners);
    tc_list_init(&s->conns);
    tc_list_init(&s->unsent);
    tc_timer_init(&s->grace, loop, server_on_grace);
    tc_task_init(&s->drained, server_on_drained);
    return s;
}

/* Returns the method of the path, made if it is new: registering a path again replaces its function. */
static struct tc_server_method *server_method(struct tc_server *s, const char *path)
{
    struct tc_server_method *m;
    HASH_FIND_STR(s->methods, path, m);
    if (m)
        return m;
    m = TC_NEW(struct tc_server_method);
    m->path = tc_strdup(path);
    HASH_ADD_KEYPTR(hh, s->methods, m->path, strlen(m->path), m);
    return m;
}

void tc_server_add_method(struct tc_server *s, const char *path, tc_server_call_fn fn, void *arg)
{
    struct tc_server_method *m = server_method(s, path);
    m->fn = fn;
    m->unary = NULL;
    m->arg = arg;
}

void tc_server_add_unary(struct tc_server *s, const char *path, tc_server_unary_fn fn, void *arg)
{
    struct tc_server_method *m = server_method(s, path);
    m->fn = NULL;
    m->unary = fn;
    m->arg = arg;
}

void tc_server_set_default(struct tc_server *s, tc_server_call_fn fn, void *arg)
{
    s->fallback.fn = fn; /* calls of an earlier default may run: the count of calls stays */
    s->fallback.arg = arg;
}

void tc_server_limit(struct tc_server *s, const char *path, const struct tc_server_limits *limits)
{
    struct tc_server_method *m = &s->fallback;
    if (strcmp(path, "*") != 0)
        HASH_FIND_STR(s->methods, path, m);
    if (m)
        m->limits = *limits;
}

/* --- listeners --- */

void tc_server_accept(struct tc_server *s, struct tc_bytestream *bs)
{
    tc_server_conn_new(s, bs, NULL);
}

static void server_on_accept(void *arg, struct tc_bytestream *bs)
{
    struct tc_server_listener *l = arg;
    struct tc_server *s = l->server;
    if (s->opts.route && s->opts.route(s->opts.owner, bs, l->credentials))
        return;
    if (s->opts.load)
        atomic_fetch_add(s->opts.load, 1);
    tc_server_conn_new(s, bs, l->credentials);
}

void tc_server_accept_with(struct tc_server *s, struct tc_bytestream *bs, torc_credentials *credentials)
{
    tc_server_conn_new(s, bs, credentials);
}

static void listener_free(struct tc_server_listener *l)
{
    torc_credentials_unref(l->credentials);
    tc_free(l);
}

int tc_server_listen_with(struct tc_server *s, const struct tc_addr *addr, int fd, torc_credentials *credentials,
                          struct tc_addr *bound, struct tc_status *error)
{
    struct tc_server_listener *l = TC_NEW(struct tc_server_listener);
    l->server = s;
    l->credentials = credentials ? torc_credentials_ref(credentials) : NULL;
    l->listener = addr ? tc_listen_socket_new(s->loop, addr, server_on_accept, l, error)
                       : tc_listen_socket_adopt(s->loop, fd, server_on_accept, l, error);
    if (!l->listener) {
        listener_free(l);
        return TORC_EIO;
    }
    /* A18: with keepalive on, TCP_USER_TIMEOUT is the keepalive timeout. */
    if (s->opts.http2.keepalive.time_ms)
        tc_listen_socket_set_user_timeout(l->listener, s->opts.http2.keepalive.timeout_ms);
    if (s->held)
        tc_listen_socket_hold(l->listener, true);
    tc_list_append(&s->listeners, &l->link);
    if (bound)
        *bound = tc_addr_ref(tc_listen_socket_addr(l->listener));
    return 0;
}

int tc_server_listen(struct tc_server *s, const struct tc_addr *addr, struct tc_addr *bound, struct tc_status *error)
{
    return tc_server_listen_with(s, addr, -1, NULL, bound, error);
}

void tc_server_hold(struct tc_server *s, bool hold)
{
    s->held = hold;
    TC_LIST_FOREACH(it, &s->listeners)
    tc_listen_socket_hold(TC_CONTAINER_OF(it, struct tc_server_listener, link)->listener, hold);
}

void tc_server_stop_listening(struct tc_server *s)
{
    struct tc_link *link;
    while ((link = tc_list_pop(&s->listeners))) {
        struct tc_server_listener *l = TC_CONTAINER_OF(link, struct tc_server_listener, link);
        tc_listen_socket_close(l->listener);
        listener_free(l);
    }
}

/* --- ends --- */

/* Closes by tasks: the caller may run inside of one of the connections. */
void tc_server_close_connections(struct tc_server *s)
{
    TC_LIST_FOREACH(it, &s->conns)
    tc_loop_defer(s->loop, &TC_CONTAINER_OF(it, struct tc_server_conn, link)->close);
}

void tc_server_goaway(struct tc_server *s)
{
    TC_LIST_FOREACH(it, &s->conns)
    {
        struct tc_server_conn *conn = TC_CONTAINER_OF(it, struct tc_server_conn, link);
        if (conn->h2)
            tc_h2_conn_drain(conn->h2, "server is shutting down");
    }
}

void tc_server_drain(struct tc_server *s, uint64_t grace_ms, void (*fn)(void *arg), void *arg)
{
    if (!s->draining) {
        s->draining = true;
        s->on_drained = fn;
        s->drained_arg = arg;
        tc_server_stop_listening(s);
        tc_server_goaway(s);
    }
    if (grace_ms && (!tc_timer_active(&s->grace) || s->grace.due_ms > tc_loop_now_ms(s->loop) + grace_ms))
        tc_timer_start(&s->grace, grace_ms);
    tc_server_check_drained(s);
}

void tc_server_end(struct tc_server *s, const struct tc_status *why)
{
    struct tc_link *link;
    tc_server_stop_listening(s);
    while ((link = s->conns.next) != &s->conns)
        tc_server_conn_end(TC_CONTAINER_OF(link, struct tc_server_conn, link), why);
}

void tc_server_free(struct tc_server *s)
{
    if (!s)
        return;
    s->on_drained = NULL;
    tc_server_end(s, NULL);
    tc_timer_stop(&s->grace);
    tc_task_cancel(&s->drained);
    struct tc_server_method *m, *next;
    HASH_ITER(hh, s->methods, m, next)
    {
        HASH_DEL(s->methods, m);
        tc_free(m->path);
        tc_free(m);
    }
    if (s->opts.tls)
        tc_tls_context_unref(s->opts.tls);
    for (enum tc_server_held kind = 0; s->opts.share && kind < TC_SERVER_HELD; kind++)
        share_tell(s, kind); /* nothing is held */
    tc_free(s);
}

void tc_server_counts(const struct tc_server *s, struct tc_server_counts *out)
{
    *out = (struct tc_server_counts){
        .connections = s->tally->n[TORC_SERVER_CONNECTIONS],
        .requests = s->tally->n[TORC_SERVER_CALLS],
        .open_connections = (size_t)s->tally->n[TORC_SERVER_OPEN_CONNECTIONS],
        .open_calls = (size_t)s->tally->n[TORC_SERVER_OPEN_CALLS],
        .failed_handshakes = s->tally->n[TORC_SERVER_FAILED_HANDSHAKES],
        .queued_bytes = s->holds[TC_SERVER_UNSENT],
        .unread_bytes = s->holds[TC_SERVER_UNREAD],
    };
}

struct tc_loop *tc_server_loop(const struct tc_server *s)
{
    return s->loop;
}
