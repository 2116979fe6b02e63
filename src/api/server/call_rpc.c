/* Interceptors of servers: the call behind each torc_rpc of a server (torc/interceptor.h).
 *
 * With interceptors, every RPC begins as a stream, also of a unary method: on_start comes before a message is read.
 * What passes between the core's call (server/call.h) and the handler walks past the interceptors (channel/rpc.h):
 *
 *   core: request    -> main, on_start       -> handler; a unary one after its message and the half-close
 *   core: message    -> received, on_message -> handler; one at a time, if an interceptor has on_message
 *   handler: message -> out -> sent, on_message -> core; one at a time
 *   handler: status  -> when `out` is empty and no message walks -> main, on_status -> core
 *
 * If an interceptor refuses, or a unary method gets no message or two (rpc_fail), messages that the core or the handler
 * does not have yet are dropped, and the status of this failure walks outward instead of the handler's. A handler that
 * was called, and has not finished the call, hears on_cancel. The end of the core's call ends every walk: interceptors
 * that let the RPC go on, and have not seen a status, then see the reason in on_status.
 *
 * A struct tc_call_rpc lives from tc_call_rpc_begin to tc_call_rpc_end, which on_end of the core's call calls (call.c).
 * All of it is the loop thread's. */
#include "api/server/call_rpc.h"

#include "api/metadata.h"
#include "base/mem.h"
#include "channel/rpc.h"

enum { READS_AT_ONCE = 16 };

struct tc_call_rpc {
    torc_rpc *rpc;                       /* in `arena` */
    torc_server_call *call;              /* borrowed: the loop's reference outlives this struct */
    const struct tc_method *method;      /* borrowed */
    struct tc_arena arena;               /* of `rpc` and of the headers below */
    struct tc_headers metadata;          /* of the request, with what interceptors add */
    struct tc_headers headers, trailers; /* of the response */
    size_t handlers_from, handlers_to;   /* the range of `trailers` that the handler gave */
    struct tc_status status;             /* the status that ends the RPC, once there is one */
    struct tc_message_queue out;         /* the handler's messages that have not begun to walk */
    size_t walking_bytes;                /* of the message that walks outward, as the handler gave it */
    bool sending, receiving;             /* a message of that direction waits for an interceptor */
    bool handled;                        /* the handler, or its pool, was given the call */
    bool ends;                           /* the handler's status follows `out` */
    bool answered;                       /* the core has the status */
};

/* --- the getters of a torc_rpc --- */

static const torc_server_call *call_of(const torc_rpc *rpc)
{
    return ((const struct tc_call_rpc *)rpc->owner)->call;
}

static const char *rpc_method(const torc_rpc *rpc)
{
    return call_of(rpc)->facts.path;
}

static const char *rpc_target(const torc_rpc *rpc TC_UNUSED)
{
    return "";
}

static const char *rpc_authority(const torc_rpc *rpc)
{
    return call_of(rpc)->facts.authority;
}

static const char *rpc_peer(const torc_rpc *rpc)
{
    return call_of(rpc)->facts.peer;
}

static uint64_t rpc_deadline_ns(const torc_rpc *rpc)
{
    return call_of(rpc)->facts.deadline_ns;
}

static const struct tc_headers *rpc_headers(const torc_rpc *rpc)
{
    const struct tc_call_rpc *r = rpc->owner;
    return r->call->introduced && r->headers.len ? &r->headers : NULL;
}

static const struct tc_headers *rpc_trailers(const torc_rpc *rpc)
{
    const struct tc_call_rpc *r = rpc->owner;
    return r->trailers.len ? &r->trailers : NULL;
}

static const struct tc_rpc_side server_side = {rpc_method,      rpc_target,  rpc_authority, rpc_peer,
                                               rpc_deadline_ns, rpc_headers, rpc_trailers,  true};

const torc_server_call *torc_rpc_server_call(const torc_rpc *rpc)
{
    return rpc && rpc->side == &server_side ? call_of(rpc) : NULL;
}

/* --- the outcome --- */

static void messages_stop(struct tc_call_rpc *r)
{
    tc_walk_stop(&r->rpc->sent);
    tc_walk_stop(&r->rpc->received);
    r->sending = r->receiving = false;
    tc_message_queue_drop(&r->out);
}

/* Drops the handler's grpc-status-details-bin if the outcome is not the handler's status. */
static void details_check(struct tc_call_rpc *r)
{
    const struct tc_call_ending *ending = &r->call->ending;
    struct tc_headers *t = &r->trailers;
    if (!r->ends || (r->status.code == ending->code && r->status.text == ending->text))
        return;
    for (size_t i = r->handlers_to; i-- > r->handlers_from;)
        if (tc_slice_eq_str(t->data[i].name, "grpc-status-details-bin"))
            memmove(&t->data[i], &t->data[i + 1], (--t->len - i) * sizeof(t->data[0]));
}

/* The status has passed all interceptors (unless one delays it): hands it to the core. */
static void status_take(struct tc_call_rpc *r, enum tc_walk_end end)
{
    torc_server_call *c = r->call;
    if (end == TC_WALK_WAITS)
        return;
    if (r->headers.len)
        tc_api_call_introduce(c, NULL);
    r->rpc->more_headers = r->rpc->more_trailers = NULL;
    r->answered = true;
    details_check(r);
    tc_server_call_finish(c->core, r->status.code, tc_status_text(&r->status), &r->trailers);
}

static void on_status_resumed(struct tc_walk *w, enum tc_walk_end end)
{
    status_take(w->owner, end);
}

static enum tc_walk_end status_walk(struct tc_call_rpc *r)
{
    struct tc_walk *w = &r->rpc->main;
    w->owner = r;
    w->resumed = on_status_resumed;
    return tc_walk_begin(w, r->rpc, TC_HOOK_STATUS, true);
}

static void status_begin(struct tc_call_rpc *r)
{
    messages_stop(r); /* nobody takes a message any longer */
    status_take(r, status_walk(r));
}

/* Ends the RPC with a status that is not the handler's, unless the RPC has an outcome. Takes over the status. */
static void rpc_fail(struct tc_call_rpc *r, struct tc_status status)
{
    if (r->rpc->ending) {
        tc_status_fini(&status);
        return;
    }
    tc_status_set(&r->status, status);
    if (r->handled)
        tc_api_call_over(r->call, TORC_ECANCELED);
    status_begin(r);
}

/* --- from the handler --- */

static void sent_take(struct tc_call_rpc *r, enum tc_walk_end end)
{
    struct tc_walk *w = &r->rpc->sent;
    torc_server_call *c = r->call;
    r->sending = end == TC_WALK_WAITS;
    if (end == TC_WALK_FAILED)
        rpc_fail(r, tc_status_ref(&w->failure));
    if (end != TC_WALK_PASSED)
        return;
    struct tc_rstr *message = w->message;
    w->message = NULL;
    if (message->len != r->walking_bytes) { /* on_sent will count the new size down */
        tc_runtime_lock(c->rt);
        c->unwritten.bytes += tc_server_message_cost(message->len) - tc_server_message_cost(r->walking_bytes);
        tc_runtime_unlock(c->rt);
    }
    tc_api_call_introduce(c, NULL);
    if (r->rpc->sent_plain)
        tc_server_call_send_plain(c->core, message);
    else
        tc_server_call_send_ref(c->core, message);
    tc_rstr_unref(message);
}

static void on_sent_resumed(struct tc_walk *w, enum tc_walk_end end);

static void send_next(struct tc_call_rpc *r)
{
    torc_rpc *rpc = r->rpc;
    bool plain;
    while (!r->sending && !rpc->ending) {
        struct tc_rstr *message = tc_message_queue_take(&r->out, &plain);
        if (!message)
            break;
        rpc->sent.message = message;
        rpc->sent.owner = r;
        rpc->sent.resumed = on_sent_resumed;
        rpc->sent_plain = plain;
        r->walking_bytes = message->len;
        sent_take(r, tc_walk_begin(&rpc->sent, rpc, TC_HOOK_MESSAGE, true));
    }
    if (r->ends && !r->sending && !rpc->ending)
        status_begin(r);
}

static void on_sent_resumed(struct tc_walk *w, enum tc_walk_end end)
{
    struct tc_call_rpc *r = w->owner;
    sent_take(r, end);
    send_next(r);
}

void tc_call_rpc_send(struct tc_call_rpc *r, struct tc_message_queue *messages, bool ends)
{
    const struct tc_call_ending *ending = &r->call->ending;
    struct tc_rstr *bytes;
    bool plain;
    while ((bytes = tc_message_queue_take(messages, &plain)))
        tc_message_queue_add(&r->out, bytes, plain);
    if (r->rpc->ending) {
        tc_message_queue_drop(&r->out);
        return;
    }
    if (ends) {
        r->ends = true;
        tc_status_set(&r->status, (struct tc_status){ending->code, TORC_LAYER_PEER,
                                                     ending->text ? tc_rstr_ref(ending->text) : NULL});
        r->handlers_from = r->trailers.len;
        for (size_t i = 0; i < ending->trailers.len; i++)
            tc_headers_add_copy(&r->trailers, ending->trailers.data[i].name, ending->trailers.data[i].value);
        r->handlers_to = r->trailers.len;
    }
    send_next(r);
}

const struct tc_headers *tc_call_rpc_headers(struct tc_call_rpc *r, const struct tc_headers *headers)
{
    r->rpc->more_headers = NULL;
    for (size_t i = 0; headers && i < headers->len; i++)
        tc_headers_add_copy(&r->headers, headers->data[i].name, headers->data[i].value);
    return &r->headers;
}

/* --- to the handler --- */

static void handle(struct tc_call_rpc *r)
{
    r->handled = true;
    tc_api_call_start(r->method, r->call);
}

static void read_one(struct tc_call_rpc *r)
{
    r->call->reads.owed++;
    tc_api_call_read_owed(r->call);
}

/* A message of a unary method, whose handler is called once the client has half-closed. */
static void request_take(struct tc_call_rpc *r, struct tc_rstr *message)
{
    if (r->call->request) {
        tc_rstr_unref(message);
        rpc_fail(r, tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2, TC_SERVER_TWO_REQUESTS));
        return;
    }
    r->call->request = message;
    tc_server_call_keep(r->call->core, message->len);
    read_one(r);
}

static void received_take(struct tc_call_rpc *r, enum tc_walk_end end)
{
    struct tc_walk *w = &r->rpc->received;
    r->receiving = end == TC_WALK_WAITS;
    if (end == TC_WALK_FAILED)
        rpc_fail(r, tc_status_ref(&w->failure));
    if (end != TC_WALK_PASSED)
        return;
    struct tc_rstr *message = w->message;
    w->message = NULL;
    if (r->handled)
        tc_api_call_deliver(r->call, message);
    else
        request_take(r, message);
}

static void on_received_resumed(struct tc_walk *w, enum tc_walk_end end)
{
    received_take(w->owner, end);
}

void tc_call_rpc_received(struct tc_call_rpc *r, struct tc_rstr *message)
{
    struct tc_walk *w = &r->rpc->received;
    if (r->rpc->ending) {
        tc_rstr_unref(message);
        return;
    }
    w->message = message;
    w->owner = r;
    w->resumed = on_received_resumed;
    received_take(r, tc_walk_begin(w, r->rpc, TC_HOOK_MESSAGE, false));
}

unsigned tc_call_rpc_reads(const struct tc_call_rpc *r)
{
    return r->receiving ? 0 : tc_rpc_has(r->rpc, TC_HOOK_MESSAGE) ? 1 : READS_AT_ONCE;
}

bool tc_call_rpc_half_closed(struct tc_call_rpc *r)
{
    if (r->handled)
        return false;
    if (r->rpc->ending)
        return true;
    if (!r->call->request) {
        rpc_fail(r, tc_status_make(TORC_STATUS_INTERNAL, TORC_LAYER_HTTP2, TC_SERVER_NO_REQUEST));
        return true;
    }
    r->call->half_closed = true;
    tc_server_call_keep(r->call->core, 0);
    handle(r);
    return true;
}

/* --- the begin and the end --- */

static void on_started(struct tc_walk *w, enum tc_walk_end end)
{
    struct tc_call_rpc *r = w->owner;
    torc_server_call *c = r->call;
    if (end == TC_WALK_FAILED)
        rpc_fail(r, tc_status_ref(&w->failure));
    if (end != TC_WALK_PASSED)
        return;
    if (r->metadata.len != torc_metadata_count(c->facts.metadata))
        c->facts.metadata = tc_metadata_in_arena(&c->sent, &r->metadata);
    if (r->method->handler.unary)
        read_one(r);
    else
        handle(r);
}

void tc_call_rpc_begin(torc_server_call *c, const struct tc_method *m)
{
    struct tc_call_rpc *r = TC_NEW(struct tc_call_rpc);
    c->rpc = r;
    r->call = c;
    r->method = m;
    tc_arena_init(&r->arena, 0, 0);
    tc_headers_init(&r->metadata, &r->arena);
    tc_headers_init(&r->headers, &r->arena);
    tc_headers_init(&r->trailers, &r->arena);
    tc_message_queue_init(&r->out);
    tc_metadata_to_headers(c->facts.metadata, &r->metadata);
    torc_rpc *rpc = tc_rpc_new(m->server->interceptors, c->rt, &server_side, r, &r->arena, &r->metadata, &r->status);
    r->rpc = rpc;
    rpc->more_headers = &r->headers;
    rpc->more_trailers = &r->trailers;
    rpc->main.owner = r;
    rpc->main.resumed = on_started;
    on_started(&rpc->main, tc_walk_begin(&rpc->main, rpc, TC_HOOK_START, false));
}

bool tc_call_rpc_end(struct tc_call_rpc *r, const struct tc_status *why)
{
    torc_rpc *rpc = r->rpc;
    bool handled = r->handled;
    messages_stop(r);
    if (!r->answered || !tc_status_ok(why))
        tc_status_set(&r->status, tc_status_ref(why));
    if (!r->answered) {
        tc_walk_let_go(&rpc->main);
        rpc->main.hurried = true;
        rpc->more_headers = rpc->more_trailers = NULL;
        if (rpc->ending)
            tc_walk_go_on(&rpc->main);
        else
            status_walk(r);
    }
    tc_rpc_end(rpc);
    tc_walk_stop(&rpc->main);
    r->call->rpc = NULL;
    tc_status_fini(&r->status);
    tc_arena_fini(&r->arena);
    tc_free(r);
    return handled;
}
