/* What the clients of bench/rpc share: `PROGRAM HOST PORT OUTSTANDING SECONDS` sends unary RPCs so and prints one line,
 * "RPCS SECONDS CPU_SECONDS P50_US", not counting a start of a tenth of the time. */
#ifndef TORC_BENCH_CLIENT_H
#define TORC_BENCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLIENT_METHOD "/bench.Echo/Echo"
#define CLIENT_PAYLOAD 64 /* bytes of a request and of its answer */

struct client {
    const char *host, *port;
    unsigned outstanding;
    uint64_t begin_ns, end_ns;         /* of what counts */
    uint64_t first_rpcs, first_cpu_ns; /* at the beginning of that */
    uint64_t rpcs;
    uint32_t *latencies_ns;
    size_t n_latencies;
    bool counting;
};

/* Reads the arguments, pins the process to the last core, and starts the clock. False with a message on stderr. */
bool client_init(struct client *c, int argc, char **argv);
/* One RPC is done that was started at that time; the time now. */
uint64_t client_done(struct client *c, uint64_t started_ns);
static inline bool client_over(const struct client *c, uint64_t now_ns)
{
    return now_ns >= c->end_ns;
}
/* Called when what counts begins (`over` false) and when it ended; for what else is to be counted. NULL: not. */
extern void (*client_hook)(const struct client *c, bool over);
/* Prints the line; the exit status. */
int client_report(struct client *c);

#ifdef __cplusplus
}
#endif
#endif
