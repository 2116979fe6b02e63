/* bench/memory's client on Torc. Besides the kinds of memory.h the program has `ring`: the bytes that each of N
 * endpoints on a ring adds when it is not connected.
 *
 * Each kind first makes an RPC on a channel to one endpoint, so that what a process needs once is there before the
 * first look at its memory. `idle` returns that memory itself. The other kinds then make the N connections, endpoints
 * or calls, look again, and return the difference divided by N. Channels and calls are never freed, so that all of them
 * count; main ends the process with _Exit.
 *
 * All of this file runs on the main thread, which drives the loop: in RPCs that block, and in torc_runtime_poll. The
 * rings are so large that the library's background thread builds them. A failure ends the program. Read connections
 * first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <torc/torc.h>

#include "memory.h"

enum { IDLE_S = 4 };

struct run {
    torc_runtime *runtime;
    const char *port;
    unsigned n, connected; /* connected: connections of the observed channel */
};

static const char everyone[] = "{\"loadBalancingConfig\":[{\"round_robin\":{}}]}";
static const char ring[] = "{\"loadBalancingConfig\":[{\"ring_hash\":{\"minRingSize\":65536,\"maxRingSize\":65536,"
                           "\"requestHashHeader\":\"key\"}}]}";

/* Returns a target of n addresses, all of them the one server: "ipv4:127.0.0.1:P,127.0.0.2:P,...". For n = 1 the
 * address is not one of these, so that a kind's channel to one endpoint shares no connection with its channel to N. The
 * caller frees the text. */
static char *target_of(const struct run *r, unsigned n)
{
    size_t room = 32 * (size_t)n + 32, at = 0;
    char *text = malloc(room);
    if (!text)
        abort();
    if (n == 1) {
        snprintf(text, room, "ipv4:127.200.0.1:%s", r->port);
        return text;
    }
    for (unsigned i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, room - at, "%s127.%u.%u.%u:%s", i ? "," : "ipv4:", (i + 1) >> 16,
                               (i + 1) >> 8 & 255u, (i + 1) & 255u, r->port);
    return text;
}

/* Opens a channel to n endpoints, with a service config, NULL for none. The channel is never freed. */
static torc_channel *open_channel(struct run *r, unsigned n, const char *config)
{
    struct torc_channel_options options = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                           .service_config_json = config, .ring_size_cap = 65536};
    char *target = target_of(r, n);
    torc_error *error = NULL;
    torc_channel *channel = torc_channel_new(r->runtime, target, &options, &error);
    free(target);
    if (!channel) {
        fprintf(stderr, "memory_torc: %s\n", torc_error_text(error));
        exit(1);
    }
    return channel;
}

static void on_event(const char *kind, const char *detail, const char *reason, void *arg)
{
    (void)detail, (void)reason;
    struct run *r = arg;
    r->connected += strcmp(kind, "connected") == 0;
}

static void one_rpc(torc_channel *channel, torc_metadata *metadata)
{
    struct torc_call_options options = {TORC_SIZE(torc_call_options), .metadata = metadata};
    torc_result *result = torc_unary(channel, "bench.Echo/Echo", "", 0, &options);
    if (torc_result_code(result) != TORC_STATUS_OK) {
        fprintf(stderr, "memory_torc: the RPC failed\n");
        exit(1);
    }
    torc_result_free(result);
}

/* Turns the loop for IDLE_S seconds. Idle connections give back the memory that they keep for the next call after one
 * second (QUIET_MS in http2/connection.c). */
static void settle(struct run *r)
{
    for (time_t end = time(NULL) + IDLE_S; time(NULL) < end;)
        torc_runtime_poll(r->runtime, 100);
}

static double idle(struct run *r)
{
    one_rpc(open_channel(r, 1, NULL), NULL);
    settle(r);
    return memory_resident();
}

static double connections(struct run *r)
{
    one_rpc(open_channel(r, 1, everyone), NULL);
    double before = memory_own();
    torc_channel *channel = open_channel(r, r->n, everyone);
    torc_channel_observe(channel, on_event, r);
    torc_channel_state(channel, true);
    while (r->connected < r->n)
        torc_runtime_poll(r->runtime, -1);
    /* Round robin: each connection gets an RPC, so its handshake is over. */
    for (unsigned i = 0; i < 2 * r->n; i++)
        one_rpc(channel, NULL);
    settle(r);
    return (memory_own() - before) / r->n;
}

/* One of the N endpoints is connected, and its connection counts too: about a byte for each of 10,000 endpoints. */
static double on_ring(struct run *r)
{
    torc_metadata *key = torc_metadata_new();
    torc_metadata_add_string(key, "key", "a");
    one_rpc(open_channel(r, 1, ring), key);
    double before = memory_own();
    one_rpc(open_channel(r, r->n, ring), key);
    double after = memory_own();
    torc_metadata_free(key);
    return (after - before) / r->n;
}

static void on_result(const torc_result *result, void *arg)
{
    (void)result, (void)arg;
}

static double calls(struct run *r)
{
    torc_channel *channel = open_channel(r, 1, NULL);
    one_rpc(channel, NULL);
    double before = memory_own();
    for (unsigned i = 0; i < r->n; i++)
        if (torc_unary_async(channel, MEMORY_HANG, "", 0, NULL, on_result, NULL, NULL, NULL) != 0)
            exit(1);
    /* This RPC goes behind the calls on the same connection: when it is answered, the server has the calls. */
    one_rpc(channel, NULL);
    return (memory_own() - before) / r->n;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        double (*run)(struct run *r);
    } kinds[] = {{"idle", idle}, {"connections", connections}, {"ring", on_ring}, {"calls", calls}};
    struct run r = {.port = argc == 4 ? argv[2] : "", .n = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0};
    struct torc_runtime_options options = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_CALLER};
    r.runtime = torc_runtime_new(&options, NULL);
    for (size_t i = 0; r.n && r.runtime && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, argv[1]) == 0) {
            printf("%.1f\n", kinds[i].run(&r));
            fflush(stdout);
            _Exit(0); /* the measurement is done */
        }
    }
    return 2;
}
