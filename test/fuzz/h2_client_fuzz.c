/* An HTTP/2 client connection with calls that come and go, while the peer sends arbitrary bytes (h2_script.h).
 *
 *   a call           on_headers comes at most once, before messages. No message is above the limit. on_done comes at
 *                    most once, and not after the client has cancelled the call.
 *   the connection   on_ready and on_closed come at most once each. on_closed has a reason. The text of a GOAWAY is
 *                    short and printable.
 *
 * end_call frees a call's arena and stops its timer, so that a sanitizer sees late uses. struct run owns the calls, and
 * the connection until on_closed comes or the script closes it. One thread, on a manual loop. */
#include "h2_script.h"

#include "base/mem.h"
#include "http2/client_stream.h"

#define CALLS 4

struct call {
    struct run *run;
    struct tc_h2_stream *stream; /* NULL: not opened, or ended by end_call */
    struct tc_arena arena;       /* in use while `stream` is not NULL */
    struct tc_timer deadline;
    bool open, headers_seen; /* open: not done, not cancelled, and not ended by the close of the connection */
    size_t messages;
};

struct run {
    struct tc_fuzz_h2 h2;
    struct call calls[CALLS];
    bool ready, closed;
};

/* Cancels the call if it is open, and frees its memory. */
static void end_call(struct call *c)
{
    if (c->open)
        tc_h2_stream_cancel(c->stream, 8);
    c->open = false;
    if (c->stream) {
        tc_timer_stop(&c->deadline);
        tc_arena_fini(&c->arena);
    }
    c->stream = NULL;
}

static void on_deadline(struct tc_timer *timer)
{
    end_call(TC_CONTAINER_OF(timer, struct call, deadline));
}

static void on_headers(void *arg, const struct tc_headers *headers)
{
    struct call *c = arg;
    TC_FUZZ_CHECK(c->open && !c->headers_seen && c->messages == 0);
    c->headers_seen = true;
    for (size_t i = 0; i < headers->len; i++)
        TC_FUZZ_CHECK(headers->data[i].name.len > 0 && headers->data[i].name.data[0] != ':');
    if (tc_headers_find(headers, tc_slice_str("te"))) {
        tc_h2_stream_cancel(c->stream, 8);
        c->open = false;
    }
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct call *c = arg;
    TC_FUZZ_CHECK(c->open && c->headers_seen && message->len <= 4096);
    c->messages++;
    if (message->len && message->data[0] == 'r')
        tc_h2_stream_read(c->stream);
    if (message->len && message->data[0] == 'c') {
        tc_h2_stream_cancel(c->stream, 8);
        c->open = false;
    }
    tc_rstr_unref(message);
}

static void on_done(void *arg, const struct tc_h2_outcome *outcome)
{
    struct call *c = arg;
    TC_FUZZ_CHECK(c->open && outcome->trailers);
    TC_FUZZ_CHECK(!outcome->trailers_only || !c->headers_seen);
    TC_FUZZ_CHECK(outcome->from_server || !tc_status_ok(&outcome->status));
    TC_FUZZ_CHECK(strlen(tc_status_text(&outcome->status)) == tc_rstr_slice(outcome->status.text).len);
    c->open = false;
}

static const struct tc_h2_client_events stream_events = {
    .stream = {.on_message = on_message}, .on_headers = on_headers, .on_done = on_done};

static void on_ready(void *arg)
{
    struct run *r = arg;
    TC_FUZZ_CHECK(!r->ready && !r->closed);
    r->ready = true;
}

static void on_draining(void *arg, const struct tc_status *why, bool too_many_pings)
{
    struct run *r = arg;
    (void)too_many_pings;
    TC_FUZZ_CHECK(!r->closed && !tc_status_ok(why));
    /* At most 256 bytes of a GOAWAY's debug text are shown, each as at most three characters. */
    TC_FUZZ_CHECK(why->text->len < 1024);
    for (size_t i = 0; i < why->text->len; i++)
        TC_FUZZ_CHECK(why->text->data[i] >= 0x20 && why->text->data[i] <= 0x7e);
}

static void on_closed(void *arg, const struct tc_status *why)
{
    struct run *r = arg;
    TC_FUZZ_CHECK(!r->closed && !tc_status_ok(why));
    for (size_t i = 0; i < CALLS; i++) /* only calls with a complete response may live on */
        TC_FUZZ_CHECK(!r->calls[i].open || r->calls[i].headers_seen);
    r->closed = true;
    tc_fuzz_h2_close(&r->h2);
}

static const struct tc_h2_conn_events conn_events = {
    .on_ready = on_ready, .on_draining = on_draining, .on_closed = on_closed};

/* Ends the call that `c` has, and opens a new one unless the connection is closed. Bit 6 of `flags`: gzip; bit 7: with
 * a deadline, whose milliseconds are the next byte of the script. */
static void begin_call(struct run *r, struct call *c, uint8_t flags)
{
    static struct tc_h2_request request;
    int error = 0;
    request = (struct tc_h2_request){.path = tc_slice_str("/a.B/C"),
                                     .authority = tc_slice_str("a"),
                                     .user_agent = tc_slice_str("torc"),
                                     .timeout_ns = 1000000000,
                                     .encoding = flags & 0x40 ? TC_H2_GZIP : TC_H2_IDENTITY};
    end_call(c);
    if (!r->h2.conn)
        return;
    tc_arena_init(&c->arena, 0, 0);
    *c = (struct call){.run = r, .arena = c->arena};
    c->stream = tc_h2_client_stream_open(r->h2.conn, &request, &c->arena, &stream_events, c, &error);
    TC_FUZZ_CHECK(c->stream || error == TORC_EAGAIN || error == TORC_ECLOSED);
    c->open = c->stream != NULL;
    if (!c->stream) {
        tc_arena_fini(&c->arena);
        return;
    }
    tc_timer_init(&c->deadline, r->h2.loop, on_deadline);
    if (flags & 0x80)
        tc_timer_start(&c->deadline, tc_fuzz_u8(&r->h2.in));
}

/* Does what the client does at this step. Bits 4 and 5 of `op` choose the call. */
static void act(struct run *r, uint8_t op)
{
    struct call *c = &r->calls[op >> 4 & 3];
    switch (op & 15) {
    case 11:
        begin_call(r, c, op);
        break;
    case 12:
        if (c->open)
            tc_h2_stream_read(c->stream);
        break;
    case 13:
        if (c->open)
            (void)tc_h2_stream_send(c->stream, tc_slice_str("some message"), op & 0x40, op & 0x80);
        break;
    case 14:
        if (op & 0x80)
            end_call(c);
        else if (c->open)
            (void)tc_h2_client_stream_send_end(c->stream);
        break;
    case 15:
        if (r->h2.conn && op >= 0xf0)
            tc_fuzz_h2_close(&r->h2);
        else if (r->h2.conn && op >= 0xe0)
            tc_h2_conn_drain(r->h2.conn, "drained");
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *r = TC_NEW(struct run);
    tc_fuzz_h2_init(&r->h2, data, size, false, &conn_events, r);
    while (r->h2.in.len) {
        uint8_t op = tc_fuzz_u8(&r->h2.in);
        bool had = r->h2.conn != NULL;
        act(r, op);
        tc_fuzz_h2_step(&r->h2, op);
        for (size_t i = 0; had && !r->h2.conn && !r->closed && i < CALLS; i++)
            if (r->calls[i].open && !tc_h2_stream_conn(r->calls[i].stream))
                r->calls[i].open = false; /* the close of the connection has ended it without a callback */
    }
    for (size_t i = 0; i < CALLS; i++)
        end_call(&r->calls[i]);
    tc_fuzz_h2_close(&r->h2);
    tc_fuzz_h2_fini(&r->h2);
    tc_free(r);
    return 0;
}
