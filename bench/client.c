#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "measure.h"

enum { LATENCIES_MAX = 4000000 };

void (*client_hook)(const struct client *c, bool over);

static uint64_t process_cpu_ns(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * 1000000000u +
           ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000u;
}

bool client_init(struct client *c, int argc, char **argv)
{
    *c = (struct client){0};
    char *end_of_outstanding = NULL, *end_of_seconds = NULL;
    unsigned long outstanding = argc == 5 ? strtoul(argv[3], &end_of_outstanding, 10) : 0;
    double seconds = argc == 5 ? strtod(argv[4], &end_of_seconds) : 0;
    if (argc != 5 || *end_of_outstanding || *end_of_seconds || outstanding < 1 || outstanding > 10000 ||
        !(seconds > 0 && seconds < 1000)) {
        fprintf(stderr, "usage: %s HOST PORT OUTSTANDING SECONDS\n", argv[0]);
        return false;
    }
    c->latencies_ns = malloc(LATENCIES_MAX * sizeof(*c->latencies_ns));
    if (!c->latencies_ns)
        return false;
    c->host = argv[1];
    c->port = argv[2];
    c->outstanding = (unsigned)outstanding;
    measure_pin(0);
    uint64_t now = measure_wall_ns();
    c->begin_ns = now + (uint64_t)(seconds * 1e8);
    c->end_ns = c->begin_ns + (uint64_t)(seconds * 1e9);
    return true;
}

uint64_t client_done(struct client *c, uint64_t started_ns)
{
    uint64_t now = measure_wall_ns();
    if (!c->counting) {
        if (now < c->begin_ns)
            return now;
        c->counting = true;
        c->begin_ns = now;
        c->first_cpu_ns = process_cpu_ns();
        if (client_hook)
            client_hook(c, false);
        return now;
    }
    c->rpcs++;
    if (c->n_latencies < LATENCIES_MAX)
        c->latencies_ns[c->n_latencies++] = (uint32_t)(now - started_ns);
    return now;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int client_report(struct client *c)
{
    double seconds = (double)(measure_wall_ns() - c->begin_ns) / 1e9;
    double cpu = (double)(process_cpu_ns() - c->first_cpu_ns) / 1e9;
    if (client_hook)
        client_hook(c, true);
    qsort(c->latencies_ns, c->n_latencies, sizeof(*c->latencies_ns), by_value);
    double p50 = c->n_latencies ? c->latencies_ns[c->n_latencies / 2] / 1e3 : 0;
    printf("%llu %.6f %.6f %.2f\n", (unsigned long long)c->rpcs, seconds, cpu, p50);
    free(c->latencies_ns);
    return c->rpcs ? 0 : 1;
}
