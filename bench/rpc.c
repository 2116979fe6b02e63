/* bench/rpc: unary RPCs of Torc, of bare nghttp2 and of gRPC C++ against the same server, in turns. The clients are
 * programs of their own beside this one: the CPU time of each is its own. `bench_rpc [SECONDS [PAIRS]]` */
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"
#include "server.h"

enum { TORC, NGHTTP2, GRPC, CLIENTS };

static const char *const names[CLIENTS] = {"bench_rpc_torc", "bench_rpc_nghttp2", "bench_rpc_grpc"};
static const char *const titles[CLIENTS] = {"torc", "bare nghttp2", "gRPC C++"};

struct figures {
    double rps, cpu_us, p50_us;
};

static bool run_client(const char *name, const char *host, const struct server *s, unsigned outstanding, double seconds,
                       struct figures *f)
{
    double n[4]; /* RPCs, seconds, seconds of processor time, p50 */
    if (!server_run_client(name, n, 4, "%s %s %u %.2f", host, s->port, outstanding, seconds) || !(n[0] > 0))
        return false;
    *f = (struct figures){n[0] / n[1], n[2] / n[0] * 1e6, n[3]};
    return true;
}

/* Rows of one number of outstanding RPCs, for each peer: CPU time, time per RPC as throughput has it, median latency.
 */
static size_t bench(struct measure_row *rows, const struct server *s, unsigned outstanding, double seconds,
                    unsigned pairs, const bool *have)
{
    static const double cpu_targets[CLIENTS] = {0, 0.5, 4}, p50_targets[CLIENTS] = {0, 0.91, 1};
    size_t n = 0;
    struct measure_row *cpu[CLIENTS], *time[CLIENTS], *p50[CLIENTS];
    for (int c = NGHTTP2; c < CLIENTS; c++) {
        if (!have[c])
            continue;
        cpu[c] = &rows[n++];
        time[c] = &rows[n++];
        p50[c] = &rows[n++];
        measure_init(cpu[c], "us", titles[c], outstanding == 64 ? cpu_targets[c] : 0,
                     "client CPU per RPC, %u outstanding", outstanding);
        measure_init(time[c], "us", titles[c], 0, "time per RPC (1/throughput), %u outstanding", outstanding);
        measure_init(p50[c], "us", titles[c], outstanding == 1 ? p50_targets[c] : 0, "latency p50, %u outstanding%s",
                     outstanding, outstanding == 1 ? " (blocking)" : "");
    }
    for (unsigned p = 0; p < pairs; p++) {
        struct figures f[CLIENTS];
        for (int c = TORC; c < CLIENTS; c++)
            if (have[c] && !run_client(names[c], "127.0.0.1", s, outstanding, seconds, &f[c]))
                return 0;
        for (int c = NGHTTP2; c < CLIENTS; c++) {
            if (!have[c])
                continue;
            measure_add(cpu[c], f[TORC].cpu_us, f[c].cpu_us);
            measure_add(time[c], 1e6 / f[TORC].rps, 1e6 / f[c].rps);
            measure_add(p50[c], f[TORC].p50_us, f[c].p50_us);
        }
    }
    return n;
}

/* Torc with itself in pairs: what else is `ours`, a plain channel of a thread that drives the loop itself the peer. */
static bool bench_variants(struct measure_row *rows, const struct server *s, double seconds, unsigned pairs)
{
    static const char plain[] = "127.0.0.1", mesh[] = "xds:///bench";
    measure_init(&rows[0], "us", "torc, plain", 1 / 1.3, "client CPU per RPC, xds:///, ring_hash, 64 outstanding");
    measure_init(&rows[1], "us", "torc, plain", 0, "latency p50, xds:///, ring_hash, 1 outstanding (blocking)");
    measure_init(&rows[2], "us", "torc, caller's", 0, "latency p50, the loop's own thread, 1 outstanding (blocking)");
    for (unsigned p = 0; p < pairs; p++) {
        struct figures many[2], one[3];
        if (!run_client(names[TORC], mesh, s, 64, seconds, &many[0]) ||
            !run_client(names[TORC], plain, s, 64, seconds, &many[1]) ||
            !run_client(names[TORC], mesh, s, 1, seconds, &one[0]) ||
            !run_client(names[TORC], plain, s, 1, seconds, &one[1]) ||
            !run_client(names[TORC], "thread:127.0.0.1", s, 1, seconds, &one[2]))
            return false;
        measure_add(&rows[0], many[0].cpu_us, many[1].cpu_us);
        measure_add(&rows[1], one[0].p50_us, one[1].p50_us);
        measure_add(&rows[2], one[2].p50_us, one[1].p50_us);
    }
    return true;
}

int main(int argc, char **argv)
{
    static const unsigned outstanding[] = {1, 64, 256};
    static struct measure_row rows[32];
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    unsigned pairs = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
    bool have[CLIENTS];
    struct server s, control_plane;
    if (!(seconds > 0) || pairs == 0)
        return 2;
    for (int c = 0; c < CLIENTS; c++)
        have[c] = server_have_client(names[c], titles[c]);
    if (!server_start(&s, NULL, NULL))
        return 1;
    size_t n = 0;
    bool ok = have[TORC], xds = false;
    for (size_t i = 0; ok && i < sizeof(outstanding) / sizeof(outstanding[0]); i++) {
        size_t more = bench(rows + n, &s, outstanding[i], seconds, pairs, have);
        ok = more > 0 || !(have[NGHTTP2] || have[GRPC]);
        n += more;
    }
    if (ok && (xds = ok = server_start_xds(&control_plane, s.port, "RING_HASH")) &&
        (ok = bench_variants(rows + n, &s, seconds, pairs)))
        n += 3;
    measure_report("rpc", rows, n);
    for (size_t i = 0; ok && i < sizeof(outstanding) / sizeof(outstanding[0]); i++) {
        struct figures f;
        ok = run_client("bench_rpc_mallocs", "127.0.0.1", &s, outstanding[i], seconds, &f);
    }
    if (xds)
        server_stop(&control_plane);
    server_stop(&s);
    return ok ? 0 : 1;
}
