/* bench/memory: resident memory of a process with an idle channel, of a connection and of a call, for Torc, bare
 * nghttp2 and gRPC C++ in turns; and, for Torc alone, of an endpoint that is on a ring and not connected.
 * `bench_memory [PAIRS]` */
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"
#include "server.h"

enum { TORC, NGHTTP2, GRPC, CLIENTS };
enum {
    NGHTTP2_CONNECTION_EXTRA = 5120, /* bytes that a connection of Torc may take more than one of nghttp2 */
    RING_ENDPOINT = 600              /* bytes that an endpoint on a ring may take */
};

static const char *const names[CLIENTS] = {"bench_memory_torc", "bench_memory_nghttp2", "bench_memory_grpc"};
static const char *const titles[CLIENTS] = {"torc", "bare nghttp2", "gRPC C++"};

static const struct {
    const char *kind, *what, *unit; /* kind: the client's argument (memory.h) */
    unsigned n;                     /* the client's argument N */
    double divisor;                 /* bytes of a `unit` */
    double targets[CLIENTS];        /* the least ratio to each peer; 0: no target */
    double allowance;               /* bytes that are added to nghttp2's figure */
} subjects[] = {
    {"idle", "process with one idle channel", "MB", 1, 1e6, {0}, 0},
    {"connections", "an idle connected endpoint, of 1,000", "bytes", 1000, 1, {0, 1, 0}, NGHTTP2_CONNECTION_EXTRA},
    {"calls", "a call that waits, of 10,000", "bytes", 10000, 1, {0}, 0},
};

/* Measures subject i. Adds a row behind rows[0], ..., rows[*n - 1] for each peer that was built. Returns false if a
 * client failed. */
static bool compare(struct measure_row *rows, size_t *n, size_t i, const struct server *s, unsigned pairs,
                    const bool *have)
{
    struct measure_row *row[CLIENTS] = {NULL};
    for (int c = NGHTTP2; c < CLIENTS; c++) {
        if (!have[c])
            continue;
        bool extra = c == NGHTTP2 && subjects[i].allowance > 0;
        row[c] = &rows[(*n)++];
        measure_init(row[c], subjects[i].unit, extra ? "nghttp2 + 5 kB" : titles[c], subjects[i].targets[c], "%s",
                     subjects[i].what);
    }
    for (unsigned p = 0; p < pairs; p++) {
        double bytes[CLIENTS] = {0};
        for (int c = TORC; c < CLIENTS; c++)
            if (have[c] &&
                !server_run_client(names[c], &bytes[c], 1, "%s %s %u", subjects[i].kind, s->port, subjects[i].n))
                return false;
        bytes[NGHTTP2] += subjects[i].allowance;
        for (int c = NGHTTP2; c < CLIENTS; c++)
            if (have[c])
                measure_add(row[c], bytes[TORC] / subjects[i].divisor, bytes[c] / subjects[i].divisor);
    }
    return true;
}

/* Measures Torc's endpoint on a ring. There is no peer, since gRPC C++ of Debian has no ring_hash outside xDS. The
 * row's "peer" is the target, in bytes. Returns false if the client failed. */
static bool ring(struct measure_row *row, const struct server *s, unsigned pairs)
{
    measure_init(row, "bytes", "target", 1, "an endpoint on a ring (65,536 entries), not connected, of 10,000");
    for (unsigned p = 0; p < pairs; p++) {
        double bytes;
        if (!server_run_client(names[TORC], &bytes, 1, "ring %s 10000", s->port))
            return false;
        measure_add(row, bytes, RING_ENDPOINT);
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct measure_row rows[16];
    unsigned pairs = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5;
    bool have[CLIENTS];
    struct server s;
    size_t n = 0;
    if (pairs == 0)
        return 2;
    for (int c = 0; c < CLIENTS; c++)
        have[c] = server_have_client(names[c], titles[c]);
    if (!server_start(&s, NULL, NULL))
        return 1;
    bool ok = have[TORC];
    for (size_t i = 0; ok && i < sizeof(subjects) / sizeof(subjects[0]); i++)
        ok = compare(rows, &n, i, &s, pairs, have);
    ok = ok && ring(&rows[n++], &s, pairs);
    server_stop(&s);
    if (ok)
        measure_report("memory", rows, n);
    return ok ? 0 : 1;
}
