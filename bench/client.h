/* Shared declarations of bench/rpc's clients.
 *
 * PROGRAM HOST PORT OUTSTANDING AMOUNT [KIND [BYTES [ROOTS]]]
 *
 * sends RPCs and prints one line, "RPCS SECONDS CPU_SECONDS P50_US": the RPCs counted, the length of the measured
 * period, the CPU time of the client's process in the period, and the median latency in microseconds. OUTSTANDING is 1
 * to 10,000. AMOUNT is seconds (below 1000), before which a tenth of them passes uncounted as a warm-up, or a number of
 * RPCs, 1 to 10^9, followed by x, without a warm-up. RPCs that run when AMOUNT is reached are finished and counted,
 * too. KIND is unary (the default), bidi (streams, each with one message at a time, echoed) or repeat (one server
 * stream, as fast as its messages arrive; OUTSTANDING must be 1). Each message of a stream counts as an RPC. BYTES is
 * the size of a message and of its answer, 1 to 4,000,000, by default 64. With ROOTS, a PEM file, the connection is
 * TLS, and the server's certificate is checked against that file.
 *
 * One thread uses these functions: the one that called client_init. */
#ifndef TORC_BENCH_CLIENT_H
#define TORC_BENCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLIENT_LEAST 10 /* the least number of RPCs if AMOUNT is seconds, however long they take on a busy machine */
#define CLIENT_METHOD "/bench.Echo/Echo"
#define CLIENT_METHOD_REPEAT "/torc.test.Backend/Repeat"

enum client_kind { CLIENT_UNARY, CLIENT_BIDI, CLIENT_REPEAT };

struct client {
    const char *host, *port; /* of argv */
    unsigned outstanding;    /* unary: RPCs at a time; bidi: streams; 1: by blocking calls, if the library has them */
    enum client_kind kind;
    const char *payload; /* the message, of random bytes; owned */
    size_t payload_size;
    const char *roots;         /* of argv; NULL: no TLS */
    uint64_t begin_ns, end_ns; /* begin: of the measured period; end: when AMOUNT has passed, if AMOUNT is seconds */
    uint64_t first_cpu_ns;     /* the process's CPU time at begin_ns */
    uint64_t rpcs, limit;      /* rpcs: counted so far; limit: the number of RPCs to send, 0 if AMOUNT is seconds */
    uint32_t *latencies_ns;    /* of the first 4,000,000 counted RPCs, UINT32_MAX: 4.3 s or more; owned */
    size_t n_latencies;
    bool counting; /* the measured period has begun */
};

/* Reads the arguments, which must outlive *c, pins the calling thread to the last core that it may use, and starts the
 * warm-up, or the measured period if AMOUNT is a number of RPCs. Returns false with a message on stderr if the
 * arguments are wrong, or without one if there is no memory. */
bool client_init(struct client *c, int argc, char **argv);
/* Counts an RPC that was started at `started_ns` and ends now, unless it ends during the warm-up or is the first to end
 * after the warm-up. Returns the time now. Both times are of measure_wall_ns. */
uint64_t client_done(struct client *c, uint64_t started_ns);
/* Returns true once AMOUNT is reached; if AMOUNT is seconds, CLIENT_LEAST RPCs must have been counted, too. */
static inline bool client_over(const struct client *c, uint64_t now_ns)
{
    return c->limit ? c->rpcs >= c->limit : now_ns >= c->end_ns && c->rpcs >= CLIENT_LEAST;
}
/* Called when the measured period begins (`over` false) and at its end in client_report, before the result line is
 * printed (`over` true), to count something else. May be NULL. Set it before client_init. */
extern void (*client_hook)(const struct client *c, bool over);
/* Ends the measured period, prints the result line on standard output unless no RPC was counted, and frees the payload
 * and the latencies. Returns the exit status: 1 if no RPC was counted, else 0. */
int client_report(struct client *c);

#ifdef __cplusplus
}
#endif
#endif
