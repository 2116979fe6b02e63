/* The kit of the benchmarks: pairs of measurements, their ratios, a description of the machine, a table and JSON.
 *
 * A row is one thing that both sides do. The sides run alternately and the ratio is taken pair by pair, so that other
 * load on the machine meets both. The result is the median of the ratios; their range shows how far to trust it. */
#ifndef TORC_BENCH_MEASURE_H
#define TORC_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEASURE_PAIRS_MAX 64

struct measure_row {
    char what[96];
    char unit[16];      /* ns, us, ms, bytes, ...: less is better; MB/s, ...: a rate */
    char peer_name[32]; /* empty: Torc's figure stands alone, without a peer */
    bool rate;          /* a rate: more is better. measure_init sets false */
    double target;      /* the least ratio to reach; 0: no target */
    size_t n;           /* number of pairs */
    double ours[MEASURE_PAIRS_MAX], peer[MEASURE_PAIRS_MAX];
};

/* measure_wall_ns: the monotonic clock. measure_cpu_ns: this thread's CPU time, which excludes other programs. */
uint64_t measure_wall_ns(void);
uint64_t measure_cpu_ns(void);
/* Pins the calling thread to one of the cores that it may use, counted from the last one: 0 is the last. Returns false
 * if there are not so many, or the system refuses. */
bool measure_pin(unsigned from_last);

/* A random number, different in every run. */
uint64_t measure_random(void);

void measure_init(struct measure_row *row, const char *unit, const char *peer_name, double target, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Adds one pair; `peer` is ignored if the row has no peer. Pairs beyond MEASURE_PAIRS_MAX are dropped. */
void measure_add(struct measure_row *row, double ours, double peer);
double measure_median(const double *values, size_t n); /* n is at most MEASURE_PAIRS_MAX */

/* Parts of a report on standard output, for programs that do not measure pairs: the title and the machine in two lines,
 * and the beginning of the JSON line up to the open list of rows (close it with "]}" and a newline).
 * run.py collects the lines that begin with {"bench":. */
void measure_print_machine(const char *title);
void measure_begin_json(const char *title);

/* Prints the report: the machine, the rows as a Markdown table, then one line of JSON. The ratio is peer/ours for times
 * and costs, ours/peer for rates: greater is better for Torc. A row with a target says whether the median met it. */
void measure_report(const char *title, const struct measure_row *rows, size_t n);

#ifdef __cplusplus
}
#endif
#endif
