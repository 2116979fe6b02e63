/* The application: public handles as structs of its own, and calls of any kind, with their outcomes as plain data.
 *
 * The struct of a call lives until the caller has freed the handle and Torc has reported the call's end, in either
 * order. After app_call_free nothing of the call is reported to the caller. A runtime, a channel, a call or a client
 * status that cannot be made aborts the program: its options are good, so Torc is at fault. */
#include "sim/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

struct app_call {
    torc_stream *stream;
    struct app_call_events events;
    void *arg;
    unsigned n_messages, n_sent;
    bool over, freed; /* Torc reported the end; the caller freed the handle. The struct is freed when both are set */
};

static void app_fail(const char *what, torc_error *error)
{
    fprintf(stderr, "sim: %s: %s\n", what, error ? torc_error_text(error) : "");
    abort();
}

struct app_domain *app_domain_new(void)
{
    return (struct app_domain *)torc_xds_domain_new(NULL);
}

void app_domain_free(struct app_domain *d)
{
    torc_xds_domain_free((torc_xds_domain *)d);
}

struct app_runtime *app_runtime_new(struct app_domain *domain)
{
    torc_error *error = NULL;
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .xds_domain = (torc_xds_domain *)domain};
    torc_runtime *rt = torc_runtime_new(&o, &error);
    if (!rt)
        app_fail("no runtime", error);
    return (struct app_runtime *)rt;
}

void app_runtime_free(struct app_runtime *rt)
{
    torc_runtime_free((torc_runtime *)rt);
}

void *app_client_status(struct app_runtime *rt, size_t *size)
{
    void *bytes = NULL;
    if (torc_csds_dump((torc_runtime *)rt, true, &bytes, size) != 0)
        app_fail("no client status", NULL);
    return bytes;
}

void app_memory_free(void *bytes)
{
    torc_free(bytes);
}

struct app_channel *app_channel_new(struct app_runtime *rt, const char *target,
                                    const struct app_channel_options *options)
{
    torc_error *error = NULL;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options),
                                     .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = options->bootstrap,
                                     .service_config_json = options->service_config,
                                     .backoff_max_ms = options->backoff_max_ms,
                                     .connect_timeout_ms = options->connect_timeout_ms,
                                     .keepalive_time_ms = options->keepalive_time_ms,
                                     .keepalive_timeout_ms = options->keepalive_timeout_ms};
    torc_channel *ch = torc_channel_new((torc_runtime *)rt, target, &o, &error);
    if (!ch)
        app_fail("no channel", error);
    return (struct app_channel *)ch;
}

void app_channel_free(struct app_channel *ch)
{
    torc_channel_free((torc_channel *)ch);
}

/* --- calls --- */

/* Returns the header's value, borrowed from the result, or NULL. A response without messages may be Trailers-Only. */
static const char *result_set_cookie(const torc_result *result)
{
    const char *found = torc_metadata_find(torc_result_headers(result), "set-cookie", NULL);
    return found ? found : torc_metadata_find(torc_result_trailers(result), "set-cookie", NULL);
}

static void call_end(struct app_call *call, const torc_result *result)
{
    struct app_outcome outcome = {
        .code = torc_result_code(result),
        .message = torc_result_text(result),
        .peer = torc_result_peer(result),
        .set_cookie = result_set_cookie(result),
        .response = torc_result_response(result) ? torc_message_data(torc_result_response(result)) : NULL,
        .response_size = torc_message_size(torc_result_response(result)),
        .attempts = torc_result_attempts(result),
        .layer = torc_error_layer(torc_result_error(result)),
    };
    call->over = true;
    if (call->freed)
        free(call);
    else
        call->events.on_done(call->arg, &outcome);
}

static void unary_on_result(const torc_result *result, void *arg)
{
    call_end(arg, result);
}

static void stream_on_done(torc_stream *stream, const torc_result *result, void *arg)
{
    (void)stream;
    call_end(arg, result);
}

static void stream_on_message(torc_stream *stream, const torc_message *message, void *arg)
{
    struct app_call *call = arg;
    if (call->freed)
        return;
    torc_stream_want(stream, 1);
    call->events.on_message(call->arg, torc_message_data(message), torc_message_size(message));
}

/* Sends messages until all are sent or there is no room. Half-closes a stream that has none to send. */
static void stream_go_on(torc_stream *stream, struct app_call *call)
{
    int rc = 0;
    if (call->n_messages == 0)
        torc_stream_half_close(stream);
    while (rc == 0 && call->n_sent < call->n_messages) {
        size_t size;
        const void *data = call->events.make(call->arg, call->n_sent, &size);
        bool last = call->n_sent + 1 == call->n_messages;
        rc = torc_stream_send(stream, data, size, last ? TORC_SEND_LAST : 0, 0);
        call->n_sent += rc == 0;
    }
}

static void stream_on_writable(torc_stream *stream, void *arg)
{
    struct app_call *call = arg;
    if (!call->freed)
        stream_go_on(stream, call);
}

static torc_stream *unary_start(torc_channel *ch, const char *request, const struct torc_call_options *o,
                                struct app_call *call, torc_error **error)
{
    torc_stream *handle = NULL;
    torc_unary_async(ch, "/sim.Service/Unary", request, strlen(request), o, unary_on_result, call, &handle, error);
    return handle;
}

static torc_stream *stream_start(torc_channel *ch, enum sim_kind kind, const struct torc_call_options *o,
                                 struct app_call *call, torc_error **error)
{
    static const char *const methods[SIM_KINDS] = {"", "/sim.Service/Client", "/sim.Service/Server",
                                                   "/sim.Service/Both"};
    const struct torc_stream_events events = {TORC_SIZE(torc_stream_events), .on_message = stream_on_message,
                                              .on_writable = stream_on_writable, .on_done = stream_on_done};
    torc_stream *stream = torc_stream_start(ch, methods[kind], o, &events, call, error);
    if (!stream)
        return NULL;
    torc_stream_want(stream, 1);
    stream_go_on(stream, call);
    return stream;
}

struct app_call *app_call_start(struct app_channel *ch, const struct app_call_options *options,
                                const struct app_call_events *events, void *arg)
{
    struct app_call *call = calloc(1, sizeof(*call));
    torc_error *error = NULL;
    torc_metadata *md = torc_metadata_new();
    call->events = *events;
    call->arg = arg;
    call->n_messages = options->n_messages;
    struct torc_call_options o = {TORC_SIZE(torc_call_options),
                                  .timeout_ms = options->timeout_ms < 0   ? 0
                                                : options->timeout_ms > 0 ? options->timeout_ms
                                                                          : -1,
                                  .metadata = md, .wait_for_ready = options->wait_for_ready};
    if (options->key)
        torc_metadata_add_string(md, "x-key", options->key);
    if (options->cookie)
        torc_metadata_add_string(md, "cookie", options->cookie);
    if (options->kind == SIM_UNARY) {
        call->stream = unary_start((torc_channel *)ch, options->request, &o, call, &error);
    } else {
        torc_metadata_add_string(md, "x-call", options->request);
        call->stream = stream_start((torc_channel *)ch, options->kind, &o, call, &error);
    }
    if (!call->stream)
        app_fail("no call", error);
    torc_metadata_free(md);
    return call;
}

void app_call_cancel(struct app_call *call)
{
    torc_stream_cancel(call->stream);
}

void app_call_free(struct app_call *call)
{
    torc_stream_free(call->stream);
    call->freed = true;
    if (call->over)
        free(call);
}
