/* bench/rpc: unary RPCs of Torc, of bare nghttp2 and of gRPC C++ against the same server, in turns. The clients are
 * programs of their own beside this one: the CPU time of each is its own. `bench_rpc [SECONDS [PAIRS]]` */
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

enum { TORC, NGHTTP2, GRPC, CLIENTS };

static const char *const names[CLIENTS] = {"bench_rpc_torc", "bench_rpc_nghttp2", "bench_rpc_grpc"};
static const char *const titles[CLIENTS] = {"torc", "bare nghttp2", "gRPC C++"};

struct figures {
    double rps, cpu_us, p50_us;
};

struct server {
    pid_t pid;
    char port[16];
};

/* `torc backend`, pinned to the last core but one, where it says that it listens. */
static bool server_start(struct server *s, const char *program)
{
    int out[2];
    char line[256] = "";
    if (pipe(out) != 0 || (s->pid = fork()) < 0)
        return false;
    if (s->pid == 0) {
        measure_pin(1);
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execl(program, program, "backend", "--max-concurrent-streams", "10000", (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    bool ok = f && fgets(line, sizeof(line), f);
    if (f)
        fclose(f);
    char *colon = strrchr(line, ':');
    line[strcspn(line, "\n")] = 0;
    if (ok && colon)
        snprintf(s->port, sizeof(s->port), "%s", colon + 1);
    return ok && colon;
}

static void server_stop(struct server *s)
{
    kill(s->pid, SIGTERM);
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static bool run_client(const char *dir, const char *name, const struct server *s, unsigned outstanding, double seconds,
                       struct figures *f)
{
    char command[1024];
    unsigned long long rpcs = 0;
    double wall = 0, cpu = 0, p50 = 0;
    snprintf(command, sizeof(command), "'%s/%s' 127.0.0.1 %s %u %.2f", dir, name, s->port, outstanding, seconds);
    FILE *p = popen(command, "r");
    bool ok = p && fscanf(p, "%llu %lf %lf %lf", &rpcs, &wall, &cpu, &p50) == 4;
    if (p && pclose(p) != 0)
        ok = false;
    if (!ok || rpcs == 0) {
        fprintf(stderr, "bench/rpc: %s failed\n", name);
        return false;
    }
    *f = (struct figures){(double)rpcs / wall, cpu / (double)rpcs * 1e6, p50};
    return true;
}

/* Rows of one number of outstanding RPCs, for each peer: CPU time, time per RPC as throughput has it, median latency.
 */
static size_t bench(struct measure_row *rows, const char *dir, const struct server *s, unsigned outstanding,
                    double seconds, unsigned pairs, const bool *have)
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
            if (have[c] && !run_client(dir, names[c], s, outstanding, seconds, &f[c]))
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

int main(int argc, char **argv)
{
    static const unsigned outstanding[] = {1, 64, 256};
    static struct measure_row rows[32];
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    unsigned pairs = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
    char self[512], program[600];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len < 0 || !(seconds > 0) || pairs == 0)
        return 2;
    self[len] = 0;
    const char *dir = dirname(self);
    snprintf(program, sizeof(program), "%s/../torc", dir);
    bool have[CLIENTS];
    for (int c = 0; c < CLIENTS; c++) {
        char path[600];
        snprintf(path, sizeof(path), "%s/%s", dir, names[c]);
        have[c] = access(path, X_OK) == 0;
        if (!have[c])
            printf("skipped: %s (%s was not built: its library is not installed)\n", titles[c], names[c]);
    }
    struct server s;
    if (!server_start(&s, program)) {
        fprintf(stderr, "bench/rpc: cannot start %s backend\n", program);
        return 1;
    }
    size_t n = 0;
    bool ok = have[TORC];
    for (size_t i = 0; ok && i < sizeof(outstanding) / sizeof(outstanding[0]); i++) {
        size_t more = bench(rows + n, dir, &s, outstanding[i], seconds, pairs, have);
        ok = more > 0;
        n += more;
    }
    measure_report("rpc", rows, n);
    for (size_t i = 0; ok && i < sizeof(outstanding) / sizeof(outstanding[0]); i++) {
        struct figures f;
        ok = run_client(dir, "bench_rpc_mallocs", &s, outstanding[i], seconds, &f);
    }
    server_stop(&s);
    return ok ? 0 : 1;
}
