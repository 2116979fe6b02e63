#include "server/grpc_server.h"

#include "base/log.h"
#include "base/mem.h"
#include "server/grpc_internal.h"

void tc_server_opts_init(struct tc_server_opts *opts)
{
    *opts = (struct tc_server_opts){.handshake_timeout_ms = 20000};
    tc_h2_opts_init(&opts->http2, true);
}

static void on_grace(struct tc_timer *timer)
{
    tc_server_close_connections(TC_CONTAINER_OF(timer, struct tc_server, grace));
}

static void on_drained(struct tc_task *task)
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
    if (s->opts.tls)
        tc_tls_context_ref(s->opts.tls);
    tc_list_init(&s->listeners);
    tc_list_init(&s->conns);
    tc_timer_init(&s->grace, loop, on_grace);
    tc_task_init(&s->drained, on_drained);
    return s;
}

static struct tc_server_method *add_method(struct tc_server *s, const char *path)
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
    struct tc_server_method *m = add_method(s, path);
    m->fn = fn;
    m->unary = NULL;
    m->arg = arg;
}

void tc_server_add_unary(struct tc_server *s, const char *path, tc_server_unary_fn fn, void *arg)
{
    struct tc_server_method *m = add_method(s, path);
    m->fn = NULL;
    m->unary = fn;
    m->arg = arg;
}

void tc_server_set_default(struct tc_server *s, tc_server_call_fn fn, void *arg)
{
    s->fallback = (struct tc_server_method){.fn = fn, .arg = arg};
}

/* Connections. */

static void check_drained(struct tc_server *s)
{
    if (s->draining && s->on_drained && tc_list_empty(&s->conns))
        tc_loop_defer(s->loop, &s->drained);
}

/* `why` NULL: the calls end without a word. */
static void end_conn(struct tc_server_conn *conn, const struct tc_status *why)
{
    struct tc_server *s = conn->server;
    struct tc_link *link;
    tc_list_remove(&conn->link);
    tc_task_cancel(&conn->close);
    while ((link = conn->calls.next) != &conn->calls) {
        struct tc_server_call *call = TC_CONTAINER_OF(link, struct tc_server_call, link);
        struct tc_h2_stream *stream = call->stream;
        tc_server_call_end(call, why);
        /* Its messages went with the call: nothing of them may be sent any more. */
        tc_h2_stream_cancel(stream, 8 /* CANCEL */);
    }
    if (conn->handshake)
        tc_tls_handshake_cancel(conn->handshake);
    if (conn->h2)
        tc_h2_conn_close(conn->h2);
    tc_free(conn);
    s->counts.open_connections--;
    check_drained(s);
}

static void on_closed(void *arg, const struct tc_status *why)
{
    end_conn(arg, why);
}

static void on_close_task(struct tc_task *task)
{
    struct tc_status why = tc_status_make(TORC_STATUS_UNAVAILABLE, "server closed the connection");
    end_conn(TC_CONTAINER_OF(task, struct tc_server_conn, close), &why);
    tc_status_fini(&why);
}

static void on_stream(void *arg, struct tc_h2_stream *stream)
{
    static const struct tc_h2_stream_events no_events;
    struct tc_server_conn *conn = arg;
    struct tc_server *s = conn->server;
    const struct tc_header *path = tc_headers_find(tc_h2_stream_request(stream), tc_slice_str(":path"));
    struct tc_server_method *m = NULL;
    s->counts.requests++;
    if (path)
        HASH_FIND(hh, s->methods, path->value.data, path->value.len, m);
    if (!m && s->fallback.fn)
        m = &s->fallback;
    if (m) {
        tc_server_call_begin(conn, stream, m);
        return;
    }
    struct tc_status status =
        tc_status_make(TORC_STATUS_UNIMPLEMENTED, "unknown method %.*s",
                       path ? (int)TC_MIN(path->value.len, (size_t)256) : 0, path ? path->value.data : "");
    tc_h2_stream_set_events(stream, &no_events, NULL);
    tc_h2_stream_send_status(stream, &status, NULL);
    tc_status_fini(&status);
}

static const struct tc_h2_conn_events conn_events = {.on_closed = on_closed, .on_stream = on_stream};

static void start_http2(struct tc_server_conn *conn, struct tc_bytestream *bs)
{
    conn->h2 = tc_h2_conn_new(conn->server->loop, bs, &conn->server->opts.http2, &conn_events, conn);
    if (conn->server->draining)
        tc_h2_conn_drain(conn->h2, "server is shutting down");
}

static void on_handshake(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_server_conn *conn = arg;
    conn->handshake = NULL;
    if (bs) {
        start_http2(conn, bs);
        return;
    }
    TC_LOG(TC_LOG_SERVER, TORC_LOG_INFO, "%s", tc_status_text(error));
    conn->server->counts.failed_handshakes++;
    end_conn(conn, NULL);
}

void tc_server_accept(struct tc_server *s, struct tc_bytestream *bs)
{
    if (s->opts.max_connections && s->counts.open_connections >= s->opts.max_connections) {
        bs->ops->close(bs);
        return;
    }
    struct tc_server_conn *conn = TC_NEW(struct tc_server_conn);
    conn->server = s;
    conn->id = ++s->next_conn;
    tc_list_init(&conn->calls);
    tc_task_init(&conn->close, on_close_task);
    tc_list_append(&s->conns, &conn->link);
    s->counts.connections++;
    s->counts.open_connections++;
    if (s->opts.tls)
        conn->handshake = tc_tls_handshake(s->loop, s->opts.tls, bs, tc_slice_of("", 0), s->opts.handshake_timeout_ms,
                                           on_handshake, conn);
    else
        start_http2(conn, bs);
}

/* Listeners. */

static void on_accept(void *arg, struct tc_bytestream *bs)
{
    struct tc_server_listener *l = arg;
    tc_server_accept(l->server, bs);
}

int tc_server_listen(struct tc_server *s, const struct tc_addr *addr, struct tc_addr *bound, struct tc_status *error)
{
    struct tc_server_listener *l = TC_NEW(struct tc_server_listener);
    l->server = s;
    l->listener = tc_listener_new(s->loop, addr, on_accept, l, error);
    if (!l->listener) {
        tc_free(l);
        return TORC_EIO;
    }
    tc_list_append(&s->listeners, &l->link);
    if (bound)
        *bound = tc_addr_ref(tc_listener_addr(l->listener));
    return 0;
}

void tc_server_stop_listening(struct tc_server *s)
{
    struct tc_link *link;
    while ((link = tc_list_pop(&s->listeners))) {
        struct tc_server_listener *l = TC_CONTAINER_OF(link, struct tc_server_listener, link);
        tc_listener_close(l->listener);
        tc_free(l);
    }
}

/* Ends. */

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
    check_drained(s);
}

void tc_server_free(struct tc_server *s)
{
    if (!s)
        return;
    struct tc_link *link;
    s->on_drained = NULL;
    tc_server_stop_listening(s);
    while ((link = s->conns.next) != &s->conns)
        end_conn(TC_CONTAINER_OF(link, struct tc_server_conn, link), NULL);
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
    tc_free(s);
}

void tc_server_counts(const struct tc_server *s, struct tc_server_counts *out)
{
    *out = s->counts;
}

struct tc_loop *tc_server_loop(const struct tc_server *s)
{
    return s->loop;
}
