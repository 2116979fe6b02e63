#include "support/h2_client.h"

#include <stdio.h>

#include "support/cmocka.h"

#define LITERAL(text)                                                                                                  \
    {                                                                                                                  \
        text, sizeof(text) - 1                                                                                         \
    }

const struct tc_h2_request tc_h2_test_request = {.path = LITERAL("/test.Echo/Say"),
                                                 .authority = LITERAL("localhost"),
                                                 .scheme = LITERAL("http"),
                                                 .user_agent = LITERAL("torc-test"),
                                                 .accept_gzip = true};

static void conn_event(struct tc_h2_test *t, const char *event, const struct tc_status *why)
{
    if (why)
        snprintf(t->why, sizeof(t->why), "%s", tc_status_text(why));
    if (t->hook)
        t->hook(t, event);
}

static void on_ready(void *arg)
{
    struct tc_h2_test *t = arg;
    t->ready++;
    conn_event(t, "ready", NULL);
}

static void on_capacity(void *arg)
{
    struct tc_h2_test *t = arg;
    t->capacity++;
    conn_event(t, "capacity", NULL);
}

static void on_draining(void *arg, const struct tc_status *why, bool too_many_pings)
{
    struct tc_h2_test *t = arg;
    t->draining++;
    t->too_many_pings = too_many_pings;
    conn_event(t, "draining", why);
}

static void on_closed(void *arg, const struct tc_status *why)
{
    struct tc_h2_test *t = arg;
    assert_int_not_equal(why->code, TORC_STATUS_OK);
    t->closed++;
    conn_event(t, "closed", why);
}

static const struct tc_h2_conn_events conn_events = {
    .on_ready = on_ready, .on_capacity = on_capacity, .on_draining = on_draining, .on_closed = on_closed};

void tc_h2_test_init_silent(struct tc_h2_test *t, const struct tc_h2_opts *opts, size_t read_chunk)
{
    memset(t, 0, sizeof(*t));
    if (opts) {
        t->opts = *opts;
    } else {
        tc_h2_opts_init(&t->opts, false);
        t->opts.no_bdp = true;
    }
    t->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    t->pipe = tc_pipe_new(t->loop);
    tc_pipe_set_read_chunk(t->pipe, read_chunk);
    t->peer = tc_h2_peer_new(t->pipe, 1, true);
    t->conn = tc_h2_conn_new(t->loop, tc_pipe_end(t->pipe, 0), &t->opts, &conn_events, t);
    tc_h2_test_run(t);
}

void tc_h2_test_init(struct tc_h2_test *t, const struct tc_h2_opts *opts, size_t read_chunk)
{
    tc_h2_test_init_silent(t, opts, read_chunk);
    tc_h2_peer_start(t->peer);
    tc_h2_test_run(t);
    assert_int_equal(t->ready, 1);
}

void tc_h2_test_run(struct tc_h2_test *t)
{
    tc_loop_drain(t->loop);
}

void tc_h2_test_close(struct tc_h2_test *t)
{
    if (t->conn)
        tc_h2_conn_close(t->conn);
    t->conn = NULL;
}

void tc_h2_test_fini(struct tc_h2_test *t)
{
    tc_h2_test_close(t);
    tc_loop_drain(t->loop);
    tc_h2_peer_free(t->peer);
    tc_pipe_free(t->pipe);
    tc_loop_free(t->loop);
}

static void call_event(struct tc_h2_test_call *call, const char *event)
{
    if (call->hook)
        call->hook(call, event);
}

static void headers_text(char *out, size_t size, const struct tc_headers *h)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < h->len && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%.*s=%.*s;", (int)h->data[i].name.len, h->data[i].name.data,
                               (int)h->data[i].value.len, h->data[i].value.data);
}

static void on_headers(void *arg, const struct tc_headers *headers)
{
    struct tc_h2_test_call *call = arg;
    assert_int_equal(call->done, 0);
    call->headers++;
    headers_text(call->header_text, sizeof(call->header_text), headers);
    call_event(call, "headers");
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct tc_h2_test_call *call = arg;
    assert_int_equal(call->done, 0);
    call->messages++;
    tc_buf_clear(&call->last);
    tc_buf_append_slice(&call->last, tc_rstr_slice(message));
    tc_rstr_unref(message);
    if (call->auto_read)
        tc_h2_stream_read(call->stream);
    call_event(call, "message");
}

static void on_written(void *arg)
{
    struct tc_h2_test_call *call = arg;
    assert_int_equal(call->done, 0);
    call->written++;
    call_event(call, "written");
}

static void on_done(void *arg, const struct tc_h2_outcome *outcome)
{
    struct tc_h2_test_call *call = arg;
    assert_int_equal(call->done, 0);
    call->done++;
    call->stream = NULL;
    call->code = outcome->status.code;
    snprintf(call->text, sizeof(call->text), "%s", tc_status_text(&outcome->status));
    call->unprocessed = outcome->unprocessed;
    call->unsent = outcome->unsent;
    call->from_server = outcome->from_server;
    call->trailers_only = outcome->trailers_only;
    headers_text(call->trailer_text, sizeof(call->trailer_text), outcome->trailers);
    call_event(call, "done");
}

static const struct tc_h2_stream_events call_events = {
    .on_headers = on_headers, .on_message = on_message, .on_written = on_written, .on_done = on_done};

void tc_h2_test_call_init(struct tc_h2_test_call *call, struct tc_h2_test *t)
{
    memset(call, 0, sizeof(*call));
    call->t = t;
    call->code = -1;
    tc_arena_init(&call->arena, 0, 0);
    tc_headers_init(&call->metadata, &call->arena);
}

int tc_h2_test_open(struct tc_h2_test_call *call, const struct tc_h2_request *request)
{
    int error = 0;
    struct tc_h2_request r = *request;
    if (!r.metadata)
        r.metadata = &call->metadata;
    call->stream = tc_h2_stream_open(call->t->conn, &r, &call->arena, &call_events, call, &error);
    assert_true(call->stream ? error == 0 : error < 0);
    return error;
}

void tc_h2_test_unary(struct tc_h2_test_call *call, struct tc_h2_test *t)
{
    tc_h2_test_call_init(call, t);
    call->auto_read = true;
    assert_int_equal(tc_h2_test_open(call, &tc_h2_test_request), 0);
    assert_int_equal(tc_h2_stream_send(call->stream, tc_slice_of("hi", 2), false, true), 0);
    tc_h2_stream_read(call->stream);
    tc_h2_test_run(t);
}

void tc_h2_test_call_fini(struct tc_h2_test_call *call)
{
    if (call->stream)
        tc_h2_stream_cancel(call->stream, 8);
    call->stream = NULL;
    tc_buf_fini(&call->last);
    tc_arena_fini(&call->arena);
}

uint32_t tc_h2_test_u32(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;
    return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

size_t tc_h2_test_increments(struct tc_h2_peer *peer, uint32_t stream)
{
    const struct tc_h2p_frame *f;
    size_t sum = 0;
    while ((f = tc_h2_peer_next(peer)))
        if (f->type == TC_H2P_WINDOW_UPDATE && f->stream == stream)
            sum += tc_h2_test_u32(f->payload);
    return sum;
}

void tc_h2_test_open_reading(struct tc_h2_test_call *call, struct tc_h2_test *t, bool auto_read)
{
    tc_h2_test_call_init(call, t);
    call->auto_read = auto_read;
    assert_int_equal(tc_h2_test_open(call, &tc_h2_test_request), 0);
    assert_int_equal(tc_h2_stream_send(call->stream, tc_slice_of("hi", 2), false, true), 0);
    tc_h2_test_run(t);
}
