/* Streams of bench/rpc's client on Torc: one stream blocks, several are asynchronous. */
#include <stdlib.h>

#include "measure.h"
#include "rpc_torc.h"

/* One of several streams. */
struct stream {
    struct run *run;
    torc_stream *call; /* freed by on_done */
    uint64_t started_ns;
};

/* Receives a message. Fails the run if the stream has ended, or if the message has another size than the payload. */
static void receive(struct run *r, torc_stream *call)
{
    const torc_message *message = NULL;
    if (torc_stream_receive(call, -1, &message) != 1) {
        torc_result *result = torc_stream_finish(call);
        run_failed(r, torc_result_code(result), torc_result_text(result));
        torc_result_free(result);
    } else if (torc_message_size(message) != r->c.payload_size) {
        run_failed(r, 0, "a message of another size");
    }
}

/* Runs one stream, blocking. With kind repeat, sends one message and counts all that come back. */
static void run_one(struct run *r)
{
    const struct client *c = &r->c;
    bool repeat = c->kind == CLIENT_REPEAT;
    torc_stream *call = torc_stream_open(r->channel, repeat ? CLIENT_METHOD_REPEAT : CLIENT_METHOD, NULL, NULL);
    uint64_t now = measure_wall_ns();
    r->failed = !call || (repeat && torc_stream_send(call, c->payload, c->payload_size, TORC_SEND_LAST, -1) != 0);
    while (!r->failed && !client_over(c, now)) {
        uint64_t started = now;
        if (!repeat)
            torc_stream_send(call, c->payload, c->payload_size, 0, -1);
        receive(r, call);
        now = client_done(&r->c, started);
    }
    torc_stream_cancel(call);
    torc_stream_free(call);
}

/* Sends the next message without waiting, and asks for its echo. */
static void send_next(struct stream *s)
{
    struct run *r = s->run;
    s->started_ns = measure_wall_ns();
    torc_stream_want(s->call, 1);
    if (torc_stream_send(s->call, r->c.payload, r->c.payload_size, 0, 0) != 0) {
        run_failed(r, 0, "a message was refused");
        torc_stream_cancel(s->call);
    }
}

/* The echo of a message has come, so the message was written, and the stream takes the next one at once. Once the run
 * is over or has failed, half-closes the stream instead, and on_done follows. */
static void on_echo(struct stream *s)
{
    struct run *r = s->run;
    uint64_t now = client_done(&r->c, s->started_ns);
    if (client_over(&r->c, now) || r->failed)
        torc_stream_half_close(s->call);
    else
        send_next(s);
}

static void on_message(torc_stream *call, const torc_message *message, void *arg)
{
    struct stream *s = arg;
    (void)call;
    if (torc_message_size(message) != s->run->c.payload_size)
        run_failed(s->run, 0, "a message of another size");
    on_echo(s);
}

static void on_done(torc_stream *call, const torc_result *result, void *arg)
{
    struct stream *s = arg;
    s->run->under_way--;
    if (torc_result_code(result) != TORC_STATUS_OK)
        run_failed(s->run, torc_result_code(result), torc_result_text(result));
    torc_stream_free(call);
}

/* Runs the streams until all of them have ended. */
static void run_many(struct run *r)
{
    static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_message = on_message,
                                                     .on_done = on_done};
    struct stream *streams = calloc(r->c.outstanding, sizeof(*streams));
    for (unsigned i = 0; streams && i < r->c.outstanding && !r->failed; i++) {
        torc_error *error = NULL;
        streams[i].run = r;
        streams[i].call = torc_stream_start(r->channel, CLIENT_METHOD, NULL, &events, &streams[i], &error);
        if (!streams[i].call) {
            run_failed(r, 0, torc_error_text(error));
            torc_error_free(error);
            break;
        }
        r->under_way++;
        send_next(&streams[i]);
    }
    while (r->under_way)
        torc_runtime_poll(r->runtime, -1);
    free(streams);
}

void run_streams(struct run *r)
{
    if (r->c.outstanding == 1)
        run_one(r);
    else
        run_many(r);
}
