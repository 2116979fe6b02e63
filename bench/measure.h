/* What the benchmarks share: pairs of figures taken in turns, their ratios, the machine, a table and JSON.
 *
 * A row is one thing that both sides do. The sides run in turns, and the ratio is taken pair by pair, so that what the
 * machine does meanwhile meets both; the median of the ratios is the result, their range says how much to trust it. */
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
    char peer_name[32]; /* empty: there is no peer, Torc's figure stands alone */
    bool rate;          /* a rate, of which more is better; measure_init sets false */
    double target;      /* of the ratio, at least; 0: none */
    size_t n;           /* pairs taken */
    double ours[MEASURE_PAIRS_MAX], peer[MEASURE_PAIRS_MAX];
};

/* Nanoseconds of the monotonic clock, and of this thread's processor time: the latter does not count what other
 * programs take. */
uint64_t measure_wall_ns(void);
uint64_t measure_cpu_ns(void);
/* Binds the calling thread to a core, counted from the last; false when that is not allowed. */
bool measure_pin(unsigned from_last);

/* Numbers that are new in every run and every repetition. */
uint64_t measure_random(void);

void measure_init(struct measure_row *row, const char *unit, const char *peer_name, double target, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* One pair (peer is not looked at when there is none); more than MEASURE_PAIRS_MAX are dropped. */
void measure_add(struct measure_row *row, double ours, double peer);
double measure_median(const double *values, size_t n);

/* Parts of a report on standard output, for programs that are not about pairs: the title and the machine as two lines,
 * and the beginning of the JSON line up to the opened list of rows (close it with "]}" and the end of the line). What
 * begins a line with {"bench": is collected by run.py, which takes it for one of JSON. */
void measure_print_machine(const char *title);
void measure_begin_json(const char *title);

/* The report on standard output: the machine, the rows as a table in Markdown, then one line of JSON. The ratio is
 * peer/ours for times and costs, ours/peer for rates; greater is better for us. A row that has a target says whether
 * the median of its ratios met it. */
void measure_report(const char *title, const struct measure_row *rows, size_t n);

#ifdef __cplusplus
}
#endif
#endif
