/* The figures of a load as rows, and the files of --report that are made of them. Nothing here measures. */
#ifndef TORC_BENCH_REPORT_H
#define TORC_BENCH_REPORT_H

#include "bench/bench.h"

enum { BENCH_QUANTILES = 6 };

extern const struct bench_quantile {
    const char *name, *title;
    double q;
} bench_quantiles[BENCH_QUANTILES];

/* The kinds of rows, in their order. */
enum bench_scope { BENCH_ALL, BENCH_STAGE, BENCH_BACKEND, BENCH_LOCALITY, BENCH_SCOPES };

struct bench_row {
    const char *name;     /* of a stage its load, as --stage takes it; of a backend "": none was reached */
    const char *locality; /* of a backend; NULL: not known */
    const struct bench_counts *counts;
    double seconds; /* of the load that the RPCs belong to */
    uint64_t not_started;
    unsigned stage; /* counted from 1; 0: the row is not a stage's */
};

struct bench_rows {
    TC_VEC(struct bench_row) list;
    size_t first[BENCH_SCOPES + 1];     /* the rows of scope s are from first[s] to first[s + 1] - 1 */
    TC_VEC(char *) names;               /* of stages; owned */
    TC_VEC(struct bench_counts *) sums; /* of localities; owned */
};

/* --- rows.c --- */

extern const char *const bench_scope_names[BENCH_SCOPES];
/* Makes the rows. *rows must be zeroed before, and borrows from the bench. */
void bench_rows_collect(const struct bench *b, struct bench_rows *rows);
/* Returns the rows of a scope, *n of them. */
const struct bench_row *bench_rows_of(const struct bench_rows *rows, enum bench_scope scope, size_t *n);
/* Appends a name that no other row of the scope has: for a stage its number comes first. */
void bench_row_append_name(const struct bench_row *row, struct tc_buf *out);
void bench_rows_fini(struct bench_rows *rows);

/* Returns the seconds from the begin of the counted phase to the end of the last counted RPC. */
double bench_seconds(const struct bench *b);
/* Returns RPCs a second. */
double bench_rate(const struct bench_row *row);
/* Returns how many RPCs ended with OK. */
uint64_t bench_ok(const struct bench_counts *c);
/* Returns a part of the RPCs in percent. */
double bench_percent(const struct bench *b, uint64_t part);
/* Returns the messages received as if each were an RPC. The histogram is borrowed. */
struct bench_counts bench_messages(const struct bench *b);

/* --- csv.c, prometheus.c, html.c --- */

/* Appends rows as CSV (RFC 4180), latencies in microseconds. The columns are a contract. */
void bench_append_csv(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out);
/* Appends metrics in the text format of Prometheus, times in seconds. Their names and labels are a contract. */
void bench_append_prometheus(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out);
/* Appends a page that needs nothing but itself and has no script. */
void bench_append_html(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out);

#endif
