/* torc bench: RPCs with streams of messages.
 *
 * With --stream-interval, message n of an RPC, counted from 0, is due n intervals after the RPC was to begin, however
 * late earlier messages went. As in open loop, late messages catch up, and the latency of response n counts from when
 * request n was due. An RPC has one timer, for its next message or the end of --call-duration. on_writable says when
 * flow control takes messages again.
 *
 * From bench_start_stream to on_done an RPC is in b->streaming, owns its stream, and has its timer set if it waits for
 * a time. It sends until `half_closed`. Once it is `ended`, it drops the messages that still come. */
#include "base/mem.h"
#include "bench/bench.h"

enum { WANTED_MESSAGES = 64 }; /* responses of an RPC that are asked for ahead */

/* Returns when message n of the RPC is to be sent; UINT64_MAX: never. Without --stream-interval, that is when the RPC
 * was to begin. */
static uint64_t due_ns(const struct bench_call *c, uint64_t n)
{
    uint64_t due;
    bool never = __builtin_mul_overflow(n, c->bench->args.stream_interval_ns, &due) ||
                 __builtin_add_overflow(due, c->begin_ns, &due);
    return never ? UINT64_MAX : due;
}

/* Ends the RPC as --call-duration and --call-count ask: half-closes a stream of requests, cancels any other RPC. */
static void end(struct bench_call *c)
{
    c->half_closed = true;
    if (c->bench->takes_stream) {
        torc_stream_half_close(c->stream); /* fails if the RPC is over */
        return;
    }
    c->ended = true;
    torc_stream_cancel(c->stream);
}

/* Sends the next message. Returns false if flow control does not take it or the RPC has ended; also if a placeholder
 * makes JSON that the method's type refuses, which ends the RPC and the load. */
static bool send_next(struct bench_call *c)
{
    struct bench *b = c->bench;
    const struct bench_requests *q = &b->requests;
    struct tc_slice message;
    /* RPCs take the requests in turn: the first request of RPC i is number i * each, modulo the list's length. */
    uint64_t n = (c->i % q->list.len * (q->each % q->list.len) + c->sent) % q->list.len;
    if (!bench_request_of(b, c->i, n, &message)) {
        b->refused = true;
        torc_stream_cancel(c->stream);
        return false;
    }
    bool last = c->sent + 1 == q->each;
    if (torc_stream_send(c->stream, message.data, message.len, last ? TORC_SEND_LAST : 0, 0) != 0)
        return false; /* on_writable follows, or the end */
    if (!c->probe_ns) {
        c->probe_ns = bench_now_ns();
        c->probe = c->sent;
    }
    c->sent++;
    c->half_closed = last;
    if (bench_is_counted(c))
        b->sent++;
    return true;
}

/* Sends the messages that are due, ends the RPC if its time is over, and sets its timer. The first message goes even if
 * the time is over. */
static void push(struct bench_call *c)
{
    struct bench *b = c->bench;
    uint64_t now = bench_now_ns(), next = UINT64_MAX;
    bool taken = true;
    while (taken && !c->half_closed && (next = due_ns(c, c->sent)) <= now &&
           (c->sent == 0 || (b->args.stream_interval_ns ? next : now) < c->over_ns))
        taken = send_next(c);
    if (now >= c->over_ns && !c->ended && !(c->half_closed && b->takes_stream))
        end(c);
    bool sends = taken && !c->half_closed, runs = !c->ended && !(c->half_closed && b->takes_stream);
    bench_timer_set(&b->timers, &c->timer, TC_MIN(sends ? next : UINT64_MAX, runs ? c->over_ns : UINT64_MAX));
}

/* Returns when the latency of the next response begins; 0: its latency is not measured.
 *
 *   no stream of requests    When the response before came, or the RPC began.
 *   --stream-interval        When the request of the same number was due.
 *   else                     When the probe was sent (probe_ns). Only the probe's response is measured; then the next
 *                            request that is sent becomes the probe. */
static uint64_t from_ns(struct bench_call *c)
{
    if (!c->bench->takes_stream)
        return c->last_ns;
    if (c->bench->args.stream_interval_ns)
        return c->received < c->sent ? due_ns(c, c->received) : 0;
    uint64_t probe_ns = c->received == c->probe ? c->probe_ns : 0;
    if (probe_ns)
        c->probe_ns = 0;
    return probe_ns;
}

static void on_message(torc_stream *stream, const torc_message *message, void *arg)
{
    struct bench_call *c = arg;
    struct bench *b = c->bench;
    uint64_t now = bench_now_ns();
    uint64_t from = from_ns(c);
    (void)message;
    if (c->ended)
        return;
    if (!request_take_response(&b->types, stream, ++c->received))
        return;
    c->last_ns = now;
    b->received += bench_is_counted(c);
    if (bench_is_counted(c) && from)
        histogram_add(&b->message_ns, now > from ? now - from : 0);
    if (c->received == b->most_received)
        end(c);
    torc_stream_want(stream, 1);
}

static void on_writable(torc_stream *stream, void *arg)
{
    (void)stream;
    push(arg);
}

static void on_done(torc_stream *stream, const torc_result *result, void *arg)
{
    struct bench_call *c = arg;
    (void)stream;
    bench_timer_set(&c->bench->timers, &c->timer, UINT64_MAX);
    torc_stream_free(c->stream);
    c->stream = NULL;
    if (c->prev)
        c->prev->next = c->next;
    else
        c->bench->streaming = c->next;
    if (c->next)
        c->next->prev = c->prev;
    bench_call_ended(c, result);
}

int bench_start_stream(struct bench_call *c, torc_channel *channel)
{
    static const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_message = on_message,
                                                     .on_writable = on_writable, .on_done = on_done};
    struct bench *b = c->bench;
    torc_error *error = NULL;
    c->stream = torc_stream_start(channel, b->types.path, &b->call_options, &events, c, &error);
    int rc = c->stream ? 0 : torc_error_code(error);
    torc_error_free(error);
    if (rc != 0)
        return rc;
    c->next = b->streaming;
    if (c->next)
        c->next->prev = c;
    b->streaming = c;
    c->last_ns = c->begin_ns;
    /* With --stream-interval, --call-duration counts from the intended start, so that an RPC that starts late sends as
     * many messages as one that starts on time. */
    uint64_t from = b->args.stream_interval_ns ? c->begin_ns : bench_now_ns();
    c->over_ns = b->args.call_duration_ns > UINT64_MAX - from ? UINT64_MAX : from + b->args.call_duration_ns;
    torc_stream_want(c->stream, (uint32_t)TC_MIN(b->most_received, (uint64_t)WANTED_MESSAGES));
    push(c);
    return 0;
}

uint64_t bench_streams_due_ns(const struct bench *b)
{
    const struct bench_timer *first = bench_timers_first(&b->timers);
    return first ? first->due_ns : UINT64_MAX;
}

void bench_streams_turn(struct bench *b)
{
    struct bench_timer *first;
    uint64_t now = bench_now_ns();
    while ((first = bench_timers_first(&b->timers)) && first->due_ns <= now)
        push(TC_CONTAINER_OF(first, struct bench_call, timer));
}
