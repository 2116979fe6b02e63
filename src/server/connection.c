/* The connections of a server: which are accepted, which give way to new ones, how long an unused connection stays, and
 * which method's handler gets a request (conn_on_stream).
 *
 *   OPENING   TLS, the application's check, then the client's preface and SETTINGS. If that takes longer than
 *             handshake_timeout_ms from the accept on, the connection ends.
 *   SERVING   Without a call for idle_timeout_ms the connection gets a GOAWAY; the time starts again at a request that
 *             the server refuses, too (A9). A call may be silent for ever: an ADS stream is silent for hours. Keepalive
 *             PINGs find the clients that are gone.
 *   LEAVING   Either side has sent a GOAWAY. Without a call for LEAVING_MS the connection is closed: a client that has
 *             sent half a header block, or that does not read, would keep it open.
 *
 * `patience` is the timer of all three. A call's beginning does not stop the timer: when the timer fires while there
 * are calls, nothing happens, and the end of the last call starts it again.
 *
 * Beyond max_connections a connection gives way: it leaves its peer's counts at once (`peer` is NULL then), and a task
 * closes it. A connection that is let in belongs to the server; tc_server_conn_end alone ends it, its calls first,
 * and frees it. Loop thread only. */
#include "base/log.h"
#include "base/mem.h"
#include "creds/handshake.h"
#include "http2/server_stream.h"
#include "server/call.h"
#include "server/server_internal.h"

/* More than a graceful end takes: see the waits in http2/keepalive.c. */
enum { LEAVING_MS = 20000 };

/* --- giving way --- */

/* Writes the key of a peer. A host may have 2^64 IPv6 addresses, so only the first 64 bits count. */
static void peer_key(const struct tc_addr *a, uint8_t key[17])
{
    memset(key, 0, 17);
    key[0] = (uint8_t)tc_addr_family(a);
    if (key[0] == AF_INET)
        memcpy(key + 1, &a->sa.in.sin_addr, sizeof(a->sa.in.sin_addr));
    else if (key[0] == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a->sa.in6.sin6_addr))
        memcpy(key + 1, &a->sa.in6.sin6_addr, 16);
    else if (key[0] == AF_INET6)
        memcpy(key + 1, &a->sa.in6.sin6_addr, 8);
}

/* Counts the connection for its peer address. The first connection of an address makes the counts. */
static void peer_hold(struct tc_server_conn *conn, const struct tc_addr *addr)
{
    struct tc_server *s = conn->server;
    uint8_t key[17];
    peer_key(addr, key);
    HASH_FIND(hh, s->peers, key, sizeof(key), conn->peer);
    if (!conn->peer) {
        conn->peer = TC_NEW(struct tc_server_peer);
        memcpy(conn->peer->key, key, sizeof(key));
        HASH_ADD(hh, s->peers, key, sizeof(key), conn->peer);
    }
    conn->peer->conns++;
    s->n_held++;
}

/* Takes the connection and its held bytes off the counts of its peer address, and frees the counts with the last
 * connection. Does nothing the second time. */
static void peer_release(struct tc_server_conn *conn)
{
    struct tc_server_peer *peer = conn->peer;
    if (!peer)
        return;
    conn->peer = NULL;
    conn->server->n_held--;
    for (enum tc_server_held kind = 0; kind < TC_SERVER_HELD; kind++)
        peer->held[kind] -= conn->held[kind];
    if (--peer->conns)
        return;
    HASH_DEL(conn->server->peers, peer);
    tc_free(peer);
}

/* Returns how much a connection is used: 0 still opening, 1 without a call, 2 with stalled calls, 3 busy. */
static unsigned conn_use(const struct tc_server_conn *conn)
{
    if (conn->phase == TC_SERVER_OPENING)
        return 0;
    if (tc_list_empty(&conn->calls))
        return 1;
    return tc_loop_now_ms(conn->server->loop) - conn->moved_ms >= TC_SERVER_STALLED_MS ? 2 : 3;
}

/* Returns true if the connection may be closed for a new one. With calls_give_way a busy connection stays until its
 * client has taken a message: otherwise connections that come and go would leave the others no turn. */
static bool conn_may_go(const struct tc_server_conn *conn)
{
    if (tc_list_empty(&conn->calls))
        return true;
    return conn->server->opts.calls_give_way && (conn_use(conn) < 3 || conn->served > 0);
}

/* Returns true if `a` is to be closed rather than `b`. */
static bool conn_goes_before(const struct tc_server_conn *a, const struct tc_server_conn *b)
{
    if (a->peer->conns != b->peer->conns)
        return a->peer->conns > b->peer->conns;
    if (conn_use(a) != conn_use(b))
        return conn_use(a) < conn_use(b);
    if (conn_use(a) == 3 && a->served != b->served)
        return a->served > b->served;
    return a->moved_ms < b->moved_ms; /* quiet for longer */
}

/* Has one connection closed by a task, to make room for a new one, which is counted already. Returns false if all must
 * stay. */
static bool server_make_room(struct tc_server *s, const struct tc_server_conn *newcomer)
{
    struct tc_server_conn *victim = NULL;
    TC_LIST_FOREACH(it, &s->conns)
    {
        struct tc_server_conn *conn = TC_CONTAINER_OF(it, struct tc_server_conn, link);
        if (!conn->peer || conn->peer->conns < newcomer->peer->conns || !conn_may_go(conn))
            continue;
        if (!victim || conn_goes_before(conn, victim))
            victim = conn;
    }
    if (!victim)
        return false;
    peer_release(victim);
    tc_loop_defer(s->loop, &victim->close);
    return true;
}

/* --- bytes that clients make us hold --- */

/* Returns true if the peer address of `a` holds more than that of `b`, or as much and `a` holds more. A connection that
 * gives way counts alone. */
static bool conn_is_fuller(const struct tc_server_conn *a, const struct tc_server_conn *b, enum tc_server_held kind)
{
    size_t a_peer = a->peer ? a->peer->held[kind] : a->held[kind];
    size_t b_peer = b->peer ? b->peer->held[kind] : b->held[kind];
    return a_peer != b_peer ? a_peer > b_peer : a->held[kind] > b->held[kind];
}

struct tc_server_conn *tc_server_conn_fullest(struct tc_server_conn *first, enum tc_server_held kind)
{
    struct tc_server_conn *fullest = first;
    TC_LIST_FOREACH(it, &first->server->conns)
    {
        struct tc_server_conn *conn = TC_CONTAINER_OF(it, struct tc_server_conn, link);
        if (conn_is_fuller(conn, fullest, kind))
            fullest = conn;
    }
    return fullest;
}

/* Counts the held bytes. Squeezes the connection's windows while more than half of max_unread_bytes is held, and gives
 * up calls beyond max_unread_bytes. A connection that holds less than a step is not squeezed: no further event would
 * tell when to let go. */
static void conn_on_held(void *arg, size_t bytes)
{
    struct tc_server_conn *conn = arg;
    struct tc_server *s = conn->server;
    size_t max = s->opts.max_unread_bytes;
    tc_server_hold_bytes(conn, TC_SERVER_UNREAD, bytes - conn->held[TC_SERVER_UNREAD]);
    tc_h2_conn_squeeze(conn->h2,
                       bytes >= TC_H2_HELD_STEP && tc_server_holds_too_much(s, TC_SERVER_UNREAD, max - max / 2));
    while (tc_server_holds_too_much(s, TC_SERVER_UNREAD, max) &&
           tc_server_call_give_up_unread(tc_server_conn_fullest(conn, TC_SERVER_UNREAD))) {
    }
}

/* --- life --- */

static void server_unload(struct tc_server *s)
{
    if (s->opts.load)
        atomic_fetch_sub(s->opts.load, 1);
}

/* Ends a call whose connection ends. With status_at_end the client gets `why`, or the owner's status if the stream has
 * that already: the status leaves with the close. A stream that has a message can only be reset. Its client gets our
 * headers first, so that it takes REFUSED_STREAM as UNAVAILABLE and does not send the request again. */
static void conn_end_call(struct tc_server_call *call, const struct tc_status *why, uint32_t code)
{
    struct tc_h2_stream *stream = call->stream;
    bool tells = why && call->conn->server->opts.status_at_end;
    bool answered = tells && !call->current && call->status_sent;
    if (answered || (tells && !call->current && tc_h2_server_stream_send_status(stream, why, NULL) == 0)) {
        tc_server_call_end(call, why);
        return;
    }
    code = tells && call->current ? TC_H2_REFUSED_STREAM : code;
    tc_server_call_end(call, why);
    /* The messages went with the call: the stream must not send from them. */
    tc_h2_stream_cancel(stream, code);
}

void tc_server_conn_end(struct tc_server_conn *conn, const struct tc_status *why)
{
    struct tc_server *s = conn->server;
    struct tc_link *link;
    /* The client of a connection that gives way may send its calls again at once. */
    uint32_t code = conn->peer ? TC_H2_CANCEL : TC_H2_REFUSED_STREAM;
    peer_release(conn);
    tc_list_remove(&conn->link);
    tc_task_cancel(&conn->close);
    while ((link = conn->calls.next) != &conn->calls)
        conn_end_call(TC_CONTAINER_OF(link, struct tc_server_call, link), why, code);
    tc_timer_stop(&conn->patience);
    if (conn->handshake)
        tc_tls_handshake_cancel(conn->handshake);
    if (conn->creds_handshake)
        conn->credentials->ops->cancel(conn->creds_handshake);
    torc_credentials_unref(conn->credentials);
    tc_tls_identity_unref(conn->tls_peer);
    if (conn->h2)
        tc_h2_conn_close(conn->h2);
    tc_server_hold_bytes(conn, TC_SERVER_UNREAD, -conn->held[TC_SERVER_UNREAD]);
    tc_server_places_give_back(&(struct tc_server_places){.handlers = conn->handlers});
    tc_free(conn->addr_text);
    tc_free(conn);
    server_unload(s);
    tc_server_tally_add(s->tally, TORC_SERVER_OPEN_CONNECTIONS, -1ULL);
    tc_server_check_drained(s);
}

static void conn_on_closed(void *arg, const struct tc_status *why)
{
    tc_server_conn_end(arg, why);
}

static void conn_on_close_task(struct tc_task *task)
{
    struct tc_server_conn *conn = TC_CONTAINER_OF(task, struct tc_server_conn, close);
    struct tc_status why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_HTTP2, "server closed the connection");
    bool gave_way = !conn->peer;
    tc_server_tally_add(conn->server->tally, TORC_SERVER_FAILED_HANDSHAKES, gave_way && !conn->h2);
    tc_server_conn_end(conn, &why);
    tc_status_fini(&why);
}

void tc_server_conn_moved(struct tc_server_conn *conn)
{
    conn->moved_ms = tc_loop_now_ms(conn->server->loop);
}

static void conn_wait(struct tc_server_conn *conn, uint64_t ms)
{
    if (ms)
        tc_timer_start(&conn->patience, ms);
}

/* Returns how long the connection may be without a call in its phase; 0: no limit. */
static uint64_t conn_limit_ms(const struct tc_server_conn *conn)
{
    const struct tc_server_opts *opts = &conn->server->opts;
    if (conn->phase == TC_SERVER_SERVING)
        return opts->idle_timeout_ms;
    return conn->phase == TC_SERVER_LEAVING ? LEAVING_MS : opts->handshake_timeout_ms;
}

void tc_server_conn_quiet(struct tc_server_conn *conn)
{
    tc_server_conn_moved(conn);
    if (!tc_timer_active(&conn->patience))
        conn_wait(conn, conn_limit_ms(conn));
}

/* Returns what a connection that opens waits for. */
static const char *conn_stage(const struct tc_server_conn *conn)
{
    if (conn->h2)
        return "the client's HTTP/2 settings";
    return conn->creds_handshake ? tc_creds_handshake_stage(conn->creds_handshake) : "the TLS handshake";
}

/* Returns the later of moved_ms and the time of the last request, which may have been refused. */
static uint64_t conn_quiet_since_ms(const struct tc_server_conn *conn)
{
    return TC_MAX(conn->moved_ms, conn->h2 ? tc_h2_conn_request_ms(conn->h2) : 0);
}

/* Ends the phase if nothing has moved for its time; otherwise starts the timer for the rest. */
static void conn_on_out_of_patience(struct tc_timer *timer)
{
    struct tc_server_conn *conn = TC_CONTAINER_OF(timer, struct tc_server_conn, patience);
    if (!tc_list_empty(&conn->calls))
        return;
    uint64_t limit_ms = conn_limit_ms(conn);
    uint64_t quiet_ms = tc_loop_now_ms(conn->server->loop) - conn_quiet_since_ms(conn);
    if (quiet_ms < limit_ms) {
        tc_timer_start(timer, limit_ms - quiet_ms);
    } else if (conn->phase == TC_SERVER_SERVING) {
        tc_h2_conn_drain(conn->h2, "max_idle"); /* conn_on_draining follows */
    } else {
        if (conn->phase == TC_SERVER_OPENING) {
            TC_LOG(TC_LOG_SERVER, TORC_LOG_INFO, "%s: timed out after %llu ms, waiting for %s", conn->addr_text,
                   (unsigned long long)limit_ms, conn_stage(conn));
            tc_server_tally_add(conn->server->tally, TORC_SERVER_FAILED_HANDSHAKES, !conn->h2);
        }
        tc_server_conn_end(conn, NULL);
    }
}

/* Begins the phase. Its time runs while the connection has no call. */
static void conn_enter(struct tc_server_conn *conn, enum tc_server_phase phase)
{
    conn->phase = phase;
    tc_timer_stop(&conn->patience);
    if (tc_list_empty(&conn->calls))
        tc_server_conn_quiet(conn);
}

static void conn_on_ready(void *arg)
{
    struct tc_server_conn *conn = arg;
    if (conn->phase == TC_SERVER_OPENING)
        conn_enter(conn, TC_SERVER_SERVING);
}

static void conn_on_draining(void *arg, const struct tc_status *why, bool too_many_pings)
{
    (void)why, (void)too_many_pings;
    conn_enter(arg, TC_SERVER_LEAVING);
}

/* Returns the handler of the method: its own, its service's, or the default; NULL: there is none. */
static struct tc_server_method *method_of(struct tc_server *s, struct tc_slice path)
{
    struct tc_server_method *m;
    HASH_FIND(hh, s->methods, path.data, path.len, m);
    if (m)
        return m;
    while (path.len && path.data[path.len - 1] != '/')
        path.len--;
    HASH_FIND(hh, s->methods, path.data, path.len, m);
    return m ? m : s->fallback.fn ? &s->fallback : NULL;
}

/* Counts a call of the method. Returns false if there are as many as it may have. */
static bool method_take(struct tc_server_method *m)
{
    atomic_size_t *shared = m->limits.max_calls ? m->limits.shared_calls : NULL;
    size_t n = shared ? atomic_load(shared) : 0;
    while (shared && n < m->limits.max_calls && !atomic_compare_exchange_weak(shared, &n, n + 1)) {
    }
    if (shared && n >= m->limits.max_calls)
        return false;
    if (!shared && m->limits.max_calls && m->calls >= m->limits.max_calls)
        return false;
    m->calls++;
    return true;
}

static void conn_on_stream(void *arg, struct tc_h2_stream *stream)
{
    struct tc_server_conn *conn = arg;
    struct tc_server *s = conn->server;
    const struct tc_header *path = tc_headers_find(tc_h2_server_stream_request(stream), tc_slice_str(":path"));
    struct tc_server_method *m = NULL;
    tc_server_tally_add(s->tally, TORC_SERVER_CALLS, 1);
    if (conn->handlers && atomic_load(&conn->handlers->n) > s->opts.max_handlers) {
        tc_h2_stream_cancel(stream, TC_H2_REFUSED_STREAM);
        return;
    }
    if (path)
        m = method_of(s, path->value);
    if (m && method_take(m)) {
        tc_server_conn_moved(conn);
        tc_server_call_begin(conn, stream, m);
        return;
    }
    struct tc_status status =
        m ? tc_status_make(TORC_STATUS_RESOURCE_EXHAUSTED, TORC_LAYER_LIMIT, "the method has %llu calls already",
                           (unsigned long long)m->limits.max_calls)
          : tc_status_make(TORC_STATUS_UNIMPLEMENTED, TORC_LAYER_HTTP2, "unknown method %.*s",
                           path ? (int)TC_MIN(path->value.len, (size_t)256) : 0, path ? path->value.data : "");
    tc_server_stream_answer(stream, &status);
    tc_status_fini(&status);
}

static const struct tc_h2_conn_events conn_events = {.on_ready = conn_on_ready,
                                                     .on_draining = conn_on_draining,
                                                     .on_closed = conn_on_closed,
                                                     .on_stream = conn_on_stream,
                                                     .on_held = conn_on_held};

static void conn_start_http2(struct tc_server_conn *conn, struct tc_bytestream *bs)
{
    const struct tc_server *s = conn->server;
    conn->h2 = tc_h2_conn_new(s->loop, bs, &s->opts.http2, &conn_events, conn);
    if (s->draining)
        tc_h2_conn_drain(conn->h2, "server is shutting down");
}

static void conn_on_handshake(void *arg, struct tc_bytestream *bs, const struct tc_status *error)
{
    struct tc_server_conn *conn = arg;
    conn->handshake = NULL;
    conn->creds_handshake = NULL;
    if (bs) {
        conn->secure = bs->secure;
        conn->tls_peer = tc_tls_identity_ref(bs->tls_peer);
        conn_start_http2(conn, bs);
        return;
    }
    TC_LOG(TC_LOG_SERVER, TORC_LOG_INFO, "%s: %s", conn->addr_text, tc_status_text(error));
    tc_server_tally_add(conn->server->tally, TORC_SERVER_FAILED_HANDSHAKES, 1);
    tc_server_conn_end(conn, NULL);
}

/* Secures the connection as its listener says, or else as the server's options say, and goes on to HTTP/2. */
static void conn_start(struct tc_server_conn *conn, struct tc_bytestream *bs)
{
    struct tc_server *s = conn->server;
    if (conn->credentials) {
        struct tc_creds_peer peer = {0};
        conn->creds_handshake =
            conn->credentials->ops->start(conn->credentials, s->loop, bs, &peer, conn_on_handshake, conn);
    } else if (s->opts.tls) {
        conn->handshake = tc_tls_handshake(s->loop, s->opts.tls, bs, tc_slice_of("", 0), 0, conn_on_handshake, conn);
    } else {
        conn_start_http2(conn, bs);
    }
}

void tc_server_conn_new(struct tc_server *s, struct tc_bytestream *bs, torc_credentials *credentials)
{
    struct tc_server_conn *conn = TC_NEW(struct tc_server_conn);
    conn->server = s;
    tc_server_conn_moved(conn);
    tc_list_init(&conn->calls);
    tc_task_init(&conn->close, conn_on_close_task);
    tc_timer_init(&conn->patience, s->loop, conn_on_out_of_patience);
    peer_hold(conn, &bs->peer);
    if (s->opts.max_connections && s->n_held > s->opts.max_connections && !server_make_room(s, conn)) {
        peer_release(conn);
        tc_free(conn);
        server_unload(s);
        bs->ops->close(bs);
        return;
    }
    tc_list_append(&s->conns, &conn->link);
    if (s->opts.max_handlers)
        tc_ref_init(conn->handlers = TC_NEW(struct tc_ref));
    tc_server_tally_add(s->tally, TORC_SERVER_CONNECTIONS, 1);
    tc_server_tally_add(s->tally, TORC_SERVER_OPEN_CONNECTIONS, 1);
    conn->addr_text = tc_addr_text(&bs->peer);
    TC_LOG(TC_LOG_SERVER, TORC_LOG_DEBUG, "%s: connection accepted", conn->addr_text);
    conn->credentials = credentials && credentials->for_servers ? torc_credentials_ref(credentials) : NULL;
    conn_wait(conn, s->opts.handshake_timeout_ms);
    conn_start(conn, bs);
}
