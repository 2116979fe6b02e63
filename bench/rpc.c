/* bench/rpc: RPCs of Torc, bare nghttp2, gRPC C++ and grpc-go against the same server, alternately. Each client is a
 * separate program, so that its CPU time is its own. `bench_rpc [SECONDS [PAIRS]]`
 *
 * `subjects` names the loads, the figures and peers of each, and the targets. Then Torc is compared with itself: over
 * xDS, and with the loop on a thread of its own. Costs in allocations and instructions follow (rpc_cost.c). A peer that
 * was not built has no rows. A client that fails ends the run, and the rows until then are reported.
 *
 * One thread, which waits for each client in turn. main owns the servers, bench_mesh the control plane. Read `subjects`
 * and bench first. */
#include "rpc.h"

#include <stdio.h>
#include <stdlib.h>

#include "callgrind.h"

static const char *const programs[CLIENTS] = {"bench_rpc_torc", "bench_rpc_nghttp2", "bench_rpc_grpc", "bench_rpc_go"};
static const char *const titles[CLIENTS] = {"torc", "bare nghttp2", "gRPC C++", "grpc-go"};

enum { CPU, TIME, P50, MBPS, RATE, FIGURES };
static const char *const units[FIGURES] = {"us", "us", "us", "MB/s", "k/s"}; /* MB/s: of messages in one direction */

/* The measurements of a load: one row for each figure and peer. */
struct subject {
    struct load load;
    const char *name, *of;            /* of: what the client counts, "RPC" or "message" */
    unsigned figures;                 /* bits: CPU, ... */
    unsigned peers;                   /* bits: NGHTTP2, ... */
    double targets[FIGURES][CLIENTS]; /* the least ratio to each peer; 0: no target */
};

#define BIT(n) (1u << (n))
#define ALL_PEERS (BIT(NGHTTP2) | BIT(GRPC) | BIT(GRPC_GO))
#define C_PEERS (BIT(NGHTTP2) | BIT(GRPC))
#define LARGE (BIT(CPU) | BIT(MBPS))
#define STREAM (BIT(CPU) | BIT(RATE))

#define SUBJECT(title, kind_of, figures_, peers_, ...)                                                                 \
    .load = {__VA_ARGS__}, .name = (title), .of = (kind_of), .figures = (figures_), .peers = (peers_)

static const struct subject subjects[] = {
    {SUBJECT("1 outstanding (blocking)", "RPC", BIT(CPU) | BIT(TIME) | BIT(P50), ALL_PEERS, .outstanding = 1),
     .targets[P50] = {[NGHTTP2] = 1 / 1.1, [GRPC] = 1}},
    {SUBJECT("64 outstanding", "RPC", BIT(CPU) | BIT(TIME) | BIT(P50), ALL_PEERS, .outstanding = 64),
     .targets[CPU] = {[NGHTTP2] = 0.5, [GRPC] = 4}},
    {SUBJECT("256 outstanding", "RPC", BIT(CPU) | BIT(TIME) | BIT(P50), C_PEERS, .outstanding = 256)},
    {SUBJECT("1 kB, 64 outstanding", "RPC", LARGE, C_PEERS, .outstanding = 64, .bytes = 1 << 10)},
    {SUBJECT("64 kB, 16 outstanding", "RPC", LARGE, C_PEERS, .outstanding = 16, .bytes = 64 << 10)},
    {SUBJECT("1 MB, 4 outstanding", "RPC", LARGE, C_PEERS, .outstanding = 4, .bytes = 1 << 20)},
    {SUBJECT("1 MB, 1 outstanding (blocking)", "RPC", LARGE, C_PEERS, .outstanding = 1, .bytes = 1 << 20)},
    {SUBJECT("1 bidi stream (blocking)", "message", BIT(CPU) | BIT(P50), ALL_PEERS, .outstanding = 1, .kind = "bidi")},
    {SUBJECT("64 bidi streams", "message", STREAM, ALL_PEERS, .outstanding = 64, .kind = "bidi")},
    {SUBJECT("server stream", "message", STREAM, ALL_PEERS, .outstanding = 1, .kind = "repeat")},
    {SUBJECT("TLS, 1 outstanding (blocking)", "RPC", BIT(CPU) | BIT(P50), C_PEERS, .outstanding = 1, .tls = true)},
    {SUBJECT("TLS, 64 outstanding", "RPC", BIT(CPU) | BIT(TIME), C_PEERS, .outstanding = 64, .tls = true)},
    {SUBJECT("TLS, 1 MB, 4 outstanding", "RPC", LARGE, C_PEERS, .outstanding = 4, .bytes = 1 << 20, .tls = true)},
};

struct bench {
    struct table table;
    struct server plain, tls;
    const char *seconds; /* AMOUNT of client.h */
    unsigned pairs;
    bool have[CLIENTS]; /* was built */
};

struct measure_row *table_add(struct table *t, const struct measure_row *row)
{
    if (t->n == sizeof(t->rows) / sizeof(t->rows[0])) {
        fprintf(stderr, "bench: the table is full\n");
        exit(1);
    }
    t->rows[t->n] = *row;
    return &t->rows[t->n++];
}

void rpc_command(char *to, size_t size, const char *program, const struct server *s, const struct load *load,
                 const char *amount)
{
    snprintf(to, size, "'%s/%s' %s %s %u %s %s %u %s", server_own_folder(), program,
             load->host ? load->host : "127.0.0.1", s->port, load->outstanding, amount,
             load->kind ? load->kind : "unary", load->bytes ? load->bytes : 64, load->tls ? s->resources : "");
}

/* Runs a client on a load and sets all of figures[FIGURES]. Returns false if the client failed. */
static bool run_client(const struct bench *b, int client, const struct load *load, double *figures)
{
    char command[1024];
    double n[4]; /* RPCs, seconds, CPU seconds, p50 */
    rpc_command(command, sizeof(command), programs[client], load->tls ? &b->tls : &b->plain, load, b->seconds);
    if (!server_run_command(command, n, 4) || !(n[0] > 0))
        return false;
    figures[CPU] = n[2] / n[0] * 1e6;
    figures[TIME] = n[1] / n[0] * 1e6;
    figures[P50] = n[3];
    figures[RATE] = n[0] / n[1] / 1e3;
    figures[MBPS] = n[0] / n[1] * load->bytes / 1e6;
    return true;
}

/* Sets a row without pairs for one figure of a subject, compared with one peer. */
static void make_row(struct measure_row *row, const struct subject *s, int figure, int peer)
{
    const char *unit = units[figure], *title = titles[peer];
    double target = s->targets[figure][peer];
    switch (figure) {
    case CPU:
        measure_init(row, unit, title, target, "client CPU per %s, %s", s->of, s->name);
        break;
    case TIME:
        measure_init(row, unit, title, target, "time per %s (1/throughput), %s", s->of, s->name);
        break;
    case P50:
        measure_init(row, unit, title, target, "latency p50, %s", s->name);
        break;
    default:
        measure_init(row, unit, title, target, "%s, %s", figure == MBPS ? "throughput" : "messages a second", s->name);
        row->rate = true;
    }
}

/* Runs the clients alternately, and adds rows for each of the subject's peers that was built. Returns false if a client
 * failed; the rows keep the pairs until then. */
static bool bench(struct bench *b, const struct subject *s)
{
    struct measure_row *rows[CLIENTS][FIGURES] = {{NULL}}, row;
    for (int c = NGHTTP2; c < CLIENTS; c++)
        for (int f = 0; f < FIGURES; f++)
            if (b->have[c] && s->peers & BIT(c) && s->figures & BIT(f)) {
                make_row(&row, s, f, c);
                rows[c][f] = table_add(&b->table, &row);
            }
    for (unsigned p = 0; p < b->pairs; p++) {
        double figures[CLIENTS][FIGURES];
        for (int c = TORC; c < CLIENTS; c++)
            if ((c == TORC || (b->have[c] && s->peers & BIT(c))) && !run_client(b, c, &s->load, figures[c]))
                return false;
        for (int c = NGHTTP2; c < CLIENTS; c++)
            for (int f = 0; f < FIGURES; f++)
                if (rows[c][f])
                    measure_add(rows[c][f], figures[TORC][f], figures[c][f]);
    }
    return true;
}

/* Compares Torc with itself. Torc's figure is that of the variant; the peer is a plain channel whose loop the client's
 * main thread drives. Adds three rows. If a client failed, adds none and returns false. The control plane must run. */
static bool bench_variants(struct bench *b)
{
    static const struct load plain[] = {{.outstanding = 64}, {.outstanding = 1}};
    static const struct load mesh[] = {{.host = "xds:///bench", .outstanding = 64},
                                       {.host = "xds:///bench", .outstanding = 1}};
    static const struct load thread = {.host = "thread:127.0.0.1", .outstanding = 1};
    struct measure_row rows[3];
    measure_init(&rows[0], "us", "torc, plain", 1 / 1.3, "client CPU per RPC, xds:///, ring_hash, 64 outstanding");
    measure_init(&rows[1], "us", "torc, plain", 0, "latency p50, xds:///, ring_hash, 1 outstanding (blocking)");
    measure_init(&rows[2], "us", "torc, caller's", 0, "latency p50, the loop's own thread, 1 outstanding (blocking)");
    for (unsigned p = 0; p < b->pairs; p++) {
        double with_mesh[2][FIGURES], without[2][FIGURES], with_thread[FIGURES];
        for (int i = 0; i < 2; i++)
            if (!run_client(b, TORC, &mesh[i], with_mesh[i]) || !run_client(b, TORC, &plain[i], without[i]))
                return false;
        if (!run_client(b, TORC, &thread, with_thread))
            return false;
        measure_add(&rows[0], with_mesh[0][CPU], without[0][CPU]);
        measure_add(&rows[1], with_mesh[1][P50], without[1][P50]);
        measure_add(&rows[2], with_thread[P50], without[1][P50]);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        table_add(&b->table, &rows[i]);
    return true;
}

/* Runs bench_variants beside a control plane that names the plain server as the only endpoint. */
static bool bench_mesh(struct bench *b)
{
    struct server control_plane;
    if (!server_start_xds(&control_plane, b->plain.port, "RING_HASH"))
        return false;
    bool ok = bench_variants(b);
    server_stop(&control_plane);
    return ok;
}

static bool bench_all(struct bench *b)
{
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
        if (!bench(b, &subjects[i]))
            return false;
    return bench_mesh(b) && bench_allocations(&b->table, &b->plain) &&
           (!callgrind_there() || bench_instructions(&b->table, &b->plain, b->have[NGHTTP2]));
}

int main(int argc, char **argv)
{
    static struct bench b;
    b.seconds = argc > 1 ? argv[1] : "0.5";
    b.pairs = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
    if (!(strtod(b.seconds, NULL) > 0) || b.pairs == 0)
        return 2;
    for (int c = 0; c < CLIENTS; c++)
        b.have[c] = server_have_client(programs[c], titles[c]);
    if (!b.have[TORC] || !server_start(&b.plain, NULL, NULL))
        return 1;
    bool ok = server_start_tls(&b.tls);
    if (ok) {
        ok = bench_all(&b);
        measure_report("rpc", b.table.rows, b.table.n);
        server_stop(&b.tls);
    }
    server_stop(&b.plain);
    return ok ? 0 : 1;
}
