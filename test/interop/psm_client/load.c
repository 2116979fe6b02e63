/* The RPCs of the PSM client. Each wanted kind is sent at the rate `qps` on each channel. psm_load_send sends what is
 * due by the clock, and so catches up if it is called late.
 *
 * The main thread makes the load, sends with it and frees it. Handlers of the driver's questions may give it another
 * config meanwhile, so `lock` guards the config. Results come on the runtime's thread and go to psm_stats. The load
 * owns its runtime, its channels and its config; it borrows the options and the stats. The program aborts if memory
 * runs out or an RPC cannot be started. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "psm.h"

struct psm_load {
    const struct psm_options *options;
    struct psm_stats *stats;
    pthread_mutex_t lock; /* guards `config` */
    struct psm_config config;
    torc_runtime *runtime;
    torc_channel **channels; /* options->channels of them; NULL: could not be made */
    uint64_t began_ms, sent; /* sent: rounds; a round is an RPC of each wanted kind on each channel */
    /* An RPC succeeded; with fail_on_failed_rpc: an RPC failed after one had succeeded; psm_load_free has begun. */
    atomic_bool succeeded, failed, closing;
};

/* An RPC under way. on_result frees it. */
struct rpc {
    struct psm_load *load;
    uint64_t number; /* from psm_stats_started */
    enum psm_rpc kind;
};

static const char *const methods[PSM_RPCS] = {"grpc.testing.TestService/EmptyCall",
                                              "grpc.testing.TestService/UnaryCall"};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void *zeroed(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p)
        abort();
    return p;
}

/* Returns the name of the backend that answered, from the header "hostname" or, of a UnaryCall, from the response; NULL
 * if neither has it. Borrowed from the result, whose status is OK. */
static const char *hostname_of(const struct rpc *r, const torc_result *result)
{
    const char *name = torc_metadata_find(torc_result_headers(result), "hostname", NULL);
    if (name || r->kind != PSM_UNARY_CALL)
        return name;
    const Grpc__Testing__SimpleResponse *response = grpc__testing__test_service__unary_call__response(result);
    return response->hostname[0] ? response->hostname : NULL;
}

/* Called on the runtime's thread. */
static void on_result(const torc_result *result, void *arg)
{
    struct rpc *r = arg;
    struct psm_load *l = r->load;
    bool ok = torc_result_code(result) == TORC_STATUS_OK;
    const char *hostname = ok ? hostname_of(r, result) : NULL;
    const char *code = torc_status_code_name(torc_result_code(result)), *text = torc_result_text(result);
    if (l->options->print_response)
        fprintf(stderr, "%s: %s %s%s%s\n", methods[r->kind], code, text, hostname ? " from " : "",
                hostname ? hostname : "");
    psm_stats_ended(l->stats, r->number, r->kind, result, hostname);
    if (ok)
        atomic_store(&l->succeeded, true);
    else if (l->options->fail_on_failed_rpc && atomic_load(&l->succeeded) && !atomic_load(&l->closing) &&
             !atomic_exchange(&l->failed, true))
        fprintf(stderr, "%s failed: %s %s\n", methods[r->kind], code, text);
    free(r);
}

/* Starts an RPC. The caller holds the lock. */
static void send_one(struct psm_load *l, torc_channel *channel, enum psm_rpc kind)
{
    static const Grpc__Testing__Empty empty = GRPC__TESTING__EMPTY__INIT;
    static const Grpc__Testing__SimpleRequest simple = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    struct rpc *r = zeroed(1, sizeof(*r));
    *r = (struct rpc){l, psm_stats_started(l->stats, kind), kind};
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .timeout_ms = l->config.timeout_ms,
                                        .metadata = l->config.metadata[kind]};
    int rc = kind == PSM_EMPTY_CALL
                 ? grpc__testing__test_service__empty_call__async(channel, &empty, &options, on_result, r, NULL, NULL)
                 : grpc__testing__test_service__unary_call__async(channel, &simple, &options, on_result, r, NULL, NULL);
    if (rc != 0) {
        fprintf(stderr, "%s could not be started: %s\n", methods[kind], torc_strerror(rc));
        abort();
    }
}

int64_t psm_load_send(struct psm_load *l)
{
    unsigned qps = l->options->qps;
    uint64_t due = qps ? (now_ms() - l->began_ms) * qps / 1000 + 1 : 0;
    pthread_mutex_lock(&l->lock);
    for (; l->sent < due; l->sent++)
        for (unsigned c = 0; c < l->options->channels; c++)
            for (unsigned kind = 0; kind < PSM_RPCS; kind++)
                if (l->config.wanted[kind])
                    send_one(l, l->channels[c], (enum psm_rpc)kind);
    pthread_mutex_unlock(&l->lock);
    return qps == 0 ? 1000 : qps >= 1000 ? 1 : 1000 / qps;
}

/* Makes the channels. Returns false, with the reason printed, if one cannot be made; psm_load_free frees the others. */
static bool open_channels(struct psm_load *l)
{
    unsigned opened = 0;
    struct torc_channel_options options = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    torc_credentials *fallback = torc_credentials_insecure();
    if (l->options->secure)
        options.credentials = torc_credentials_xds(fallback, NULL);
    l->channels = zeroed(l->options->channels + 1, sizeof(*l->channels));
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

struct psm_load *psm_load_new(const struct psm_options *o, struct psm_stats *stats)
{
    struct psm_load *l = zeroed(1, sizeof(*l));
    torc_error *error = NULL;
    *l = (struct psm_load){.options = o, .stats = stats, .runtime = torc_runtime_new(NULL, &error)};
    pthread_mutex_init(&l->lock, NULL);
    if (error)
        fprintf(stderr, "no runtime: %s\n", torc_error_text(error));
    torc_error_free(error);
    if (!psm_config_init(&l->config, o) || !l->runtime || !open_channels(l)) {
        psm_load_free(l);
        return NULL;
    }
    l->began_ms = now_ms();
    return l;
}

void psm_load_free(struct psm_load *l)
{
    atomic_store(&l->closing, true); /* RPCs that are cancelled from here on do not set `failed` */
    for (unsigned i = 0; l->channels && i < l->options->channels; i++)
        torc_channel_free(l->channels[i]);
    if (l->runtime)
        torc_runtime_free(l->runtime); /* the RPCs end before it returns */
    psm_config_fini(&l->config);
    pthread_mutex_destroy(&l->lock);
    free(l->channels);
    free(l);
}

void psm_load_configure(struct psm_load *l, const struct psm_config *config)
{
    pthread_mutex_lock(&l->lock);
    psm_config_fini(&l->config);
    l->config = *config;
    pthread_mutex_unlock(&l->lock);
}

torc_runtime *psm_load_runtime(const struct psm_load *l)
{
    return l->runtime;
}

bool psm_load_failed(const struct psm_load *l)
{
    return atomic_load(&l->failed);
}
