/* The application: public handles under names of their own, and one unary call with its outcome as plain data.
 *
 * A call's struct lives until both have happened: the application freed its handle, and Torc reported the end. After
 * the handle was freed, Torc's report reaches nobody. A constructor that fails aborts the run: its options are good. */
#include "sim/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

struct app_call {
    torc_stream *call;
    void (*done)(void *arg, const struct app_outcome *outcome);
    void *arg;
    bool over, freed; /* the last of the two frees it */
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

struct app_channel *app_channel_new(struct app_runtime *rt, const char *target,
                                    const struct app_channel_options *options)
{
    torc_error *error = NULL;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options),
                                     .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = options->bootstrap,
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

static void app_on_result(const torc_result *result, void *arg)
{
    struct app_call *call = arg;
    struct app_outcome outcome = {
        .code = torc_result_code(result),
        .message = torc_result_text(result),
        .peer = torc_result_peer(result),
        .response = torc_result_response(result) ? torc_message_data(torc_result_response(result)) : NULL,
        .response_size = torc_message_size(torc_result_response(result)),
        .attempts = torc_result_attempts(result),
    };
    call->over = true;
    if (call->freed)
        free(call);
    else
        call->done(call->arg, &outcome);
}

struct app_call *app_call_start(struct app_channel *ch, const struct app_call_options *options,
                                void (*done)(void *arg, const struct app_outcome *outcome), void *arg)
{
    struct app_call *call = calloc(1, sizeof(*call));
    torc_error *error = NULL;
    torc_metadata *md = torc_metadata_new();
    call->done = done;
    call->arg = arg;
    struct torc_call_options o = {TORC_SIZE(torc_call_options),
                                  .timeout_ms = options->timeout_ms < 0   ? 0
                                                : options->timeout_ms > 0 ? options->timeout_ms
                                                                          : -1,
                                  .wait_for_ready = options->wait_for_ready};
    if (options->key) {
        torc_metadata_add(md, "x-key", options->key, strlen(options->key));
        o.metadata = md;
    }
    if (torc_unary_async((torc_channel *)ch, "/sim.Service/Unary", options->request, strlen(options->request), &o,
                         app_on_result, call, &call->call, &error) != 0)
        app_fail("no call", error);
    torc_metadata_free(md);
    return call;
}

void app_call_cancel(struct app_call *call)
{
    torc_stream_cancel(call->call);
}

void app_call_free(struct app_call *call)
{
    torc_stream_free(call->call);
    call->freed = true;
    if (call->over)
        free(call);
}
