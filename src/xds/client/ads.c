/* The ADS stream of one server: when it opens, when it sends, and the effect of its end. Loop thread only.
 *
 *            tc_xds_ads_start                    first answer
 *   (none) --------------------> stream, unproved -------------> stream, proved
 *      ^                                |                             |
 *      | `retry`, with backoff          | on_status                   | on_status
 *      +--------------------------------+ on_unreachable              |
 *      | `restart` at once, or `retry` after the delays below         |
 *      +--------------------------------------------------------------+
 *
 * A stream is proved from its first answer on: a response, or silence that counts as an answer. A stream that replaced
 * a proved one is proved from its start (`answered_before`). The end of a proved stream is not a failure (A57): the
 * next stream follows at once, but not twice within the backoff's first step, and later if the server may have given
 * the stream to another client (`taken`, SOON_MS). But if the stream broke on a response that is too large, the end is
 * a failure. From then on the backoff is reset only when a proved stream has ended in another way (`hold_backoff`), or
 * by tc_xds_ads_reset_backoff.
 *
 * Requests (ads_sotw.c, ads_delta.c): types whose request is due wait in a queue (`turn`). One message is on its way at
 * a time (`sending`), and the requests of a type in one loop turn become one. A new stream replaces one whose first
 * requests still wait for a connection and give a version that the client no longer has (`outdated`), and one on which
 * the server would not send again values that were superseded (`replace`): subscriptions.h says when.
 *
 * Responses (response.c): the next one is read when the last reference to `token` is dropped, or later if the response
 * was rejected or ignored at great cost (`pause`). An end of the stream waits while another thread decodes (`pending`).
 * The stream itself is the transport's, used until on_status or `cancel`; ch->ads has its state. */
#include "xds/client/ads.h"

#include "proto/wire.h"
#include "xds/client/cache.h"
#include "xds/client/server_order.h"
#include "xds/client/subscriptions.h"

/* After a response that was rejected or ignored at a cost of PAUSE_FROM_NS or more, the next one is read only after
 * PAUSE_TIMES that cost, at most PAUSE_MAX_MS. So a server that sends such responses without end takes a fifth of a
 * CPU, or more only if each response costs more than half a second. */
enum { PAUSE_TIMES = 4 };
#define PAUSE_FROM_NS (20 * TC_NS_PER_MS)
enum { PAUSE_MAX_MS = 2000 };

/* A server that keeps one stream for several clients ends a client's stream with OK when another client opens one. If
 * the first client opened its next stream at once, the other client would lose its stream before the first response. So
 * after a stream that had answered and ends with OK within SOON_MS, the next one waits for a backoff, of TAKEN_MAX_MS
 * at most before jitter: updates must not wait long. */
enum {
    SOON_MS = 60000,
    TAKEN_MAX_MS = 30000,
};

/* A server that has nothing newer than the versions that a stream begins with need not answer. So after a failed
 * stream, the server counts as reachable when the next stream has lasted this long since a request of it was sent. */
enum { STEADY_MS = 1000 };

static struct tc_xds_channel *channel_of(struct tc_xds_ads *a)
{
    return TC_CONTAINER_OF(a, struct tc_xds_channel, ads);
}

static void entry_mark_sent(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    (void)arg;
    if (!(e->sending_on & bit))
        return;
    e->sending_on &= ~bit;
    e->sent_on |= bit;
    tc_xds_entry_check_timer(e);
}

static void entry_mark_unsent(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    (void)arg;
    e->sending_on &= ~bit;
    e->sent_on &= ~bit;
    e->held_back &= ~bit;
    tc_xds_entry_check_timer(e);
}

/* --- requests --- */

/* Returns the type whose turn it is, or TC_XDS_NO_TYPE. */
static size_t next_type_to_send(const struct tc_xds_ads *a)
{
    size_t best = TC_XDS_NO_TYPE;
    for (size_t i = 0; i < a->types.len; i++)
        if (a->types.data[i].turn && (best == TC_XDS_NO_TYPE || a->types.data[i].turn < a->types.data[best].turn))
            best = i;
    return best;
}

static void ads_send_bytes(struct tc_xds_channel *ch, size_t type, struct tc_buf *b)
{
    struct tc_xds_ads *a = &ch->ads;
    if (!a->sent_node) /* A27: the Node is in the first request of a stream. Its bytes may stand behind other fields. */
        tc_wire_append(b, a->ops->node_field, tc_rstr_slice(ch->client->base.bootstrap->node));
    a->sent_node = true;
    a->sending = true;
    a->sending_type = type;
    a->stream->ops->send(a->stream, tc_buf_slice(b));
}

static void ads_send_next(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    size_t type;
    while (a->stream && !a->sending && (type = next_type_to_send(a)) != TC_XDS_NO_TYPE) {
        struct tc_buf b = {0};
        a->types.data[type].turn = 0;
        if (a->ops->request(ch, type, &b))
            ads_send_bytes(ch, type, &b);
        tc_xds_ads_forget_dropped(&a->types.data[type]);
        tc_buf_fini(&b);
    }
}

static void on_send_task(struct tc_task *task)
{
    ads_send_next(channel_of(TC_CONTAINER_OF(task, struct tc_xds_ads, send)));
}

/* --- the stream --- */

/* Clears the state of the stream, and abandons the response that another thread decodes. Does not cancel the stream,
 * which has ended or is cancelled by the caller. */
static void ads_forget_stream(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    a->stream = NULL;
    a->sending = false;
    if (a->pending)
        a->pending->abandon(a->pending);
    a->pending = NULL;
    tc_xds_token_detach(a->token);
    a->token = NULL;
    tc_xds_token_unref(a->sent_token);
    a->sent_token = NULL;
    a->gave_versions = a->asked_anew = false;
    tc_timer_stop(&a->replace);
    tc_timer_stop(&a->quiet);
    tc_timer_stop(&a->steady);
    tc_timer_stop(&a->pause);
    tc_task_cancel(&a->send);
    tc_task_cancel(&a->outdated);
    for (size_t i = 0; i < a->types.len; i++) {
        struct tc_xds_ads_type *t = &a->types.data[i];
        tc_rstr_clear(&t->nonce);
        tc_rstr_clear(&t->nack);
        tc_xds_token_unref(t->token);
        t->token = NULL;
        tc_xds_ads_forget_dropped(t);
        t->turn = 0;
        t->requested = t->asked = false;
        tc_xds_ads_each_entry(ch, i, entry_mark_unsent, NULL);
    }
}

void tc_xds_ads_proved(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    if (!tc_xds_channel_has_fallback(ch)) /* a response for one authority must not keep another in its fallback */
        tc_timer_stop(&a->quiet);
    if (!a->seen_response)
        TC_XDS_LOG(INFO, "xds %s: stream answers", tc_rstr_cstr(ch->server->uri));
    a->seen_response = true;
    if (!a->hold_backoff)
        tc_backoff_reset(&a->backoff);
}

void tc_xds_ads_pause(struct tc_xds_channel *ch, uint64_t took_ns)
{
    uint64_t ms = TC_MIN(took_ns * PAUSE_TIMES / TC_NS_PER_MS, PAUSE_MAX_MS);
    if (took_ns >= PAUSE_FROM_NS)
        ch->ads.read_at_ms = tc_loop_clock_ns(ch->client->base.loop) / TC_NS_PER_MS + ms;
}

/* Reads the next response, now or when the pause is over. Called with a stream. */
static void ads_read_next(struct tc_xds_ads *a, struct tc_loop *loop)
{
    uint64_t now_ms = tc_loop_now_ms(loop);
    if (now_ms < a->read_at_ms)
        tc_timer_start(&a->pause, a->read_at_ms - now_ms);
    else
        a->stream->ops->read(a->stream);
}

/* Nobody holds the token of the last response any longer. */
static void on_token_released(void *arg)
{
    struct tc_xds_channel *ch = arg;
    ch->ads.token = NULL;
    if (ch->ads.stream)
        ads_read_next(&ch->ads, ch->client->base.loop);
}

static void on_stream_message(void *arg, struct tc_rstr *message)
{
    struct tc_xds_channel *ch = arg;
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_token *token = tc_xds_token_new(on_token_released, ch);
    uint64_t began_ns = tc_thread_cpu_ns();
    a->token = token;
    a->refused = false;
    bool known = ch->client->events->on_response(ch, message, token);
    if (!known || a->refused)
        tc_xds_ads_pause(ch, tc_thread_cpu_ns() - began_ns);
    if (known)
        tc_xds_ads_proved(ch);
    tc_rstr_unref(message);
    tc_xds_token_unref(token);
}

static void on_pause_over(struct tc_timer *timer)
{
    struct tc_xds_ads *a = TC_CONTAINER_OF(timer, struct tc_xds_ads, pause);
    a->stream->ops->read(a->stream);
}

static void on_stream_steady(struct tc_timer *timer)
{
    struct tc_xds_channel *ch = channel_of(TC_CONTAINER_OF(timer, struct tc_xds_ads, steady));
    ch->client->events->on_reachable(ch, NULL);
}

/* Called when a request was handed to a connected transport. A failure of the connection is then over (A71, A88). After
 * a failed stream, the server counts as reachable when the present stream has lasted STEADY_MS from here; if the failed
 * stream broke on a response that is too large (hold_backoff), only an answer shows that the server can be reached. */
static void channel_check_reachable(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    if (tc_status_ok(&ch->status))
        return;
    if (!ch->stream_failed)
        ch->client->events->on_reachable(ch, NULL);
    else if (!a->hold_backoff && !tc_timer_active(&a->steady))
        tc_timer_start(&a->steady, STEADY_MS);
}

static void on_stream_sent(void *arg, bool taken)
{
    struct tc_xds_channel *ch = arg;
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_token *acked = a->sent_token;
    a->sending = false;
    a->sent = true;
    a->sent_token = NULL;
    tc_xds_ads_each_entry(ch, a->sending_type, entry_mark_sent, NULL);
    if (taken)
        channel_check_reachable(ch);
    if (a->ops->on_sent)
        a->ops->on_sent(ch);
    tc_xds_token_unref(acked); /* also if not taken: responses before the stream's end may wait for the token */
    ads_send_next(ch);
}

/* Returns the delay in ms after a stream that the server may have given to another client (SOON_MS), else 0. */
static uint64_t taken_delay_ms(struct tc_xds_channel *ch, const struct tc_status *status)
{
    struct tc_xds_ads *a = &ch->ads;
    uint64_t lived_ms = tc_loop_now_ms(ch->client->base.loop) - a->opened_ms;
    if (status->code != TORC_STATUS_OK || lived_ms >= SOON_MS) {
        tc_backoff_reset(&a->taken);
        a->n_taken = 0;
        return 0;
    }
    uint64_t wait_ms = tc_backoff_next_ms(&a->taken, tc_loop_rng(ch->client->base.loop));
    a->n_taken++;
    /* A control plane that restarts may do so once. */
    TC_LOG(TC_LOG_XDS, a->n_taken == 2 || a->n_taken % 32 == 0 ? TORC_LOG_WARN : TORC_LOG_INFO,
           "xds %s: the server ended a stream that worked with OK after %llu ms, %u in a row; it may keep one stream "
           "for several clients, as istio-agent does for all programs of a pod; the next stream opens in %llu ms",
           tc_rstr_cstr(ch->server->uri), (unsigned long long)lived_ms, a->n_taken, (unsigned long long)wait_ms);
    return wait_ms;
}

/* Returns the delay in ms before the stream that follows one that had answered (A57: not a failure). At most one such
 * stream opens within the backoff's first step, so that a server that answers and closes is not asked without end. */
static uint64_t restart_delay_ms(struct tc_xds_channel *ch, const struct tc_status *status)
{
    struct tc_xds_ads *a = &ch->ads;
    uint64_t now_ms = tc_loop_now_ms(ch->client->base.loop);
    uint64_t gap_ms = a->backoff.opts.initial_ms;
    bool soon = a->restarted_ms && now_ms < a->restarted_ms + gap_ms;
    uint64_t wait_ms = soon ? a->restarted_ms + gap_ms - now_ms : 0;
    uint64_t taken_ms = taken_delay_ms(ch, status);
    wait_ms = TC_MAX(wait_ms, taken_ms);
    a->restarted_ms = TC_MAX(now_ms + wait_ms, 1);
    return wait_ms;
}

static void on_stream_status(void *arg, const struct tc_status *status)
{
    struct tc_xds_channel *ch = arg;
    struct tc_xds_ads *a = &ch->ads;
    if (!a->pending) {
        tc_xds_ads_ended(ch, status);
        return;
    }
    /* The response was sent before the end, so it is applied first. */
    a->stream = NULL;
    tc_task_cancel(&a->send);
    tc_task_cancel(&a->outdated);
    tc_timer_stop(&a->replace);
    tc_timer_stop(&a->quiet);
    tc_timer_stop(&a->steady);
    a->pending->on_stream_end(a->pending, status);
}

/* Returns the status of a server whose stream has ended with `status` and counts as failed; the caller owns it. */
static struct tc_status stream_failure(const struct tc_xds_channel *ch, const struct tc_status *status)
{
    const char *uri = tc_rstr_cstr(ch->server->uri);
    bool seen = ch->ads.seen_response;
    if (!seen && status->code == TORC_STATUS_OK)
        return tc_status_make(
            TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
            "xDS channel for server %s: the server closed the stream with OK before it sent a response "
            "(node ID:%s)",
            uri, tc_xds_node_id(&ch->client->base));
    return tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                          "xDS channel for server %s: xDS call failed%s; status: %s: %s (node ID:%s)", uri,
                          seen ? "" : " with no responses received", torc_status_code_name(status->code),
                          tc_status_text(status), tc_xds_node_id(&ch->client->base));
}

void tc_xds_ads_ended(struct tc_xds_channel *ch, const struct tc_status *status)
{
    struct tc_xds_ads *a = &ch->ads;
    const char *uri = tc_rstr_cstr(ch->server->uri), *code = torc_status_code_name(status->code);
    bool seen = a->seen_response || a->answered_before;
    /* The layer excludes a server that ran out of resources itself: such an end is an ordinary one (A57). */
    bool too_large = seen && status->code == TORC_STATUS_RESOURCE_EXHAUSTED && status->layer == TORC_LAYER_LIMIT;
    ads_forget_stream(ch);
    a->hold_backoff = too_large || (a->hold_backoff && !seen);
    if (seen && !too_large) {
        tc_backoff_reset(&a->backoff);
        TC_XDS_LOG(INFO, "xds %s: stream ended with %s: %s", uri, code, tc_status_text(status));
        uint64_t wait_ms = restart_delay_ms(ch, status);
        if (wait_ms)
            tc_timer_start(&a->retry, wait_ms);
        else
            tc_loop_defer(ch->client->base.loop, &a->restart);
        return;
    }
    tc_timer_start(&a->retry, tc_backoff_next_ms(&a->backoff, tc_loop_rng(ch->client->base.loop)));
    ch->client->events->on_unreachable(ch, stream_failure(ch, status), true);
}

static const struct tc_xds_stream_events stream_events = {
    .on_message = on_stream_message,
    .on_sent = on_stream_sent,
    .on_status = on_stream_status,
};

static void ads_open(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    a->sent_node = a->sent = a->seen_response = a->answered_before = false;
    a->opened_ms = tc_loop_now_ms(ch->client->base.loop);
    a->stream = ch->transport->ops->open(ch->transport, a->ops->method, &stream_events, ch);
    ads_read_next(a, ch->client->base.loop);
    for (size_t type = 0; type < ch->client->types.len; type++)
        tc_xds_ads_request(ch, type);
}

void tc_xds_ads_start(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    if (a->stream || a->pending || tc_timer_active(&a->retry) || tc_task_pending(&a->restart))
        return;
    TC_XDS_LOG(INFO, "xds %s: stream opens, %s", tc_rstr_cstr(ch->server->uri),
               ch->server->incremental ? "incremental" : "state of the world");
    ads_open(ch);
}

static void ads_replace(struct tc_xds_channel *ch)
{
    bool answered = ch->ads.seen_response || ch->ads.answered_before;
    ch->ads.stream->ops->cancel(ch->ads.stream);
    ads_forget_stream(ch);
    ads_open(ch);
    ch->ads.answered_before = answered;
}

/* Replaces the stream, unless on_sent has come for one of its requests by now. */
static void on_outdated_task(struct tc_task *task)
{
    struct tc_xds_ads *a = TC_CONTAINER_OF(task, struct tc_xds_ads, outdated);
    struct tc_xds_channel *ch = channel_of(a);
    if (!a->sent)
        ads_replace(ch);
}

static void on_replace_timer(struct tc_timer *timer)
{
    struct tc_xds_channel *ch = channel_of(TC_CONTAINER_OF(timer, struct tc_xds_ads, replace));
    if (ch->ads.pending) { /* the response that another thread decodes may have the values */
        tc_xds_ads_replace_soon(ch);
    } else if (tc_xds_ads_has_superseded(ch)) {
        TC_XDS_LOG(INFO, "xds %s: stream is replaced: what another server sent counts instead of its own",
                   tc_rstr_cstr(ch->server->uri));
        ads_replace(ch);
    }
}

static void on_restart_task(struct tc_task *task)
{
    tc_xds_ads_start(channel_of(TC_CONTAINER_OF(task, struct tc_xds_ads, restart)));
}

static void on_retry_timer(struct tc_timer *timer)
{
    tc_xds_ads_start(channel_of(TC_CONTAINER_OF(timer, struct tc_xds_ads, retry)));
}

void tc_xds_ads_reset_backoff(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    tc_backoff_reset(&a->backoff);
    tc_backoff_reset(&a->taken);
    if (tc_timer_active(&a->retry)) {
        tc_timer_stop(&a->retry);
        tc_loop_defer(ch->client->base.loop, &a->restart);
    }
}

static void on_stream_quiet(struct tc_timer *timer)
{
    struct tc_xds_channel *ch = channel_of(TC_CONTAINER_OF(timer, struct tc_xds_ads, quiet));
    ch->ads.ops->on_quiet(ch);
}

void tc_xds_ads_init(struct tc_xds_channel *ch, const struct tc_xds_ads_ops *ops)
{
    struct tc_xds_ads *a = &ch->ads;
    a->ops = ops;
    struct tc_backoff_opts taken = ch->client->opts.backoff;
    taken.max_ms = TC_MIN(taken.max_ms, TAKEN_MAX_MS);
    tc_backoff_init(&a->backoff, &ch->client->opts.backoff);
    tc_backoff_init(&a->taken, &taken);
    tc_timer_init(&a->quiet, ch->client->base.loop, on_stream_quiet);
    tc_timer_init(&a->retry, ch->client->base.loop, on_retry_timer);
    tc_timer_init(&a->steady, ch->client->base.loop, on_stream_steady);
    tc_timer_init(&a->pause, ch->client->base.loop, on_pause_over);
    tc_timer_init(&a->replace, ch->client->base.loop, on_replace_timer);
    tc_task_init(&a->send, on_send_task);
    tc_task_init(&a->restart, on_restart_task);
    tc_task_init(&a->outdated, on_outdated_task);
}

void tc_xds_ads_fini(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_stream *stream = a->stream;
    ads_forget_stream(ch);
    if (stream)
        stream->ops->cancel(stream);
    if (a->box) {
        tc_mailbox_close(a->box);
        tc_mailbox_unref(a->box);
    }
    a->box = NULL;
    tc_timer_stop(&a->retry);
    tc_task_cancel(&a->restart);
    for (size_t i = 0; i < a->types.len; i++) {
        tc_rstr_clear(&a->types.data[i].version);
        tc_xds_ads_forget_dropped(&a->types.data[i]);
    }
    tc_vec_fini(&a->types);
}
