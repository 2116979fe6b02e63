/* bench/rpc: its clients, their loads, and the rows that result. */
#ifndef TORC_BENCH_RPC_H
#define TORC_BENCH_RPC_H

#include <stdbool.h>
#include <stddef.h>

#include "measure.h"
#include "server.h"

enum { TORC, NGHTTP2, GRPC, GRPC_GO, CLIENTS };

/* The arguments of a client (client.h) but the port, the amount, and the file ROOTS. */
struct load {
    const char *host; /* NULL: 127.0.0.1 */
    const char *kind; /* NULL: unary */
    unsigned outstanding;
    unsigned bytes; /* 0: 64 */
    bool tls;       /* ROOTS is given */
};

struct table {
    struct measure_row rows[128];
    size_t n;
};

/* Copies a row into the table and returns the table's row. Ends the program if the table is full. */
struct measure_row *table_add(struct table *t, const struct measure_row *row);

/* Writes the shell command that runs a program of bench/rpc against the server; `amount` as in client.h. If load->tls,
 * the server must be of server_start_tls. A command that does not fit into `size` bytes is cut. */
void rpc_command(char *to, size_t size, const char *program, const struct server *s, const struct load *load,
                 const char *amount);

/* Add rows for costs other than time: instructions by object file, compared with bare nghttp2 if that was built, and
 * Torc's allocations. The server is one without TLS. bench_instructions needs valgrind (callgrind_there). Return false
 * with a message on stderr if a program fails. */
bool bench_instructions(struct table *t, const struct server *s, bool have_nghttp2);
bool bench_allocations(struct table *t, const struct server *s);

#endif
