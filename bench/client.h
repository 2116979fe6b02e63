/* What the clients of bench/rpc share. `PROGRAM HOST PORT OUTSTANDING AMOUNT [KIND [BYTES [ROOTS]]]` sends RPCs so and
 * prints one line, "RPCS SECONDS CPU_SECONDS P50_US".
 *
 * AMOUNT is seconds, of which a start of a tenth more does not count, or a number of RPCs with an x after it, all of
 * which count. KIND is unary (the default), bidi (streams, each one message at a time, echoed) or repeat (one server
 * stream, as fast as it comes); of streams each message counts as an RPC. BYTES is the size of a message and of its
 * answer. With ROOTS, a file in PEM form, the connection is TLS, and the server must have one of the certificates in
 * it. */
#ifndef TORC_BENCH_CLIENT_H
#define TORC_BENCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLIENT_LEAST 10 /* RPCs, however long they take on a machine that is busy elsewhere */
#define CLIENT_METHOD "/bench.Echo/Echo"
#define CLIENT_METHOD_REPEAT "/torc.test.Backend/Repeat"

enum client_kind { CLIENT_UNARY, CLIENT_BIDI, CLIENT_REPEAT };

struct client {
    const char *host, *port;
    unsigned outstanding; /* unary: RPCs at a time, 1: blocking; bidi: streams */
    enum client_kind kind;
    const char *payload; /* the message */
    size_t payload_size;
    const char *roots;         /* NULL: no TLS */
    uint64_t begin_ns, end_ns; /* of what counts */
    uint64_t first_cpu_ns;     /* at the beginning of that */
    uint64_t rpcs, limit;      /* the limit: 0 when time is */
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
    return c->limit ? c->rpcs >= c->limit : now_ns >= c->end_ns && c->rpcs >= CLIENT_LEAST;
}
/* Called when what counts begins (`over` false) and when it ended; for what else is to be counted. NULL: not. */
extern void (*client_hook)(const struct client *c, bool over);
/* Prints the line; the exit status. */
int client_report(struct client *c);

#ifdef __cplusplus
}
#endif
#endif
