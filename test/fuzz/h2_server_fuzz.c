/* An HTTP/2 server connection that echoes messages, while the peer sends arbitrary bytes (h2_script.h).
 *
 * A message that begins with 'd' is dropped, one that begins with 'x' ends its call. A message that comes while another
 * one is echoed is dropped, too. No event of a call comes after its end, no message after the half-close, and neither
 * message nor half-close after the status. Every call has ended when on_closed comes. struct run owns the calls, and
 * keeps them until the input ends, so that late events are seen. The streams are the connection's. One thread, on a
 * manual loop. */
#include "h2_script.h"

#include "base/mem.h"
#include "base/vec.h"
#include "http2/server_stream.h"

struct call {
    struct run *run;
    struct tc_h2_stream *stream; /* borrowed; gone once the call or its connection has ended */
    struct tc_rstr *message;     /* a reference: being echoed, or the one that ended the call; NULL: none */
    struct tc_timer deadline;
    bool half_closed, status_sent, ended;
};

struct run {
    struct tc_fuzz_h2 h2;
    TC_VEC(struct call *) calls;
    bool closed;
};

static int send_status(struct call *c, int code)
{
    const struct tc_status status = {.code = code};
    c->status_sent = true;
    return tc_h2_server_stream_send_status(c->stream, &status, NULL);
}

/* Called in a callback of the stream, which is still open then. */
static void finish(struct call *c, int code)
{
    TC_FUZZ_CHECK(send_status(c, code) == 0);
}

/* Called at any time: the stream may have ended, and on_end may not have come yet. */
static void finish_late(struct call *c, int code)
{
    int rc = send_status(c, code);
    TC_FUZZ_CHECK(rc == 0 || rc == TORC_ESTATE);
}

static void on_deadline(struct tc_timer *timer)
{
    struct call *c = TC_CONTAINER_OF(timer, struct call, deadline);
    TC_FUZZ_CHECK(!c->ended);
    if (c->run->h2.conn) /* NULL: the close of the connection has ended the stream */
        tc_h2_stream_cancel(c->stream, 8);
    c->ended = true;
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct call *c = arg;
    TC_FUZZ_CHECK(!c->ended && !c->half_closed && !c->status_sent && message->len <= 4096);
    if (c->message) { /* act asked for it while another message is being echoed; on_written asks for the next one */
        tc_rstr_unref(message);
        return;
    }
    if (message->len && message->data[0] == 'd') {
        tc_rstr_unref(message);
        tc_h2_stream_read(c->stream);
        return;
    }
    if (message->len && message->data[0] == 'x')
        finish(c, TORC_STATUS_INTERNAL);
    c->message = message;
    if (!c->status_sent)
        TC_FUZZ_CHECK(tc_h2_server_stream_send(c->stream, tc_rstr_slice(message), message->len > 9) == 0);
}

static void on_written(void *arg)
{
    struct call *c = arg;
    TC_FUZZ_CHECK(!c->ended && c->message);
    tc_rstr_unref(c->message);
    c->message = NULL;
    if (!c->status_sent)
        tc_h2_stream_read(c->stream);
}

static void on_half_close(void *arg)
{
    struct call *c = arg;
    TC_FUZZ_CHECK(!c->ended && !c->half_closed && !c->status_sent);
    c->half_closed = true;
    finish(c, TORC_STATUS_OK);
}

static void on_end(void *arg, const struct tc_status *why)
{
    struct call *c = arg;
    (void)why;
    TC_FUZZ_CHECK(!c->ended);
    tc_timer_stop(&c->deadline);
    c->ended = true;
}

static const struct tc_h2_server_events stream_events = {
    .stream = {.on_message = on_message, .on_written = on_written}, .on_half_close = on_half_close, .on_end = on_end};

static void on_stream(void *arg, struct tc_h2_stream *stream)
{
    struct run *r = arg;
    struct call *c = TC_NEW(struct call);
    const struct tc_headers *request = tc_h2_server_stream_request(stream);
    TC_FUZZ_CHECK(!r->closed && r->h2.conn);
    TC_FUZZ_CHECK(tc_headers_find(request, tc_slice_str(":path")));
    *tc_vec_push(&r->calls) = c;
    *c = (struct call){.run = r, .stream = stream};
    uint64_t timeout_ns = tc_h2_server_stream_timeout_ns(stream);
    tc_timer_init(&c->deadline, r->h2.loop, on_deadline);
    if (timeout_ns)
        tc_timer_start(&c->deadline, timeout_ns / TC_NS_PER_MS);
    tc_h2_server_stream_set_events(stream, &stream_events, c);
    if (tc_headers_find(request, tc_slice_str("te")))
        TC_FUZZ_CHECK(tc_h2_server_stream_send_headers(stream, NULL, TC_H2_GZIP) == 0);
    tc_h2_stream_read(stream);
}

static void on_closed(void *arg, const struct tc_status *why)
{
    struct run *r = arg;
    TC_FUZZ_CHECK(!r->closed && !tc_status_ok(why));
    for (size_t i = 0; i < r->calls.len; i++)
        TC_FUZZ_CHECK(r->calls.data[i]->ended);
    r->closed = true;
    tc_fuzz_h2_close(&r->h2);
}

static const struct tc_h2_conn_events conn_events = {.on_stream = on_stream, .on_closed = on_closed};

/* Does what the server does at this step. */
static void act(struct run *r, uint8_t op)
{
    struct call *c = r->calls.len ? r->calls.data[(op >> 4) % r->calls.len] : NULL;
    if (!r->h2.conn)
        return;
    switch (op & 15) {
    case 11:
        if (c && !c->ended && !c->status_sent)
            finish_late(c, TORC_STATUS_ABORTED);
        break;
    case 12:
        if (c && !c->ended) {
            tc_timer_stop(&c->deadline);
            on_deadline(&c->deadline);
        }
        break;
    case 13:
        if (c && !c->ended)
            tc_h2_stream_read(c->stream);
        break;
    case 14:
        tc_h2_conn_drain(r->h2.conn, "drained");
        break;
    case 15:
        if (op >= 0xf0)
            tc_fuzz_h2_close(&r->h2);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *r = TC_NEW(struct run);
    tc_fuzz_h2_init(&r->h2, data, size, true, &conn_events, r);
    while (r->h2.in.len) {
        uint8_t op = tc_fuzz_u8(&r->h2.in);
        act(r, op);
        tc_fuzz_h2_step(&r->h2, op);
    }
    tc_fuzz_h2_close(&r->h2);
    for (size_t i = 0; i < r->calls.len; i++) {
        tc_timer_stop(&r->calls.data[i]->deadline);
        tc_rstr_unref(r->calls.data[i]->message);
        tc_free(r->calls.data[i]);
    }
    tc_vec_fini(&r->calls);
    tc_fuzz_h2_fini(&r->h2);
    tc_free(r);
    return 0;
}
