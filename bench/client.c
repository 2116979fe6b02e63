/* The code that bench/rpc's clients share: arguments, the measured period, the latencies, and the line of results. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "measure.h"

enum {
    LATENCIES_MAX = 4000000,
    PAYLOAD = 64, /* bytes of a message if no argument says how many */
    PAYLOAD_MAX = 4000000
};

void (*client_hook)(const struct client *c, bool over);

static uint64_t process_cpu_ns(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * 1000000000u +
           ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000u;
}

static bool read_kind(struct client *c, const char *name)
{
    static const char *const names[] = {[CLIENT_UNARY] = "unary", [CLIENT_BIDI] = "bidi", [CLIENT_REPEAT] = "repeat"};
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        if (strcmp(name, names[k]) != 0)
            continue;
        c->kind = (enum client_kind)k;
        return k != CLIENT_REPEAT || c->outstanding == 1;
    }
    return false;
}

static bool read_number(const char *text, unsigned long least, unsigned long most, unsigned long *number)
{
    char *end;
    *number = strtoul(text, &end, 10);
    return *text && !*end && *number >= least && *number <= most;
}

/* Parses AMOUNT: seconds, above 0 and below 1000; or, if an x follows, a number of RPCs from 1 to 10^9, which becomes
 * c->limit. Returns false for any other text. */
static bool read_amount(struct client *c, const char *text, double *seconds)
{
    char *end;
    *seconds = strtod(text, &end);
    if (strcmp(end, "x") == 0 && *seconds >= 1 && *seconds <= 1e9)
        c->limit = (uint64_t)*seconds;
    return c->limit > 0 || (!*end && *seconds > 0 && *seconds < 1000);
}

static bool read_arguments(struct client *c, int argc, char **argv, double *seconds)
{
    unsigned long outstanding, bytes = PAYLOAD;
    if (argc < 5 || argc > 8 || !read_number(argv[3], 1, 10000, &outstanding) || !read_amount(c, argv[4], seconds))
        return false;
    c->host = argv[1];
    c->port = argv[2];
    c->outstanding = (unsigned)outstanding;
    c->roots = argc > 7 ? argv[7] : NULL;
    if ((argc > 5 && !read_kind(c, argv[5])) || (argc > 6 && !read_number(argv[6], 1, PAYLOAD_MAX, &bytes)))
        return false;
    c->payload_size = bytes;
    return true;
}

static void begin(struct client *c, uint64_t now)
{
    c->counting = true;
    c->begin_ns = now;
    c->first_cpu_ns = process_cpu_ns();
    if (client_hook)
        client_hook(c, false);
}

bool client_init(struct client *c, int argc, char **argv)
{
    *c = (struct client){0};
    double seconds;
    if (!read_arguments(c, argc, argv, &seconds)) {
        fprintf(stderr, "usage: %s HOST PORT OUTSTANDING SECONDS|NUMBERx [unary|bidi|repeat [BYTES [ROOTS]]]\n",
                argv[0]);
        return false;
    }
    c->latencies_ns = malloc(LATENCIES_MAX * sizeof(*c->latencies_ns));
    char *payload = malloc(c->payload_size);
    if (!c->latencies_ns || !payload)
        return false;
    for (size_t i = 0; i < c->payload_size; i++)
        payload[i] = (char)measure_random();
    c->payload = payload;
    measure_pin(0);
    uint64_t now = measure_wall_ns();
    c->begin_ns = now + (uint64_t)(seconds * 1e8);
    c->end_ns = c->begin_ns + (uint64_t)(seconds * 1e9);
    if (c->limit)
        begin(c, now);
    return true;
}

uint64_t client_done(struct client *c, uint64_t started_ns)
{
    uint64_t now = measure_wall_ns();
    if (!c->counting) {
        if (now >= c->begin_ns)
            begin(c, now);
        return now;
    }
    c->rpcs++;
    uint64_t latency_ns = now - started_ns;
    if (c->n_latencies < LATENCIES_MAX)
        c->latencies_ns[c->n_latencies++] = latency_ns < UINT32_MAX ? (uint32_t)latency_ns : UINT32_MAX;
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
    if (c->rpcs) {
        qsort(c->latencies_ns, c->n_latencies, sizeof(*c->latencies_ns), by_value);
        double p50 = c->latencies_ns[c->n_latencies / 2] / 1e3;
        printf("%llu %.6f %.6f %.2f\n", (unsigned long long)c->rpcs, seconds, cpu, p50);
    }
    free(c->latencies_ns);
    free((char *)c->payload);
    return c->rpcs ? 0 : 1;
}
