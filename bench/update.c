/* bench/update: the time from a push of the control plane to the answer of the first RPC that obeys it. Torc and gRPC's
 * C-core (grpcio) run alternately against the same control plane and backends. `bench_update [PAIRS [PART]...]`
 *
 * Parts, by default nine sizes and the other two:
 *
 *     ENDPOINTSxRING   one endpoint more; RING is minimum_ring_size
 *     clusters         a change of one among 2,000 clusters; against grpcio, and against Torc with a single cluster
 *     first            a channel's first RPC
 *
 * PAIRS is by default 9, and 5 for rings of 2^20 entries or more and for `first`. The cap on rings is at its maximum on
 * both sides. Without grpcio, Torc runs alone.
 *
 * The main thread makes the resource sets, sends orders to the clients and waits for their answers. The control plane
 * and the backends run on a thread of the world (update_world.h), which pushes the sets and writes the times of the
 * pushes. The figures lie in static arrays until the report. Read `change` first: it makes and times one update. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "ring/ring.h"
#include "server.h"
#include "update_client.h"
#include "update_world.h"

#define METHOD "/c0/Echo"
#define LARGE_RING (1u << 20)
#define MB_PER_KB 1.024e-3 /* of a kB of /proc, which is 1,024 bytes */

enum { FEW_PAIRS = 5, PAIRS = 9, MOST_SIZES = 16, MOST_ROWS = 6 * MOST_SIZES, WARM_UP = 1 };

/* A side of the comparison: a channel in a separate process, and the mesh that it is given. */
struct side {
    const char *node;    /* id; a literal */
    const char *argv[3]; /* of the client's program, NULL-terminated */
    bool incremental;    /* the channel uses incremental ADS */
    struct world_shape shape;
    struct tc_resource_set *base; /* the mesh without a change; owned; NULL: none */
    struct update_client client;
    _Atomic uint64_t pushed_ns; /* when the last push began; written by the servers' thread */
};

static struct world *world;
static struct measure_row rows[MOST_ROWS];
static size_t n_rows;
static char torc_program[600], grpc_python[600];
static bool have_grpc;

static const char *const phases[UPDATE_PHASES] = {
    "push to received",      /* the server's work, the wire, the response unpacked */
    "decoded and validated", /* and the config put together */
    "tree and ring updated", /* the new picker is in place; a large ring is still being built */
    "an RPC picks it",       /* a ring build in progress ends first */
    "connected",             /* TCP, HTTP/2 settings */
    "answered",              /* the rest of the RPC */
};
static const char *const phase_keys[UPDATE_PHASES] = {"received", "decoded",   "in_use",
                                                      "picked",   "connected", "answered"};

/* How long Torc's phases took, for one size. */
struct figures {
    struct world_shape shape;
    size_t n;                                        /* number of pairs */
    double ms[UPDATE_PHASES + 1][MEASURE_PAIRS_MAX]; /* ms[UPDATE_PHASES]: the total */
};

/* Returns a new row of the report, in static memory. */
static struct measure_row *row_new(const char *unit, const char *peer, double target, const char *what)
{
    struct measure_row *row = &rows[n_rows++];
    measure_init(row, unit, peer, target, "%s", what);
    return row;
}

/* --- sides --- */

static struct side torc_side(const char *node, struct world_shape shape, bool incremental)
{
    return (struct side){.node = node, .argv = {torc_program}, .shape = shape, .incremental = incremental};
}

static struct side grpc_side(struct world_shape shape)
{
    return (struct side){.node = "grpc", .argv = {grpc_python, BENCH_PEERS "/grpcio_update.py"}, .shape = shape};
}

static const char *peer_name(void)
{
    return have_grpc ? "grpcio" : "";
}

/* Takes ownership of the set. */
static void push(struct side *s, struct tc_resource_set *set)
{
    world_push(world, s->node, set, &s->pushed_ns);
}

/* Pushes the side's mesh, opens its channel and sends the first RPC. The caller calls close_side in any case. */
static bool open_side(struct side *s, struct update_first *first)
{
    s->base = world_resources(world, &s->shape);
    if (!s->base)
        return false;
    push(s, tc_resource_set_copy(s->base));
    return update_client_start(&s->client, s->argv, world_control_plane(world), s->node, s->incremental) &&
           update_client_first(&s->client, METHOD, "x", first);
}

static void close_side(struct side *s)
{
    update_client_stop(&s->client);
    tc_resource_set_free(s->base);
    s->base = NULL;
}

/* Pushes c0 as `state` describes. Returns the ms until `backend` answers an RPC with the key ("-": until one fails),
 * and the times in *reached; or a negative number if that does not happen. `address`: the endpoint that comes or goes;
 * "-": none. */
static double change(struct side *s, const struct world_state *state, const char *key, const char *backend,
                     const char *address, struct update_reached *reached)
{
    struct tc_resource_set *set = world_change(world, s->base, &s->shape, state);
    if (!set || !update_client_until(&s->client, METHOD, key, backend, address)) {
        tc_resource_set_free(set);
        return -1;
    }
    push(s, set);
    if (!update_client_reached(&s->client, reached))
        return -1;
    reached->pushed_ns = atomic_load(&s->pushed_ns);
    return (double)(reached->at_ns - reached->pushed_ns) / 1e6;
}

static const struct world_state as_ever; /* c0 without a change */

/* Adds an endpoint, measures, and removes the endpoint. Returns as `change` does. */
static double endpoint_comes(struct side *s, struct update_reached *reached)
{
    struct update_reached gone;
    char address[48], key[64];
    world_new_address(world, address, sizeof(address));
    snprintf(key, sizeof(key), "%s_0", address); /* its hash is that of one of the endpoint's entries */
    double ms = change(s, &(struct world_state){.extra = address}, key, "new", address, reached);
    if (ms >= 0 && change(s, &as_ever, key, "old", address, &gone) < 0)
        ms = -1;
    return ms;
}

/* Sets c0's circuit breaker to let no RPC pass, measures, and sets it back. Returns as `change` does. */
static double cluster_shuts(struct side *s, struct update_reached *reached)
{
    struct update_reached back;
    double ms = change(s, &(struct world_state){.shut = true}, "x", "-", "-", reached);
    if (ms >= 0 && change(s, &as_ever, "x", "old", "-", &back) < 0)
        ms = -1;
    return ms;
}

/* --- pairs --- */

typedef double (*change_fn)(struct side *s, struct update_reached *reached);

/* Adds the durations of Torc's phases, and `total` in ms, to the figures. Returns false with a message if the phases
 * were not seen in their order. */
static bool keep_phases(struct figures *f, const struct update_reached *r, double total)
{
    uint64_t before = r->pushed_ns;
    for (int p = 0; p < UPDATE_PHASES; p++) {
        if (r->phase_ns[p] < before) {
            fprintf(stderr, "bench/update: \"%s\" was not seen in its turn\n", phases[p]);
            return false;
        }
        f->ms[p][f->n] = (double)(r->phase_ns[p] - before) / 1e6;
        before = r->phase_ns[p];
    }
    f->ms[UPDATE_PHASES][f->n++] = total;
    return true;
}

/* Makes the same change for both sides alternately. b may be NULL: Torc alone; f may be NULL: phases are not kept. The
 * first change of each side is not counted. */
static bool alternate(struct side *a, struct side *b, change_fn fn, unsigned pairs, struct measure_row *row,
                      struct figures *f)
{
    for (unsigned i = 0; i < pairs + WARM_UP; i++) {
        struct update_reached ra, rb;
        double ours = fn(a, &ra), peers = b ? fn(b, &rb) : 0;
        if (ours < 0 || peers < 0)
            return false;
        if (i < WARM_UP)
            continue;
        measure_add(row, ours, peers);
        if (f && !keep_phases(f, &ra, ours))
            return false;
    }
    return true;
}

/* Measures an RPC alone, since the time of each update includes one. */
static bool compare_rpcs(struct side *a, struct side *b, unsigned pairs)
{
    struct measure_row *row = row_new("us", "grpcio", 0, "an RPC between updates (of 1,000 endpoints)");
    for (unsigned i = 0; i < pairs; i++) {
        double ours, peers;
        if (!update_client_each(&a->client, METHOD, "x", &ours) || !update_client_each(&b->client, METHOD, "x", &peers))
            return false;
        measure_add(row, ours / 1e3, peers / 1e3);
    }
    return true;
}

static bool is(const struct world_shape *s, size_t endpoints, uint64_t ring)
{
    return s->endpoints == endpoints && s->min_ring == ring;
}

/* Measures the part ENDPOINTSxRING of f->shape, with phases into *f. */
static bool size_run(struct figures *f, unsigned pairs)
{
    struct world_shape shape = f->shape;
    struct side ours = torc_side("torc", shape, false), grpc = grpc_side(shape);
    struct update_first first;
    char what[96];
    snprintf(what, sizeof(what), "one endpoint more than %zu, ring of %" PRIu64, shape.endpoints, shape.min_ring);
    struct measure_row *row =
        row_new("ms", peer_name(), is(&shape, 1000, 1024) || is(&shape, 1000, 8388608) ? 5 : 0, what);
    bool ok = open_side(&ours, &first) && (!have_grpc || open_side(&grpc, &first)) &&
              alternate(&ours, have_grpc ? &grpc : NULL, endpoint_comes, pairs, row, f);
    if (ok && have_grpc && is(&shape, 1000, 1024))
        ok = compare_rpcs(&ours, &grpc, pairs);
    close_side(&ours);
    close_side(&grpc);
    return ok;
}

/* --- many clusters --- */

/* Opens the channels of two sides and makes the same changes to both alternately. `b` is a side of grpcio or of Torc,
 * which the rows call `peer`; `among` ends their titles. */
static bool versus(struct side a, struct side b, const char *peer, const char *among, unsigned pairs)
{
    struct update_first first;
    char what[2][96];
    snprintf(what[0], sizeof(what[0]), "one endpoint more in %s", among);
    snprintf(what[1], sizeof(what[1]), "a cluster's circuit breaker in %s", among);
    struct measure_row *endpoint = row_new("ms", peer, 0, what[0]), *cluster = row_new("ms", peer, 0, what[1]);
    bool ok = open_side(&a, &first) && open_side(&b, &first) &&
              alternate(&a, &b, endpoint_comes, pairs, endpoint, NULL) &&
              alternate(&a, &b, cluster_shuts, pairs, cluster, NULL);
    close_side(&a);
    close_side(&b);
    return ok;
}

static bool clusters_run(unsigned pairs)
{
    const struct world_shape many = {2000, 4, 1024}, one = {1, 4, 1024};
    return (!have_grpc ||
            versus(torc_side("torc", many, false), grpc_side(many), "grpcio", "1 of 2,000 clusters", pairs)) &&
           versus(torc_side("torc", many, false), torc_side("alone", one, false), "1 cluster", "1 of 2,000 clusters",
                  pairs) &&
           versus(torc_side("torc", many, true), torc_side("alone", one, true), "1 cluster", "1 of 2,000, incremental",
                  pairs);
}

/* --- the first RPC --- */

static bool first_run(unsigned pairs)
{
    const struct world_shape shape = {1, 1000, 1024};
    struct measure_row *time = row_new("ms", peer_name(), 0, "channel to first RPC, 1,000 endpoints, ring of 1,024"),
                       *peak = row_new("MB", peer_name(), 0, "most memory by then, of the whole process"),
                       *more = row_new("MB", peer_name(), 0, "most memory by then, without what it had before");
    for (unsigned i = 0; i < pairs; i++) {
        struct side ours = torc_side("torc", shape, false), grpc = grpc_side(shape);
        struct update_first a, b = {0};
        bool ok = open_side(&ours, &a);
        close_side(&ours);
        ok = ok && (!have_grpc || open_side(&grpc, &b));
        close_side(&grpc);
        if (!ok)
            return false;
        measure_add(time, a.ms, b.ms);
        measure_add(peak, a.peak_kb * MB_PER_KB, b.peak_kb * MB_PER_KB);
        measure_add(more, (a.peak_kb - a.before_kb) * MB_PER_KB, (b.peak_kb - b.before_kb) * MB_PER_KB);
    }
    return true;
}

/* --- the report --- */

static void report_phases(const struct figures *f, size_t n)
{
    measure_print_machine("update, where Torc's time goes: one endpoint more, endpoints x ring (medians, ms)");
    printf("| phase |");
    for (size_t i = 0; i < n; i++)
        printf(" %zu x %" PRIu64 " |", f[i].shape.endpoints, f[i].shape.min_ring);
    printf("\n|---|");
    for (size_t i = 0; i < n; i++)
        printf("---|");
    for (int p = 0; p <= UPDATE_PHASES; p++) {
        printf("\n| %s |", p < UPDATE_PHASES ? phases[p] : "in all");
        for (size_t i = 0; i < n; i++)
            printf(" %.3f |", measure_median(f[i].ms[p], f[i].n));
    }
    printf("\n");
    measure_begin_json("update_phases");
    for (size_t i = 0; i < n; i++) {
        printf("%s{\"endpoints\":%zu,\"ring\":%" PRIu64 ",\"runs\":%zu,\"ms\":{", i ? "," : "", f[i].shape.endpoints,
               f[i].shape.min_ring, f[i].n);
        for (int p = 0; p < UPDATE_PHASES; p++)
            printf("\"%s\":%.4f,", phase_keys[p], measure_median(f[i].ms[p], f[i].n));
        printf("\"total\":%.4f}}", measure_median(f[i].ms[UPDATE_PHASES], f[i].n));
    }
    printf("]}\n");
}

/* --- the peer --- */

/* Finds or makes the Python environment of the interoperability tests, which pins grpcio. */
static void find_grpc(void)
{
    char line[512] = "", last[512] = "";
    FILE *p = popen("python3 '" INTEROP "/build_peers.py' --into '" INTEROP_BUILT "' python 2>&1", "r");
    while (p && fgets(line, sizeof(line), p))
        snprintf(last, sizeof(last), "%s", line);
    last[strcspn(last, "\n")] = 0;
    have_grpc = p && pclose(p) == 0 && strncmp(last, "python: ", 8) == 0;
    if (have_grpc)
        snprintf(grpc_python, sizeof(grpc_python), "%.500s/bin/python", last + 8);
    else
        printf("skipped: gRPC's C-core (grpcio): %s\n", *last ? last : "python3 does not run");
}

static bool parse_size(const char *text, struct world_shape *out)
{
    int end = 0;
    out->clusters = 1;
    if (sscanf(text, "%zux%" SCNu64 "%n", &out->endpoints, &out->min_ring, &end) == 2 && !text[end] &&
        out->endpoints >= 1 && out->endpoints <= 65536 && out->min_ring >= 1 && out->min_ring <= TC_RING_SIZE_MAX)
        return true;
    fprintf(stderr, "bench/update: '%s' is not a part such as 1000x1024, clusters or first\n", text);
    return false;
}

static struct figures figures[MOST_SIZES];
static size_t n_figures;

/* pairs 0: the part's own default. */
static bool part_run(const char *part, unsigned pairs)
{
    struct figures *f = &figures[n_figures];
    if (strcmp(part, "clusters") == 0)
        return clusters_run(pairs ? pairs : PAIRS);
    if (strcmp(part, "first") == 0)
        return first_run(pairs ? pairs : FEW_PAIRS);
    if (!parse_size(part, &f->shape))
        return false;
    n_figures++;
    return size_run(f, pairs ? pairs : f->shape.min_ring >= LARGE_RING ? FEW_PAIRS : PAIRS);
}

int main(int argc, char **argv)
{
    static const char *const all[] = {"10x1024",       "1000x1024",   "10000x1024", "10x65536",
                                      "1000x65536",    "10000x65536", "10x8388608", "1000x8388608",
                                      "10000x8388608", "clusters",    "first"};
    unsigned pairs = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    size_t n = argc > 2 ? (size_t)argc - 2 : sizeof(all) / sizeof(*all);
    if (pairs > MEASURE_PAIRS_MAX || n > MOST_SIZES || (argc > 1 && pairs == 0)) {
        fprintf(stderr, "bench/update: 1..%d pairs of at most %d parts\n", MEASURE_PAIRS_MAX, MOST_SIZES);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* an order to a client that has ended fails */
    find_grpc();
    snprintf(torc_program, sizeof(torc_program), "%s/bench_update_torc", server_own_folder());
    world = world_new();
    if (!world)
        return 1;
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        const char *part = argc > 2 ? argv[i + 2] : all[i];
        if (part_run(part, pairs))
            continue;
        fprintf(stderr, "bench/update: %s did not come to its end\n", part);
        ok = false;
    }
    measure_report("update", rows, n_rows);
    if (n_figures)
        report_phases(figures, n_figures);
    world_free(world);
    return ok ? 0 : 1;
}
