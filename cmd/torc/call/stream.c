/* torc call: a call on a torc_stream, of any of the four kinds of methods.
 *
 * At most one response of a stream is in the queue of the run: the call asks for the next response after printing it.
 * run_push sends the requests that are there, until flow control takes no more. on_writable calls run_push again, and
 * call.c does so when standard input brought requests. struct one_call owns the stream until on_done frees it. */
#include "api/call_object.h"
#include "api/explain.h"
#include "base/mem.h"
#include "call/run.h"

bool run_uses_streams(const struct run *r)
{
    return !r->args.dry_run &&
           (r->args.timing || (r->types.method && (torc_schema_method_client_streams(r->types.method) ||
                                                   torc_schema_method_server_streams(r->types.method))));
}

void run_push(struct one_call *c)
{
    struct call_messages *m = c->messages;
    while (c->stream && !c->closed && c->next < m->list.len) {
        struct tc_buf *message = &m->list.data[c->next];
        bool last = m->ended && c->next + 1 == m->list.len;
        if (torc_stream_send(c->stream, message->data, message->len, last ? TORC_SEND_LAST : 0, 0) != 0)
            return; /* on_writable or on_done follows */
        c->closed = last;
        c->next++;
        c->sent++;
        if (!m->shared)
            tc_buf_fini(message);
    }
    if (!m->shared && !m->ended && c->next == m->list.len) /* so that the list does not grow with standard input */
        c->next = m->list.len = 0;
    if (c->stream && !c->closed && m->ended && torc_stream_half_close(c->stream) == 0)
        c->closed = true;
}

static uint64_t since_start_us(const struct one_call *c)
{
    return (run_now_ns() - c->begin_ns) / 1000;
}

static void on_headers(torc_stream *stream, const torc_metadata *headers, void *arg)
{
    struct one_call *c = arg;
    (void)stream;
    (void)headers;
    c->headers_us = since_start_us(c);
}

static void on_message(torc_stream *stream, const torc_message *message, void *arg)
{
    struct one_call *c = arg;
    if (!request_take_response(&c->run->types, stream, ++c->received))
        return;
    if (c->received == 1) {
        c->first_us = since_start_us(c);
        if (c->run->args.explain)
            c->explain = tc_strdup(tc_call_explain(&stream->core));
    }
    run_queue(c, message, NULL);
}

static void on_writable(torc_stream *stream, void *arg)
{
    (void)stream;
    run_push(arg);
}

static void on_done(torc_stream *stream, const torc_result *result, void *arg)
{
    struct one_call *c = arg;
    (void)stream;
    torc_stream_free(c->stream);
    c->stream = NULL;
    if (c->run->live == c)
        c->run->live = NULL;
    run_queue(c, NULL, result);
}

int run_start_stream(struct one_call *c, torc_channel *channel, const struct torc_call_options *options)
{
    static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_headers = on_headers,
                                                     .on_message = on_message, .on_writable = on_writable,
                                                     .on_done = on_done};
    torc_error *error = NULL;
    c->stream = torc_stream_start(channel, c->run->args.connect.method, options, &events, c, &error);
    int rc = c->stream ? 0 : torc_error_code(error);
    torc_error_free(error);
    if (rc != 0)
        return rc;
    if (!c->messages->ended)
        c->run->live = c;
    torc_stream_want(c->stream, 1);
    run_push(c);
    return 0;
}
