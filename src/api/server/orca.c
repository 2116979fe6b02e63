/* ORCA of servers: what the application sets, and reports out of band (A51). The values are in load.c.
 *
 * The events and the timer of a stream of OpenRcaService run on the loop of its call, except the event `release` after
 * the end of that loop. When the server begins to stop, the home's loop, which may be another one, ends the stream. The
 * thread that sets `ended`, under streams_mutex, finishes the call, and no other thread does. The call's event
 * `release`, which comes after that, frees the stream. streams_mutex is taken before the runtime's lock. A report is
 * left out while the last one is unwritten: the next report has all values anyway.
 *
 * torc_orca is reference-counted: by the application's handle, the server's method (until its release) and each
 * stream. In a child of a fork the application's functions leave it alone: a thread of the parent may have locked the
 * mutex of the values. */
#include "api/server/orca.h"

#include <pthread.h>

#include "api/server/call_object.h"
#include "base/buf.h"
#include "base/fork.h"
#include "base/mem.h"
#include "base/thread.h"
#include "io/loop.h"
#include "proto/wire.h"

#define METHOD "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics"
#define STOPPING "the server is being stopped"

enum {
    MAX_REQUEST = 4096,           /* bytes */
    LEAST_INTERVAL_MS = 30000,    /* unless the application gives another */
    MAX_INTERVAL_MS = 1000000000, /* eleven days */
};

struct torc_orca {
    struct tc_ref ref;
    unsigned generation; /* tc_fork_generation when the reports began */
    uint64_t least_ms;   /* the shortest interval; constant */
    pthread_mutex_t streams_mutex;
    /* Under streams_mutex: */
    struct tc_link streams; /* the streams that on_stopping is to end */
    bool stopping;          /* the server stops: new streams are refused */

    struct tc_server_load *load; /* a reference */
};

struct orca_stream {
    struct tc_link link;    /* under streams_mutex */
    bool ended;             /* under streams_mutex: the call is being finished, or was */
    torc_orca *orca;        /* a reference */
    torc_server_call *call; /* valid until the thread that set `ended` finishes the call */

    /* Loop: */
    struct tc_timer timer;
    bool timed; /* on_message has made the timer, and timer_end was not called */
    uint64_t interval_ms;
};

static void orca_unref(torc_orca *o)
{
    if (!tc_ref_dec(&o->ref))
        return;
    pthread_mutex_destroy(&o->streams_mutex);
    tc_server_load_unref(o->load);
    tc_free(o);
}

/* --- out of band --- */

/* Reads a google.protobuf.Duration {seconds = 1, nanos = 2} as milliseconds. Negative numbers count as 0, and more than
 * 10^9 seconds as 10^9. Returns false if the bytes are malformed. */
static bool duration_read(struct tc_slice bytes, uint64_t *ms)
{
    struct tc_wire_field f;
    int64_t seconds = 0, nanos = 0;
    while (bytes.len) {
        if (!tc_wire_next(&bytes, &f))
            return false;
        if (f.number == 1)
            seconds = (int64_t)f.varint;
        else if (f.number == 2)
            nanos = (int64_t)f.varint;
    }
    seconds = TC_MAX(TC_MIN(seconds, (int64_t)MAX_INTERVAL_MS), (int64_t)0);
    nanos = TC_MAX(TC_MIN(nanos, (int64_t)999999999), (int64_t)0);
    *ms = (uint64_t)seconds * 1000 + (uint64_t)nanos / 1000000;
    return true;
}

uint64_t tc_orca_interval_ms(struct tc_slice request, uint64_t least_ms)
{
    struct tc_wire_field f;
    uint64_t ms = 0;
    while (request.len) {
        if (!tc_wire_next(&request, &f) || (f.number == 1 && f.is_bytes && !duration_read(f.value, &ms)))
            return 0;
    }
    return TC_MAX(TC_MIN(ms, (uint64_t)MAX_INTERVAL_MS), least_ms);
}

/* Sends the values, and starts the timer for the next report. On the call's loop, with streams_mutex held. */
static void stream_report(struct orca_stream *s)
{
    struct tc_buf report = {0};
    tc_server_load_append(&report, s->orca->load, NULL);
    torc_server_call_send(s->call, report.data, report.len, 0, 0); /* TORC_EAGAIN: the last one is unwritten */
    tc_buf_fini(&report);
    tc_timer_start(&s->timer, s->interval_ms);
}

static void on_timer(struct tc_timer *timer)
{
    struct orca_stream *s = TC_CONTAINER_OF(timer, struct orca_stream, timer);
    pthread_mutex_lock(&s->orca->streams_mutex);
    if (!s->ended)
        stream_report(s);
    pthread_mutex_unlock(&s->orca->streams_mutex);
}

/* Finishes the call, unless another thread finishes it. The stream may be gone when the function returns. */
static void stream_end(struct orca_stream *s, int code, const char *text)
{
    pthread_mutex_lock(&s->orca->streams_mutex);
    bool ends = !s->ended;
    s->ended = true;
    tc_list_remove(&s->link);
    pthread_mutex_unlock(&s->orca->streams_mutex);
    if (ends)
        torc_server_call_finish(s->call, code, text, NULL);
}

static void on_message(torc_server_call *call, const torc_message *message, void *arg)
{
    struct orca_stream *s = arg;
    torc_orca *o = s->orca;
    struct tc_slice request = tc_slice_of(torc_message_data(message), torc_message_size(message));
    s->interval_ms = tc_orca_interval_ms(request, o->least_ms);
    if (!s->interval_ms) {
        stream_end(s, TORC_STATUS_INTERNAL, "malformed OrcaLoadReportRequest");
        return;
    }
    pthread_mutex_lock(&o->streams_mutex);
    if (!s->ended) {
        tc_timer_init(&s->timer, tc_runtime_loop(call->rt), on_timer);
        s->timed = true;
        stream_report(s);
    }
    pthread_mutex_unlock(&o->streams_mutex);
}

static void on_half_close(torc_server_call *call TC_UNUSED, void *arg)
{
    stream_end(arg, TORC_STATUS_INTERNAL, "no OrcaLoadReportRequest came");
}

static void timer_end(struct orca_stream *s)
{
    if (s->timed)
        tc_timer_stop(&s->timer);
    s->timed = false;
}

static void on_cancel(torc_server_call *call TC_UNUSED, void *arg)
{
    timer_end(arg); /* on_release would be too late: it may run on another thread when the loop has ended */
    stream_end(arg, TORC_STATUS_CANCELLED, NULL);
}

static void on_release(void *arg)
{
    struct orca_stream *s = arg;
    timer_end(s);
    orca_unref(s->orca);
    tc_free(s);
}

static const struct torc_server_call_events events = {TORC_SIZE(torc_server_call_events), .on_message = on_message,
                                                      .on_half_close = on_half_close, .on_cancel = on_cancel,
                                                      .release = on_release};

static void on_stream(torc_server_call *call, void *arg)
{
    struct orca_stream *s = TC_NEW(struct orca_stream);
    s->orca = arg;
    s->call = call;
    tc_list_init(&s->link);
    tc_ref_inc(&s->orca->ref);
    call->unwritten.room = 0; /* one report at a time waits to be written */
    if (torc_server_call_set_events(call, &events, s) != 0) {
        on_release(s);
        torc_server_call_finish(call, TORC_STATUS_CANCELLED, NULL, NULL);
        return;
    }
    pthread_mutex_lock(&s->orca->streams_mutex);
    bool stopping = s->orca->stopping;
    if (!stopping)
        tc_list_append(&s->orca->streams, &s->link);
    pthread_mutex_unlock(&s->orca->streams_mutex);
    if (stopping)
        stream_end(s, TORC_STATUS_UNAVAILABLE, STOPPING);
    else
        torc_server_call_want(call, 1);
}

/* Takes a stream off the list and returns it; NULL: the list is empty. The caller must finish the stream's call, and
 * must not use the stream afterwards. New streams are refused from now on. */
static struct orca_stream *stream_take(torc_orca *o)
{
    pthread_mutex_lock(&o->streams_mutex);
    struct tc_link *link = tc_list_pop(&o->streams);
    struct orca_stream *s = link ? TC_CONTAINER_OF(link, struct orca_stream, link) : NULL;
    if (s)
        s->ended = true;
    o->stopping = true;
    pthread_mutex_unlock(&o->streams_mutex);
    return s;
}

/* The server begins to stop. On the home's loop. */
static void on_stopping(void *arg)
{
    struct orca_stream *s;
    while ((s = stream_take(arg)))
        torc_server_call_finish(s->call, TORC_STATUS_UNAVAILABLE, STOPPING, NULL);
}

/* --- the application --- */

static bool is_of_parent(const torc_orca *o)
{
    return o->generation != tc_fork_generation();
}

static void on_method_release(void *arg)
{
    orca_unref(arg);
}

torc_orca *torc_orca_new(torc_server *server, int64_t min_interval_ms, torc_error **error)
{
    TC_NO_CANCEL;
    if (tc_error_pending(error))
        return NULL;
    if (!server || min_interval_ms < -1) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "the server must not be NULL, nor the interval below -1");
        return NULL;
    }
    torc_orca *o = TC_NEW(torc_orca);
    const struct torc_handler handler = {TORC_SIZE(torc_handler), .stream = on_stream, .release = on_method_release,
                                         .arg = o};
    tc_ref_init(&o->ref);
    o->generation = tc_fork_generation();
    tc_list_init(&o->streams);
    pthread_mutex_init(&o->streams_mutex, NULL);
    o->load = tc_server_load_new();
    o->least_ms = min_interval_ms > 0 ? (uint64_t)min_interval_ms : LEAST_INTERVAL_MS;
    bool serves = min_interval_ms >= 0;
    if (serves)
        tc_ref_inc(&o->ref);
    const struct tc_method_spec method = {METHOD, handler, MAX_REQUEST, on_stopping};
    if (tc_api_server_add(server, &method, serves, o->load, error) == 0)
        return o;
    if (serves)
        orca_unref(o);
    orca_unref(o);
    return NULL;
}

/* Returns 0 if the value of the server may be set or dropped, else the code for the function to return. */
static int value_check(const torc_orca *o, int metric, const char *name)
{
    if (!o || !tc_load_metric_is_good(metric, name, true))
        return TORC_EINVAL;
    return is_of_parent(o) ? TORC_EFORK : 0;
}

int torc_orca_set(torc_orca *o, int metric, const char *name, double value)
{
    TC_NO_CANCEL;
    int rc = value_check(o, metric, name);
    return rc ? rc : tc_server_load_set(o->load, metric, name, value);
}

int torc_orca_clear(torc_orca *o, int metric, const char *name)
{
    TC_NO_CANCEL;
    int rc = value_check(o, metric, name);
    if (rc != 0)
        return rc;
    return tc_server_load_clear(o->load, metric, name) ? 0 : TORC_ENOTFOUND;
}

int torc_orca_record(torc_server_call *c, int metric, const char *name, double value)
{
    TC_NO_CANCEL;
    int rc = c && tc_load_metric_is_good(metric, name, false) ? tc_runtime_check(c->rt) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    tc_api_call_hold(c);
    tc_runtime_lock(c->rt);
    rc = tc_api_call_state(c);
    if (rc == 0)
        rc = tc_load_set(&c->ending.load, &c->sent, metric, name, value);
    tc_runtime_unlock(c->rt);
    tc_api_call_drop(c);
    return rc;
}

void torc_orca_free(torc_orca *o)
{
    if (o && !is_of_parent(o))
        orca_unref(o);
}
