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

static void ratios_of(const struct measure_row *row, double *median, double *least, double *most)
{
    double ratios[MEASURE_PAIRS_MAX];
    *least = *most = 0;
    for (size_t i = 0; i < row->n; i++) {
        ratios[i] = row->ours[i] > 0 ? row->peer[i] / row->ours[i] : 0;
        *least = i == 0 || ratios[i] < *least ? ratios[i] : *least;
        *most = ratios[i] > *most ? ratios[i] : *most;
    }
    *median = measure_median(ratios, row->n);
}

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
        snprintf(out, size, "%s", colon + 2);
        break;
    }
    if (f)
        fclose(f);
    for (char *p = out; *p; p++)
        if (*p == '"' || *p == '\\')
            *p = '\'';
}

void measure_print_machine(const char *title)
{
    char cpu[200];
    struct utsname system;
    double load[1] = {0};
    processor(cpu, sizeof(cpu));
    uname(&system);
    getloadavg(load, 1);
    printf("\n%s\n%s, %ld cores, L2 %ld KiB, %s %s, %s, load %.1f\n", title, cpu, sysconf(_SC_NPROCESSORS_ONLN),
           sysconf(_SC_LEVEL2_CACHE_SIZE) / 1024, system.sysname, system.release, __VERSION__, load[0]);
}

void measure_begin_json(const char *title)
{
    char cpu[200];
    struct utsname system;
    double load[1] = {0};
    processor(cpu, sizeof(cpu));
    uname(&system);
    getloadavg(load, 1);
    printf(
        "{\"bench\":\"%s\",\"machine\":{\"processor\":\"%s\",\"cores\":%ld,\"kernel\":\"%s\",\"load\":%.2f},\"rows\":[",
        title, cpu, sysconf(_SC_NPROCESSORS_ONLN), system.release, load[0]);
}

void measure_report(const char *title, const struct measure_row *rows, size_t n)
{
    measure_print_machine(title);
    printf("%-52s %10s %10s  %-6s %-18s %6s  %-15s %s\n", "", "torc", "peer", "unit", "peer's name", "ratio", "range",
           "target");
    for (size_t i = 0; i < n; i++) {
        const struct measure_row *r = &rows[i];
        double median, least, most;
        char range[48], target[48] = "";
        ratios_of(r, &median, &least, &most);
        snprintf(range, sizeof(range), "%.2f-%.2f (%zu)", least, most, r->n);
        if (r->target > 0)
            snprintf(target, sizeof(target), "%.2f %s", r->target, median >= r->target ? "met" : "MISSED");
        printf("%-52s %10.2f %10.2f  %-6s %-18s %6.2f  %-15s %s\n", r->what, measure_median(r->ours, r->n),
               measure_median(r->peer, r->n), r->unit, r->peer_name, median, range, target);
    }
    measure_begin_json(title);
    for (size_t i = 0; i < n; i++) {
        const struct measure_row *r = &rows[i];
        double median, least, most;
        ratios_of(r, &median, &least, &most);
        printf("%s{\"what\":\"%s\",\"unit\":\"%s\",\"torc\":%.4g,\"peer\":%.4g,\"peer_name\":\"%s\",\"ratio\":%.4g,"
               "\"least\":%.4g,\"most\":%.4g,\"pairs\":%zu,\"target\":%.4g}",
               i ? "," : "", r->what, r->unit, measure_median(r->ours, r->n), measure_median(r->peer, r->n),
               r->peer_name, median, least, most, r->n, r->target);
    }
    printf("]}\n");
    fflush(stdout);
}
