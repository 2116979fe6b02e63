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

/* Fails the run with the status of a stream that has ended. */
static void fail_ended(struct run *r, torc_stream *call)
{
    torc_result *result = torc_stream_finish(call);
    run_failed(r, torc_result_code(result), torc_result_text(result));
    torc_result_free(result);
}

/* Sends the payload. If the stream has ended, fails the run and returns false. */
static bool send_payload(struct run *r, torc_stream *call, unsigned flags)
{
    if (torc_stream_send(call, r->c.payload, r->c.payload_size, flags, -1) == 0)
        return true;
    fail_ended(r, call);
    return false;
}

/* Receives a message. If the stream has ended, or if the message has another size than the payload, fails the run and
 * returns false. */
static bool receive(struct run *r, torc_stream *call)
{
    const torc_message *message = NULL;
    if (torc_stream_receive(call, -1, &message) != 1) {
        fail_ended(r, call);
        return false;
    }
    if (torc_message_size(message) != r->c.payload_size) {
        run_failed(r, 0, "a message of another size");
        return false;
    }
    return true;
}

/* Runs one stream, blocking. With kind repeat, sends one message and counts all that come back. */
static void run_one(struct run *r)
{
    bool repeat = r->c.kind == CLIENT_REPEAT;
    torc_error *error = NULL;
    torc_stream *call = torc_stream_open(r->channel, repeat ? CLIENT_METHOD_REPEAT : CLIENT_METHOD, NULL, &error);
    if (!call) {
        run_failed(r, 0, torc_error_text(error));
        torc_error_free(error);
        return;
    }
    uint64_t now = measure_wall_ns();
    bool ok = !repeat || send_payload(r, call, TORC_SEND_LAST);
    while (ok && !client_over(&r->c, now)) {
        ok = (repeat || send_payload(r, call, 0)) && receive(r, call);
        if (ok)
            now = client_done(&r->c, now);
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
 * is over or has failed, half-closes the stream instead, and on_done follows. An echo of another size is not
 * counted. */
static void on_message(torc_stream *call, const torc_message *message, void *arg)
{
    struct stream *s = arg;
    struct run *r = s->run;
    bool good = torc_message_size(message) == r->c.payload_size;
    if (!good)
        run_failed(r, 0, "a message of another size");
    if ((good && client_over(&r->c, client_done(&r->c, s->started_ns))) || r->failed)
        torc_stream_half_close(call);
    else
        send_next(s);
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
