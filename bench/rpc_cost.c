/* bench/rpc: the cost of an RPC in instructions and allocations. */
#include <stdio.h>

#include "callgrind.h"
#include "rpc.h"

/* Counts a short and a long run. The cost of an RPC is their difference divided by the difference in RPCs, so that the
 * program's start and end do not count. Sets rpc->instructions, and not rpc->first. Returns false if a run failed. */
static bool instructions_of(const char *program, const struct server *s, const struct load *load, struct callgrind *rpc)
{
    char command[1024], amount[32];
    struct callgrind runs[2];
    for (unsigned i = 0; i < 2; i++) {
        snprintf(amount, sizeof(amount), "%ux", (i ? 900 : 300) * (load->outstanding > 1 ? 8 : 1));
        rpc_command(command, sizeof(command), program, s, load, amount);
        if (!callgrind_run(command, &runs[i]))
            return false;
    }
    for (int o = 0; o < CALLGRIND_OWNERS; o++)
        rpc->instructions[o] = (runs[1].instructions[o] - runs[0].instructions[o]) / (runs[1].first - runs[0].first);
    return true;
}

bool bench_instructions(struct table *t, const struct server *s, bool have_nghttp2)
{
    static const struct load loads[] = {{.outstanding = 1}, {.outstanding = 64}};
    static const char *const owners[] = {"Torc's own", "nghttp2's", "libc's", "loader's, client's, other libraries'"};
    const char *peer = have_nghttp2 ? "bare nghttp2" : "";
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        struct callgrind ours, theirs = {0};
        struct measure_row row;
        const char *how = loads[i].outstanding == 1 ? "blocking" : "64 outstanding";
        if (!instructions_of("bench_rpc_torc", s, &loads[i], &ours) ||
            (have_nghttp2 && !instructions_of("bench_rpc_nghttp2", s, &loads[i], &theirs)))
            return false;
        measure_init(&row, "instructions", peer, 0, "user space per RPC, %s, all of the process", how);
        measure_add(&row, callgrind_all(&ours), callgrind_all(&theirs));
        table_add(t, &row);
        for (int o = 0; o < CALLGRIND_OWNERS; o++) {
            measure_init(&row, "instructions", o == CALLGRIND_TORC ? "" : peer, 0, "user space per RPC, %s, %s", how,
                         owners[o]);
            measure_add(&row, ours.instructions[o], theirs.instructions[o]);
            table_add(t, &row);
        }
    }
    return true;
}

bool bench_allocations(struct table *t, const struct server *s)
{
    static const struct load loads[] = {{.outstanding = 1}, {.outstanding = 64}, {.outstanding = 256}};
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        char command[1024];
        double allocations;
        struct measure_row row;
        rpc_command(command, sizeof(command), "bench_rpc_mallocs", s, &loads[i], "0.3");
        if (!server_run_command(command, &allocations, 1))
            return false;
        measure_init(&row, "mallocs", "", 0, "all of the process per RPC, %u outstanding", loads[i].outstanding);
        measure_add(&row, allocations, 0);
        table_add(t, &row);
    }
    return true;
}
