/* A server whose handlers reply at once, later, in pieces or never, and may keep their places (struct
 * tc_server_places), while a client sends arbitrary bytes (h2_script.h). The script also makes the server drain, close
 * its connections and reset calls.
 *
 * No event comes after a call's end. After each step the server counts at least the calls that have not ended, at most
 * one connection, and a bounded number of queued and of unread bytes. Without a connection all of these counts are 0.
 *
 * The calls (tc_server_call) are the server's. struct run keeps a struct call for each until the run ends, so that
 * late events are seen. One thread, on a manual loop. */
#include "h2_script.h"

#include "base/mem.h"
#include "base/vec.h"
#include "http2/stream.h"
#include "server/call.h"
#include "server/server.h"

enum { MAX_HELD = 16384 }; /* bytes: of queued messages, and of unread ones unless the script says less */

struct call {
    struct tc_server_call *core;    /* NULL after on_end */
    struct tc_server_places places; /* if the handler took them; given back by act, or at the end of the run */
    struct run *run;
    bool finished; /* a status or a reply was given to the server */
};

struct run {
    struct tc_fuzz_h2 h2;
    struct tc_server *server;
    TC_VEC(struct call *) calls;
};

static char bytes[5000]; /* for answers and trailers */

static void send_some(struct call *c, uint8_t how)
{
    struct tc_slice message = tc_slice_of(bytes, (size_t)(how >> 4) * 300);
    struct tc_rstr *copy = tc_rstr_new(message.data, message.len);
    if (how & 1)
        tc_server_call_send_plain(c->core, copy);
    else
        tc_server_call_send_ref(c->core, copy);
    tc_rstr_unref(copy);
}

static void finish(struct call *c, uint8_t how)
{
    struct tc_headers trailers;
    tc_headers_init(&trailers, tc_server_call_arena(c->core));
    tc_headers_add_copy(&trailers, tc_slice_str("k"), tc_slice_of(bytes, (size_t)how * 2));
    tc_server_call_finish(c->core, how & 15, how & 16 ? "text" : NULL, how & 32 ? &trailers : NULL);
    c->finished = true;
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct call *c = arg;
    TC_FUZZ_CHECK(c->core && message->len <= 4096);
    if (!c->finished && message->len)
        tc_server_call_send_ref(c->core, message);
    tc_rstr_unref(message);
}

static void on_half_close(void *arg)
{
    struct call *c = arg;
    TC_FUZZ_CHECK(c->core);
    if (!c->finished)
        finish(c, 0);
}

static void on_sent(void *arg, size_t len)
{
    const struct call *c = arg;
    TC_FUZZ_CHECK(c->core && len <= sizeof(bytes));
}

static void on_written(void *arg)
{
    const struct call *c = arg;
    TC_FUZZ_CHECK(c->core);
}

static void on_end(void *arg, const struct tc_status *why)
{
    struct call *c = arg;
    (void)why;
    TC_FUZZ_CHECK(c->core);
    c->core = NULL;
}

static const struct tc_server_call_events events = {.on_message = on_message,
                                                    .on_half_close = on_half_close,
                                                    .on_sent = on_sent,
                                                    .on_written = on_written,
                                                    .on_end = on_end};

/* The handler. The next byte of the script says what it does. */
static void handle(struct run *r, struct tc_server_call *core)
{
    struct call *c = TC_NEW(struct call);
    uint8_t how = tc_fuzz_u8(&r->h2.in);
    *c = (struct call){.core = core, .run = r};
    *tc_vec_push(&r->calls) = c;
    tc_server_call_set_events(core, &events, c);
    if (how & 8)
        tc_server_call_take_places(core, &c->places);
    if (how & 16)
        tc_server_call_send_headers(core, NULL, how & 32 ? TC_H2_GZIP : TC_H2_IDENTITY);
    switch (how & 7) {
    case 0:
        tc_server_call_reply(core, tc_slice_of(bytes, how));
        c->finished = true;
        break;
    case 1:
        tc_server_call_reset(core, TC_H2_CANCEL);
        break;
    case 2:
        for (int i = 0; i < 3; i++)
            send_some(c, how);
        break;
    case 3:
        finish(c, how);
        break;
    case 4:
        tc_server_call_read(core);
        break;
    default: /* later */
        break;
    }
}

static void on_stream(void *arg, struct tc_server_call *core)
{
    handle(arg, core);
}

static void on_unary(void *arg, struct tc_server_call *core, struct tc_rstr *request)
{
    TC_FUZZ_CHECK(request->len <= 4096);
    handle(arg, core);
}

static void on_drained(void *arg)
{
    (void)arg;
}

/* Does what the application does at this step. */
static void act(struct run *r, uint8_t op)
{
    struct call *c = r->calls.len ? r->calls.data[(op >> 4) % r->calls.len] : NULL;
    switch (op & 15) {
    case 11:
        if (c && c->core && !c->finished)
            send_some(c, tc_fuzz_u8(&r->h2.in));
        break;
    case 12:
        if (c && c->core && !c->finished)
            finish(c, tc_fuzz_u8(&r->h2.in));
        break;
    case 13:
        if (c && c->core)
            tc_server_call_read(c->core);
        else if (c)
            tc_server_places_give_back(&c->places);
        break;
    case 14:
        if (op >= 0xe0)
            tc_server_drain(r->server, 1000, on_drained, r);
        else if (op >= 0xc0)
            tc_server_close_connections(r->server);
        else if (c && c->core)
            tc_server_call_reset(c->core, TC_H2_CANCEL);
        break;
    default:
        break;
    }
}

static void check_counts(const struct run *r)
{
    struct tc_server_counts counts;
    size_t open = 0;
    tc_server_counts(r->server, &counts);
    for (size_t i = 0; i < r->calls.len; i++)
        open += r->calls.data[i]->core != NULL;
    TC_FUZZ_CHECK(open <= counts.open_calls && counts.open_connections <= 1);
    TC_FUZZ_CHECK(counts.queued_bytes <= MAX_HELD && counts.unread_bytes <= 4 * (1 << 16));
    TC_FUZZ_CHECK(counts.open_connections || (!counts.open_calls && !counts.queued_bytes && !counts.unread_bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *r = TC_NEW(struct run);
    struct tc_server_opts opts;
    memset(bytes, 'b', sizeof(bytes));
    tc_server_opts_init(&opts);
    tc_fuzz_h2_begin(&r->h2, data, size, true, &opts.http2);
    uint8_t flags = tc_fuzz_u8(&r->h2.in);
    opts.max_queued_bytes = MAX_HELD;
    opts.max_unread_bytes = flags & 1 ? 4096 : MAX_HELD;
    opts.max_handlers = flags & 2 ? 2 : 0;
    opts.idle_timeout_ms = flags & 4 ? 1000 : 0;
    opts.status_at_end = flags & 8;
    if (flags & 16)
        opts.http2.limits.max_send_message_bytes = 100;
    r->server = tc_server_new(r->h2.loop, &opts);
    if (flags & 32)
        tc_server_add_unary(r->server, "/a.B/C", on_unary, r);
    else
        tc_server_set_default(r->server, on_stream, r);
    tc_server_accept(r->server, fake_pipe_end(r->h2.pipe, 0));
    tc_fuzz_h2_greet(&r->h2);
    while (r->h2.in.len) {
        uint8_t op = tc_fuzz_u8(&r->h2.in);
        act(r, op);
        tc_fuzz_h2_step(&r->h2, op);
        check_counts(r);
    }
    tc_server_end(r->server, NULL);
    tc_server_free(r->server);
    for (size_t i = 0; i < r->calls.len; i++) {
        tc_server_places_give_back(&r->calls.data[i]->places);
        tc_free(r->calls.data[i]);
    }
    tc_vec_fini(&r->calls);
    tc_fuzz_h2_fini(&r->h2);
    tc_free(r);
    return 0;
}
