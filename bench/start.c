/* bench/start: time from the start of a process to the answer of its first RPC, and the CPU time of the process. The
 * RPC goes to an address, or over xDS to a cluster of one endpoint (round_robin: gRPC C++ 1.51.1 crashes on ring_hash).
 * Torc and gRPC C++ run alternately. Without gRPC C++ nothing is measured. `bench_start [PAIRS]`; by default 15
 * pairs. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "server.h"

enum { TORC, GRPC, CLIENTS };

static const char *const names[CLIENTS] = {"bench_start_torc", "bench_start_grpc"};

static double ms_of(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

/* Starts the program directly, without a shell. Returns its pid, or -1. Stores the program's standard output in *out,
 * for the caller to close; NULL if the program or the stream cannot be made. *out must be NULL before the call. */
static pid_t start(const char *name, const char *target, FILE **out)
{
    char path[600], given[64];
    char *arguments[] = {path, given, NULL};
    int fds[2];
    pid_t pid = -1;
    posix_spawn_file_actions_t actions;
    snprintf(path, sizeof(path), "%s/%s", server_own_folder(), name);
    snprintf(given, sizeof(given), "%s", target);
    if (pipe(fds) != 0)
        return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, fds[0]);
    posix_spawn_file_actions_addclose(&actions, fds[1]);
    int rc = posix_spawn(&pid, path, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    *out = rc == 0 ? fdopen(fds[0], "r") : NULL;
    if (!*out)
        close(fds[0]);
    return rc == 0 ? pid : -1;
}

/* Runs the program once: *first_ms from its start to the answer, *cpu_ms the CPU time of the whole process. Returns
 * false with a message if it fails. */
static bool run(const char *name, const char *target, double *first_ms, double *cpu_ms)
{
    FILE *out = NULL;
    double answered;
    struct rusage used;
    int status = -1;
    double began = (double)measure_wall_ns() / 1e9;
    pid_t pid = start(name, target, &out);
    bool ok = out && fscanf(out, "%lf", &answered) == 1;
    if (out)
        fclose(out);
    ok = pid > 0 && wait4(pid, &status, 0, &used) == pid && status == 0 && ok;
    if (!ok) {
        fprintf(stderr, "bench: %s %s failed\n", name, target);
        return false;
    }
    *first_ms = (answered - began) * 1e3;
    *cpu_ms = ms_of(used.ru_utime) + ms_of(used.ru_stime);
    return true;
}

/* Fills two rows, the time to the first RPC (whose ratio is to be `at_least`) and the CPU time. Returns false if a
 * program fails. */
static bool compare(struct measure_row *rows, const char *what, const char *target, double at_least, unsigned pairs)
{
    measure_init(&rows[0], "ms", "gRPC C++", at_least, "process start to first RPC, %s", what);
    measure_init(&rows[1], "ms", "gRPC C++", 0, "processor time of the whole process, %s", what);
    for (unsigned p = 0; p < pairs; p++) {
        double first[CLIENTS], cpu[CLIENTS];
        for (int c = 0; c < CLIENTS; c++)
            if (!run(names[c], target, &first[c], &cpu[c]))
                return false;
        measure_add(&rows[0], first[TORC], first[GRPC]);
        measure_add(&rows[1], cpu[TORC], cpu[GRPC]);
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct measure_row rows[4];
    unsigned pairs = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 15;
    struct server backend, control_plane;
    char target[64];
    bool xds = false;
    if (pairs == 0)
        return 2;
    if (!server_have_client(names[TORC], "torc") || !server_have_client(names[GRPC], "gRPC C++"))
        return 0;
    if (!server_start(&backend, NULL, NULL))
        return 1;
    snprintf(target, sizeof(target), "ipv4:127.0.0.1:%s", backend.port);
    bool ok = compare(rows, "plain", target, 0, pairs);
    if (ok && (xds = ok = server_start_xds(&control_plane, backend.port, "ROUND_ROBIN")))
        ok = compare(rows + 2, "xDS", "xds:///bench", 4, pairs);
    if (ok)
        measure_report("start", rows, 4);
    if (xds)
        server_stop(&control_plane);
    server_stop(&backend);
    return ok ? 0 : 1;
}
