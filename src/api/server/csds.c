/* CSDS on a server of the application (torc_csds_add), or on an address of its choice (torc_csds_serve).
 *
 * Three runtimes take part: `rt`, whose xDS clients are shown; `source`, whose loop has those xDS clients (`rt`, or the
 * runtime of its xDS domain); and `own`, which the service makes. The own thread has the requests that wait and their
 * answers, and serialises, so that requests cost the application's runtimes little.
 *
 *   call's loop       tells the own thread each event of the call (struct csds_note); resets the call if asked to
 *   own thread        tc_csds_service (server/csds_service.h): asks for snapshots, one at a time, packs them, and
 *                     answers by functions of torc_server_call that any thread may call
 *   source's loop     makes a snapshot (api/csds.h) when a mail (struct ask) asks for it
 *
 * torc_csds_serve makes a server on `own`, with small limits, and adds the service to it.
 *
 * A torc_csds is reference-counted (its `ref` says by whom), and owns `own` and the server of torc_csds_serve until the
 * service stops. torc_csds_add gives the handle's reference back at once.
 *
 * The service stops (csds_stop) on the loop of `rt`: when `rt` ends, when the server has ended, by torc_csds_free, or
 * when it could not be started. Calls then end with UNAVAILABLE, also those that begin later. A snapshot that is under
 * way is freed. */
#include "api/csds.h"
#include "api/server/call_object.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "http2/stream.h"
#include "io/mailbox.h"
#include "runtime/blocking.h"
#include "server/csds_service.h"

#define STOPPED "the runtime whose xDS clients this service shows has ended"

/* Limits of torc_csds_serve's server. Small: the clients are people and their tools. */
enum {
    MAX_CONNECTIONS = 64,
    MAX_STREAMS = 2,
    MAX_REQUEST_BYTES = 64 * 1024, /* also on a server of the application */
    WINDOW_BYTES = 16 * 1024,
    WRITE_BYTES = 64 * 1024,
    IDLE_MS = 300000,
};

struct torc_csds {
    struct tc_csds_service service; /* own thread */
    struct tc_ref ref;              /* the handle's, the server's methods', each call's, and that of `services` */
    torc_runtime *rt;               /* a reference */
    struct tc_link link;            /* rt's loop: in rt's `services`, until csds_stop */
    bool stopped;                   /* rt's loop: csds_stop was called */
    bool closed;                    /* own thread: on_stop_own was called */
    torc_runtime *source;           /* borrowed, valid while `rt` is not freed */
    torc_runtime *own;              /* the handle, until csds_stop, and a reference */
    /* to_source is made and closed on source's loop, and the own thread sends to it until `closed`; to_own is the own
     * thread's. Each holds one reference, and is NULL before it is made and once it is closed. */
    struct tc_mailbox *to_source, *to_own;
    struct tc_link calls; /* own thread: of struct csds_call; empty once `closed` */
    torc_server *server;  /* of torc_csds_serve, until csds_stop frees it; else NULL */
    char *address;        /* of torc_csds_serve: as bound; else NULL */
};

static void csds_unref(torc_csds *s)
{
    if (!tc_ref_dec(&s->ref))
        return;
    tc_runtime_unref(s->own);
    tc_runtime_unref(s->rt);
    tc_free(s->address);
    tc_free(s);
}

/* --- answers --- */

/* A mail that asks source's loop for a snapshot, and brings the snapshot to the own thread. */
struct ask {
    struct tc_mail mail;
    torc_runtime *source;            /* borrowed */
    struct tc_mailbox *back;         /* a reference */
    struct tc_csds_service *service; /* borrowed: it ends after `back` was closed */
    bool without_contents;
    struct tc_csds_snapshot *snapshot; /* owned; NULL: not made yet */
    uint64_t took_ns;                  /* how long the making kept source's loop */
};

static void ask_free(struct tc_mail *mail)
{
    struct ask *a = TC_CONTAINER_OF(mail, struct ask, mail);
    tc_mailbox_unref(a->back);
    tc_csds_snapshot_free(a->snapshot);
    tc_free(a);
}

static void on_snapshot(struct tc_mail *mail)
{
    const struct ask *a = TC_CONTAINER_OF(mail, struct ask, mail);
    size_t bytes;
    struct tc_rstr *response =
        tc_csds_pack(&tc_csds_snapshot_response(a->snapshot)->base, tc_csds_service_max_bytes(a->service), &bytes);
    tc_csds_service_made(a->service, response, bytes, a->took_ns);
    ask_free(mail);
}

static void on_asked(struct tc_mail *mail)
{
    struct ask *a = TC_CONTAINER_OF(mail, struct ask, mail);
    uint64_t since_ns = tc_system_clock.monotonic_ns(NULL);
    a->snapshot = tc_csds_snapshot_new(a->source, a->without_contents);
    a->took_ns = tc_system_clock.monotonic_ns(NULL) - since_ns;
    a->mail.run = on_snapshot;
    tc_mailbox_send(a->back, &a->mail);
}

static void snapshot_ask(struct tc_csds_service *service, bool without_contents)
{
    torc_csds *s = TC_CONTAINER_OF(service, torc_csds, service);
    struct ask *a = TC_NEW(struct ask);
    *a = (struct ask){.mail = {.run = on_asked, .drop = ask_free},
                      .source = s->source,
                      .back = tc_mailbox_ref(s->to_own),
                      .service = service,
                      .without_contents = without_contents};
    tc_list_init(&a->mail.link);
    tc_mailbox_send(s->to_source, &a->mail);
}

/* --- calls --- */

struct csds_call {
    struct tc_ref ref;        /* the events', until on_call_release, and each note's */
    struct tc_csds_call base; /* own thread */
    struct tc_link link;      /* own thread */
    torc_csds *s;             /* a reference */
    torc_server_call *call;   /* a reference beside the handle */
};

/* An event of a call on its way to the own thread. */
struct csds_note {
    struct csds_call *call;  /* a reference */
    struct tc_rstr *message; /* a reference, or NULL */
    void (*fn)(struct csds_call *call, struct tc_rstr *message);
};

static void call_unref(struct csds_call *c)
{
    torc_csds *s = c->s;
    if (!tc_ref_dec(&c->ref))
        return;
    tc_api_call_drop(c->call);
    tc_free(c);
    csds_unref(s);
}

static void note_free(struct csds_note *n)
{
    call_unref(n->call);
    tc_rstr_unref(n->message);
    tc_free(n);
}

static void on_note(void *arg)
{
    struct csds_note *n = arg;
    n->fn(n->call, n->message);
    note_free(n);
}

/* Has fn run on the own thread, with the message borrowed. Takes over the reference to the message. Returns false if
 * the own runtime has ended, whose thread has finished all calls that it knew; and in a child of a fork, and at exit.
 */
static bool tell(struct csds_call *c, void (*fn)(struct csds_call *call, struct tc_rstr *message),
                 struct tc_rstr *message)
{
    struct csds_note *n = TC_NEW(struct csds_note);
    *n = (struct csds_note){c, message, fn};
    tc_ref_inc(&c->ref);
    bool told = torc_runtime_post(c->s->own, on_note, n) == 0;
    if (!told)
        note_free(n);
    return told;
}

static void call_send(struct tc_csds_call *base, struct tc_rstr *response)
{
    tc_api_call_send_shared(TC_CONTAINER_OF(base, struct csds_call, base)->call, response);
}

static void call_finish(struct tc_csds_call *base, int code, const char *text)
{
    torc_server_call_finish(TC_CONTAINER_OF(base, struct csds_call, base)->call, code, text, NULL);
}

static void on_reset(void *arg)
{
    torc_server_call *call = arg;
    if (call->core)
        tc_server_call_reset(call->core, TC_H2_ENHANCE_YOUR_CALM);
    tc_api_call_drop(call);
}

static void call_reset(struct tc_csds_call *base)
{
    torc_server_call *call = TC_CONTAINER_OF(base, struct csds_call, base)->call;
    tc_api_call_hold(call);
    if (torc_runtime_post(call->rt, on_reset, call) != 0)
        tc_api_call_drop(call); /* the call's runtime is ending, and ends the RPC */
}

static void note_begun(struct csds_call *c, struct tc_rstr *message TC_UNUSED)
{
    if (c->s->closed)
        tc_csds_call_finish(&c->base, TORC_STATUS_UNAVAILABLE, STOPPED);
    else
        tc_list_append(&c->s->calls, &c->link);
}

static void note_asked(struct csds_call *c, struct tc_rstr *message)
{
    if (!c->base.ended)
        tc_csds_call_ask(&c->base, tc_rstr_slice(message));
}

/* Asks for the next request when there is room behind the answer to the last one. */
static void note_writable(struct csds_call *c, struct tc_rstr *message TC_UNUSED)
{
    if (!tc_csds_call_sends(&c->base))
        return;
    tc_csds_call_release(&c->base);
    if (!c->base.ended)
        torc_server_call_want(c->call, 1);
}

static void note_half_closed(struct csds_call *c, struct tc_rstr *message TC_UNUSED)
{
    tc_csds_call_no_more(&c->base);
}

static void note_cancelled(struct csds_call *c, struct tc_rstr *message TC_UNUSED)
{
    tc_csds_call_finish(&c->base, TORC_STATUS_CANCELLED, NULL);
}

static void note_gone(struct csds_call *c, struct tc_rstr *message TC_UNUSED)
{
    tc_csds_call_release(&c->base);
    tc_list_remove(&c->link);
}

static void on_message(torc_server_call *call TC_UNUSED, const torc_message *message, void *arg)
{
    tell(arg, note_asked, tc_rstr_ref((struct tc_rstr *)(uintptr_t)message));
}

static void on_half_close(torc_server_call *call TC_UNUSED, void *arg)
{
    tell(arg, note_half_closed, NULL);
}

static void on_writable(torc_server_call *call TC_UNUSED, void *arg)
{
    tell(arg, note_writable, NULL);
}

static void on_cancel(torc_server_call *call TC_UNUSED, void *arg)
{
    tell(arg, note_cancelled, NULL);
}

static void on_call_release(void *arg)
{
    tell(arg, note_gone, NULL);
    call_unref(arg);
}

/* Begins a call, in its handler. The result belongs to the events, and is good until the handler returns. Returns NULL
 * if the RPC is over or the service has stopped; the call was finished then. */
static struct csds_call *call_begin(torc_csds *s, torc_server_call *call, bool unary)
{
    static const struct tc_csds_call_ops ops = {call_send, call_finish, call_reset};
    static const struct torc_server_call_events events = {
        TORC_SIZE(torc_server_call_events), on_message, on_half_close, on_writable, on_cancel, on_call_release};
    struct csds_call *c = TC_NEW(struct csds_call);
    *c = (struct csds_call){.base = {.ops = &ops, .service = &s->service, .unary = unary}, .s = s, .call = call};
    tc_ref_init(&c->ref);
    tc_csds_call_init(&c->base);
    tc_list_init(&c->link);
    tc_ref_inc(&s->ref);
    tc_api_call_hold(call);
    bool heard = torc_server_call_set_events(call, &events, c) == 0;
    if (heard && tell(c, note_begun, NULL))
        return c;
    torc_server_call_finish(call, TORC_STATUS_UNAVAILABLE, STOPPED, NULL);
    if (!heard)
        call_unref(c);
    return NULL;
}

static void on_fetch(torc_server_call *call, const torc_message *request, void *arg)
{
    struct csds_call *c = call_begin(arg, call, true);
    if (c)
        on_message(call, request, c);
}

static void on_stream(torc_server_call *call, void *arg)
{
    if (call_begin(arg, call, false))
        torc_server_call_want(call, 1);
}

/* --- the end --- */

static void mailbox_end(struct tc_mailbox **box)
{
    if (!*box)
        return;
    tc_mailbox_close(*box);
    tc_mailbox_unref(*box);
    *box = NULL;
}

static void on_stop_source(void *arg)
{
    mailbox_end(&((torc_csds *)arg)->to_source);
}

static void on_stop_own(void *arg)
{
    torc_csds *s = arg;
    s->closed = true;
    mailbox_end(&s->to_own);
    struct tc_link *link;
    while ((link = tc_list_pop(&s->calls))) {
        struct csds_call *c = TC_CONTAINER_OF(link, struct csds_call, link);
        tc_csds_call_finish(&c->base, TORC_STATUS_UNAVAILABLE, STOPPED);
        tc_csds_call_release(&c->base);
    }
    tc_csds_service_end(&s->service);
}

/* On the loop of `rt`, which may be ending. Waits for the loops of `own` and `source`, which never wait for rt's. Drops
 * the reference of `services`. */
static void csds_stop(torc_csds *s)
{
    if (s->stopped)
        return;
    s->stopped = true;
    tc_list_remove(&s->link);
    torc_server_free(s->server);
    tc_runtime_do(s->own, on_stop_own, s);
    if (s->source == s->rt)
        on_stop_source(s);
    else
        tc_runtime_do(s->source, on_stop_source, s);
    torc_runtime_free(s->own);
    csds_unref(s);
}

/* The services of one rt (tc_runtime_extra), until they stop. */
struct services {
    struct tc_link list;
};

/* `rt` ends. */
static void services_stop(void *arg)
{
    struct services *all = arg;
    while (!tc_list_empty(&all->list))
        csds_stop(TC_CONTAINER_OF(all->list.next, torc_csds, link));
    tc_free(all);
}

static struct services *services_get(torc_runtime *rt)
{
    static const char slot;
    struct services *all = tc_runtime_extra(rt, &slot);
    if (!all) {
        all = TC_NEW(struct services);
        tc_list_init(&all->list);
        tc_runtime_set_extra(rt, &slot, all, services_stop);
    }
    return all;
}

static void on_stop(void *arg)
{
    csds_stop(arg);
}

static void on_stop_posted(void *arg)
{
    csds_stop(arg);
    csds_unref(arg);
}

/* The server has ended. Posts the stop, since this thread must not wait for rt's loop, which may wait for the server.
 * The post takes over the methods' reference. Any thread. */
static void on_method_release(void *arg)
{
    torc_csds *s = arg;
    if (torc_runtime_post(s->rt, on_stop_posted, s) != 0)
        csds_unref(s); /* the end of `rt` stops the service */
}

/* --- the beginning --- */

struct start {
    torc_csds *s;
    torc_server *server; /* NULL: one on `address` */
    const char *address;
    torc_error **error;
    int rc;
};

static void on_start_source(void *arg)
{
    torc_csds *s = arg;
    s->to_source = tc_mailbox_new(tc_runtime_loop(s->source));
}

static void on_start_own(void *arg)
{
    torc_csds *s = arg;
    s->to_own = tc_mailbox_new(tc_runtime_loop(s->own));
    tc_csds_service_init(&s->service, tc_runtime_loop(s->own));
}

/* Adds the methods, with one reference for both. Returns 0, or the code of an error that it stores. */
static int methods_add(torc_csds *s, torc_server *server, torc_error **error)
{
    const struct torc_handler fetch = {TORC_SIZE(torc_handler), .unary = on_fetch, .release = on_method_release,
                                       .arg = s},
                              stream = {TORC_SIZE(torc_handler), .stream = on_stream, .arg = s};
    const struct tc_method_spec methods[] = {{TC_CSDS_NAME "FetchClientStatus", fetch, MAX_REQUEST_BYTES, NULL},
                                             {TC_CSDS_NAME "StreamClientStatus", stream, MAX_REQUEST_BYTES, NULL}};
    tc_ref_inc(&s->ref);
    int rc = tc_api_server_add(server, methods, TC_ARRAY_LEN(methods), NULL, error);
    if (rc != 0)
        csds_unref(s);
    return rc;
}

static void opts_of_ours(struct tc_server_opts *opts)
{
    opts->calls_give_way = true;
    opts->http2.no_bdp = true;
    opts->http2.limits.initial_window_bytes = WINDOW_BYTES;
    opts->http2.limits.write_bytes = WRITE_BYTES;
}

/* Makes and starts the server of torc_csds_serve. Returns 0, or the code of an error that it stores; csds_stop frees
 * what was made. */
static int serve(torc_csds *s, const char *address, torc_error **error)
{
    const struct torc_server_options o = {TORC_SIZE(torc_server_options),     .runtime = s->own,
                                          .max_connections = MAX_CONNECTIONS, .max_concurrent_streams = MAX_STREAMS,
                                          .max_connection_idle_ms = IDLE_MS,  .keepalive_time_ms = IDLE_MS};
    s->server = tc_api_server_new(&o, opts_of_ours, error);
    int rc = s->server ? methods_add(s, s->server, error) : torc_error_code(*error);
    rc = rc ? rc : torc_server_listen(s->server, address, torc_credentials_insecure(), &s->address, error);
    return rc ? rc : torc_server_start(s->server, error);
}

/* On the loop of `rt`. Stores 0, or the code of the error, in st->rc. Fails if `rt` has begun to end. */
static void on_start(void *arg)
{
    struct start *st = arg;
    torc_csds *s = st->s;
    if ((st->rc = tc_runtime_check(s->rt)) != 0) {
        tc_error_set_code(st->error, st->rc, "runtime");
        return;
    }
    s->source = tc_csds_source(s->rt);
    s->own = torc_runtime_new(NULL, st->error);
    if (!s->own) {
        st->rc = torc_error_code(*st->error);
        return;
    }
    tc_runtime_ref(s->own);
    tc_ref_inc(&s->ref);
    tc_list_append(&services_get(s->rt)->list, &s->link);
    st->rc = tc_runtime_do(s->source, on_start_source, s);
    st->rc = st->rc ? st->rc : tc_runtime_do(s->own, on_start_own, s);
    if (st->rc != 0) /* the process is exiting */
        tc_error_set_code(st->error, st->rc, "runtime");
    else
        st->rc = st->server ? methods_add(s, st->server, st->error) : serve(s, st->address, st->error);
    if (st->rc != 0)
        csds_stop(s);
}

/* Starts a service on `server`, or, for NULL, on a server of its own on `address`. Returns the handle's reference, or
 * NULL with an error. `error` must not be NULL. */
static torc_csds *csds_start(torc_runtime *rt, torc_server *server, const char *address, torc_error **error)
{
    torc_csds *s = TC_NEW(torc_csds);
    struct start st = {.s = s, .server = server, .address = address, .error = error};
    s->service.make = snapshot_ask;
    s->service.max_bytes = tc_runtime_csds_answer_bytes(rt);
    s->rt = tc_runtime_ref(rt);
    tc_ref_init(&s->ref);
    tc_list_init(&s->link);
    tc_list_init(&s->calls);
    int rc = tc_runtime_do(rt, on_start, &st);
    if (rc != 0)
        tc_error_set_code(error, rc, "runtime");
    if (rc == 0 && st.rc == 0)
        return s;
    csds_unref(s);
    return NULL;
}

/* csds_start on a runtime that may be NULL (the default), and with an `error` that may be NULL. */
static torc_csds *csds_start_for(torc_runtime *given, torc_server *server, const char *address, torc_error **error)
{
    torc_error *own = NULL, **why = error ? error : &own;
    torc_runtime *rt = tc_runtime_or_default(given, "runtime", why);
    torc_csds *s = rt ? csds_start(rt, server, address, why) : NULL;
    torc_error_free(own);
    return s;
}

torc_csds *torc_csds_serve(torc_runtime *runtime, const char *address, torc_error **error)
{
    TC_NO_CANCEL;
    if (tc_error_pending(error))
        return NULL;
    return csds_start_for(runtime, NULL, address, error);
}

int torc_csds_add(torc_server *server, torc_runtime *runtime, torc_error **error)
{
    TC_NO_CANCEL;
    torc_error *own = NULL, **why = error ? error : &own;
    if (tc_error_pending(error))
        return torc_error_code(*error);
    torc_csds *s = NULL;
    if (server)
        s = csds_start_for(runtime, server, NULL, why);
    else
        tc_error_set(why, TORC_EINVAL, TORC_LAYER_API, "server: it is NULL");
    int rc = s ? 0 : torc_error_code(*why);
    torc_error_free(own);
    if (s)
        csds_unref(s);
    return rc;
}

const char *torc_csds_address(const torc_csds *s)
{
    return s ? s->address : NULL;
}

void torc_csds_free(torc_csds *s)
{
    if (!s)
        return;
    int rc = tc_runtime_do(s->rt, on_stop, s);
    if (rc != TORC_EFORK) /* in a child the server is the parent's; at exit all stays as it is */
        csds_unref(s);
}
