/* The kit of the benchmarks: pairs of measurements, their ratios, a description of the machine, a table and JSON.
 *
 * A row is one thing that both sides do. A benchmark runs the sides alternately and adds each pair to the row, so that
 * other load on the machine meets both sides. The result is the median of the pairs' ratios; the range of the ratios
 * shows how far to trust it. */
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
    char what[96];      /* what both sides do */
    char unit[16];      /* ns, us, ms, bytes, MB/s, ... */
    char peer_name[32]; /* empty: Torc's figure stands alone, without a peer */
    bool rate;          /* true: more is better; false, as measure_init sets it: less is better */
    double target;      /* the least ratio to reach; 0: no target */
    size_t n;           /* number of pairs */
    double ours[MEASURE_PAIRS_MAX], peer[MEASURE_PAIRS_MAX]; /* in `unit` */
};

/* measure_wall_ns: the monotonic clock. measure_cpu_ns: the CPU time of the calling thread alone. Any thread. */
uint64_t measure_wall_ns(void);
uint64_t measure_cpu_ns(void);
/* Pins the calling thread to one of the cores that it may use, counted from the last one: 0 is the last. Returns false
 * if the thread may not use so many cores, or if the system refuses. */
bool measure_pin(unsigned from_last);

/* Returns a random number. Each run has other numbers. One thread at a time. */
uint64_t measure_random(void);

/* Sets a row without pairs. peer_name and target as in the struct; the format makes `what`. Texts are copied, and cut
 * if they are too long. The JSON has the texts as they are, so they must not contain " or \. */
void measure_init(struct measure_row *row, const char *unit, const char *peer_name, double target, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Adds one pair; `peer` is ignored if the row has no peer. Pairs beyond MEASURE_PAIRS_MAX are dropped. */
void measure_add(struct measure_row *row, double ours, double peer);
/* Returns the median; 0 if n is 0 or above MEASURE_PAIRS_MAX. */
double measure_median(const double *values, size_t n);

/* Parts of a report on standard output, for tables of another form. measure_print_machine prints the title and the
 * machine in two lines, with an empty line before and after them. measure_begin_json prints the JSON line up to the
 * open list of rows; the caller closes the list with "]}" and a newline. run.py collects the lines that begin with
 * {"bench":. */
void measure_print_machine(const char *title);
void measure_begin_json(const char *title);

/* Prints the report: the machine, the rows as a Markdown table, then one line of JSON. The ratio is peer/ours for times
 * and costs, and ours/peer for rates: greater is better for Torc. A row with a peer and a target says whether the
 * median ratio met the target. */
void measure_report(const char *title, const struct measure_row *rows, size_t n);

#ifdef __cplusplus
}
#endif
#endif
