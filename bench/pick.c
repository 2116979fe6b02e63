/* bench/pick: the cost of a pick through an xDS channel, as a whole and by parts; and of picks by other policies and
 * searches in other tables (`parts` lists all). With 10, 1,000 and 10,000 READY endpoints and random keys. A part's
 * figure is the difference between two levels (pick.h): in CPU time, the median of several runs, and in instructions if
 * valgrind is there (pick_count.c). Each run measures all levels in turn. */
#include "pick.h"

#include <stdio.h>
#include <string.h>

#include "measure.h"

enum { PICKS = 50000, RUNS = 11, SIZES = 3 };

static const size_t sizes[SIZES] = {10, 1000, 10000};

/* A part: the difference between the levels `with` and `without`. */
static const struct {
    const char *what;
    enum pick_level with, without;
} parts[] = {
    {"the ring: search", PICK_SEARCH, PICK_LOOP},
    {"ring_hash and pick_first: the endpoint's state, its subchannel", PICK_RING_HASH, PICK_SEARCH},
    {"priority", PICK_PRIORITY, PICK_RING_HASH},
    {"cluster_impl: EDS drops, circuit breaking", PICK_CLUSTER, PICK_PRIORITY},
    {"load report: counts by locality", PICK_LOADS, PICK_CLUSTER},
    {"cluster_manager", PICK_MANAGER, PICK_LOADS},
    {"config selector: the fourth of four routes, hash of a header, timeout", PICK_SELECTED, PICK_MANAGER},
    {"fault filter that looks for headers", PICK_FILTERED, PICK_SELECTED},
    {"whole pick", PICK_FILTERED, PICK_LOOP},
    {"outlier_detection, where it is configured, besides", PICK_OUTLIERS, PICK_MANAGER},
    {"weighted_round_robin and pick_first, with the report at the RPC's end", PICK_WEIGHTED, PICK_LOOP},
    {"least_request and pick_first, two choices, with the RPC's end", PICK_LEAST, PICK_LOOP},
    {"least_request and pick_first, all endpoints, with the RPC's end", PICK_SCAN, PICK_LOOP},
    {"Maglev's table instead of the ring: search", PICK_SLOT, PICK_LOOP},
    {"peer: search in a sorted vector, as C-core's ring", PICK_PEER, PICK_LOOP},
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

struct figures {
    double ns[PARTS][SIZES];                 /* of a part, for a pick */
    double instructions[SIZES][PICK_LEVELS]; /* of a level, for a pick; only if `counted` */
    bool counted;
};

/* Sets f->ns[...][size]. size: an index of `sizes`. */
static void measure(struct figures *f, size_t size)
{
    static double ns[PICK_LEVELS][RUNS];
    struct pick_world *w = pick_world_new(sizes[size]);
    for (int run = -1; run < RUNS; run++) /* the first run is not counted */
        for (int level = 0; level < PICK_LEVELS; level++) {
            pick_run(w, (enum pick_level)level, PICKS / 10); /* warms the caches for this level */
            uint64_t began = measure_cpu_ns();
            pick_run(w, (enum pick_level)level, PICKS);
            if (run >= 0)
                ns[level][run] = (double)(measure_cpu_ns() - began) / PICKS;
        }
    for (size_t p = 0; p < PARTS; p++) {
        double difference[RUNS];
        for (int run = 0; run < RUNS; run++)
            difference[run] = ns[parts[p].with][run] - ns[parts[p].without][run];
        f->ns[p][size] = measure_median(difference, RUNS);
    }
    pick_world_free(w);
}

/* Returns the instructions of a part for a pick. A value that rounds to zero becomes zero, so that it is printed
 * without a sign. */
static double instructions(const struct figures *f, size_t part, size_t size)
{
    double n = f->instructions[size][parts[part].with] - f->instructions[size][parts[part].without];
    return n > -0.5 && n < 0.5 ? 0 : n;
}

static void report(const struct figures *f)
{
    measure_print_machine("pick");
    printf("| what | 10 endpoints | 1,000 | 10,000 |\n|---|---|---|---|\n");
    for (size_t p = 0; p < PARTS; p++) {
        bool whole = parts[p].with == PICK_FILTERED && parts[p].without == PICK_LOOP;
        printf(whole ? "| **%s** |" : "| %s |", parts[p].what);
        for (size_t s = 0; s < SIZES; s++) {
            printf(" %.1f ns", f->ns[p][s]);
            if (f->counted)
                printf(", %.0f instructions", instructions(f, p, s));
            printf(" |");
        }
        printf("\n");
    }
    printf("\ngrpc-go's and C-core's pickers cannot be called: both keep their xDS policies internal.\n");
    measure_begin_json("pick");
    for (size_t p = 0; p < PARTS; p++)
        for (size_t s = 0; s < SIZES; s++) {
            printf("%s{\"what\":\"%s\",\"endpoints\":%zu,\"unit\":\"ns\",\"torc\":%.2f", p + s ? "," : "",
                   parts[p].what, sizes[s], f->ns[p][s]);
            if (f->counted)
                printf(",\"instructions\":%.1f", instructions(f, p, s));
            printf("}");
        }
    printf("]}\n");
}

int main(int argc, char **argv)
{
    static struct figures f;
    if (argc == 2 && strcmp(argv[1], "counted") == 0)
        return pick_counted(sizes, SIZES);
    measure_pin(0);
    for (size_t s = 0; s < SIZES; s++)
        measure(&f, s);
    f.counted = pick_count(SIZES, f.instructions);
    report(&f);
    return 0;
}
