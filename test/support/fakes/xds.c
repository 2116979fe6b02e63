/* The transport of an xDS client, with the test as its servers.
 *
 * A server is found by URI and outlives transports and streams; the fake owns its servers until fake_xds_free. A server
 * has at most one transport, a transport at most one ADS stream and one LRS stream. The client ends and frees a
 * transport by `shutdown`, and a stream by `cancel`; on_pump frees a stream after on_status.
 *
 * Requests of the client are decoded into struct fake_xds_request and recorded, load reports are recorded as they are.
 * Responses of the test are queued; on_pump, a task, delivers them. ADS (both forms) and LRS share the code; `kind`
 * tells them apart. Everything runs on the thread of the loop. */
#include "support/fakes/xds.h"

#include "support/cmocka.h"

#include "base/buf.h"
#include "base/mem.h"

#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

struct fake_xds {
    struct tc_xds_transport_factory factory;
    struct tc_loop *loop;
    struct tc_link servers;
};

/* A response in fake_stream.queue, or a load report in fake_xds_server.reports. Owns a reference to the message. */
struct queued {
    struct tc_link link;
    struct tc_rstr *message;
};

enum kind { SOTW, DELTA, LRS };

struct fake_stream {
    struct tc_xds_stream base;
    enum kind kind;
    struct fake_xds_server *server;
    const struct tc_xds_stream_events *events;
    void *arg;
    /* sending: a message was sent, and on_sent has not come. ended: by the test; on_status follows once the queue is
     * empty. */
    bool sending, ended;
    unsigned reads;          /* responses that the client has asked for and not got: 0 or 1 */
    struct tc_link queue;    /* struct queued: responses that the client has not got */
    struct tc_status status; /* for on_status; set with `ended` */
    struct tc_task task;     /* runs on_pump */
};

struct fake_transport {
    struct tc_xds_transport base;
    struct fake_xds_server *server;
    tc_xds_connectivity_fn fn;
    void *arg;
    struct fake_stream *stream, *lrs; /* the open ADS and LRS streams; NULL: none */
};

/* Returns NULL if the client has no transport for the server. */
static struct fake_transport *transport_of(const struct fake_xds_server *s)
{
    return s->internal;
}

/* --- requests --- */

/* Returns a text that the caller frees with tc_free; "" if n is 0. */
static char *join(char **v, size_t n)
{
    struct tc_buf b = {0};
    for (size_t i = 0; i < n; i++)
        tc_buf_printf(&b, "%s%s", i ? "," : "", v[i]);
    return tc_buf_take(&b);
}

static void record_node(struct fake_xds_request *r, const Envoy__Config__Core__V3__Node *node)
{
    if (!node)
        return;
    r->has_node = true;
    r->node_id = tc_strdup(node->id);
    r->user_agent = tc_asprintf("%s/%s", node->user_agent_name, node->user_agent_version);
    r->features = join(node->client_features, node->n_client_features);
}

static void record_error(struct fake_xds_request *r, const Google__Rpc__Status *error)
{
    if (!error)
        return;
    r->error_code = error->code;
    r->error_text = tc_strdup(error->message);
}

static void record_sotw(struct fake_xds_request *r, struct tc_slice message)
{
    Envoy__Service__Discovery__V3__DiscoveryRequest *m =
        envoy__service__discovery__v3__discovery_request__unpack(NULL, message.len, (const uint8_t *)message.data);
    assert_true(m);
    r->type_url = tc_strdup(m->type_url);
    r->version = tc_strdup(m->version_info);
    r->nonce = tc_strdup(m->response_nonce);
    r->names = join(m->resource_names, m->n_resource_names);
    record_node(r, m->node);
    record_error(r, m->error_detail);
    envoy__service__discovery__v3__discovery_request__free_unpacked(m, NULL);
}

static void record_delta(struct fake_xds_request *r, struct tc_slice message)
{
    Envoy__Service__Discovery__V3__DeltaDiscoveryRequest *m =
        envoy__service__discovery__v3__delta_discovery_request__unpack(NULL, message.len,
                                                                       (const uint8_t *)message.data);
    struct tc_buf b = {0};
    assert_true(m);
    r->delta = true;
    r->type_url = tc_strdup(m->type_url);
    r->nonce = tc_strdup(m->response_nonce);
    r->names = join(m->resource_names_subscribe, m->n_resource_names_subscribe);
    r->unsubscribed = join(m->resource_names_unsubscribe, m->n_resource_names_unsubscribe);
    for (size_t i = 0; i < m->n_initial_resource_versions; i++)
        tc_buf_printf(&b, "%s%s=%s", i ? "," : "", m->initial_resource_versions[i]->key,
                      m->initial_resource_versions[i]->value);
    r->initial = tc_buf_take(&b);
    record_node(r, m->node);
    record_error(r, m->error_detail);
    envoy__service__discovery__v3__delta_discovery_request__free_unpacked(m, NULL);
}

/* Records a message of the client for fake_xds_take or fake_xds_lrs_take. A request that cannot be decoded fails the
 * test. */
static void record(const struct fake_stream *st, struct tc_slice message)
{
    struct fake_xds_server *s = st->server;
    if (st->kind == LRS) {
        struct queued *q = TC_NEW(struct queued);
        q->message = tc_rstr_new(message.data, message.len);
        tc_list_init(&q->link);
        tc_list_append(&s->reports, &q->link);
        return;
    }
    struct fake_xds_request *r = TC_NEW(struct fake_xds_request);
    r->stream = s->streams;
    if (st->kind == DELTA)
        record_delta(r, message);
    else
        record_sotw(r, message);
    tc_list_init(&r->link);
    tc_list_append(&s->requests, &r->link);
}

struct fake_xds_request *fake_xds_take(struct fake_xds_server *s)
{
    struct tc_link *link = tc_list_pop(&s->requests);
    return link ? TC_CONTAINER_OF(link, struct fake_xds_request, link) : NULL;
}

void fake_xds_request_free(struct fake_xds_request *r)
{
    tc_free(r->type_url);
    tc_free(r->version);
    tc_free(r->nonce);
    tc_free(r->names);
    tc_free(r->unsubscribed);
    tc_free(r->initial);
    tc_free(r->node_id);
    tc_free(r->user_agent);
    tc_free(r->features);
    tc_free(r->error_text);
    tc_free(r);
}

/* --- streams --- */

static void stream_free(struct fake_stream *st)
{
    struct tc_link *link;
    while ((link = tc_list_pop(&st->queue))) {
        struct queued *q = TC_CONTAINER_OF(link, struct queued, link);
        tc_rstr_unref(q->message);
        tc_free(q);
    }
    struct fake_transport *t = transport_of(st->server);
    if (t && t->stream == st)
        t->stream = NULL;
    if (t && t->lrs == st)
        t->lrs = NULL;
    tc_task_cancel(&st->task);
    tc_status_fini(&st->status);
    tc_free(st);
}

/* Calls one callback at most, because the client may cancel the stream inside it; the task, queued again, calls the
 * next. */
static void on_pump(struct tc_task *task)
{
    struct fake_stream *st = TC_CONTAINER_OF(task, struct fake_stream, task);
    struct tc_loop *loop = st->server->fake->loop;
    bool shut = st->server->shut;
    if (st->sending && st->server->connected && (!shut || st->ended || st->server->resends)) {
        st->sending = false;
        tc_loop_defer(loop, &st->task);
        st->events->on_sent(st->arg, !shut);
    } else if (st->reads && !tc_list_empty(&st->queue)) {
        struct queued *q = TC_CONTAINER_OF(tc_list_pop(&st->queue), struct queued, link);
        struct tc_rstr *message = q->message;
        tc_free(q);
        st->reads--;
        st->server->messages_read += st->kind != LRS;
        tc_loop_defer(loop, &st->task);
        st->events->on_message(st->arg, message);
    } else if (st->ended && tc_list_empty(&st->queue)) {
        *(st->kind == LRS ? &transport_of(st->server)->lrs : &transport_of(st->server)->stream) = NULL;
        st->events->on_status(st->arg, &st->status);
        stream_free(st);
    }
}

static void pump(struct fake_stream *st)
{
    tc_loop_defer(st->server->fake->loop, &st->task);
}

static void stream_send(struct tc_xds_stream *s, struct tc_slice message)
{
    struct fake_stream *st = TC_CONTAINER_OF(s, struct fake_stream, base);
    assert_true(!st->sending);
    st->sending = true;
    record(st, message);
    pump(st);
}

static void stream_read(struct tc_xds_stream *s)
{
    struct fake_stream *st = TC_CONTAINER_OF(s, struct fake_stream, base);
    assert_true(st->reads == 0);
    st->reads++;
    pump(st);
}

static void stream_end(struct tc_xds_stream *s)
{
    struct fake_stream *st = TC_CONTAINER_OF(s, struct fake_stream, base);
    assert_false(st->sending);
    st->server->half_closed++;
}

static void stream_cancel(struct tc_xds_stream *s)
{
    stream_free(TC_CONTAINER_OF(s, struct fake_stream, base));
}

static const struct tc_xds_stream_ops stream_ops = {stream_send, stream_read, stream_end, stream_cancel};

/* --- transports --- */

static enum kind kind_of(const char *method)
{
    static const char *const methods[] = {
        [SOTW] = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
        [DELTA] = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
        [LRS] = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats",
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(methods); i++)
        if (strcmp(method, methods[i]) == 0)
            return (enum kind)i;
    fail_msg("method %s", method);
    return SOTW;
}

static struct tc_xds_stream *transport_open(struct tc_xds_transport *base, const char *method,
                                            const struct tc_xds_stream_events *events, void *arg)
{
    struct fake_transport *t = TC_CONTAINER_OF(base, struct fake_transport, base);
    struct fake_stream *st = TC_NEW(struct fake_stream);
    st->kind = kind_of(method);
    st->base.ops = &stream_ops;
    st->server = t->server;
    st->events = events;
    st->arg = arg;
    tc_list_init(&st->queue);
    tc_task_init(&st->task, on_pump);
    struct fake_stream **place = st->kind == LRS ? &t->lrs : &t->stream;
    assert_true(!*place);
    *place = st;
    ++*(st->kind == LRS ? &t->server->lrs_streams : &t->server->streams);
    return &st->base;
}

static void transport_reset_backoff(struct tc_xds_transport *base)
{
    TC_CONTAINER_OF(base, struct fake_transport, base)->server->backoff_resets++;
}

static void transport_shutdown(struct tc_xds_transport *base)
{
    struct fake_transport *t = TC_CONTAINER_OF(base, struct fake_transport, base);
    assert_true(!t->stream && !t->lrs);
    t->server->open = false;
    t->server->internal = NULL;
    tc_free(t);
}

static const struct tc_xds_transport_ops transport_ops = {
    .open = transport_open,
    .reset_backoff = transport_reset_backoff,
    .shutdown = transport_shutdown,
};

static struct tc_xds_transport *create(struct tc_xds_transport_factory *f, const struct tc_xds_server *server,
                                       tc_xds_connectivity_fn fn, void *arg)
{
    struct fake_xds *fake = TC_CONTAINER_OF(f, struct fake_xds, factory);
    struct fake_xds_server *s = fake_xds_server(fake, tc_rstr_cstr(server->uri));
    struct fake_transport *t = TC_NEW(struct fake_transport);
    assert_true(!s->open);
    t->base.ops = &transport_ops;
    t->server = s;
    t->fn = fn;
    t->arg = arg;
    s->open = true;
    s->created++;
    s->internal = t;
    return &t->base;
}

/* --- the test's side --- */

struct fake_xds *fake_xds_new(struct tc_loop *loop)
{
    struct fake_xds *f = TC_NEW(struct fake_xds);
    f->factory.create = create;
    f->loop = loop;
    tc_list_init(&f->servers);
    return f;
}

void fake_xds_free(struct fake_xds *f)
{
    struct tc_link *link;
    while ((link = tc_list_pop(&f->servers))) {
        struct fake_xds_server *s = TC_CONTAINER_OF(link, struct fake_xds_server, link);
        struct fake_xds_request *r;
        assert_true(!s->open);
        while ((r = fake_xds_take(s)))
            fake_xds_request_free(r);
        for (struct tc_rstr *m; (m = fake_xds_lrs_take(s));)
            tc_rstr_unref(m);
        tc_free(s->uri);
        tc_free(s);
    }
    tc_free(f);
}

struct tc_xds_transport_factory *fake_xds_factory(struct fake_xds *f)
{
    return &f->factory;
}

struct fake_xds_server *fake_xds_server(struct fake_xds *f, const char *uri)
{
    TC_LIST_FOREACH(it, &f->servers)
    {
        struct fake_xds_server *s = TC_CONTAINER_OF(it, struct fake_xds_server, link);
        if (strcmp(s->uri, uri) == 0)
            return s;
    }
    struct fake_xds_server *s = TC_NEW(struct fake_xds_server);
    s->fake = f;
    s->uri = tc_strdup(uri);
    s->connected = true;
    tc_list_init(&s->requests);
    tc_list_init(&s->reports);
    tc_list_append(&f->servers, &s->link);
    return s;
}

bool fake_xds_streaming(const struct fake_xds_server *s)
{
    return s->open && transport_of(s)->stream;
}

static void send_on(struct fake_stream *st, struct tc_slice message)
{
    struct queued *q = TC_NEW(struct queued);
    q->message = tc_rstr_new(message.data, message.len);
    tc_list_init(&q->link);
    tc_list_append(&st->queue, &q->link);
    pump(st);
}

static void end_stream(struct fake_stream *st, int code, int layer, const char *text)
{
    st->ended = true;
    tc_status_set(&st->status, tc_status_make(code, layer, "%s", text));
    pump(st);
}

void fake_xds_send(struct fake_xds_server *s, struct tc_slice message)
{
    assert_true(fake_xds_streaming(s));
    send_on(transport_of(s)->stream, message);
}

void fake_xds_end(struct fake_xds_server *s, int code, const char *text)
{
    assert_true(fake_xds_streaming(s));
    end_stream(transport_of(s)->stream, code, TORC_LAYER_PEER, text);
}

void fake_xds_break(struct fake_xds_server *s, int code, const char *text)
{
    assert_true(fake_xds_streaming(s));
    end_stream(transport_of(s)->stream, code, TORC_LAYER_LIMIT, text);
}

/* --- load reports --- */

bool fake_xds_lrs_streaming(const struct fake_xds_server *s)
{
    return s->open && transport_of(s)->lrs;
}

struct tc_rstr *fake_xds_lrs_take(struct fake_xds_server *s)
{
    struct tc_link *link = tc_list_pop(&s->reports);
    if (!link)
        return NULL;
    struct queued *q = TC_CONTAINER_OF(link, struct queued, link);
    struct tc_rstr *message = q->message;
    tc_free(q);
    return message;
}

void fake_xds_lrs_send(struct fake_xds_server *s, struct tc_slice message)
{
    assert_true(fake_xds_lrs_streaming(s));
    send_on(transport_of(s)->lrs, message);
}

void fake_xds_lrs_end(struct fake_xds_server *s, int code, const char *text)
{
    assert_true(fake_xds_lrs_streaming(s));
    end_stream(transport_of(s)->lrs, code, TORC_LAYER_PEER, text);
}

void fake_xds_connect(struct fake_xds_server *s)
{
    s->connected = true;
    if (fake_xds_streaming(s))
        pump(transport_of(s)->stream);
    if (fake_xds_lrs_streaming(s))
        pump(transport_of(s)->lrs);
}

void fake_xds_fail(struct fake_xds_server *s, const char *why)
{
    struct fake_transport *t = transport_of(s);
    struct tc_status status = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "%s", why);
    s->connected = false;
    assert_true(t);
    t->fn(t->arg, &status);
    tc_status_fini(&status);
}
