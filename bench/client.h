/* Shared declarations of bench/rpc's clients.
 *
 * PROGRAM HOST PORT OUTSTANDING AMOUNT [KIND [BYTES [ROOTS]]]
 *
 * sends RPCs and prints one line, "RPCS SECONDS CPU_SECONDS P50_US". AMOUNT is seconds, before which a tenth of them
 * passes uncounted as a warm-up, or a number of RPCs followed by x, all of which are counted. KIND is unary (the
 * default), bidi (streams, each with one message at a time, echoed) or repeat (one server stream, as fast as its
 * messages arrive; OUTSTANDING must be 1). Each message of a stream counts as an RPC. BYTES is the size of a message
 * and of its answer, by default 64. With ROOTS, a PEM file, the connection is TLS, and the server's certificate is
 * checked against that file. */
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
    const char *host, *port;
    unsigned outstanding; /* unary: RPCs at a time; bidi: streams; 1 means blocking */
    enum client_kind kind;
    const char *payload; /* the message */
    size_t payload_size;
    const char *roots;         /* NULL: no TLS */
    uint64_t begin_ns, end_ns; /* the measured period; end_ns only if AMOUNT is seconds */
    uint64_t first_cpu_ns;     /* CPU time at begin_ns */
    uint64_t rpcs, limit;      /* limit: the number of RPCs to send, 0 if AMOUNT is seconds */
    uint32_t *latencies_ns;
    size_t n_latencies;
    bool counting;
};

/* Reads the arguments, pins the calling thread to the last core that it may use, and starts the clock. Returns false,
 * with a message on stderr if the arguments are wrong. */
bool client_init(struct client *c, int argc, char **argv);
/* Counts an RPC that was started at `started_ns`; not one that ends during the warm-up, nor the first to end after it.
 * Returns the time now. */
uint64_t client_done(struct client *c, uint64_t started_ns);
/* Returns true once AMOUNT is reached, and CLIENT_LEAST if AMOUNT is seconds. */
static inline bool client_over(const struct client *c, uint64_t now_ns)
{
    return c->limit ? c->rpcs >= c->limit : now_ns >= c->end_ns && c->rpcs >= CLIENT_LEAST;
}
/* Called when the measured period begins (`over` false) and in client_report (`over` true), to count something else.
 * May be NULL. */
extern void (*client_hook)(const struct client *c, bool over);
/* Ends the measured period, prints the result line and frees the arrays. Returns the exit status: 1 if no RPC was
 * counted, else 0. */
int client_report(struct client *c);

#ifdef __cplusplus
}
#endif
#endif
