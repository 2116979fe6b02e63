/* The RPCs of the PSM client: at the asked rate over all channels, by a timer of the loop. Results come on the
 * runtime's thread and go to psm_stats. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "psm.h"

struct psm_load {
    struct tc_loop *loop;
    const struct psm_options *options;
    struct psm_stats *stats;
    struct psm_config config;
    torc_runtime *runtime;
    torc_channel **channels;
    struct tc_timer timer;
    uint64_t began_ms, sent; /* of each channel and kind */
    atomic_bool succeeded, failed, closing;
};

struct rpc {
    struct psm_load *load;
    uint64_t number;
    enum psm_rpc kind;
};

static const char *const methods[PSM_RPCS] = {"grpc.testing.TestService/EmptyCall",
                                              "grpc.testing.TestService/UnaryCall"};

/* The backend that answered: initial metadata have its name for every kind, a SimpleResponse too. For free(). */
static char *hostname_of(const struct rpc *r, const torc_result *result)
{
    const char *name = torc_metadata_find(torc_result_headers(result), "hostname", NULL);
    if (name)
        return tc_strdup(name);
    if (r->kind != PSM_UNARY_CALL)
        return NULL;
    Grpc__Testing__SimpleResponse *response =
        grpc__testing__simple_response__unpack(NULL, torc_message_size(torc_result_response(result)),
                                               (const uint8_t *)torc_message_data(torc_result_response(result)));
    char *copy = response && response->hostname[0] ? tc_strdup(response->hostname) : NULL;
    if (response)
        grpc__testing__simple_response__free_unpacked(response, NULL);
    return copy;
}

/* On the runtime's thread. */
static void on_result(const torc_result *result, void *arg)
{
    struct rpc *r = arg;
    struct psm_load *l = r->load;
    bool ok = torc_result_code(result) == TORC_STATUS_OK;
    char *hostname = ok ? hostname_of(r, result) : NULL;
    if (l->options->print_response) {
        fprintf(stderr, "%s: %s %s%s%s\n", methods[r->kind], torc_status_code_name(torc_result_code(result)),
                torc_result_text(result), hostname ? " from " : "", hostname ? hostname : "");
    }
    psm_stats_ended(l->stats, r->number, r->kind, result, hostname);
    if (ok)
        atomic_store(&l->succeeded, true);
    else if (l->options->fail_on_failed_rpc && atomic_load(&l->succeeded) && !atomic_load(&l->closing) &&
             !atomic_exchange(&l->failed, true)) {
        fprintf(stderr, "%s failed: %s %s\n", methods[r->kind], torc_status_code_name(torc_result_code(result)),
                torc_result_text(result));
        tc_loop_wake(l->loop);
    }
    tc_free(hostname);
    tc_free(r);
}

static void send_one(struct psm_load *l, torc_channel *channel, enum psm_rpc kind)
{
    struct rpc *r = TC_NEW(struct rpc);
    *r = (struct rpc){l, psm_stats_started(l->stats, kind), kind};
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = l->config.timeout_ms,
                                        .metadata = l->config.metadata[kind]};
    int rc = torc_unary_async(channel, methods[kind], "", 0, &options, on_result, r, NULL, NULL);
    if (rc != 0) { /* only a bug of this program: a wrong method or wrong metadata */
        fprintf(stderr, "%s could not be started: %s\n", methods[kind], torc_strerror(rc));
        abort();
    }
}

static void on_timer(struct tc_timer *timer)
{
    struct psm_load *l = TC_CONTAINER_OF(timer, struct psm_load, timer);
    uint64_t due = (tc_loop_now_ms(l->loop) - l->began_ms) * l->options->qps / 1000 + 1;
    for (; l->sent < due; l->sent++)
        for (unsigned c = 0; c < l->options->channels; c++)
            for (unsigned kind = 0; kind < PSM_RPCS; kind++)
                if (l->config.wanted[kind])
                    send_one(l, l->channels[c], (enum psm_rpc)kind);
    tc_timer_start(timer, l->options->qps >= 1000 ? 1 : 1000 / l->options->qps);
}

static bool open_channels(struct psm_load *l)
{
    unsigned opened = 0;
    struct torc_channel_options options = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    torc_credentials *fallback = torc_credentials_insecure();
    if (l->options->secure)
        options.credentials = torc_credentials_xds(fallback, NULL);
    l->channels = tc_calloc(l->options->channels, sizeof(*l->channels));
    for (unsigned i = 0; i < l->options->channels; i++) {
        torc_error *error = NULL;
        l->channels[i] = torc_channel_new(l->runtime, l->options->server, &options, &error);
        if (!l->channels[i]) {
            fprintf(stderr, "%s: %s\n", l->options->server, torc_error_text(error));
            torc_error_clear(&error);
            break;
        }
        opened++;
    }
    torc_credentials_unref(fallback);
    torc_credentials_unref(options.credentials);
    return opened == l->options->channels;
}

struct psm_load *psm_load_new(struct tc_loop *loop, const struct psm_options *o, struct psm_stats *stats)
{
    struct psm_load *l = TC_NEW(struct psm_load);
    *l = (struct psm_load){.loop = loop, .options = o, .stats = stats, .runtime = torc_runtime_new(NULL, NULL)};
    tc_timer_init(&l->timer, loop, on_timer);
    if (!l->runtime)
        perror("no runtime");
    if (!psm_config_init(&l->config, o) || !l->runtime || !open_channels(l)) {
        psm_load_free(l);
        return NULL;
    }
    l->began_ms = tc_loop_now_ms(loop);
    if (o->qps > 0)
        tc_timer_start(&l->timer, 0);
    return l;
}

void psm_load_free(struct psm_load *l)
{
    tc_timer_stop(&l->timer);
    atomic_store(&l->closing, true); /* calls cancelled from here on do not count as failed */
    for (unsigned i = 0; l->channels && i < l->options->channels; i++)
        torc_channel_free(l->channels[i]);
    if (l->runtime)
        torc_runtime_free(l->runtime); /* the RPCs end before it returns */
    psm_config_fini(&l->config);
    tc_free(l->channels);
    tc_free(l);
}

void psm_load_configure(struct psm_load *l, struct psm_config *config)
{
    psm_config_fini(&l->config);
    l->config = *config;
}

torc_runtime *psm_load_runtime(const struct psm_load *l)
{
    return l->runtime;
}

bool psm_load_failed(const struct psm_load *l)
{
    return atomic_load(&l->failed);
}
