/* The xDS client's transport on Torc's own channels (xds/client/transport.h).
 *
 * Each transport has a private channel to one server, without idle timeout and with keepalive. Each stream is one
 * wait-for-ready call. If the channel cannot be made (a bad target, credentials that cannot be made), the transport has
 * no channel: it reports the failure through the connectivity callback, and each stream fails. A71's fallback then goes
 * on as if the server were down.
 *
 * Callbacks come by the loop, never from inside open, send or read. The xDS client ends a transport with shutdown. A
 * stream ends with on_status, before which its memory is freed, or with cancel. The factory belongs to the owner of the
 * xDS client, and is borrowed for each call of `create`. Loop thread only. */
#include "xds/domain/xds_transport.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "channel/call_start.h"
#include "channel/channel.h"
#include "channel/create.h"
#include "channel/options.h"
#include "creds/creds.h"
#include "creds/registry.h"
#include "xds/domain/bootstrap_env.h"
#include "xds/domain/validation_context.h"

enum {
    KEEPALIVE_MS = 300000, /* a ping after so much silence, as other gRPC implementations ping control planes */
};

struct channel_transport {
    struct tc_xds_transport base;
    struct tc_loop *loop;
    torc_channel *channel;         /* owned (tc_channel_shutdown); NULL: it could not be made, see `failure` */
    struct tc_channel_watch watch; /* of the channel's state; without a channel it is not used */
    struct tc_status failure;      /* why there is no channel */
    struct tc_task tell_failure;   /* without a channel: passes `failure` to `fn` */
    uint64_t max_message_bytes;    /* of one response */
    tc_xds_connectivity_fn fn;
    void *arg; /* of `fn` */
};

struct channel_stream {
    struct tc_xds_stream base;
    const struct tc_xds_stream_events *events;
    void *arg;                /* of `events` */
    struct tc_call *call;     /* valid until on_call_done or stream_cancel; NULL: there is no channel */
    struct tc_status failure; /* without a call: the status to end with */
    struct tc_task fail;      /* without a call: reports `failure` */
};

/* --- streams --- */

static void stream_free(struct channel_stream *s)
{
    tc_task_cancel(&s->fail);
    tc_status_fini(&s->failure);
    tc_free(s);
}

static void on_call_message(void *arg, struct tc_rstr *message)
{
    struct channel_stream *s = arg;
    s->events->on_message(s->arg, message);
}

static void on_call_written(void *arg)
{
    struct channel_stream *s = arg;
    s->events->on_sent(s->arg, !tc_call_ended(s->call));
}

static void on_call_done(void *arg, const struct tc_call_end *end)
{
    struct channel_stream *s = arg;
    const struct tc_xds_stream_events *events = s->events;
    void *owner = s->arg;
    stream_free(s);
    events->on_status(owner, &end->status);
}

static const struct tc_call_events call_events = {
    .on_message = on_call_message, .on_written = on_call_written, .on_done = on_call_done};

static void on_stream_fail(struct tc_task *task)
{
    struct channel_stream *s = TC_CONTAINER_OF(task, struct channel_stream, fail);
    const struct tc_xds_stream_events *events = s->events;
    void *owner = s->arg;
    struct tc_status status = tc_status_ref(&s->failure);
    stream_free(s);
    events->on_status(owner, &status);
    tc_status_fini(&status);
}

static void stream_send(struct tc_xds_stream *base, struct tc_slice message)
{
    struct channel_stream *s = TC_CONTAINER_OF(base, struct channel_stream, base);
    if (s->call)
        tc_call_send(s->call, tc_rstr_new(message.data, message.len), false);
}

static void stream_read(struct tc_xds_stream *base)
{
    struct channel_stream *s = TC_CONTAINER_OF(base, struct channel_stream, base);
    if (s->call)
        tc_call_read(s->call, 1);
}

static void stream_end(struct tc_xds_stream *base)
{
    struct channel_stream *s = TC_CONTAINER_OF(base, struct channel_stream, base);
    if (s->call)
        tc_call_send_end(s->call);
}

static void stream_cancel(struct tc_xds_stream *base)
{
    struct channel_stream *s = TC_CONTAINER_OF(base, struct channel_stream, base);
    if (s->call)
        tc_call_cancel(s->call);
    stream_free(s);
}

static const struct tc_xds_stream_ops stream_ops = {
    .send = stream_send, .read = stream_read, .end = stream_end, .cancel = stream_cancel};

static struct tc_xds_stream *transport_open(struct tc_xds_transport *base, const char *method,
                                            const struct tc_xds_stream_events *events, void *arg)
{
    struct channel_transport *t = TC_CONTAINER_OF(base, struct channel_transport, base);
    struct channel_stream *s = TC_NEW(struct channel_stream);
    s->base.ops = &stream_ops;
    s->events = events;
    s->arg = arg;
    tc_task_init(&s->fail, on_stream_fail);
    if (t->channel) {
        struct tc_call_opts opts = {
            .method = tc_slice_str(method),
            .wait_for_ready = true,
            .once = true, /* A57, A71: the client must hear that the stream was lost */
            .max_receive_message_bytes = t->max_message_bytes,
        };
        s->call = tc_call_start(t->channel, &opts, &call_events, s);
    } else {
        s->failure = tc_status_ref(&t->failure);
        tc_loop_defer(t->loop, &s->fail);
    }
    return &s->base;
}

/* --- transports --- */

static void transport_reset_backoff(struct tc_xds_transport *base)
{
    struct channel_transport *t = TC_CONTAINER_OF(base, struct channel_transport, base);
    if (t->channel)
        tc_channel_reset_backoff(t->channel);
}

static void transport_shutdown(struct tc_xds_transport *base)
{
    struct channel_transport *t = TC_CONTAINER_OF(base, struct channel_transport, base);
    tc_task_cancel(&t->tell_failure);
    if (t->channel) {
        tc_channel_watch_remove(&t->watch);
        tc_channel_shutdown(t->channel);
    }
    tc_status_fini(&t->failure);
    tc_free(t);
}

static const struct tc_xds_transport_ops transport_ops = {
    .open = transport_open, .reset_backoff = transport_reset_backoff, .shutdown = transport_shutdown};

static void on_channel_state(struct tc_channel_watch *watch, enum torc_connectivity state,
                             const struct tc_status *status)
{
    struct channel_transport *t = TC_CONTAINER_OF(watch, struct channel_transport, watch);
    if (state == TORC_CONNECTIVITY_TRANSIENT_FAILURE)
        t->fn(t->arg, status);
}

static void on_tell_failure(struct tc_task *task)
{
    struct channel_transport *t = TC_CONTAINER_OF(task, struct channel_transport, tell_failure);
    t->fn(t->arg, &t->failure);
}

/* Returns the channel credentials of a server, with one reference; NULL with the reason in *why (tc_free). */
static torc_credentials *server_channel_credentials(const struct tc_channel_transport_factory *f,
                                                    const struct tc_xds_server *server, char **why)
{
    if (!server->creds_type)
        return f->credentials ? torc_credentials_ref(f->credentials) : torc_credentials_insecure();
    char *text = server->creds_config ? tc_json_text(server->creds_config, false) : NULL;
    torc_credentials *creds = tc_creds_from_config(server->creds_type->data, text, why);
    tc_free(text);
    return creds;
}

/* Takes over `creds`. Returns them joined with the call credentials of `entry`, an element of the server's call_creds
 * (A97); NULL with the reason in *why (tc_free). */
static torc_credentials *with_call_credentials(torc_credentials *creds, const json_t *entry, char **why)
{
    const json_t *config = json_object_get(entry, "config");
    char *text = config ? tc_json_text(config, false) : NULL;
    torc_call_credentials *call =
        tc_call_creds_from_config(json_string_value(json_object_get(entry, "type")), text, why);
    torc_credentials *both = call ? torc_credentials_composite(creds, call, NULL) : NULL;
    torc_call_credentials_unref(call);
    torc_credentials_unref(creds);
    tc_free(text);
    return both;
}

/* Returns the credentials of a server, channel and call credentials joined, with one reference; NULL with *why set. */
static torc_credentials *server_credentials(const struct tc_channel_transport_factory *f,
                                            const struct tc_xds_server *server, struct tc_status *why)
{
    char *reason = NULL;
    torc_credentials *creds = server_channel_credentials(f, server, &reason);
    for (size_t i = 0; creds && i < json_array_size(server->call_creds); i++)
        creds = with_call_credentials(creds, json_array_get(server->call_creds, i), &reason);
    if (!creds)
        *why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS, "%s", reason);
    tc_free(reason);
    return creds;
}

/* Returns a new private channel to a server, for tc_channel_shutdown; NULL with *why set. */
static torc_channel *server_open_channel(const struct tc_channel_transport_factory *f,
                                         const struct tc_xds_server *server, struct tc_status *why)
{
    char *fault = tc_bootstrap_env_uri_error(server->uri->data);
    if (fault) {
        *why = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS, "server_uri: %s", fault);
        tc_free(fault);
        return NULL;
    }
    torc_credentials *creds = server_credentials(f, server, why);
    if (!creds)
        return NULL;
    const struct torc_channel_options opts = {
        TORC_SIZE(torc_channel_options),
        .credentials = creds,
        .max_receive_message_bytes = (int64_t)f->max_message_bytes,
        .keepalive_time_ms = KEEPALIVE_MS,
        .idle_timeout_ms = -1,
        .service_config_lookup = TORC_OFF,
        .backoff_initial_ms = (int64_t)f->backoff.initial_ms,
        .backoff_max_ms = (int64_t)f->backoff.max_ms,
        .backoff_multiplier = f->backoff.multiplier,
        .backoff_jitter = f->backoff.jitter > 0 ? f->backoff.jitter : -1,
    };
    torc_channel *channel =
        tc_channel_new_private(f->runtime, server->uri->data, &opts, tc_xds_validation_policies(), why);
    torc_credentials_unref(creds);
    return channel;
}

static struct tc_xds_transport *factory_create(struct tc_xds_transport_factory *base,
                                               const struct tc_xds_server *server, tc_xds_connectivity_fn fn, void *arg)
{
    struct tc_channel_transport_factory *f = TC_CONTAINER_OF(base, struct tc_channel_transport_factory, base);
    struct channel_transport *t = TC_NEW(struct channel_transport);
    t->base.ops = &transport_ops;
    t->loop = tc_runtime_loop(f->runtime);
    t->fn = fn;
    t->arg = arg;
    t->max_message_bytes = f->max_message_bytes;
    tc_task_init(&t->tell_failure, on_tell_failure);
    t->channel = server_open_channel(f, server, &t->failure);
    if (t->channel) {
        t->watch.fn = on_channel_state;
        tc_list_init(&t->watch.link);
        tc_channel_watch_add(t->channel, &t->watch);
    } else {
        tc_loop_defer(t->loop, &t->tell_failure);
    }
    return &t->base;
}

void tc_channel_transport_init(struct tc_channel_transport_factory *f, torc_runtime *runtime,
                               torc_credentials *credentials, const struct tc_backoff_opts *backoff)
{
    f->base.create = factory_create;
    f->runtime = runtime;
    f->credentials = credentials ? torc_credentials_ref(credentials) : NULL;
    f->backoff = *backoff;
    f->max_message_bytes = TC_XDS_ADS_MAX_MESSAGE_BYTES;
}
