#include "server/lrs.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "proto/pack.h"
#include "proto/unpack.h"

#define METHOD "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats"
#define INTERVAL_MS 10000

typedef Envoy__Service__LoadStats__V3__LoadStatsRequest load_request;

struct tc_lrs {
    struct tc_link streams;
    size_t n_streams;
    uint64_t so_far;
    struct tc_buf response; /* serialised */
    bool mute;
    tc_lrs_report_fn on_report;
    void *arg;
};

struct stream {
    struct tc_link link;
    struct tc_lrs *lrs;
    struct tc_server_call *call;
    struct tc_rstr *node_id;
    uint64_t id;
    bool asked;    /* the first request came */
    bool answered; /* and a response went */
    bool ended;
};

/* --- what is told --- */

static void tell(struct stream *s)
{
    if (s->ended || !s->asked || s->lrs->mute)
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
        struct stream *s = TC_CONTAINER_OF(link, struct stream, link);
        if (s->answered)
            tell(s);
    }
}

/* --- streams --- */

static struct tc_status take_in(struct stream *s, const load_request *request)
{
    bool first = !s->asked;
    s->asked = true;
    if (!s->node_id && request->node)
        s->node_id = tc_rstr_str(request->node->id);
    struct tc_lrs_report report = {s->id, first, tc_rstr_slice(s->node_id), request};
    if (s->lrs->on_report)
        s->lrs->on_report(s->lrs->arg, &report);
    if (first)
        tell(s);
    return (struct tc_status){0};
}

static struct tc_status unpack(struct stream *s, struct tc_slice bytes)
{
    struct tc_arena arena;
    struct tc_faults faults;
    struct tc_status status;
    ProtobufCMessage *message = NULL;
    tc_arena_init(&arena, 4096, tc_unpack_budget(bytes.len));
    tc_faults_init(&faults);
    if (tc_unpack(&envoy__service__load_stats__v3__load_stats_request__descriptor, bytes, NULL, &arena, &message,
                  &faults) == 0)
        status = take_in(s, (const load_request *)message);
    else
        status =
            tc_status_make(TORC_STATUS_INVALID_ARGUMENT, "malformed LoadStatsRequest: %s", tc_faults_text(&faults));
    tc_faults_fini(&faults);
    tc_arena_fini(&arena);
    return status;
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct stream *s = arg;
    if (!s->ended) {
        struct tc_status status = unpack(s, tc_rstr_slice(message));
        if (tc_status_ok(&status)) {
            tc_server_call_read(s->call);
        } else {
            TC_LOG(TC_LOG_SERVER, TORC_LOG_WARN, "load report: %s", tc_status_text(&status));
            s->ended = true;
            tc_server_call_finish(s->call, status.code, tc_status_text(&status), NULL);
        }
        tc_status_fini(&status);
    }
    tc_rstr_unref(message);
}

static void on_half_close(void *arg)
{
    struct stream *s = arg;
    if (s->ended)
        return;
    s->ended = true;
    tc_server_call_finish(s->call, TORC_STATUS_OK, "", NULL);
}

static void stream_free(struct stream *s)
{
    s->lrs->n_streams--;
    tc_list_remove(&s->link);
    tc_rstr_unref(s->node_id);
    tc_free(s);
}

static void on_end(void *arg, const struct tc_status *why)
{
    (void)why;
    stream_free(arg);
}

static const struct tc_server_call_events call_events = {
    .on_message = on_message, .on_half_close = on_half_close, .on_end = on_end};

static void on_stream(void *arg, struct tc_server_call *call)
{
    struct tc_lrs *l = arg;
    struct stream *s = TC_NEW(struct stream);
    s->lrs = l;
    s->call = call;
    s->id = ++l->so_far;
    tc_list_init(&s->link);
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
    tc_server_add_method(server, METHOD, on_stream, l);
    return l;
}

void tc_lrs_free(struct tc_lrs *l)
{
    if (!l)
        return;
    struct tc_link *link;
    while ((link = tc_list_pop(&l->streams)))
        stream_free(TC_CONTAINER_OF(link, struct stream, link));
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
    {
        struct stream *s = TC_CONTAINER_OF(link, struct stream, link);
        if (s->ended)
            continue;
        s->ended = true;
        tc_server_call_finish(s->call, code, text, NULL);
    }
}

void tc_lrs_set_mute(struct tc_lrs *l, bool mute)
{
    l->mute = mute;
    TC_LIST_FOREACH(link, &l->streams)
    {
        struct stream *s = TC_CONTAINER_OF(link, struct stream, link);
        if (!s->answered)
            tell(s);
    }
}

void tc_lrs_send(struct tc_lrs *l, struct tc_slice response)
{
    TC_LIST_FOREACH(link, &l->streams)
    {
        struct stream *s = TC_CONTAINER_OF(link, struct stream, link);
        if (!s->ended)
            tc_server_call_send(s->call, response);
    }
}
