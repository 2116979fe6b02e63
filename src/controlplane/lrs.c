/* The load reporting server (LRS).
 *
 * The first request of a stream is answered with what to report and how often. Each request, the first one included,
 * goes to the observer. tc_lrs_set sends the new settings on every stream whose first request came. A mute server
 * sends no settings until it is no longer mute, for tests of clients that wait for the answer.
 *
 * The response is packed in tc_lrs_set and shared by all streams. A stream belongs to its call: the stream is freed
 * when the call ends, or by tc_lrs_free if the server ended first. Everything runs on the server's loop thread. */
#include "controlplane/lrs.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "controlplane/request.h"
#include "proto/pack.h"

#define METHOD "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats"

enum { INTERVAL_MS = 10000 };

typedef Envoy__Service__LoadStats__V3__LoadStatsRequest load_request;

struct tc_lrs {
    struct tc_link streams; /* of struct lrs_stream */
    size_t n_streams;       /* in `streams` */
    uint64_t so_far;        /* streams that were opened; the number of the last one */
    struct tc_buf response; /* the settings: a LoadStatsResponse, serialised */
    bool mute;
    tc_lrs_report_fn on_report; /* NULL: no observer */
    void *arg;                  /* of on_report */
};

struct lrs_stream {
    struct tc_link link;
    struct tc_lrs *lrs;          /* borrowed */
    struct tc_server_call *call; /* borrowed */
    struct tc_rstr *node_id;     /* NULL: no request had a node yet */
    uint64_t id;
    bool asked;    /* the first request came */
    bool answered; /* the present settings were sent */
    bool ended;    /* the call got its status */
};

/* --- responses --- */

/* Sends the settings if the stream has asked and lacks them. Does nothing while the server is mute. */
static void lrs_stream_respond(struct lrs_stream *s)
{
    if (s->ended || !s->asked || s->answered || s->lrs->mute)
        return;
    s->answered = true;
    tc_server_call_send(s->call, tc_buf_slice(&s->lrs->response));
}

void tc_lrs_set(struct tc_lrs *l, const struct tc_lrs_config *config)
{
    Envoy__Service__LoadStats__V3__LoadStatsResponse response =
        ENVOY__SERVICE__LOAD_STATS__V3__LOAD_STATS_RESPONSE__INIT;
    Google__Protobuf__Duration interval = GOOGLE__PROTOBUF__DURATION__INIT;
    interval.seconds = (int64_t)(config->interval_ms / 1000);
    interval.nanos = (int32_t)(config->interval_ms % 1000) * 1000000;
    response.load_reporting_interval = &interval;
    response.n_clusters = config->n_clusters;
    response.clusters = (char **)(uintptr_t)config->clusters;
    response.send_all_clusters = config->send_all_clusters;
    response.report_endpoint_granularity = config->endpoint_granularity;
    tc_buf_clear(&l->response);
    tc_pack(&response.base, &l->response);
    TC_LIST_FOREACH(link, &l->streams)
    {
        struct lrs_stream *s = TC_CONTAINER_OF(link, struct lrs_stream, link);
        s->answered = false;
        lrs_stream_respond(s);
    }
}

/* --- streams --- */

static struct tc_status lrs_on_request(void *arg, const ProtobufCMessage *message)
{
    struct lrs_stream *s = arg;
    const load_request *request = (const load_request *)message;
    bool first = !s->asked;
    s->asked = true;
    if (!s->node_id && request->node)
        s->node_id = tc_rstr_str(request->node->id);
    struct tc_lrs_report report = {s->id, first, tc_rstr_slice(s->node_id), request};
    if (s->lrs->on_report)
        s->lrs->on_report(s->lrs->arg, &report);
    lrs_stream_respond(s);
    return (struct tc_status){0};
}

static void lrs_stream_end(struct lrs_stream *s, int code, const char *text)
{
    if (s->ended)
        return;
    s->ended = true;
    tc_server_call_finish(s->call, code, text, NULL);
}

static void lrs_on_message(void *arg, struct tc_rstr *message)
{
    struct lrs_stream *s = arg;
    if (!s->ended) {
        struct tc_status status = tc_request_unpack(&envoy__service__load_stats__v3__load_stats_request__descriptor,
                                                    tc_rstr_slice(message), lrs_on_request, s);
        if (tc_status_ok(&status)) {
            tc_server_call_read(s->call);
        } else {
            TC_LOG(TC_LOG_SERVER, TORC_LOG_WARN, "node %s: %s", tc_rstr_cstr(s->node_id), tc_status_text(&status));
            lrs_stream_end(s, status.code, tc_status_text(&status));
        }
        tc_status_fini(&status);
    }
    tc_rstr_unref(message);
}

static void lrs_on_half_close(void *arg)
{
    lrs_stream_end(arg, TORC_STATUS_OK, "");
}

static void lrs_stream_free(struct lrs_stream *s)
{
    s->lrs->n_streams--;
    tc_list_remove(&s->link);
    tc_rstr_unref(s->node_id);
    tc_free(s);
}

static void lrs_on_end(void *arg, const struct tc_status *why TC_UNUSED)
{
    lrs_stream_free(arg);
}

static const struct tc_server_call_events call_events = {
    .on_message = lrs_on_message, .on_half_close = lrs_on_half_close, .on_end = lrs_on_end};

static void lrs_on_stream(void *arg, struct tc_server_call *call)
{
    struct tc_lrs *l = arg;
    struct lrs_stream *s = TC_NEW(struct lrs_stream);
    s->lrs = l;
    s->call = call;
    s->id = ++l->so_far;
    tc_list_append(&l->streams, &s->link);
    l->n_streams++;
    tc_server_call_set_events(call, &call_events, s);
    tc_server_call_read(call);
}

/* --- life --- */

struct tc_lrs *tc_lrs_new(struct tc_server *server)
{
    static const struct tc_lrs_config all = {.interval_ms = INTERVAL_MS, .send_all_clusters = true};
    struct tc_lrs *l = TC_NEW(struct tc_lrs);
    tc_list_init(&l->streams);
    tc_lrs_set(l, &all);
    tc_server_add_method(server, METHOD, lrs_on_stream, l);
    return l;
}

void tc_lrs_free(struct tc_lrs *l)
{
    if (!l)
        return;
    struct tc_link *link;
    while ((link = tc_list_pop(&l->streams)))
        lrs_stream_free(TC_CONTAINER_OF(link, struct lrs_stream, link));
    tc_buf_fini(&l->response);
    tc_free(l);
}

void tc_lrs_observe(struct tc_lrs *l, tc_lrs_report_fn fn, void *arg)
{
    l->on_report = fn;
    l->arg = arg;
}

size_t tc_lrs_streams(const struct tc_lrs *l)
{
    return l->n_streams;
}

uint64_t tc_lrs_streams_so_far(const struct tc_lrs *l)
{
    return l->so_far;
}

void tc_lrs_end_streams(struct tc_lrs *l, int code, const char *text)
{
    TC_LIST_FOREACH(link, &l->streams)
    lrs_stream_end(TC_CONTAINER_OF(link, struct lrs_stream, link), code, text);
}

void tc_lrs_set_mute(struct tc_lrs *l, bool mute)
{
    l->mute = mute;
    TC_LIST_FOREACH(link, &l->streams)
    lrs_stream_respond(TC_CONTAINER_OF(link, struct lrs_stream, link));
}

void tc_lrs_send(struct tc_lrs *l, struct tc_slice response)
{
    TC_LIST_FOREACH(link, &l->streams)
    {
        struct lrs_stream *s = TC_CONTAINER_OF(link, struct lrs_stream, link);
        if (!s->ended)
            tc_server_call_send(s->call, response);
    }
}
