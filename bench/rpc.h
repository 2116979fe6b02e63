/* bench/rpc: its clients, what they are asked to do, and the rows that come of it. */
#ifndef TORC_BENCH_RPC_H
#define TORC_BENCH_RPC_H

#include <stdbool.h>
#include <stddef.h>

#include "measure.h"
#include "server.h"

enum { TORC, NGHTTP2, GRPC, GRPC_GO, CLIENTS };

/* How a client is run (client.h says what its arguments mean). */
struct load {
    const char *host; /* NULL: 127.0.0.1 */
    const char *kind; /* NULL: unary */
    unsigned outstanding;
    unsigned bytes; /* 0: 64 */
    bool tls;
};

struct table {
    struct measure_row rows[128];
    size_t n;
};

/* A new row of the table. */
struct measure_row *table_add(struct table *t, const struct measure_row *row);

/* The command that runs a program of bench/rpc; `amount` as client.h has it. */
void rpc_command(char *to, size_t size, const char *program, const struct server *s, const struct load *load,
                 const char *amount);

/* Rows of what an RPC costs beside time: instructions by whose they are, with bare nghttp2 for comparison when it is
 * there, and allocations. False with a message on stderr. */
bool bench_instructions(struct table *t, const struct server *s, bool have_nghttp2);
bool bench_allocations(struct table *t, const struct server *s);

#endif
