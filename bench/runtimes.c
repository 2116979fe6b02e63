/* bench/runtimes: the gain of additional runtimes. `bench_runtimes [SECONDS [RUNS]]`
 *
 * Four runtimes share an xDS domain; each has its own channel to the same cluster. One run uses one of them, the next
 * run two at once, the next all four. RPCs that the circuit breaker drops immediately measure the client alone (route,
 * hash, policies, the shared RPC count): their rate should grow with the cores. RPCs that backend processes answer
 * share the cores with the backends: this process's CPU time for an RPC is the figure to look at.
 *
 * A lane is a runtime's share of the work. While a run lasts, the lane belongs to the runtime's thread, which starts an
 * RPC for each one that ends. The main thread waits for the lane's semaphore, and uses the rest of the lane only before
 * the run and after it. The control plane is in this process, on a thread of its own (kits/mesh.h). Read run first. */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <torc/torc.h>

#include "measure.h"
#include "server.h"
#include "support/kits/mesh.h"

enum { RUNTIMES_MAX = 4, OUTSTANDING = 64, RUNS_MAX = MEASURE_PAIRS_MAX, BACKENDS = 2, CACHE_LINE = 64 };

/* A runtime's share of the work. Lanes share no cache line. */
struct lane {
    _Alignas(CACHE_LINE) torc_runtime *rt;
    torc_channel *ch;
    struct torc_call_options options; /* with the metadata given to open_lane, borrowed */
    uint64_t until_ns;                /* on measure_wall_ns: the run's end */
    unsigned running;                 /* calls in flight or yet to begin */
    sem_t over;                       /* posted when the last call of a run has ended */
    uint64_t rpcs;                    /* that ended in the run, whatever their status */
};

static void on_done(const torc_result *r, void *arg);

/* Called when a call has ended or could not begin, and no other call takes its place. The last one ends the run. */
static void leave(struct lane *l)
{
    if (--l->running == 0)
        sem_post(&l->over);
}

static void begin(struct lane *l)
{
    if (torc_unary_async(l->ch, "bench.Echo/Echo", "x", 1, &l->options, on_done, l, NULL, NULL) != 0)
        leave(l);
}

/* Begins the next call, unless the number of the lane's RPCs is a multiple of 16 and the run's time is over. */
static void on_done(const torc_result *r, void *arg)
{
    struct lane *l = arg;
    (void)r;
    l->rpcs++;
    if (l->rpcs % 16 || measure_wall_ns() < l->until_ns)
        begin(l);
    else
        leave(l);
}

/* Begins a lane's run, on the runtime's thread. */
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

/* Runs the first n lanes. Returns the RPCs per second of all of them together. *cpu_ns: the process's CPU time for each
 * RPC. */
static double run(struct lane *lanes, unsigned n, uint64_t run_ns, double *cpu_ns)
{
    uint64_t began = measure_wall_ns(), cpu = process_cpu_ns(), rpcs = 0;
    for (unsigned i = 0; i < n; i++) {
        lanes[i].rpcs = 0;
        lanes[i].until_ns = began + run_ns;
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

/* Opens a lane, and makes an RPC whose status is not looked at, so that the channel has its resources. md: borrowed
 * while the lane is open. */
static void open_lane(struct lane *l, torc_xds_domain *domain, const char *bootstrap, const torc_metadata *md)
{
    torc_result *r;
    sem_init(&l->over, 0, 0);
    struct torc_runtime_options ro = {TORC_SIZE(torc_runtime_options), .xds_domain = domain};
    struct torc_channel_options co = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                      .xds_bootstrap_json = bootstrap};
    l->rt = torc_runtime_new(&ro, NULL);
    l->ch = torc_channel_new(l->rt, "xds:///svc", &co, NULL);
    l->options = (struct torc_call_options){TORC_SIZE(torc_call_options), .metadata = md};
    r = torc_unary(l->ch, "bench.Echo/Echo", "x", 1, &l->options);
    torc_result_free(r);
}

struct settings {
    uint64_t run_ns; /* length of a run */
    unsigned runs;   /* of each number of runtimes */
};

/* Fills in rows of two and four runtimes against one: time and CPU time per RPC. `what` begins the rows' names;
 * `cluster` are fields of the cluster "c" (kit_mesh_put_cluster). Returns the number of rows. */
static size_t bench(struct measure_row *rows, struct kit_mesh *k, const char *what, const char *cluster,
                    const struct settings *s)
{
    static const unsigned counts[] = {1, 2, 4};
    enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };
    static struct lane lanes[RUNTIMES_MAX];
    kit_mesh_put_cluster(k, "c", cluster);
    torc_metadata *md = torc_metadata_new();
    torc_metadata_add_string(md, "x-user", "somebody");
    torc_xds_domain *domain = torc_xds_domain_new(NULL);
    for (unsigned i = 0; i < RUNTIMES_MAX; i++)
        open_lane(&lanes[i], domain, kit_mesh_bootstrap(k), md);
    for (unsigned c = 1; c < COUNTS; c++) {
        measure_init(&rows[2 * c - 2], "ns", "one runtime", 0, "%s, %u runtimes: time per RPC (1/throughput)", what,
                     counts[c]);
        measure_init(&rows[2 * c - 1], "ns", "one runtime", 0, "%s, %u runtimes: processor time per RPC", what,
                     counts[c]);
    }
    for (unsigned pass = 0; pass < s->runs; pass++) {
        double ns[COUNTS], cpu[COUNTS];
        for (unsigned c = 0; c < COUNTS; c++)
            ns[c] = 1e9 / run(lanes, counts[c], s->run_ns, &cpu[c]);
        for (unsigned c = 1; c < COUNTS; c++) {
            measure_add(&rows[2 * c - 2], ns[c], ns[0]);
            measure_add(&rows[2 * c - 1], cpu[c], cpu[0]);
        }
    }
    for (unsigned i = 0; i < RUNTIMES_MAX; i++) {
        torc_channel_free(lanes[i].ch);
        torc_runtime_free(lanes[i].rt);
        sem_destroy(&lanes[i].over);
    }
    torc_xds_domain_free(domain);
    torc_metadata_free(md);
    return 2 * (COUNTS - 1);
}

/* Puts the backends as the endpoints of the cluster "c". */
static void put_endpoints(struct kit_mesh *k, const struct server *backends)
{
    struct tc_buf b = {0};
    for (unsigned i = 0; i < BACKENDS; i++)
        tc_buf_printf(&b, "%s{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}",
                      i ? ", " : "", backends[i].port);
    kit_mesh_put(k,
                 "- '@type': type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                 "  cluster_name: c\n"
                 "  endpoints: [{locality: {region: r}, load_balancing_weight: 1, lb_endpoints: [%s]}]\n",
                 tc_buf_cstr(&b));
    tc_buf_fini(&b);
}

static void stop(struct server *backends, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        server_stop(&backends[i]);
}

int main(int argc, char **argv)
{
    static struct measure_row rows[8];
    struct server backends[BACKENDS];
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.4;
    struct settings s = {(uint64_t)(seconds * 1e9), argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 7};
    if (!(seconds > 0) || s.runs == 0 || s.runs > RUNS_MAX) {
        fprintf(stderr, "usage: %s [SECONDS [RUNS]], %d runs at most\n", argv[0], RUNS_MAX);
        return 2;
    }
    for (unsigned i = 0; i < BACKENDS; i++)
        if (!server_start(&backends[i], NULL, NULL)) {
            stop(backends, i);
            return 1;
        }
    struct kit_mesh *k = kit_mesh_new(1);
    kit_mesh_put_listener(k, "svc", "c", "[{header: {header_name: x-user}}]");
    put_endpoints(k, backends);
    size_t n = bench(rows, k, "dropped by the circuit breaker",
                     "lb_policy: RING_HASH\n  circuit_breakers: {thresholds: [{max_requests: 0}]}", &s);
    n += bench(rows + n, k, "answered",
               "lb_policy: ROUND_ROBIN\n  circuit_breakers: {thresholds: [{max_requests: 1000}]}", &s);
    measure_report("runtimes", rows, n);
    kit_mesh_free(k);
    stop(backends, BACKENDS);
    return 0;
}
