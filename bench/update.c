/* bench/update: how long it takes from a push of an EDS resource that has one endpoint more to the first RPC that this
 * endpoint answers, and where the time goes. `bench_update [RUNS [ENDPOINTSxRING]...]`; by default 21 runs of
 * 1000x1024. RING is minimum_ring_size; the cap on rings is lifted, so that each endpoint has an entry. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "base/mem.h"
#include "lb/ring.h"
#include "measure.h"
#include "update_world.h"

#define METHOD "/bench.Echo/Echo"
#define GIVE_UP_NS UINT64_C(30000000000)

enum { RECEIVED, DECODED, IN_USE, PICKED, CONNECTED, ANSWERED, PHASES };

static const char *const phases[PHASES] = {
    "push to received",      /* the server's work, the wire, the response unpacked */
    "decoded and validated", /* and the config put together */
    "tree and ring updated", /* the new picker is in place */
    "an RPC picks it",       /* the one under way before ends first */
    "connected",             /* TCP, HTTP/2 settings */
    "answered",              /* the rest of the RPC */
};
static const char *const keys[PHASES] = {"received", "decoded", "in_use", "picked", "connected", "answered"};

/* When each was over, by the log's lines, which come from the thread that runs the RPCs. */
struct timeline {
    _Atomic uint64_t pushed_ns;
    uint64_t at_ns[PHASES];
    char connecting[96], connected[96]; /* the lines of the new endpoint's connection */
};

static struct timeline line;

static void on_log(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)level;
    (void)module;
    (void)arg;
    int phase = strstr(message, ": response ") && strstr(message, "ClusterLoadAssignment") ? RECEIVED
                : strstr(message, ": config of ")                                          ? DECODED
                : strstr(message, ": config in use")                                       ? IN_USE
                : strcmp(message, line.connecting) == 0                                    ? PICKED
                : strcmp(message, line.connected) == 0                                     ? CONNECTED
                                                                                           : PHASES;
    if (phase < PHASES && line.at_ns[phase] == 0)
        line.at_ns[phase] = measure_wall_ns();
}

struct bench {
    struct world *world;
    torc_runtime *runtime;
    torc_channel *channel;
    uint64_t min_ring;
    size_t endpoints;
    unsigned next; /* number of the next new address */
};

/* One RPC with the key; does the address answer it? */
static bool call(struct bench *b, const char *key, const char *address, bool *answered)
{
    struct torc_call_options o;
    struct torc_result r;
    torc_call_options_init(&o);
    torc_metadata *metadata = torc_metadata_new();
    torc_metadata_add_string(metadata, "k", key);
    o.metadata = metadata;
    o.timeout_ms = 20000;
    int rc = torc_call_unary(b->channel, METHOD, "x", 1, &o, &r);
    torc_metadata_free(metadata);
    if (rc != 0)
        return false;
    bool ok = r.code == TORC_STATUS_OK;
    if (!ok)
        fprintf(stderr, "bench/update: an RPC failed: %s\n", r.message);
    *answered = ok && strcmp(r.peer, address) == 0;
    torc_result_fini(&r);
    return ok;
}

/* Calls until the address answers, or until it does not any more. */
static bool call_until(struct bench *b, const char *key, const char *address, bool wanted)
{
    bool answered = !wanted;
    uint64_t begin = measure_wall_ns();
    while (answered != wanted) {
        if (!call(b, key, address, &answered))
            return false;
        if (measure_wall_ns() - begin > GIVE_UP_NS) {
            fprintf(stderr, "bench/update: %s is not %s\n", address, wanted ? "reached" : "left");
            return false;
        }
    }
    return true;
}

static bool push(struct bench *b, const char *extra)
{
    struct tc_resource_set *set = world_resources(b->world, b->endpoints, b->min_ring, extra);
    if (set)
        world_push(b->world, set, &line.pushed_ns);
    return set;
}

/* One endpoint comes, is measured, and goes again. */
static bool run_once(struct bench *b, double *ms)
{
    char ip[32], address[48], key[64];
    bool answered;
    snprintf(ip, sizeof(ip), "127.2.%u.%u", b->next >> 8 & 255, b->next & 255);
    snprintf(address, sizeof(address), "%s:%u", ip, world_backend_port(b->world));
    snprintf(key, sizeof(key), "%s_0", address); /* the hash of one of its entries */
    b->next++;
    /* Who has the key before is connected. */
    if (!call(b, key, address, &answered) || answered)
        return false;
    memset(line.at_ns, 0, sizeof(line.at_ns));
    snprintf(line.connecting, sizeof(line.connecting), "connection %s: CONNECTING", address);
    snprintf(line.connected, sizeof(line.connected), "connection %s: READY", address);
    if (!push(b, ip) || !call_until(b, key, address, true))
        return false;
    line.at_ns[ANSWERED] = measure_wall_ns();
    uint64_t before = atomic_load(&line.pushed_ns);
    for (int i = 0; i < PHASES; i++) {
        if (line.at_ns[i] < before) {
            fprintf(stderr, "bench/update: \"%s\" was not seen in its turn\n", phases[i]);
            return false;
        }
        ms[i] = (double)(line.at_ns[i] - before) / 1e6;
        before = line.at_ns[i];
    }
    ms[PHASES] = (double)(line.at_ns[ANSWERED] - atomic_load(&line.pushed_ns)) / 1e6;
    return push(b, NULL) && call_until(b, key, address, false);
}

static bool open_bench(struct bench *b, size_t endpoints, uint64_t min_ring)
{
    struct torc_runtime_options ro;
    struct torc_channel_options co;
    *b = (struct bench){.endpoints = endpoints, .min_ring = min_ring, .world = world_new()};
    if (!b->world)
        return false;
    char *bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": "
                                  "\"insecure\"}]}], \"node\": {\"id\": \"bench\"}}",
                                  world_control_plane(b->world));
    torc_runtime_options_init(&ro);
    torc_channel_options_init(&co);
    ro.mode = TORC_RUNTIME_CALLER;
    co.xds_bootstrap_json = bootstrap;
    b->runtime = torc_runtime_new(&ro);
    b->channel = b->runtime ? torc_channel_new(b->runtime, "xds:///svc", &co, NULL) : NULL;
    tc_free(bootstrap);
    return b->channel && push(b, NULL);
}

static void close_bench(struct bench *b)
{
    torc_channel_free(b->channel);
    torc_runtime_free(b->runtime);
    if (b->world)
        world_free(b->world);
}

struct figures {
    size_t endpoints, runs;
    uint64_t min_ring;
    double median[PHASES + 1], most; /* ms; the last: in all */
};

/* The first run warms up and does not count. */
static bool measure(struct figures *f, size_t endpoints, uint64_t min_ring, size_t runs)
{
    static double ms[PHASES + 1][MEASURE_PAIRS_MAX];
    struct bench b;
    bool ok = open_bench(&b, endpoints, min_ring);
    *f = (struct figures){.endpoints = endpoints, .min_ring = min_ring, .runs = runs};
    for (size_t i = 0; ok && i <= runs; i++) {
        double one[PHASES + 1];
        ok = run_once(&b, one);
        for (int p = 0; ok && i > 0 && p <= PHASES; p++)
            ms[p][i - 1] = one[p];
        f->most = ok && i > 0 && one[PHASES] > f->most ? one[PHASES] : f->most;
    }
    for (int p = 0; p <= PHASES; p++)
        f->median[p] = measure_median(ms[p], runs);
    close_bench(&b);
    return ok;
}

static void report(const struct figures *f, size_t n)
{
    measure_print_machine("update: one endpoint more, from the push to its first RPC (medians, ms)");
    printf("%-26s", "endpoints x ring");
    for (size_t i = 0; i < n; i++)
        printf(" %9zu x %-7" PRIu64, f[i].endpoints, f[i].min_ring);
    for (int p = 0; p <= PHASES; p++) {
        printf("\n%-26s", p < PHASES ? phases[p] : "in all");
        for (size_t i = 0; i < n; i++)
            printf(" %19.3f", f[i].median[p]);
    }
    printf("\n%-26s", "in all, slowest run");
    for (size_t i = 0; i < n; i++)
        printf(" %19.3f", f[i].most);
    printf("\n");
    measure_begin_json("update");
    for (size_t i = 0; i < n; i++) {
        printf("%s{\"endpoints\":%zu,\"ring\":%" PRIu64 ",\"runs\":%zu,\"ms\":{", i ? "," : "", f[i].endpoints,
               f[i].min_ring, f[i].runs);
        for (int p = 0; p < PHASES; p++)
            printf("\"%s\":%.4f,", keys[p], f[i].median[p]);
        printf("\"total\":%.4f,\"slowest\":%.4f}}", f[i].median[PHASES], f[i].most);
    }
    printf("]}\n");
}

int main(int argc, char **argv)
{
    enum { MOST = 16 };
    static struct figures f[MOST];
    size_t runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 21, n = 0;
    char *fallback[] = {"1000x1024"};
    char **sizes = argc > 2 ? argv + 2 : fallback;
    size_t n_sizes = argc > 2 ? (size_t)argc - 2 : 1;
    if (runs < 1 || runs > MEASURE_PAIRS_MAX || n_sizes > MOST) {
        fprintf(stderr, "bench/update: 1..%d runs of at most %d sizes\n", MEASURE_PAIRS_MAX, MOST);
        return 2;
    }
    setenv("GRPC_RING_HASH_CAP", "8388608", 1);
    torc_log_set_sink(on_log, NULL);
    torc_log_set_levels("xds=debug,mesh=debug,channel=debug");
    for (; n < n_sizes; n++) {
        size_t endpoints;
        uint64_t ring;
        if (sscanf(sizes[n], "%zux%" SCNu64, &endpoints, &ring) != 2 || endpoints < 1 || endpoints > 65536 ||
            ring < 1 || ring > TC_RING_SIZE_MAX) {
            fprintf(stderr, "bench/update: '%s' is no size such as 1000x1024\n", sizes[n]);
            return 2;
        }
        if (!measure(&f[n], endpoints, ring, runs))
            return 1;
    }
    report(f, n);
    return 0;
}
