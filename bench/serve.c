/* bench/server: CPU time of servers for an RPC, at 1, 64 and 1,000 connections, and their memory for an idle
 * connection; Torc (torc/server.h), bare nghttp2, gRPC C++ and grpc-go in turns, each on one core.
 * `bench_server [PAIRS [SECONDS]]`; by default 5 pairs, and 1 second for each figure of CPU time.
 *
 * Each server is a separate process, which the same client (serve_load.c) measures from outside. For CPU time a server
 * is started once, for memory once for each figure. A server that was not built is left out. Without Torc's server or
 * the client nothing is measured. One thread does all, and runs one client at a time. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "server.h"

enum { TORC, NGHTTP2, GRPC, GRPC_GO, SERVERS };
enum { IDLE = 1000 };

static const struct {
    const char *program, *argument, *title;
} servers[SERVERS] = {
    {"bench_server_torc", NULL, "torc"},
    {"bench_server_nghttp2", NULL, "bare nghttp2"},
    {"bench_server_grpc", NULL, "gRPC C++"},
    {"bench_rpc_go", "serve", "grpc-go"},
};

static const struct {
    unsigned connections, outstanding; /* outstanding: on each connection */
} loads[] = {{1, 64}, {64, 1}, {1000, 1}};

struct process {
    pid_t pid; /* not above 0: it does not run */
    int port;
};

/* Starts a server on the last core but one, and reads its port from the first line that it prints. Returns false if
 * that fails; the caller calls process_stop in any case. */
static bool process_start(struct process *p, int which)
{
    int out[2];
    char program[600], line[32] = "";
    snprintf(program, sizeof(program), "%s/%s", server_own_folder(), servers[which].program);
    if (pipe(out) != 0 || (p->pid = fork()) < 0)
        return false;
    if (p->pid == 0) {
        measure_pin(1);
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execl(program, program, servers[which].argument, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    p->port = f && fgets(line, sizeof(line), f) ? (int)strtol(line, NULL, 10) : 0;
    if (f)
        fclose(f);
    if (!p->port)
        fprintf(stderr, "bench: cannot start %s\n", program);
    return p->port != 0;
}

static void process_stop(struct process *p)
{
    if (p->pid > 0)
        kill(p->pid, SIGKILL);
    while (p->pid > 0 && waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    p->pid = 0;
}

/* Runs the client on each server that runs, at one load for `seconds`. Adds a pair to the row of each server but Torc:
 * Torc's ns for an RPC and the server's. Returns false if the client fails. */
static bool cpu_of_all(struct measure_row *rows, const struct process *processes, size_t load, double seconds)
{
    double ns[SERVERS] = {0};
    for (int s = TORC; s < SERVERS; s++)
        if (processes[s].pid &&
            !server_run_client("bench_server_load", &ns[s], 1, "%d %d %u %u %g", processes[s].port,
                               (int)processes[s].pid, loads[load].connections, loads[load].outstanding, seconds))
            return false;
    for (int s = NGHTTP2; s < SERVERS; s++)
        if (processes[s].pid)
            measure_add(&rows[s], ns[TORC], ns[s]);
    return true;
}

/* Starts each server that was built (have[s]), measures it and stops it. Adds a pair to the row of each server but
 * Torc: Torc's bytes for an idle connection and the server's. Returns false if a server or the client fails. */
static bool memory_of_all(struct measure_row *rows, const bool *have)
{
    double bytes[SERVERS] = {0};
    for (int s = TORC; s < SERVERS; s++) {
        struct process p = {0};
        if (!have[s])
            continue;
        bool ok = process_start(&p, s) &&
                  server_run_client("bench_server_load", &bytes[s], 1, "%d %d %d", p.port, (int)p.pid, IDLE);
        process_stop(&p);
        if (!ok)
            return false;
    }
    for (int s = NGHTTP2; s < SERVERS; s++)
        if (have[s])
            measure_add(&rows[s], bytes[TORC], bytes[s]);
    return true;
}

/* Measures the loads and the memory, `pairs` times. rows[i][s] compares Torc with server s at load i; the row after the
 * last load compares memory. have[s]: server s was built. Returns false if a server or the client fails. */
static bool measure_all(struct measure_row (*rows)[SERVERS], unsigned pairs, double seconds, const bool *have)
{
    struct process processes[SERVERS] = {{0, 0}};
    size_t n_loads = sizeof(loads) / sizeof(loads[0]);
    bool ok = true;
    for (int s = TORC; s < SERVERS && ok; s++)
        ok = !have[s] || process_start(&processes[s], s);
    for (unsigned p = 0; p < pairs && ok; p++)
        for (size_t i = 0; i < n_loads && ok; i++)
            ok = cpu_of_all(rows[i], processes, i, seconds);
    for (int s = TORC; s < SERVERS; s++)
        process_stop(&processes[s]);
    for (unsigned p = 0; p < pairs && ok; p++)
        ok = memory_of_all(rows[n_loads], have);
    return ok;
}

int main(int argc, char **argv)
{
    enum { LOADS = sizeof(loads) / sizeof(loads[0]) };
    static struct measure_row rows[LOADS + 1][SERVERS], report[(LOADS + 1) * SERVERS];
    unsigned pairs = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5;
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
    struct rlimit files = {0};
    bool have[SERVERS];
    size_t n = 0;
    if (pairs == 0 || seconds <= 0)
        return 2;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files); /* inherited by the servers and the client: each needs more than 1,000 files */
    for (int s = TORC; s < SERVERS; s++) {
        have[s] = server_have_client(servers[s].program, servers[s].title);
        for (size_t i = 0; i < LOADS; i++)
            measure_init(&rows[i][s], "ns", servers[s].title, 0, "server CPU per RPC, %u connection%s, %u at a time",
                         loads[i].connections, loads[i].connections > 1 ? "s" : "",
                         loads[i].connections * loads[i].outstanding);
        measure_init(&rows[LOADS][s], "bytes", servers[s].title, 0, "memory of an idle connection, of %d", IDLE);
    }
    if (!have[TORC] || !server_have_client("bench_server_load", "the client") ||
        !measure_all(rows, pairs, seconds, have))
        return 1;
    for (size_t i = 0; i <= LOADS; i++)
        for (int s = NGHTTP2; s < SERVERS; s++)
            if (have[s])
                report[n++] = rows[i][s];
    measure_report("server", report, n);
    return 0;
}
