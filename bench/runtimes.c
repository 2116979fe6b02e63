/* bench/runtimes: what more runtimes bring. One, two and four, sharing an xDS domain, each with a channel of its own to
 * one cluster; RPCs that the circuit breaker drops at once, so that no server's work and no network is in the way
 * (route, hash, policies and the count that all share are), and RPCs that a backend in the same process answers. */
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

#include <torc/torc.h>

#include "measure.h"
#include "support/mesh_kit.h"

enum { RUNTIMES_MAX = 4, OUTSTANDING = 64, RUNS = 5 };

#define RUN_NS UINT64_C(400000000)

struct lane {
    torc_runtime *rt;
    torc_channel *ch;
    struct torc_call_options options;
    uint64_t until_ns;
    unsigned running; /* the runtime's thread */
    sem_t over;       /* the last one ended */
    uint64_t rpcs;
};

static void on_done(const struct torc_result *r, void *arg);

static void leave(struct lane *l)
{
    if (--l->running == 0)
        sem_post(&l->over);
}

static void begin(struct lane *l)
{
    if (torc_call_unary_async(l->ch, "bench.Echo/Echo", "x", 1, &l->options, on_done, l, NULL) != 0)
        leave(l);
}

static void on_done(const struct torc_result *r, void *arg)
{
    struct lane *l = arg;
    (void)r;
    l->rpcs++;
    if (l->rpcs % 16 || measure_wall_ns() < l->until_ns)
        begin(l);
    else
        leave(l);
}

static void start(void *arg)
{
    struct lane *l = arg;
    for (unsigned i = 0; i < OUTSTANDING; i++)
        begin(l);
}

static uint64_t process_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* RPCs a second of all of them; *cpu_ns: the process's for each. */
static double run(struct lane *lanes, unsigned n, double *cpu_ns)
{
    uint64_t began = measure_wall_ns(), cpu = process_cpu_ns(), rpcs = 0;
    for (unsigned i = 0; i < n; i++) {
        lanes[i].rpcs = 0;
        lanes[i].until_ns = began + RUN_NS;
        lanes[i].running = OUTSTANDING;
        torc_runtime_post(lanes[i].rt, start, &lanes[i]);
    }
    for (unsigned i = 0; i < n; i++) {
        while (sem_wait(&lanes[i].over) != 0) {
        }
        rpcs += lanes[i].rpcs;
    }
    *cpu_ns = (double)(process_cpu_ns() - cpu) / (double)rpcs;
    return (double)rpcs * 1e9 / (double)(measure_wall_ns() - began);
}

static void bench(struct mesh_kit *k, const char *what, const char *breakers)
{
    static const unsigned counts[] = {1, 2, 4};
    double rates[3][RUNS], cpu[3][RUNS];
    char cluster[128];
    snprintf(cluster, sizeof(cluster), "lb_policy: RING_HASH\n  %s", breakers);
    mesh_kit_put_cluster(k, "c", cluster);
    torc_metadata *md = torc_metadata_new();
    torc_metadata_add_string(md, "x-user", "somebody");
    torc_xds_domain *domain = torc_xds_domain_new();
    struct lane lanes[RUNTIMES_MAX] = {0};
    for (unsigned i = 0; i < RUNTIMES_MAX; i++) {
        struct torc_runtime_options ro;
        struct torc_channel_options co;
        struct torc_result r;
        sem_init(&lanes[i].over, 0, 0);
        torc_runtime_options_init(&ro);
        ro.xds_domain = domain;
        torc_channel_options_init(&co);
        co.xds_bootstrap_json = mesh_kit_bootstrap(k);
        lanes[i].rt = torc_runtime_new(&ro);
        lanes[i].ch = torc_channel_new(lanes[i].rt, "xds:///svc", &co, NULL);
        torc_call_options_init(&lanes[i].options);
        lanes[i].options.metadata = md;
        torc_call_unary(lanes[i].ch, "bench.Echo/Echo", "x", 1, &lanes[i].options, &r);
        torc_result_fini(&r);
    }
    for (unsigned pass = 0; pass < RUNS; pass++)
        for (unsigned c = 0; c < 3; c++)
            rates[c][pass] = run(lanes, counts[c], &cpu[c][pass]);
    for (unsigned c = 0; c < 3; c++)
        printf("| %s | %u | %.0f | %.2f | %.0f ns |\n", what, counts[c], measure_median(rates[c], RUNS),
               measure_median(rates[c], RUNS) / measure_median(rates[0], RUNS), measure_median(cpu[c], RUNS));
    for (unsigned i = 0; i < RUNTIMES_MAX; i++) {
        torc_channel_free(lanes[i].ch);
        torc_runtime_free(lanes[i].rt);
        sem_destroy(&lanes[i].over);
    }
    torc_xds_domain_free(domain);
    torc_metadata_free(md);
}

int main(void)
{
    struct mesh_kit *k = mesh_kit_new(1);
    mesh_kit_put_endpoints(k, "c", "0/a: 0", NULL);
    mesh_kit_put_listener(k, "svc", "c", "[{header: {header_name: x-user}}]");
    measure_print_machine("runtimes");
    printf("| RPCs | runtimes | a second | of one's | processor time an RPC |\n|---|---|---|---|---|\n");
    bench(k, "dropped by the circuit breaker", "circuit_breakers: {thresholds: [{max_requests: 0}]}");
    bench(k, "answered by one server thread", "circuit_breakers: {thresholds: [{max_requests: 1000}]}");
    mesh_kit_free(k);
    return 0;
}
