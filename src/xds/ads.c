/* The ADS stream of one server, state of the world: what is asked for, how it is acknowledged, when it is opened
 * again. */
#include <stdlib.h>

#include "xds/client_impl.h"

#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

#define METHOD "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"

static struct tc_xds_channel *channel_of(struct tc_xds_ads *a)
{
    return TC_CONTAINER_OF(a, struct tc_xds_channel, ads);
}

struct tc_xds_ads_type *tc_xds_ads_type(struct tc_xds_channel *ch, size_t type)
{
    while (ch->ads.types.len <= type)
        (void)tc_vec_push(&ch->ads.types);
    return &ch->ads.types.data[type];
}

static void drop_text(struct tc_rstr **s)
{
    tc_rstr_unref(*s);
    *s = NULL;
}

/* --- subscriptions --- */

/* Calls fn for each entry of the type whose realm uses this channel. */
static void each_entry(struct tc_xds_channel *ch, size_t type,
                       void (*fn)(struct tc_xds_entry *e, uint32_t bit, void *arg), void *arg)
{
    TC_LIST_FOREACH(it, &ch->client->realms)
    {
        struct tc_xds_realm *r = TC_CONTAINER_OF(it, struct tc_xds_realm, link);
        int index = tc_xds_realm_index(r, ch);
        if (index < 0 || type >= r->entries.len)
            continue;
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, r->entries.data[type], e, next)
        {
            fn(e, UINT32_C(1) << index, arg);
        }
    }
}

struct names {
    TC_VEC(char *) v;
    bool incomplete; /* some were held back */
};

static void collect_name(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    struct names *names = arg;
    if (e->held_back & bit) {
        e->held_back &= ~bit;
        names->incomplete = true;
        return;
    }
    *tc_vec_push(&names->v) = e->name->data;
    e->sending_on |= bit;
}

static void mark_sent(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    (void)arg;
    if (!(e->sending_on & bit))
        return;
    e->sending_on &= ~bit;
    e->sent_on |= bit;
    tc_xds_entry_check_timer(e);
}

static void mark_unsent(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    (void)arg;
    e->sending_on &= ~bit;
    e->sent_on &= ~bit;
    e->held_back &= ~bit;
    tc_xds_entry_check_timer(e);
}

static void forget_dropped(struct tc_xds_ads_type *t)
{
    for (size_t i = 0; i < t->dropped.len; i++)
        tc_rstr_unref(t->dropped.data[i]);
    t->dropped.len = 0;
}

void tc_xds_ads_drop(struct tc_xds_channel *ch, size_t type, struct tc_rstr *name)
{
    *tc_vec_push(&tc_xds_ads_type(ch, type)->dropped) = tc_rstr_ref(name);
}

bool tc_xds_ads_dropped(const struct tc_xds_channel *ch, size_t type, const struct tc_rstr *name)
{
    if (type >= ch->ads.types.len)
        return false;
    const struct tc_xds_ads_type *t = &ch->ads.types.data[type];
    for (size_t i = 0; i < t->dropped.len; i++)
        if (tc_rstr_eq(t->dropped.data[i], name))
            return true;
    return false;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* --- requests --- */

/* The Node is serialised already: field 2 of a DiscoveryRequest, which may stand behind the others. */
static void append_node(struct tc_buf *b, struct tc_slice node)
{
    size_t n = node.len;
    tc_buf_append_char(b, 2 << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
    for (; n > 0x7f; n >>= 7)
        tc_buf_append_char(b, (char)(n | 0x80));
    tc_buf_append_char(b, (char)n);
    tc_buf_append_slice(b, node);
}

static void send_request(struct tc_xds_channel *ch, size_t type, const struct names *names)
{
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_ads_type *t = &a->types.data[type];
    Envoy__Service__Discovery__V3__DiscoveryRequest m = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_REQUEST__INIT;
    Google__Rpc__Status detail = GOOGLE__RPC__STATUS__INIT;
    struct tc_buf b = {0};

    m.version_info = (char *)tc_rstr_cstr(t->version);
    m.response_nonce = (char *)tc_rstr_cstr(t->nonce);
    m.type_url = (char *)ch->client->types.data[type]->type_url;
    m.resource_names = names->v.data;
    m.n_resource_names = names->v.len;
    if (t->nack) {
        detail.code = TORC_STATUS_INVALID_ARGUMENT;
        detail.message = t->nack->data;
        m.error_detail = &detail;
    }
    size_t len = envoy__service__discovery__v3__discovery_request__get_packed_size(&m);
    b.len = envoy__service__discovery__v3__discovery_request__pack(&m, (uint8_t *)tc_buf_reserve(&b, len));
    if (!a->sent_node) /* A27: on the first request of a stream */
        append_node(&b, tc_rstr_slice(ch->client->bootstrap->node));
    TC_XDS_LOG(DEBUG, "xds %s: request %s version \"%s\" nonce \"%s\" names %zu%s%s", tc_rstr_cstr(ch->server->uri),
               m.type_url, m.version_info, m.response_nonce, names->v.len, t->nack ? " NACK: " : "",
               tc_rstr_cstr(t->nack));
    drop_text(&t->nack);
    t->requested = true;
    if (names->v.len == 0) {
        /* Nothing of the type is held: what is asked for later begins anew. */
        t->requested = false;
        drop_text(&t->nonce);
        drop_text(&t->version);
    }
    a->sent_node = true;
    a->sending = true;
    a->sending_type = type;
    a->stream->ops->send(a->stream, tc_buf_slice(&b));
    tc_buf_fini(&b);
}

/* The type whose turn it is, or TC_XDS_NO_TYPE. */
static size_t next_type(const struct tc_xds_ads *a)
{
    size_t best = TC_XDS_NO_TYPE;
    for (size_t i = 0; i < a->types.len; i++)
        if (a->types.data[i].turn && (best == TC_XDS_NO_TYPE || a->types.data[i].turn < a->types.data[best].turn))
            best = i;
    return best;
}

static void send_next(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    size_t type;
    while (a->stream && !a->sending && (type = next_type(a)) != TC_XDS_NO_TYPE) {
        struct names names = {0};
        a->types.data[type].turn = 0;
        each_entry(ch, type, collect_name, &names);
        if (names.v.len)
            qsort(names.v.data, names.v.len, sizeof(*names.v.data), compare_names);
        /* A first request without names would ask for everything. */
        if (names.v.len || a->types.data[type].requested)
            send_request(ch, type, &names);
        forget_dropped(&a->types.data[type]);
        if (names.incomplete)
            tc_xds_ads_request(ch, type);
        tc_vec_fini(&names.v);
    }
}

static void on_send_task(struct tc_task *task)
{
    send_next(channel_of(TC_CONTAINER_OF(task, struct tc_xds_ads, send)));
}

void tc_xds_ads_request(struct tc_xds_channel *ch, size_t type)
{
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_ads_type *t = tc_xds_ads_type(ch, type);
    if (!a->stream)
        return; /* the next stream asks for everything */
    if (!t->turn)
        t->turn = ++a->last_turn;
    if (!a->sending)
        tc_loop_defer(ch->client->loop, &a->send);
}

/* --- the stream --- */

static void forget_stream(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    a->stream = NULL;
    a->sending = false;
    if (a->token)
        tc_xds_done_detach(a->token);
    a->token = NULL;
    tc_task_cancel(&a->send);
    for (size_t i = 0; i < a->types.len; i++) {
        struct tc_xds_ads_type *t = &a->types.data[i];
        drop_text(&t->nonce);
        drop_text(&t->nack);
        forget_dropped(t);
        t->turn = 0;
        t->requested = false;
        each_entry(ch, i, mark_unsent, NULL);
    }
}

static void on_message(void *arg, struct tc_rstr *message)
{
    struct tc_xds_channel *ch = arg;
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_done *done = tc_xds_done_new(ch);
    a->token = done;
    if (tc_xds_response_apply(ch, tc_rstr_slice(message), done)) {
        a->seen_response = true;
        if (!a->hold_backoff)
            tc_backoff_reset(&a->backoff);
    }
    tc_rstr_unref(message);
    tc_xds_done_unref(done);
}

void tc_xds_ads_read(struct tc_xds_channel *ch)
{
    ch->ads.token = NULL;
    if (ch->ads.stream)
        ch->ads.stream->ops->read(ch->ads.stream);
}

static void on_sent(void *arg)
{
    struct tc_xds_channel *ch = arg;
    ch->ads.sending = false;
    each_entry(ch, ch->ads.sending_type, mark_sent, NULL);
    send_next(ch);
}

/* A stream that had answered is no failure (A57): the next follows at once, but not more often than the backoff's first
 * step, lest a server that answers and closes be asked without end. */
static uint64_t restart_delay_ms(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    uint64_t now_ms = tc_loop_now_ms(ch->client->loop);
    uint64_t gap_ms = a->backoff.opts.initial_ms;
    bool soon = a->restarted_ms && now_ms < a->restarted_ms + gap_ms;
    uint64_t wait_ms = soon ? a->restarted_ms + gap_ms - now_ms : 0;
    a->restarted_ms = TC_MAX(now_ms + wait_ms, 1);
    return wait_ms;
}

static void on_status(void *arg, const struct tc_status *status)
{
    struct tc_xds_channel *ch = arg;
    struct tc_xds_ads *a = &ch->ads;
    const char *uri = tc_rstr_cstr(ch->server->uri), *code = torc_status_code_name(status->code);
    bool seen = a->seen_response;
    bool too_large = seen && status->code == TORC_STATUS_RESOURCE_EXHAUSTED;
    forget_stream(ch);
    a->hold_backoff = too_large || (a->hold_backoff && !seen);
    if (seen && !too_large) {
        tc_backoff_reset(&a->backoff);
        TC_XDS_LOG(INFO, "xds %s: stream ended with %s: %s", uri, code, tc_status_text(status));
        uint64_t wait_ms = restart_delay_ms(ch);
        if (wait_ms)
            tc_timer_start(&a->retry, wait_ms);
        else
            tc_loop_defer(ch->client->loop, &a->restart);
        return;
    }
    tc_timer_start(&a->retry, tc_backoff_next_ms(&a->backoff, tc_loop_rng(ch->client->loop)));
    tc_xds_channel_fail(ch, tc_status_make(TORC_STATUS_UNAVAILABLE,
                                           "xDS channel for server %s: xDS call failed%s; status: %s: %s (node ID:%s)",
                                           uri, seen ? "" : " with no responses received", code, tc_status_text(status),
                                           tc_xds_node_id(ch->client)));
}

static const struct tc_xds_stream_events stream_events = {
    .on_message = on_message,
    .on_sent = on_sent,
    .on_status = on_status,
};

void tc_xds_ads_start(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    if (a->stream || tc_timer_active(&a->retry) || tc_task_pending(&a->restart))
        return;
    a->sent_node = a->seen_response = false;
    a->stream = ch->transport->ops->open(ch->transport, METHOD, &stream_events, ch);
    a->stream->ops->read(a->stream);
    for (size_t type = 0; type < ch->client->types.len; type++)
        tc_xds_ads_request(ch, type);
}

static void on_restart(struct tc_task *task)
{
    tc_xds_ads_start(channel_of(TC_CONTAINER_OF(task, struct tc_xds_ads, restart)));
}

static void on_retry(struct tc_timer *timer)
{
    tc_xds_ads_start(channel_of(TC_CONTAINER_OF(timer, struct tc_xds_ads, retry)));
}

void tc_xds_ads_reset_backoff(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    tc_backoff_reset(&a->backoff);
    if (tc_timer_active(&a->retry)) {
        tc_timer_stop(&a->retry);
        tc_loop_defer(ch->client->loop, &a->restart);
    }
}

void tc_xds_ads_init(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    tc_backoff_init(&a->backoff, &ch->client->opts.backoff);
    tc_timer_init(&a->retry, ch->client->loop, on_retry);
    tc_task_init(&a->send, on_send_task);
    tc_task_init(&a->restart, on_restart);
}

void tc_xds_ads_fini(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_stream *stream = a->stream;
    forget_stream(ch);
    if (stream)
        stream->ops->cancel(stream);
    tc_timer_stop(&a->retry);
    tc_task_cancel(&a->restart);
    for (size_t i = 0; i < a->types.len; i++) {
        drop_text(&a->types.data[i].version);
        tc_vec_fini(&a->types.data[i].dropped);
    }
    tc_vec_fini(&a->types);
}
