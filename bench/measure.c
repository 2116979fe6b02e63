/* Keeps pairs of figures and prints them: the medians of both sides, and the median of the ratios with their range.
 *
 * The printed ratio is the median of the pairs' ratios, not the ratio of the two medians. A divisor that is not above 0
 * makes the ratio 0. A row without pairs has no figures: the table says "not measured", the JSON "runs":0.
 *
 * Rows belong to the caller and hold copies of their texts; nothing is allocated. The texts stand in the JSON as they
 * are, so the processor's name loses the characters that JSON would need escaped. The clocks may be read by any thread;
 * measure_random, which has a state, and the prints are for one thread.
 *
 * Read measure_report first, then ratios_of. */
#include "measure.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t measure_wall_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t measure_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

bool measure_pin(unsigned from_last)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return false;
    for (size_t c = CPU_SETSIZE; c-- > 0;) {
        if (!CPU_ISSET(c, &allowed) || from_last-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(c, &one);
        return sched_setaffinity(0, sizeof(one), &one) == 0;
    }
    return false;
}

uint64_t measure_random(void)
{
    static uint64_t state;
    if (!state)
        state = measure_wall_ns() * 0x9e3779b97f4a7c15u + (uint64_t)getpid();
    uint64_t z = state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void measure_init(struct measure_row *row, const char *unit, const char *peer_name, double target, const char *fmt, ...)
{
    va_list args;
    memset(row, 0, sizeof(*row));
    va_start(args, fmt);
    vsnprintf(row->what, sizeof(row->what), fmt, args);
    va_end(args);
    snprintf(row->unit, sizeof(row->unit), "%s", unit);
    snprintf(row->peer_name, sizeof(row->peer_name), "%s", peer_name);
    row->target = target;
}

void measure_add(struct measure_row *row, double ours, double peer)
{
    if (row->n == MEASURE_PAIRS_MAX)
        return;
    row->ours[row->n] = ours;
    row->peer[row->n++] = peer;
}

static int by_value(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

double measure_median(const double *values, size_t n)
{
    double sorted[MEASURE_PAIRS_MAX];
    if (n == 0 || n > MEASURE_PAIRS_MAX)
        return 0;
    memcpy(sorted, values, n * sizeof(*values));
    qsort(sorted, n, sizeof(*sorted), by_value);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* Sets the median, the least and the greatest of the pairs' ratios; all are 0 if the row has no pairs. */
static void ratios_of(const struct measure_row *row, double *median, double *least, double *most)
{
    double ratios[MEASURE_PAIRS_MAX];
    *least = *most = 0;
    for (size_t i = 0; i < row->n; i++) {
        double less = row->rate ? row->peer[i] : row->ours[i], more = row->rate ? row->ours[i] : row->peer[i];
        ratios[i] = less > 0 ? more / less : 0;
        *least = i == 0 || ratios[i] < *least ? ratios[i] : *least;
        *most = ratios[i] > *most ? ratios[i] : *most;
    }
    *median = measure_median(ratios, row->n);
}

/* Writes the processor's name as the system tells it, or "unknown processor", with ' instead of " and \. */
static void processor(char *out, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(out, size, "unknown processor");
    while (f && fgets(line, sizeof(line), f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
        break;
    }
    if (f)
        fclose(f);
    for (char *p = out; *p; p++)
        if (*p == '"' || *p == '\\')
            *p = '\'';
}

/* `load`: the average of the last minute; 0 if the system does not tell. */
static void describe_machine(char *cpu, size_t size, struct utsname *system, double *load)
{
    *load = 0;
    processor(cpu, size);
    uname(system);
    getloadavg(load, 1);
}

void measure_print_machine(const char *title)
{
    char cpu[200];
    struct utsname system;
    double load;
    describe_machine(cpu, sizeof(cpu), &system, &load);
    printf("\n%s\n%s, %ld cores, L2 %ld KiB, %s %s, %s, load %.1f\n\n", title, cpu, sysconf(_SC_NPROCESSORS_ONLN),
           sysconf(_SC_LEVEL2_CACHE_SIZE) / 1024, system.sysname, system.release, __VERSION__, load);
}

void measure_begin_json(const char *title)
{
    char cpu[200];
    struct utsname system;
    double load;
    describe_machine(cpu, sizeof(cpu), &system, &load);
    printf("\n{\"bench\":\"%s\",\"machine\":{\"processor\":\"%s\",\"cores\":%ld,\"l2_kib\":%ld,\"kernel\":\"%s %s\","
           "\"compiler\":\"%s\",\"load\":%.2f},\"rows\":[",
           title, cpu, sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_LEVEL2_CACHE_SIZE) / 1024, system.sysname,
           system.release, __VERSION__, load);
}

/* Formats a value with two decimals below 100, one below 1,000, else none. */
static const char *figure(char *out, size_t size, double v)
{
    snprintf(out, size, "%.*f", v >= 1000 ? 0 : v >= 100 ? 1 : 2, v);
    return out;
}

static void print_row(const struct measure_row *r)
{
    char ours[32], peer[32];
    double median, least, most;
    if (r->n == 0) {
        printf("| %s | not measured | | | |\n", r->what);
        return;
    }
    printf("| %s | %s %s |", r->what, figure(ours, sizeof(ours), measure_median(r->ours, r->n)), r->unit);
    if (!*r->peer_name) {
        printf(" | | |\n");
        return;
    }
    ratios_of(r, &median, &least, &most);
    printf(" %s (%s) | %.2f (%.2f-%.2f) |", figure(peer, sizeof(peer), measure_median(r->peer, r->n)), r->peer_name,
           median, least, most);
    if (r->target > 0)
        printf(" %.3g %s", r->target, median >= r->target ? "met" : "**missed**");
    printf(" |\n");
}

static void print_json_row(const struct measure_row *r)
{
    double median, least, most;
    if (r->n == 0) {
        printf("{\"what\":\"%s\",\"runs\":0}", r->what);
        return;
    }
    printf("{\"what\":\"%s\",\"unit\":\"%s\",\"torc\":%.6g", r->what, r->unit, measure_median(r->ours, r->n));
    if (*r->peer_name) {
        ratios_of(r, &median, &least, &most);
        printf(",\"peer\":%.6g,\"peer_name\":\"%s\",\"ratio\":%.4g,\"least\":%.4g,\"most\":%.4g",
               measure_median(r->peer, r->n), r->peer_name, median, least, most);
        if (r->target > 0)
            printf(",\"target\":%.4g,\"met\":%s", r->target, median >= r->target ? "true" : "false");
    }
    printf(",\"runs\":%zu}", r->n);
}

void measure_report(const char *title, const struct measure_row *rows, size_t n)
{
    measure_print_machine(title);
    printf("| what | Torc | peer | ratio (range) | target |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < n; i++)
        print_row(&rows[i]);
    measure_begin_json(title);
    for (size_t i = 0; i < n; i++) {
        printf("%s", i ? "," : "");
        print_json_row(&rows[i]);
    }
    printf("]}\n");
    fflush(stdout);
}
