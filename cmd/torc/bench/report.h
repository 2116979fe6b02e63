/* The figures of a load as rows, and the forms of --report that show the rows. Nothing here measures. */
#ifndef TORC_BENCH_REPORT_H
#define TORC_BENCH_REPORT_H

#include "bench/bench.h"

enum { BENCH_QUANTILES = 6 };

/* `name` is for JSON and CSV ("p999"), `title` for people ("p99.9"). */
extern const struct bench_quantile {
    const char *name, *title;
    double q;
} bench_quantiles[BENCH_QUANTILES];

/* The kinds of rows, in the order of bench_rows.list. */
enum bench_scope { BENCH_ALL, BENCH_STAGE, BENCH_BACKEND, BENCH_LOCALITY, BENCH_SCOPES };

/* Texts and counts are borrowed, from the bench or from bench_rows. */
struct bench_row {
    const char *name;     /* of a stage its load as --stage takes it; "": all RPCs, or those that reached no backend */
    const char *locality; /* of a backend; NULL: not known */
    const struct bench_counts *counts;
    double seconds;       /* how long a stage ran; else bench_seconds */
    uint64_t not_started; /* of all RPCs or of a stage; else 0 */
    unsigned stage;       /* counted from 1; 0: the row is not a stage's */
};

struct bench_rows {
    TC_VEC(struct bench_row) list;
    size_t first[BENCH_SCOPES + 1];     /* the rows of scope s are from first[s] to first[s + 1] - 1 */
    TC_VEC(char *) names;               /* of stages; owned */
    TC_VEC(struct bench_counts *) sums; /* of localities; owned */
};

/* --- rows.c --- */

extern const char *const bench_scope_names[BENCH_SCOPES];
/* Makes the rows, for bench_rows_fini. *rows must be zeroed before, and borrows from the bench. */
void bench_rows_collect(const struct bench *b, struct bench_rows *rows);
/* Returns the rows of a scope, *n of them. */
const struct bench_row *bench_rows_of(const struct bench_rows *rows, enum bench_scope scope, size_t *n);
/* Appends a name that no other row of the scope has: the row's name, for a stage with its number before. */
void bench_row_append_name(const struct bench_row *row, struct tc_buf *out);
void bench_rows_fini(struct bench_rows *rows);

/* Returns the seconds from the begin of the counted phase to the end of the last counted RPC. */
double bench_seconds(const struct bench *b);
/* Returns the row's RPCs a second; 0 if it has no seconds. */
double bench_rate(const struct bench_row *row);
/* Returns how many RPCs ended with OK. Every other RPC is an error. */
uint64_t bench_ok(const struct bench_counts *c);
/* Returns how many percent of the counted RPCs `part` is; 0 if there are none. */
double bench_percent(const struct bench *b, uint64_t part);
/* Returns the received messages as if each were an RPC that ended with OK. The histogram is borrowed. */
struct bench_counts bench_messages(const struct bench *b);

/* --- csv.c, prometheus.c, html.c --- */

/* Appends rows as CSV (RFC 4180), latencies in microseconds. The columns are a contract. */
void bench_append_csv(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out);
/* Appends metrics in the text format of Prometheus, times in seconds. Their names and labels are a contract. */
void bench_append_prometheus(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out);
/* Appends an HTML page that fetches nothing and has no script. */
void bench_append_html(const struct bench *b, const struct bench_rows *rows, struct tc_buf *out);

#endif
