/* An HTTP/2 client connection over fakes/pipe, against fakes/h2.
 *
 * Callbacks of connection and calls are recorded as short texts and counts in struct kit_h2 and kit_h2_call; `hook`
 * lets a test act from inside a callback. The callbacks assert that a call has no event after on_done. Nothing runs by
 * itself: kit_h2_run drives the loop on the test's thread, and the test takes the peer's frames.
 *
 * The kit owns loop, pipe and peer, and the connection until kit_h2_close. A call owns its arena, which must outlive
 * the stream: kit_h2_call_fini cancels the stream first. */
#include "support/kits/h2.h"

#include <stdio.h>

#include "support/cmocka.h"

#define LITERAL(text)                                                                                                  \
    {                                                                                                                  \
        text, sizeof(text) - 1                                                                                         \
    }

const struct tc_h2_request kit_h2_request = {
    .path = LITERAL("/test.Echo/Say"), .authority = LITERAL("localhost"), .user_agent = LITERAL("torc-test")};

static void conn_event(struct kit_h2 *t, const char *event, const struct tc_status *why)
{
    if (why)
        snprintf(t->why, sizeof(t->why), "%s", tc_status_text(why));
    if (t->hook)
        t->hook(t, event);
}

static void on_ready(void *arg)
{
    struct kit_h2 *t = arg;
    t->ready++;
    conn_event(t, "ready", NULL);
}

static void on_capacity(void *arg)
{
    struct kit_h2 *t = arg;
    t->capacity++;
    conn_event(t, "capacity", NULL);
}

static void on_draining(void *arg, const struct tc_status *why, bool too_many_pings)
{
    struct kit_h2 *t = arg;
    t->draining++;
    t->too_many_pings = too_many_pings;
    conn_event(t, "draining", why);
}

static void on_closed(void *arg, const struct tc_status *why)
{
    struct kit_h2 *t = arg;
    assert_int_not_equal(why->code, TORC_STATUS_OK);
    t->closed++;
    conn_event(t, "closed", why);
}

static const struct tc_h2_conn_events conn_events = {
    .on_ready = on_ready, .on_capacity = on_capacity, .on_draining = on_draining, .on_closed = on_closed};

void kit_h2_init_silent(struct kit_h2 *t, const struct tc_h2_opts *opts, size_t read_chunk)
{
    memset(t, 0, sizeof(*t));
    if (opts) {
        t->opts = *opts;
    } else {
        tc_h2_opts_init(&t->opts, false);
        t->opts.no_bdp = true;
    }
    t->loop = tc_loop_new(&(struct tc_loop_opts){.manual = true, .seeded = true, .seed = 1});
    t->pipe = fake_pipe_new(t->loop);
    fake_pipe_set_read_chunk(t->pipe, read_chunk);
    t->peer = fake_h2_new(t->pipe, 1, true);
    t->conn = tc_h2_conn_new(t->loop, fake_pipe_end(t->pipe, 0), &t->opts, &conn_events, t);
    kit_h2_run(t);
}

void kit_h2_init(struct kit_h2 *t, const struct tc_h2_opts *opts, size_t read_chunk)
{
    kit_h2_init_silent(t, opts, read_chunk);
    fake_h2_start(t->peer);
    kit_h2_run(t);
    assert_int_equal(t->ready, 1);
}

void kit_h2_run(struct kit_h2 *t)
{
    tc_loop_drain(t->loop);
}

void kit_h2_close(struct kit_h2 *t)
{
    if (t->conn)
        tc_h2_conn_close(t->conn);
    t->conn = NULL;
}

void kit_h2_fini(struct kit_h2 *t)
{
    kit_h2_close(t);
    tc_loop_drain(t->loop);
    fake_h2_free(t->peer);
    fake_pipe_free(t->pipe);
    tc_loop_free(t->loop);
}

static void call_event(struct kit_h2_call *call, const char *event)
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
    struct kit_h2_call *call = arg;
    assert_int_equal(call->done, 0);
    call->headers++;
    headers_text(call->header_text, sizeof(call->header_text), headers);
    call_event(call, "headers");
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct kit_h2_call *call = arg;
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
    struct kit_h2_call *call = arg;
    assert_int_equal(call->done, 0);
    call->written++;
    call_event(call, "written");
}

static void on_done(void *arg, const struct tc_h2_outcome *outcome)
{
    struct kit_h2_call *call = arg;
    assert_int_equal(call->done, 0);
    call->done++;
    call->stream = NULL;
    call->code = outcome->status.code;
    snprintf(call->text, sizeof(call->text), "%s", tc_status_text(&outcome->status));
    call->unprocessed = outcome->unprocessed;
    call->unsent = outcome->unsent;
    call->refused = outcome->rejected;
    call->from_server = outcome->from_server;
    call->trailers_only = outcome->trailers_only;
    headers_text(call->trailer_text, sizeof(call->trailer_text), outcome->trailers);
    call_event(call, "done");
}

static const struct tc_h2_client_events call_events = {
    .stream = {.on_message = on_message, .on_written = on_written}, .on_headers = on_headers, .on_done = on_done};

void kit_h2_call_init(struct kit_h2_call *call, struct kit_h2 *t)
{
    memset(call, 0, sizeof(*call));
    call->t = t;
    call->code = -1;
    tc_arena_init(&call->arena, 0, 0);
    tc_headers_init(&call->metadata, &call->arena);
}

int kit_h2_open(struct kit_h2_call *call, const struct tc_h2_request *request)
{
    int error = 0;
    struct tc_h2_request r = *request;
    if (!r.metadata)
        r.metadata = &call->metadata;
    call->stream = tc_h2_client_stream_open(call->t->conn, &r, &call->arena, &call_events, call, &error);
    assert_true(call->stream ? error == 0 : error < 0);
    return error;
}

void kit_h2_unary(struct kit_h2_call *call, struct kit_h2 *t)
{
    kit_h2_call_init(call, t);
    call->auto_read = true;
    assert_int_equal(kit_h2_open(call, &kit_h2_request), 0);
    assert_int_equal(tc_h2_stream_send(call->stream, tc_slice_of("hi", 2), false, true), 0);
    tc_h2_stream_read(call->stream);
    kit_h2_run(t);
}

void kit_h2_call_fini(struct kit_h2_call *call)
{
    if (call->stream)
        tc_h2_stream_cancel(call->stream, 8);
    call->stream = NULL;
    tc_buf_fini(&call->last);
    tc_arena_fini(&call->arena);
}

uint32_t kit_h2_u32(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;
    return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

size_t kit_h2_increments(struct fake_h2 *peer, uint32_t stream)
{
    const struct fake_h2_frame *f;
    size_t sum = 0;
    while ((f = fake_h2_next(peer)))
        if (f->type == FAKE_H2_WINDOW_UPDATE && f->stream == stream)
            sum += kit_h2_u32(f->payload);
    return sum;
}

void kit_h2_open_reading(struct kit_h2_call *call, struct kit_h2 *t, bool auto_read)
{
    kit_h2_call_init(call, t);
    call->auto_read = auto_read;
    assert_int_equal(kit_h2_open(call, &kit_h2_request), 0);
    assert_int_equal(tc_h2_stream_send(call->stream, tc_slice_of("hi", 2), false, true), 0);
    kit_h2_run(t);
}
