/* Load reports to one server (LRS, A27).
 *
 * While the store is in use, a stream is open, or the task `settle` or the timer `retry` is going to open the next one.
 * The first message is the Node; the server answers with an interval and the clusters that it wants, and may change
 * both at any time. Every interval: ask the sources of other loops (tc_load_store_gather), take a report out of the
 * store, send it, and settle it when it was handed over to the transport. If the stream ends first, the report goes
 * back into the store.
 *
 * When the last user goes and the server has answered, a last report has the remaining counts, if there are any, of the
 * clusters that the server wants. Then the stream is half-closed, and the server ends it (`ended`, LINGER_MS): a reset
 * could discard a report that the server has not read yet. If the server has not answered, the stream is cancelled.
 *
 * on_settle_task decides whether to open or to end the stream, and is idempotent. It runs by the loop's queue or by the
 * timer `retry`, never from inside a function of the store or the stream, because it may free the channel, and this
 * object with it. */
#include "xds/client/lrs.h"

#include "proto/unpack.h"
#include "proto/wire.h"
#include "xds/client/channel_internal.h"

#include "pb/envoy/service/load_stats/v3/lrs.pb-c.h"

#define METHOD "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats"
/* Says that the client honours send_all_clusters (lrs.proto). */
#define CLIENT_FEATURE "envoy.lrs.supports_send_all_clusters"
enum {
    MIN_INTERVAL_MS = 100, /* a shorter, positive interval of the server counts as this */
    /* How long a report waits for the counts of other loops. Counts that come later go into the next report. */
    GATHER_MS = 50,
};
#define MAX_INTERVAL_MS (UINT64_C(24) * 3600 * 1000) /* the whole seconds of a longer interval count as this */
enum {
    MAX_CLUSTERS = 65536, /* names in one response; a response with more is unreadable */
    /* How long the server may take to end a half-closed stream. */
    LINGER_MS = 5000,
};

typedef Envoy__Service__LoadStats__V3__LoadStatsResponse load_response;

struct tc_xds_lrs {
    struct tc_xds_channel *ch;
    void (*on_idle)(struct tc_xds_channel *ch);
    struct tc_load_store *store;
    struct tc_xds_stream *stream;  /* NULL: none is open */
    bool sending;                  /* a message is on its way to the transport */
    bool reporting;                /* that message is a report */
    bool due;                      /* a report is sent after the message on its way */
    bool answered;                 /* the server has said what it wants: the members from `all` to interval_ms */
    bool last;                     /* the message on its way, or the report that is due, is the last */
    bool ended;                    /* this side of the stream is closed; the server's status is awaited */
    bool all;                      /* the server wants all clusters */
    bool endpoints;                /* the server wants counts by endpoint, too */
    struct tc_load_name *clusters; /* that the server wants, unless `all` */
    uint64_t interval_ms;
    uint64_t opened_ms; /* when the stream was opened */
    struct tc_backoff backoff;
    bool gathering; /* the next report waits for the counts of other loops */
    /* Until the next stream, the next report, the end of a half-closed stream, a report without all counts. */
    struct tc_timer retry, report, linger, gather;
    struct tc_task settle;
};

static const char *lrs_uri(const struct tc_xds_lrs *l)
{
    return tc_rstr_cstr(l->ch->server->uri);
}

static struct tc_loop *lrs_loop(const struct tc_xds_lrs *l)
{
    return l->ch->client->base.loop;
}

static struct tc_load_filter lrs_filter(const struct tc_xds_lrs *l)
{
    return (struct tc_load_filter){.all = l->all, .endpoints = l->endpoints, .names = l->clusters};
}

/* --- requests --- */

static void lrs_send_node(struct tc_xds_lrs *l)
{
    enum { REQUEST_NODE = 1, NODE_CLIENT_FEATURES = 10 };
    struct tc_slice node = tc_rstr_slice(l->ch->client->base.bootstrap->node), feature = tc_slice_str(CLIENT_FEATURE);
    struct tc_buf ours = {0}, b = {0};
    tc_buf_append_slice(&ours, node);
    tc_wire_append(&ours, NODE_CLIENT_FEATURES, feature);
    tc_wire_append(&b, REQUEST_NODE, tc_buf_slice(&ours));
    l->sending = true;
    l->stream->ops->send(l->stream, tc_buf_slice(&b));
    tc_buf_fini(&ours);
    tc_buf_fini(&b);
}

/* Empty reports are sent too: they show the server that the client is there and had no load. */
static void lrs_send_report(struct tc_xds_lrs *l)
{
    Envoy__Service__LoadStats__V3__LoadStatsRequest m = ENVOY__SERVICE__LOAD_STATS__V3__LOAD_STATS_REQUEST__INIT;
    struct tc_load_filter filter = lrs_filter(l);
    struct tc_arena arena;
    struct tc_buf b = {0};
    tc_arena_init(&arena, 0, 0);
    m.n_cluster_stats = tc_load_store_take(l->store, &filter, tc_loop_now_ns(lrs_loop(l)), &arena, &m.cluster_stats);
    size_t len = envoy__service__load_stats__v3__load_stats_request__get_packed_size(&m);
    b.len = envoy__service__load_stats__v3__load_stats_request__pack(&m, (uint8_t *)tc_buf_reserve(&b, len));
    TC_XDS_LOG(DEBUG, "xds %s: load report of %zu clusters", lrs_uri(l), m.n_cluster_stats);
    l->sending = l->reporting = true;
    l->due = false;
    l->stream->ops->send(l->stream, tc_buf_slice(&b));
    tc_buf_fini(&b);
    tc_arena_fini(&arena);
}

static void lrs_report_now(struct tc_xds_lrs *l)
{
    l->gathering = false;
    tc_timer_stop(&l->gather);
    if (l->sending)
        l->due = true;
    else
        lrs_send_report(l);
}

static void on_loads_gathered(void *arg)
{
    struct tc_xds_lrs *l = arg;
    if (l->gathering)
        lrs_report_now(l);
}

static void on_gather_timer(struct tc_timer *timer)
{
    lrs_report_now(TC_CONTAINER_OF(timer, struct tc_xds_lrs, gather));
}

static void on_report_timer(struct tc_timer *timer)
{
    struct tc_xds_lrs *l = TC_CONTAINER_OF(timer, struct tc_xds_lrs, report);
    tc_timer_start(&l->report, l->interval_ms);
    l->gathering = tc_load_store_gather(l->store, on_loads_gathered);
    if (l->gathering)
        tc_timer_start(&l->gather, GATHER_MS);
    else
        lrs_report_now(l);
}

/* --- the stream --- */

static void lrs_settle_report(struct tc_xds_lrs *l, bool handed_over)
{
    if (l->reporting)
        tc_load_store_settle(l->store, handed_over);
    l->reporting = false;
}

static void lrs_forget_stream(struct tc_xds_lrs *l)
{
    l->stream = NULL;
    lrs_settle_report(l, false);
    l->sending = l->due = l->answered = l->last = l->ended = false;
    l->gathering = false;
    tc_timer_stop(&l->report);
    tc_timer_stop(&l->gather);
    tc_timer_stop(&l->linger);
}

static void lrs_close_stream(struct tc_xds_lrs *l)
{
    struct tc_xds_stream *stream = l->stream;
    if (!stream)
        return;
    TC_XDS_LOG(INFO, "xds %s: load reports end", lrs_uri(l));
    lrs_forget_stream(l);
    stream->ops->cancel(stream);
}

static void on_stream_sent(void *arg, bool taken)
{
    struct tc_xds_lrs *l = arg;
    if (!taken && l->reporting)
        return; /* on_stream_status puts the report back */
    l->sending = false;
    lrs_settle_report(l, true);
    if (l->due)
        lrs_send_report(l);
    else if (l->last)
        tc_loop_defer(lrs_loop(l), &l->settle);
}

static void lrs_drop_clusters(struct tc_xds_lrs *l)
{
    struct tc_load_name *c, *next;
    HASH_ITER(hh, l->clusters, c, next)
    {
        HASH_DEL(l->clusters, c);
        tc_rstr_unref(c->name);
        tc_free(c);
    }
}

static void lrs_add_cluster(struct tc_xds_lrs *l, const char *name)
{
    struct tc_load_name *c;
    HASH_FIND(hh, l->clusters, name, strlen(name), c);
    if (c)
        return;
    c = TC_NEW(struct tc_load_name);
    c->name = tc_rstr_str(name);
    HASH_ADD_KEYPTR(hh, l->clusters, c->name->data, c->name->len, c);
}

/* Returns false if the response has no valid interval. */
static bool response_interval(const load_response *m, uint64_t *ms)
{
    const Google__Protobuf__Duration *d = m->load_reporting_interval;
    if (!d || d->seconds < 0 || d->nanos < 0 || d->nanos > 999999999 || (d->seconds == 0 && d->nanos == 0))
        return false;
    uint64_t seconds = TC_MIN((uint64_t)d->seconds, MAX_INTERVAL_MS / 1000);
    *ms = TC_MAX(seconds * 1000 + (uint64_t)d->nanos / 1000000, MIN_INTERVAL_MS);
    return true;
}

static bool lrs_apply_response(struct tc_xds_lrs *l, const load_response *m)
{
    uint64_t interval_ms;
    if (!response_interval(m, &interval_ms)) {
        TC_XDS_LOG(WARN, "xds %s: load reports: load_reporting_interval must be positive", lrs_uri(l));
        return false;
    }
    lrs_drop_clusters(l);
    l->endpoints = m->report_endpoint_granularity;
    tc_load_store_by_endpoint(l->store, l->endpoints);
    l->all = m->send_all_clusters;
    for (size_t i = 0; i < m->n_clusters && !l->all; i++)
        lrs_add_cluster(l, m->clusters[i]);
    TC_XDS_LOG(INFO, "xds %s: load reports every %llu ms of %s%u clusters%s", lrs_uri(l),
               (unsigned long long)interval_ms, l->all ? "all, not of " : "", HASH_COUNT(l->clusters),
               l->endpoints ? ", by endpoint" : "");
    /* A response with the same interval does not restart the timer. */
    if (!l->ended && (!l->answered || l->interval_ms != interval_ms))
        tc_timer_start(&l->report, interval_ms);
    l->interval_ms = interval_ms;
    l->answered = true;
    return true;
}

static void lrs_retry_later(struct tc_xds_lrs *l)
{
    tc_timer_start(&l->retry, tc_backoff_next_ms(&l->backoff, tc_loop_rng(lrs_loop(l))));
}

static void on_stream_message(void *arg, struct tc_rstr *message)
{
    struct tc_xds_lrs *l = arg;
    const struct tc_scan_options options = {.max_repeated = MAX_CLUSTERS};
    struct tc_arena arena;
    struct tc_validation_errors f = {0};
    ProtobufCMessage *m;
    tc_arena_init(&arena, 0, tc_unpack_budget(message->len));
    bool ok = tc_unpack(&envoy__service__load_stats__v3__load_stats_response__descriptor, tc_rstr_slice(message),
                        &options, &arena, &m, &f) == 0;
    if (!ok)
        TC_XDS_LOG(WARN, "xds %s: unreadable LoadStatsResponse: %s", lrs_uri(l), tc_validation_text(&f));
    if (ok && lrs_apply_response(l, (const load_response *)m)) {
        l->stream->ops->read(l->stream);
    } else {
        lrs_close_stream(l);
        lrs_retry_later(l);
    }
    tc_validation_fini(&f);
    tc_arena_fini(&arena);
    tc_rstr_unref(message);
}

/* If the server had answered and the stream lasted for the backoff's first step, the next stream opens at once. */
static void on_stream_status(void *arg, const struct tc_status *status)
{
    struct tc_xds_lrs *l = arg;
    uint64_t lived_ms = tc_loop_now_ms(lrs_loop(l)) - l->opened_ms;
    bool worked = l->answered;
    lrs_forget_stream(l);
    TC_XDS_LOG(INFO, "xds %s: load reports ended with %s: %s", lrs_uri(l), torc_status_code_name(status->code),
               tc_status_text(status));
    if (worked)
        tc_backoff_reset(&l->backoff);
    if (!tc_load_store_in_use(l->store) || (worked && lived_ms >= l->backoff.opts.initial_ms))
        tc_loop_defer(lrs_loop(l), &l->settle);
    else
        lrs_retry_later(l);
}

static const struct tc_xds_stream_events stream_events = {
    .on_message = on_stream_message,
    .on_sent = on_stream_sent,
    .on_status = on_stream_status,
};

static void lrs_open_stream(struct tc_xds_lrs *l)
{
    l->opened_ms = tc_loop_now_ms(lrs_loop(l));
    l->stream = l->ch->transport->ops->open(l->ch->transport, METHOD, &stream_events, l);
    l->stream->ops->read(l->stream);
    lrs_send_node(l);
}

/* --- opening and closing on demand --- */

/* Takes the next step of ending the stream: first a last report if there are counts that the server wants, then the
 * half-close. on_sent of the message on its way leads back here. */
static void lrs_end_stream(struct tc_xds_lrs *l)
{
    struct tc_load_filter filter = lrs_filter(l);
    if (l->ended)
        return;
    if (!l->last && tc_load_store_has_counts(l->store, &filter)) {
        l->last = true;
        l->due = true;
        if (!l->sending)
            lrs_send_report(l);
    } else if (!l->sending) {
        l->ended = true;
        l->gathering = false;
        tc_timer_stop(&l->report);
        tc_timer_stop(&l->gather);
        tc_timer_start(&l->linger, LINGER_MS);
        l->stream->ops->end(l->stream);
    } else {
        l->last = true; /* see on_stream_sent */
    }
}

/* The store is no longer in use. A stream on which the server has answered ends in steps (lrs_end_stream), and a later
 * call finds it gone. Any other stream is cancelled. When no stream is left, on_idle is called. */
static void lrs_wind_up(struct tc_xds_lrs *l)
{
    if (l->stream && l->answered) {
        lrs_end_stream(l);
        return;
    }
    lrs_close_stream(l);
    tc_timer_stop(&l->retry);
    l->on_idle(l->ch);
}

static void on_linger_timer(struct tc_timer *timer)
{
    struct tc_xds_lrs *l = TC_CONTAINER_OF(timer, struct tc_xds_lrs, linger);
    lrs_close_stream(l);
    tc_loop_defer(lrs_loop(l), &l->settle);
}

/* May free the channel, and this object with it. */
static void on_settle_task(struct tc_task *task)
{
    struct tc_xds_lrs *l = TC_CONTAINER_OF(task, struct tc_xds_lrs, settle);
    if (!tc_load_store_in_use(l->store)) {
        lrs_wind_up(l);
        return;
    }
    l->last = false;
    if (!l->stream && !tc_timer_active(&l->retry)) /* a half-closed stream ends first */
        lrs_open_stream(l);
}

static void on_retry_timer(struct tc_timer *timer)
{
    on_settle_task(&TC_CONTAINER_OF(timer, struct tc_xds_lrs, retry)->settle);
}

static void on_users_changed(void *arg)
{
    struct tc_xds_lrs *l = arg;
    tc_loop_defer(lrs_loop(l), &l->settle);
}

bool tc_xds_lrs_active(const struct tc_xds_lrs *l)
{
    return tc_load_store_in_use(l->store) || l->stream;
}

void tc_xds_lrs_reset_backoff(struct tc_xds_lrs *l)
{
    tc_backoff_reset(&l->backoff);
    if (tc_timer_active(&l->retry)) {
        tc_timer_stop(&l->retry);
        tc_loop_defer(lrs_loop(l), &l->settle);
    }
}

struct tc_load_store *tc_xds_lrs_store(struct tc_xds_lrs *l)
{
    return l->store;
}

struct tc_xds_lrs *tc_xds_lrs_new(struct tc_xds_channel *ch, void (*on_idle)(struct tc_xds_channel *ch))
{
    struct tc_xds_lrs *l = TC_NEW(struct tc_xds_lrs);
    l->ch = ch;
    l->on_idle = on_idle;
    l->store = tc_load_store_new(on_users_changed, l);
    tc_backoff_init(&l->backoff, &ch->client->opts.backoff);
    tc_timer_init(&l->retry, ch->client->base.loop, on_retry_timer);
    tc_timer_init(&l->report, ch->client->base.loop, on_report_timer);
    tc_timer_init(&l->linger, ch->client->base.loop, on_linger_timer);
    tc_timer_init(&l->gather, ch->client->base.loop, on_gather_timer);
    tc_task_init(&l->settle, on_settle_task);
    return l;
}

void tc_xds_lrs_free(struct tc_xds_lrs *l)
{
    if (!l)
        return;
    lrs_close_stream(l);
    tc_timer_stop(&l->retry);
    tc_task_cancel(&l->settle);
    tc_load_store_free(l->store);
    lrs_drop_clusters(l);
    tc_free(l);
}
