/* torc_server_call: an RPC of a server, from its handler to its status. torc/server.h has the contract.
 *
 * What threads want (messages to send, messages to read, the initial metadata, the end) is kept in the call under the
 * runtime's lock. One task takes all of it to the loop (on_task), which hands it to the core (server/call.h). What the
 * core reports is kept in the call for threads that wait (call_wait.c), or told to the application's events. On a
 * server with interceptors call_rpc.c stands between this file and the core.
 *
 *   handler --- functions ---> finished: the handle is given up, the core sends what is left and the status
 *      |
 *      +--- the RPC ends before: `over`. The application still finishes, which gives the handle up.
 *
 * An RPC is `over` when the core's call has ended (on_end), when the interceptors end the RPC after its handler was
 * called (rpc_fail), or when the loop has ended. The event `release` comes once the call is both finished and over.
 *
 * Handlers run on the loop's thread, or on a thread of the method's pool (on_job). Events run on the loop's thread,
 * except `release` after the end of the loop, which the thread that finishes the call calls (call_end).
 *
 * References: the handle's, given back by finish; the loop's, while the core's call exists; the queued task's; and
 * those of functions that run and of others that hold the call (tc_api_call_hold). */
#include "api/server/call_object.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/metadata.h"
#include "api/server/call_rpc.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/thread.h"
#include "creds/spiffe.h"
#include "http2/stream.h"

void tc_api_call_hold(torc_server_call *c)
{
    tc_ref_inc(&c->ref);
}

void tc_api_call_drop(torc_server_call *c)
{
    if (!tc_ref_dec(&c->ref))
        return;
    torc_server *s = c->server;
    tc_message_queue_drop(&c->unsent);
    tc_message_queue_drop(&c->received);
    tc_rstr_unref(c->ending.text);
    tc_rstr_unref(c->lent);
    tc_rstr_unref(c->request);
    tc_tls_identity_unref(c->facts.tls_peer);
    if (c->typed)
        c->typed->free(c->typed);
    tc_arena_fini(&c->arena.arena);
    tc_arena_fini(&c->sent);
    tc_free(c);
    tc_api_server_unref(s);
}

int tc_api_call_schedule(torc_server_call *c, bool quietly)
{
    if (c->task_queued)
        return 0;
    tc_ref_inc(&c->ref);
    c->task_queued = quietly ? tc_loop_post_quietly(tc_runtime_loop(c->rt), &c->task) : tc_runtime_run(c->rt, &c->task);
    if (c->task_queued)
        return 0;
    tc_ref_dec(&c->ref); /* never the last: the caller holds one */
    return TORC_ECLOSED;
}

int tc_api_call_want_reads(torc_server_call *c, uint32_t n, bool quietly)
{
    if (n > UINT32_MAX - c->reads_wanted)
        return TORC_ELIMIT;
    c->reads_wanted += n;
    return tc_api_call_schedule(c, quietly);
}

/* --- the loop takes what is wanted --- */

void tc_api_call_read_owed(torc_server_call *c)
{
    enum { AT_ONCE = 16 };
    for (; c->core && c->reads.owed && c->reads.asked < (c->rpc ? tc_call_rpc_reads(c->rpc) : AT_ONCE);
         c->reads.owed--) {
        c->reads.asked++;
        tc_server_call_read(c->core);
    }
}

/* If the call is finished and over, gives the places back and calls `release`. With the lock, but not in `release`. */
static void release_if_due(torc_server_call *c)
{
    if (!c->finished || !c->over || c->released)
        return;
    c->released = true;
    tc_server_places_give_back(&c->places);
    if (!c->heard.release)
        return;
    tc_runtime_unlock(c->rt);
    if (!tc_loop_forked(tc_runtime_loop(c->rt)))
        c->heard.release(c->arg);
    tc_runtime_lock(c->rt);
}

void tc_api_call_introduce(torc_server_call *c, const struct tc_headers *headers)
{
    if (c->introduced)
        return;
    c->introduced = true;
    headers = c->rpc ? tc_call_rpc_headers(c->rpc, headers) : headers;
    tc_server_call_send_headers(c->core, headers, c->server->opts.gzip ? TC_H2_GZIP : TC_H2_IDENTITY);
}

/* Hands all messages to the core. Drops them if the core's call has ended. */
static void send_all(torc_server_call *c, struct tc_message_queue *messages)
{
    struct tc_rstr *bytes;
    bool plain;
    while ((bytes = tc_message_queue_take(messages, &plain))) {
        if (c->core) {
            tc_api_call_introduce(c, NULL);
            if (plain)
                tc_server_call_send_plain(c->core, bytes);
            else
                tc_server_call_send_ref(c->core, bytes);
        }
        tc_rstr_unref(bytes);
    }
}

/* --- the core's events, and the task --- */

/* Copies the events, and returns whether they may be called: not once the call was finished or its RPC is over, nor in
 * the child of a callback that forked (the parent calls them), nor while the process exits. With the lock held. */
static bool call_hears(const torc_server_call *c, struct torc_server_call_events *events)
{
    *events = c->heard;
    return !c->finished && !c->over && TC_LIKELY(!tc_loop_forked(tc_runtime_loop(c->rt)));
}

void tc_api_call_deliver(torc_server_call *c, struct tc_rstr *message)
{
    struct torc_server_call_events heard;
    tc_runtime_lock(c->rt);
    if (c->reads_pending)
        c->reads_pending--;
    bool hears = call_hears(c, &heard), kept = hears && !heard.on_message;
    if (kept) {
        tc_message_queue_add(&c->received, message, false);
        tc_wait_wake_all(&c->waits);
    }
    tc_runtime_unlock(c->rt);
    if (hears && !kept)
        heard.on_message(c, (const torc_message *)message, c->arg);
    if (!kept)
        tc_rstr_unref(message);
    tc_api_call_read_owed(c);
}

static void on_message(void *arg, struct tc_rstr *message)
{
    torc_server_call *c = arg;
    c->reads.asked--;
    if (TC_LIKELY(!c->rpc))
        tc_api_call_deliver(c, message);
    else
        tc_call_rpc_received(c->rpc, message);
}

static void on_half_close(void *arg)
{
    torc_server_call *c = arg;
    struct torc_server_call_events heard;
    if (c->rpc && tc_call_rpc_half_closed(c->rpc))
        return;
    tc_runtime_lock(c->rt);
    c->half_closed = true;
    tc_wait_wake_all(&c->waits);
    bool hears = call_hears(c, &heard);
    tc_runtime_unlock(c->rt);
    if (hears && heard.on_half_close)
        heard.on_half_close(c, c->arg);
}

/* Counts down `n` unwritten messages that cost `bytes`. Tells threads and the application when half of the room is free
 * or no message is left, so that a sender is not woken for each message. An on_writable that is not set stays due. */
static void call_tell_room(torc_server_call *c, size_t bytes, size_t n)
{
    struct torc_server_call_events heard;
    tc_runtime_lock(c->rt);
    c->unwritten.bytes -= bytes;
    c->unwritten.n -= n;
    bool room = !c->unwritten.n || c->unwritten.bytes <= c->unwritten.room / 2;
    bool hears = call_hears(c, &heard) && room && c->tell_writable && heard.on_writable;
    if (room)
        tc_wait_wake_all(&c->waits);
    if (hears)
        c->tell_writable = false;
    tc_runtime_unlock(c->rt);
    if (hears)
        heard.on_writable(c, c->arg);
}

static void on_sent(void *arg, size_t len)
{
    call_tell_room(arg, tc_server_message_cost(len), 1);
}

static void on_task(struct tc_task *task)
{
    torc_server_call *c = TC_CONTAINER_OF(task, torc_server_call, task);
    struct tc_message_queue messages;
    tc_runtime_lock(c->rt);
    c->task_queued = false;
    tc_message_queue_move(&messages, &c->unsent);
    bool headers = c->headers_given, ends = c->ending_given, writable = c->tell_writable && c->heard.on_writable;
    c->headers_given = c->ending_given = false;
    c->reads.owed += c->reads_wanted;
    c->reads_wanted = 0;
    release_if_due(c);
    tc_runtime_unlock(c->rt);
    if (headers && c->core)
        tc_api_call_introduce(c, &c->headers);
    if (c->rpc)
        tc_call_rpc_send(c->rpc, &messages, ends);
    else
        send_all(c, &messages);
    if (ends && c->core && !c->rpc)
        tc_server_call_finish(c->core, c->ending.code, tc_rstr_cstr(c->ending.text), &c->ending.trailers);
    tc_api_call_read_owed(c);
    if (writable)
        call_tell_room(c, 0, 0);
    tc_api_call_drop(c);
}

/* The RPC ended while the call waited for a thread of the pool: its handler is not called. */
static void job_drop(torc_server_call *c)
{
    torc_server_call_finish(c, TORC_STATUS_CANCELLED, NULL, NULL);
    tc_api_server_handlers_end(c->server);
}

void tc_api_call_over(torc_server_call *c, int code)
{
    struct torc_server_call_events heard;
    tc_runtime_lock(c->rt);
    bool hears = call_hears(c, &heard);
    c->over = c->over ? c->over : code;
    tc_wait_wake_all(&c->waits);
    release_if_due(c);
    tc_runtime_unlock(c->rt);
    if (hears && heard.on_cancel)
        heard.on_cancel(c, c->arg);
}

static void on_end(void *arg, const struct tc_status *why)
{
    torc_server_call *c = arg;
    c->core = NULL;
    bool handled = !c->rpc || tc_call_rpc_end(c->rpc, why);
    bool waits = c->method && tc_pool_cancel(c->method->pool, &c->job);
    tc_api_call_over(c, c->shard->ended ? TORC_ECLOSED : TORC_ECANCELED);
    if (waits)
        job_drop(c);
    else if (!handled)
        torc_server_call_finish(c, TORC_STATUS_CANCELLED, NULL, NULL);
    tc_api_call_drop(c);
}

static const struct tc_server_call_events core_events = {
    .on_message = on_message, .on_half_close = on_half_close, .on_sent = on_sent, .on_end = on_end};

/* --- a call begins --- */

/* Copies the facts of the request. Leaves out the pseudo-headers, which stand first in the core's metadata. */
static void call_describe(torc_server_call *c, struct tc_server_call *core)
{
    const struct tc_headers *all = tc_server_call_metadata(core);
    const struct tc_header *authority = tc_headers_find(all, tc_slice_str(":authority"));
    struct tc_headers own = *all;
    while (own.len && own.data[0].name.len && own.data[0].name.data[0] == ':') {
        own.data++;
        own.len--;
    }
    struct tc_arena *arena = &c->sent;
    c->facts.metadata = tc_metadata_in_arena(arena, &own);
    c->facts.path = tc_arena_dup(arena, tc_server_call_path(core));
    c->facts.authority = authority ? tc_arena_dup(arena, authority->value) : "";
    c->facts.peer = tc_arena_dup(arena, tc_slice_str(tc_server_call_peer(core)));
    c->facts.deadline_ns = tc_server_call_deadline_ns(core);
    c->facts.secure = tc_server_call_secure(core);
    c->facts.tls_peer = tc_tls_identity_ref(tc_server_call_tls_peer(core));
}

static torc_server_call *call_new(const struct tc_method *m, struct tc_server_call *core)
{
    torc_server_call *c = TC_NEW(torc_server_call);
    tc_ref_init(&c->ref);
    tc_ref_inc(&c->ref); /* the handle's and the loop's */
    c->server = tc_api_server_ref(m->server);
    c->shard = tc_server_call_owner(core);
    c->rt = c->shard->rt;
    c->unwritten.room = (uint64_t)m->server->opts.send_buffer_bytes;
    c->core = core;
    tc_arena_init(&c->arena.arena, 0, 0);
    tc_arena_init(&c->sent, 0, 0);
    tc_list_init(&c->waits);
    tc_task_init(&c->task, on_task);
    tc_message_queue_init(&c->unsent);
    tc_message_queue_init(&c->received);
    call_describe(c, core);
    tc_server_call_take_places(core, &c->places);
    tc_server_call_set_events(core, &core_events, c);
    return c;
}

static void call_handle(const struct tc_method *m, torc_server_call *c)
{
    if (m->handler.unary)
        m->handler.unary(c, (const torc_message *)c->request, m->handler.arg);
    else
        m->handler.stream(c, m->handler.arg);
}

/* The call, held, whose handler runs on this thread of a pool; NULL: none. */
static TC_THREAD_LOCAL torc_server_call *handled_here;

bool tc_api_call_handled_here(const torc_server *s)
{
    torc_server_call *c = handled_here;
    if (!c || c->server != s)
        return false;
    tc_runtime_lock(c->rt);
    bool open = tc_api_call_state(c) == 0;
    tc_runtime_unlock(c->rt);
    return open;
}

/* On a thread of a pool. Holds the call, since an event on the loop's thread may finish it while the handler runs. Does
 * not call the handler if the RPC is over already. */
static void on_job(struct tc_pool_job *job)
{
    torc_server_call *c = TC_CONTAINER_OF(job, torc_server_call, job);
    torc_server *s = tc_api_server_ref(c->server);
    tc_api_call_hold(c);
    int over = torc_server_call_cancelled(c);
    handled_here = c;
    if (over == 0)
        call_handle(c->method, c);
    else if (over > 0)
        torc_server_call_finish(c, TORC_STATUS_CANCELLED, NULL, NULL);
    handled_here = NULL;
    tc_api_call_drop(c);
    tc_api_server_handlers_end(s);
    tc_api_server_unref(s);
}

void tc_api_call_start(const struct tc_method *m, torc_server_call *c)
{
    if (TC_UNLIKELY(tc_loop_forked(tc_runtime_loop(c->rt))))
        return; /* the child of a handler that forked, or the process exits */
    if (!m->pool) {
        call_handle(m, c);
        return;
    }
    c->method = m;
    c->job.run = on_job;
    tc_list_init(&c->job.link);
    atomic_fetch_add(&c->server->handlers, 1);
    if (tc_pool_run(m->pool, &c->job))
        return;
    tc_api_server_handlers_end(c->server);
    torc_server_call_finish(c, TORC_STATUS_RESOURCE_EXHAUSTED, "the pool of the method's threads is full or was freed",
                            NULL);
}

void tc_api_call_on_stream(void *method, struct tc_server_call *core)
{
    const struct tc_method *m = method;
    torc_server_call *c = call_new(m, core);
    if (TC_LIKELY(!m->server->interceptors))
        tc_api_call_start(m, c);
    else
        tc_call_rpc_begin(c, m);
}

void tc_api_call_on_unary(void *method, struct tc_server_call *core, struct tc_rstr *request)
{
    const struct tc_method *m = method;
    torc_server_call *c = call_new(m, core);
    c->request = tc_rstr_ref(request);
    c->half_closed = true;
    tc_api_call_start(m, c);
}

/* --- functions that do not wait --- */

/* Takes a reference and the lock. On failure takes neither, and returns the code for the function to return. */
static int call_enter(torc_server_call *c)
{
    int rc = c ? tc_runtime_check(c->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    tc_ref_inc(&c->ref);
    tc_runtime_lock(c->rt);
    rc = tc_api_call_state(c);
    if (rc == 0)
        return 0;
    tc_runtime_unlock(c->rt);
    tc_api_call_drop(c);
    return rc;
}

static int call_leave(torc_server_call *c, int rc)
{
    tc_runtime_unlock(c->rt);
    tc_api_call_drop(c);
    return rc;
}

int torc_server_call_want(torc_server_call *c, uint32_t n)
{
    TC_NO_CANCEL;
    int rc = call_enter(c);
    if (rc != 0)
        return rc;
    c->asked = true;
    rc = tc_api_call_want_reads(c, n, false);
    if (rc == 0 && !c->heard.on_message)
        c->reads_pending += n;
    return call_leave(c, rc);
}

int torc_server_call_set_events(torc_server_call *c, const struct torc_server_call_events *events, void *arg)
{
    struct torc_server_call_events heard;
    torc_error *error = NULL;
    TC_NO_CANCEL;
    if (!c || !events)
        return TORC_EINVAL;
    if (!tc_sized_read(&heard, sizeof(heard), events, "events", "torc_server_call_events", &error)) {
        int code = torc_error_code(error);
        torc_error_free(error);
        return code;
    }
    int rc = call_enter(c);
    if (rc != 0)
        return rc;
    if (c->heard_set || c->asked)
        return call_leave(c, TORC_ESTATE);
    c->heard_set = true;
    c->heard = heard;
    c->arg = arg;
    if (c->tell_writable)
        tc_api_call_schedule(c, false); /* there may be room already */
    return call_leave(c, 0);
}

int torc_server_call_send_headers(torc_server_call *c, const torc_metadata *metadata)
{
    TC_NO_CANCEL;
    int rc = call_enter(c);
    if (rc != 0)
        return rc;
    if (c->headers_wanted)
        return call_leave(c, TORC_ESTATE);
    tc_headers_init(&c->headers, &c->sent);
    rc = tc_metadata_to_headers(metadata, &c->headers);
    if (rc == 0) {
        c->headers_wanted = c->headers_given = true;
        rc = tc_api_call_schedule(c, false);
    }
    return call_leave(c, rc);
}

/* Sends `last` (a reference that is taken over; NULL: none) and the status, and gives the handle up. Returns `rc`;
 * TORC_EPARSE if `last` is not sent, since tc_api_call_spoil was called; TORC_ESTATE if the call was finished before;
 * TORC_ECANCELED or TORC_ECLOSED if the RPC is over. */
static int call_end(torc_server_call *c, struct tc_rstr *last, int code, const char *text,
                    const torc_metadata *trailers, int rc)
{
    tc_api_call_hold(c);
    tc_runtime_lock(c->rt);
    if (c->finished) { /* the thread that finished the call gives back the handle's reference */
        tc_runtime_unlock(c->rt);
        tc_rstr_unref(last);
        tc_api_call_drop(c);
        return TORC_ESTATE;
    }
    int over = tc_api_call_is_over(c);
    bool posts = !over || c->heard.release;
    bool spoilt = c->ending.text != NULL;
    if (!over) {
        if (last && !spoilt) {
            tc_api_call_queue(c, last, false);
            last = NULL;
        }
        c->ending_given = true;
        c->ending.code = spoilt ? TORC_STATUS_INTERNAL : code;
        if (text && !spoilt)
            c->ending.text = tc_rstr_str(text);
        rc = last ? TORC_EPARSE : rc;
        tc_headers_init(&c->ending.trailers, &c->sent);
        tc_metadata_to_headers(spoilt ? NULL : trailers, &c->ending.trailers); /* trailers belong to their status */
        tc_load_add_trailer(&c->ending.load, c->server->load, &c->sent, &c->ending.trailers);
    } else {
        rc = over;
    }
    c->finished = true;
    tc_wait_wake_all(&c->waits);
    bool posted = posts && tc_api_call_schedule(c, false) == 0;
    if (posts && !posted)
        rc = c->over = c->over ? c->over : TORC_ECLOSED; /* the loop has ended */
    if (!posted)
        release_if_due(c);
    tc_runtime_unlock(c->rt);
    tc_rstr_unref(last);
    tc_api_call_drop(c); /* the handle's */
    tc_api_call_drop(c);
    return rc;
}

int torc_server_call_finish(torc_server_call *c, int code, const char *text, const torc_metadata *trailers)
{
    TC_NO_CANCEL;
    if (!c)
        return TORC_EINVAL;
    if (tc_runtime_check(c->rt) == TORC_EFORK)
        return TORC_EFORK;
    if (code < TORC_STATUS_OK || code > TORC_STATUS_UNAUTHENTICATED)
        return call_end(c, NULL, TORC_STATUS_UNKNOWN, text, trailers, TORC_EINVAL);
    return call_end(c, NULL, code, text, trailers, 0);
}

int torc_server_call_reply(torc_server_call *c, const void *message, size_t size)
{
    TC_NO_CANCEL;
    if (!c)
        return TORC_EINVAL;
    if (tc_runtime_check(c->rt) == TORC_EFORK)
        return TORC_EFORK;
    if (!message && size)
        return call_end(c, NULL, TORC_STATUS_INTERNAL, "the server's reply is NULL", NULL, TORC_EINVAL);
    if (size > TC_H2_MESSAGE_MAX)
        return call_end(c, NULL, TORC_STATUS_RESOURCE_EXHAUSTED, "message to send larger than 4 GiB", NULL,
                        TORC_ELIMIT);
    return call_end(c, tc_rstr_new(message, size), TORC_STATUS_OK, NULL, NULL, 0);
}

/* --- getters --- */

const char *torc_server_call_method(const torc_server_call *c)
{
    return c ? c->facts.path : NULL;
}

const torc_message *torc_server_call_request(const torc_server_call *c)
{
    return c ? (const torc_message *)c->request : NULL;
}

const torc_metadata *torc_server_call_metadata(const torc_server_call *c)
{
    return c ? c->facts.metadata : NULL;
}

const char *torc_server_call_authority(const torc_server_call *c)
{
    return c ? c->facts.authority : NULL;
}

const char *torc_server_call_peer(const torc_server_call *c)
{
    return c ? c->facts.peer : NULL;
}

int torc_server_call_secure(const torc_server_call *c)
{
    return c ? c->facts.secure : TORC_EINVAL;
}

int torc_server_call_peer_name(const torc_server_call *c, size_t i, int32_t *kind, const char **name)
{
    if (!c)
        return TORC_EINVAL;
    const struct tc_tls_identity *id = c->facts.tls_peer;
    for (size_t k = 0; id && k < id->names.len; k++) {
        const struct tc_rstr *text = id->names.data[k].text;
        if (!text->len || memchr(text->data, 0, text->len) || i-- > 0)
            continue;
        if (kind)
            *kind = (int32_t)id->names.data[k].kind;
        if (name)
            *name = text->data;
        return 0;
    }
    return TORC_ENOTFOUND;
}

const char *torc_server_call_spiffe_id(const torc_server_call *c)
{
    const struct tc_tls_identity *peer = c ? c->facts.tls_peer : NULL;
    const struct tc_rstr *id = NULL;
    struct tc_slice domain;
    for (size_t i = 0; peer && i < peer->names.len; i++) {
        if (peer->names.data[i].kind != TC_SAN_URI)
            continue;
        if (id)
            return NULL;
        id = peer->names.data[i].text;
    }
    return id && !tc_spiffe_id_parse(tc_rstr_slice(id), &domain) ? id->data : NULL;
}

int torc_server_call_peer_certificate(const torc_server_call *c, size_t i, const void **der, size_t *size)
{
    return !c                   ? TORC_EINVAL
           : !c->facts.tls_peer ? TORC_ENOTFOUND
                                : tc_tls_identity_certificate(c->facts.tls_peer, i, der, size);
}

int64_t torc_server_call_time_left(const torc_server_call *c)
{
    if (!c)
        return -1;
    if (c->facts.deadline_ns == UINT64_MAX)
        return 0;
    uint64_t now_ns = tc_loop_clock_ns(tc_runtime_loop(c->rt));
    if (now_ns >= c->facts.deadline_ns)
        return -1;
    return (int64_t)((c->facts.deadline_ns - now_ns - 1) / TC_NS_PER_MS + 1);
}

int torc_server_call_cancelled(const torc_server_call *given)
{
    torc_server_call *c = (torc_server_call *)(uintptr_t)given;
    int rc = c ? tc_runtime_check(c->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc == TORC_ECLOSED ? 1 : rc;
    tc_ref_inc(&c->ref);
    tc_runtime_lock(c->rt);
    rc = tc_api_call_is_over(c) != 0;
    tc_runtime_unlock(c->rt);
    tc_api_call_drop(c);
    return rc;
}

torc_arena *torc_server_call_arena(torc_server_call *c)
{
    return c ? &c->arena : NULL;
}

const char *torc_server_call_printf(torc_server_call *c, const char *format, ...)
{
    if (!c || !format)
        return NULL;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = n >= 0 ? tc_arena_alloc(&c->arena.arena, (size_t)n + 1) : NULL;
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}
