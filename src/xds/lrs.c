#include "xds/lrs.h"

#include "proto/unpack.h"
#include "proto/wire.h"
#include "xds/client_impl.h"

#include "pb/envoy/service/load_stats/v3/lrs.pb-c.h"

#define METHOD "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats"
/* Without it a server would not say send_all_clusters (A27). */
#define CLIENT_FEATURE "envoy.lrs.supports_send_all_clusters"
#define MIN_INTERVAL_MS 100
/* How long a report waits for the counts of other loops; a loop that does not turn has them in a later one. */
#define GATHER_MS 50
#define MAX_INTERVAL_MS (UINT64_C(24) * 3600 * 1000)
#define MAX_CLUSTERS 65536
/* How long the server may take to end a stream that is through. */
#define LINGER_MS 5000

typedef Envoy__Service__LoadStats__V3__LoadStatsResponse load_response;

struct tc_xds_lrs {
    struct tc_xds_channel *ch;
    struct tc_load_store *store;
    struct tc_xds_stream *stream; /* NULL: none now */
    bool sending;                 /* a message is on its way to the transport */
    bool reporting;               /* it is a report */
    bool due;                     /* a report is to follow it */
    bool answered;                /* what follows is known */
    bool last;                    /* the report under way is the last */
    bool ended;                   /* nothing more is sent on this stream, whose end the server is to say */
    bool all;
    struct tc_load_name *clusters; /* that are asked for */
    uint64_t interval_ms;
    uint64_t opened_ms;
    struct tc_backoff backoff;
    bool gathering; /* other loops are asked for what they counted, for the report that is due */
    struct tc_timer retry, report, linger, gather;
    struct tc_task settle;
};

static const char *uri_of(const struct tc_xds_lrs *l)
{
    return tc_rstr_cstr(l->ch->server->uri);
}

static struct tc_loop *loop_of(const struct tc_xds_lrs *l)
{
    return l->ch->client->loop;
}

static struct tc_load_filter filter_of(const struct tc_xds_lrs *l)
{
    return (struct tc_load_filter){l->all, l->clusters};
}

/* --- what is sent --- */

static void send_node(struct tc_xds_lrs *l)
{
    enum { REQUEST_NODE = 1, NODE_CLIENT_FEATURES = 10 };
    struct tc_slice node = tc_rstr_slice(l->ch->client->bootstrap->node), feature = tc_slice_str(CLIENT_FEATURE);
    struct tc_buf ours = {0}, b = {0};
    tc_buf_append_slice(&ours, node);
    tc_wire_append(&ours, NODE_CLIENT_FEATURES, feature);
    tc_wire_append(&b, REQUEST_NODE, tc_buf_slice(&ours));
    l->sending = true;
    l->stream->ops->send(l->stream, tc_buf_slice(&b));
    tc_buf_fini(&ours);
    tc_buf_fini(&b);
}

/* Reports that are empty are sent too: they say that all is well, and nothing to do. */
static void send_report(struct tc_xds_lrs *l)
{
    Envoy__Service__LoadStats__V3__LoadStatsRequest m = ENVOY__SERVICE__LOAD_STATS__V3__LOAD_STATS_REQUEST__INIT;
    struct tc_load_filter filter = filter_of(l);
    struct tc_arena arena;
    struct tc_buf b = {0};
    tc_arena_init(&arena, 0, 0);
    m.n_cluster_stats = tc_load_store_take(l->store, &filter, tc_loop_now_ns(loop_of(l)), &arena, &m.cluster_stats);
    size_t len = envoy__service__load_stats__v3__load_stats_request__get_packed_size(&m);
    b.len = envoy__service__load_stats__v3__load_stats_request__pack(&m, (uint8_t *)tc_buf_reserve(&b, len));
    TC_XDS_LOG(DEBUG, "xds %s: load report of %zu clusters", uri_of(l), m.n_cluster_stats);
    l->sending = l->reporting = true;
    l->due = false;
    l->stream->ops->send(l->stream, tc_buf_slice(&b));
    tc_buf_fini(&b);
    tc_arena_fini(&arena);
}

static void report_now(struct tc_xds_lrs *l)
{
    l->gathering = false;
    tc_timer_stop(&l->gather);
    if (l->sending)
        l->due = true;
    else
        send_report(l);
}

static void on_gathered(void *arg)
{
    struct tc_xds_lrs *l = arg;
    if (l->gathering)
        report_now(l);
}

static void on_gather(struct tc_timer *timer)
{
    report_now(TC_CONTAINER_OF(timer, struct tc_xds_lrs, gather));
}

static void on_report(struct tc_timer *timer)
{
    struct tc_xds_lrs *l = TC_CONTAINER_OF(timer, struct tc_xds_lrs, report);
    tc_timer_start(&l->report, l->interval_ms);
    l->gathering = tc_load_store_gather(l->store, on_gathered);
    if (l->gathering)
        tc_timer_start(&l->gather, GATHER_MS);
    else
        report_now(l);
}

/* --- the stream --- */

static void settle_report(struct tc_xds_lrs *l, bool handed_over)
{
    if (l->reporting)
        tc_load_store_settle(l->store, handed_over);
    l->reporting = false;
}

static void forget_stream(struct tc_xds_lrs *l)
{
    l->stream = NULL;
    settle_report(l, false);
    l->sending = l->due = l->answered = l->last = l->ended = false;
    l->gathering = false;
    tc_timer_stop(&l->report);
    tc_timer_stop(&l->gather);
    tc_timer_stop(&l->linger);
}

static void close_stream(struct tc_xds_lrs *l)
{
    struct tc_xds_stream *stream = l->stream;
    if (!stream)
        return;
    TC_XDS_LOG(INFO, "xds %s: load reports end", uri_of(l));
    forget_stream(l);
    stream->ops->cancel(stream);
}

static void on_sent(void *arg)
{
    struct tc_xds_lrs *l = arg;
    l->sending = false;
    settle_report(l, true);
    if (l->due)
        send_report(l);
    else if (l->last)
        tc_loop_defer(loop_of(l), &l->settle);
}

static void drop_clusters(struct tc_xds_lrs *l)
{
    struct tc_load_name *c, *next;
    HASH_ITER(hh, l->clusters, c, next)
    {
        HASH_DEL(l->clusters, c);
        tc_rstr_unref(c->name);
        tc_free(c);
    }
}

static void add_cluster(struct tc_xds_lrs *l, const char *name)
{
    struct tc_load_name *c;
    HASH_FIND(hh, l->clusters, name, strlen(name), c);
    if (c)
        return;
    c = TC_NEW(struct tc_load_name);
    c->name = tc_rstr_str(name);
    HASH_ADD_KEYPTR(hh, l->clusters, c->name->data, c->name->len, c);
}

/* False: the interval is none. */
static bool read_interval(const load_response *m, uint64_t *ms)
{
    const Google__Protobuf__Duration *d = m->load_reporting_interval;
    if (!d || d->seconds < 0 || d->nanos < 0 || d->nanos > 999999999 || (d->seconds == 0 && d->nanos == 0))
        return false;
    uint64_t seconds = TC_MIN((uint64_t)d->seconds, MAX_INTERVAL_MS / 1000);
    *ms = TC_MAX(seconds * 1000 + (uint64_t)d->nanos / 1000000, MIN_INTERVAL_MS);
    return true;
}

/* report_endpoint_granularity asks for more than gRPC clients count, who report by locality. */
static bool take_in(struct tc_xds_lrs *l, const load_response *m)
{
    uint64_t interval_ms;
    if (!read_interval(m, &interval_ms)) {
        TC_XDS_LOG(WARN, "xds %s: load reports: load_reporting_interval must be positive", uri_of(l));
        return false;
    }
    drop_clusters(l);
    l->all = m->send_all_clusters;
    for (size_t i = 0; i < m->n_clusters && !l->all; i++)
        add_cluster(l, m->clusters[i]);
    TC_XDS_LOG(INFO, "xds %s: load reports every %llu ms of %s%u clusters", uri_of(l), (unsigned long long)interval_ms,
               l->all ? "all, not of " : "", HASH_COUNT(l->clusters));
    /* The same again does not begin the interval anew. */
    if (!l->ended && (!l->answered || l->interval_ms != interval_ms))
        tc_timer_start(&l->report, interval_ms);
    l->interval_ms = interval_ms;
    l->answered = true;
    return true;
}

static void retry_later(struct tc_xds_lrs *l)
{
    tc_timer_start(&l->retry, tc_backoff_next_ms(&l->backoff, tc_loop_rng(loop_of(l))));
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct tc_xds_lrs *l = arg;
    const struct tc_scan_options options = {.max_repeated = MAX_CLUSTERS};
    struct tc_arena arena;
    struct tc_faults f;
    ProtobufCMessage *m;
    tc_arena_init(&arena, 0, tc_unpack_budget(message->len));
    tc_faults_init(&f);
    bool ok = tc_unpack(&envoy__service__load_stats__v3__load_stats_response__descriptor, tc_rstr_slice(message),
                        &options, &arena, &m, &f) == 0;
    if (!ok)
        TC_XDS_LOG(WARN, "xds %s: unreadable LoadStatsResponse: %s", uri_of(l), tc_faults_text(&f));
    if (ok && take_in(l, (const load_response *)m)) {
        l->stream->ops->read(l->stream);
    } else {
        close_stream(l);
        retry_later(l);
    }
    tc_faults_fini(&f);
    tc_arena_fini(&arena);
    tc_rstr_unref(message);
}

/* One that had worked for a while is followed by another at once. */
static void on_status(void *arg, const struct tc_status *status, bool local)
{
    struct tc_xds_lrs *l = arg;
    uint64_t lived_ms = tc_loop_now_ms(loop_of(l)) - l->opened_ms;
    bool worked = l->answered;
    (void)local;
    forget_stream(l);
    TC_XDS_LOG(INFO, "xds %s: load reports ended with %s: %s", uri_of(l), torc_status_code_name(status->code),
               tc_status_text(status));
    if (worked)
        tc_backoff_reset(&l->backoff);
    if (!tc_load_store_in_use(l->store) || (worked && lived_ms >= l->backoff.opts.initial_ms))
        tc_loop_defer(loop_of(l), &l->settle);
    else
        retry_later(l);
}

static const struct tc_xds_stream_events stream_events = {
    .on_message = on_message,
    .on_sent = on_sent,
    .on_status = on_status,
};

static void open_stream(struct tc_xds_lrs *l)
{
    l->opened_ms = tc_loop_now_ms(loop_of(l));
    l->stream = l->ch->transport->ops->open(l->ch->transport, METHOD, &stream_events, l);
    l->stream->ops->read(l->stream);
    send_node(l);
}

/* --- opened and closed as there is need --- */

/* What was counted is said once more, if the server wants it. Then the stream is half-closed and ends with the server's
 * status: a stream that is reset may take with it what its server has not read yet. */
static void end_stream(struct tc_xds_lrs *l)
{
    struct tc_load_filter filter = filter_of(l);
    if (l->ended)
        return;
    if (!l->last && tc_load_store_has_counts(l->store, &filter)) {
        l->last = true;
        l->due = true;
        if (!l->sending)
            send_report(l);
    } else if (!l->sending) {
        l->ended = true;
        tc_timer_stop(&l->report);
        tc_timer_start(&l->linger, LINGER_MS);
        l->stream->ops->end(l->stream);
    } else {
        l->last = true; /* see on_sent */
    }
}

/* Nothing is to be reported any more. */
static void wind_up(struct tc_xds_lrs *l)
{
    if (l->stream && l->answered) {
        end_stream(l);
        return;
    }
    close_stream(l);
    tc_timer_stop(&l->retry);
    tc_xds_channel_release(l->ch);
}

static void on_linger(struct tc_timer *timer)
{
    struct tc_xds_lrs *l = TC_CONTAINER_OF(timer, struct tc_xds_lrs, linger);
    close_stream(l);
    tc_loop_defer(loop_of(l), &l->settle);
}

/* Idempotent. The last thing that a turn does here: the channel, and this with it, may go. */
static void on_settle(struct tc_task *task)
{
    struct tc_xds_lrs *l = TC_CONTAINER_OF(task, struct tc_xds_lrs, settle);
    if (!tc_load_store_in_use(l->store)) {
        wind_up(l);
        return;
    }
    l->last = false;
    if (!l->stream && !tc_timer_active(&l->retry)) /* a stream that is through ends first */
        open_stream(l);
}

static void on_retry(struct tc_timer *timer)
{
    on_settle(&TC_CONTAINER_OF(timer, struct tc_xds_lrs, retry)->settle);
}

static void on_users(void *arg)
{
    struct tc_xds_lrs *l = arg;
    tc_loop_defer(loop_of(l), &l->settle);
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
        tc_loop_defer(loop_of(l), &l->settle);
    }
}

struct tc_load_store *tc_xds_lrs_store(struct tc_xds_lrs *l)
{
    return l->store;
}

struct tc_xds_lrs *tc_xds_lrs_new(struct tc_xds_channel *ch)
{
    struct tc_xds_lrs *l = TC_NEW(struct tc_xds_lrs);
    l->ch = ch;
    l->store = tc_load_store_new(on_users, l);
    tc_backoff_init(&l->backoff, &ch->client->opts.backoff);
    tc_timer_init(&l->retry, ch->client->loop, on_retry);
    tc_timer_init(&l->report, ch->client->loop, on_report);
    tc_timer_init(&l->linger, ch->client->loop, on_linger);
    tc_timer_init(&l->gather, ch->client->loop, on_gather);
    tc_task_init(&l->settle, on_settle);
    return l;
}

void tc_xds_lrs_free(struct tc_xds_lrs *l)
{
    if (!l)
        return;
    close_stream(l);
    tc_timer_stop(&l->retry);
    tc_task_cancel(&l->settle);
    tc_load_store_free(l->store);
    drop_clusters(l);
    tc_free(l);
}
