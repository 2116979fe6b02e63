/* bench/rpc's client on Torc, streams: one at a time blocking, several asynchronous. */
#include <stdlib.h>

#include "measure.h"
#include "rpc_torc.h"

struct stream {
    struct run *run;
    torc_call *call;
    uint64_t started_ns;
    unsigned due; /* outstanding halves of a message: taken by the stream, and echoed */
};

/* Receives a message. Returns NULL at the end, with the reason recorded. */
static torc_message *receive(struct run *r, torc_call *call)
{
    torc_message *message = NULL;
    if (torc_call_receive(call, &message) != 1) {
        struct torc_result result;
        torc_call_finish(call, &result);
        run_failed(r, result.code, result.message);
        torc_result_fini(&result);
    } else if (torc_message_size(message) != r->c.payload_size) {
        run_failed(r, 0, "a message of another size");
    }
    return message;
}

/* Blocking. With kind repeat, sends one message and counts all that come back. */
static void run_one(struct run *r)
{
    const struct client *c = &r->c;
    bool repeat = c->kind == CLIENT_REPEAT;
    torc_call *call = torc_call_open(r->channel, repeat ? CLIENT_METHOD_REPEAT : CLIENT_METHOD, NULL, NULL);
    uint64_t now = measure_wall_ns();
    r->failed = !call || (repeat && torc_call_send(call, c->payload, c->payload_size, true) != 0);
    while (!r->failed && !client_over(c, now)) {
        uint64_t started = now;
        if (!repeat)
            torc_call_send(call, c->payload, c->payload_size, false);
        torc_message_unref(receive(r, call));
        now = client_done(&r->c, started);
    }
    torc_call_cancel(call);
    torc_call_free(call);
}

static void send_next(struct stream *s)
{
    struct run *r = s->run;
    s->started_ns = measure_wall_ns();
    s->due = 2;
    torc_call_read(s->call);
    if (torc_call_write(s->call, r->c.payload, r->c.payload_size, false) != 0)
        run_failed(r, 0, "a message was refused");
}

/* Half of a message's way is done: it was taken, or its echo came. */
static void on_half(struct stream *s)
{
    struct run *r = s->run;
    if (--s->due > 0)
        return;
    uint64_t now = client_done(&r->c, s->started_ns);
    if (client_over(&r->c, now) || r->failed)
        torc_call_write_done(s->call);
    else
        send_next(s);
}

static void on_message(torc_call *call, torc_message *message, void *arg)
{
    struct stream *s = arg;
    (void)call;
    if (torc_message_size(message) != s->run->c.payload_size)
        run_failed(s->run, 0, "a message of another size");
    on_half(s);
}

static void on_written(torc_call *call, void *arg)
{
    (void)call;
    on_half(arg);
}

static void on_done(torc_call *call, const struct torc_result *result, void *arg)
{
    struct stream *s = arg;
    s->run->under_way--;
    if (result->code != TORC_STATUS_OK)
        run_failed(s->run, result->code, result->message);
    torc_call_free(call);
}

static void run_many(struct run *r)
{
    static const struct torc_call_events events = {
        .on_message = on_message, .on_written = on_written, .on_done = on_done};
    struct stream *streams = calloc(r->c.outstanding, sizeof(*streams));
    for (unsigned i = 0; streams && i < r->c.outstanding && !r->failed; i++) {
        torc_error *error = NULL;
        streams[i].run = r;
        streams[i].call = torc_call_start(r->channel, CLIENT_METHOD, NULL, &events, &streams[i], &error);
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
