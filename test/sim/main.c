/* sim: runs seeds of the deterministic world (docs/internals/simulation.md).
 *
 *     sim --seed N [--steps K] [--skip 3,7-9] [--without a,b] [--trace|--detail]    one run, in this process
 *     sim --count M [--from N | --fresh] [--seconds S] [--jobs J] [--steps K]
 *         [--digests] [--report] [--no-shortening]                              a search: a process for each seed
 *     sim --corpus FILE [--jobs J]                                              the runs of a corpus
 *     sim --guided FILE --seconds S [--from N | --fresh] [--jobs J]             a search that adds to a corpus
 *
 * --fresh makes the first seed from the time. A search ends after M seeds or S seconds, of which at least one is given,
 * or after the last run of its corpus. It stops at the first run with a violation (or a crash), makes the run shorter
 * (search.c), and prints the command that replays it. Exit 1 after a violation, 2 for wrong usage; search.h has the
 * other statuses. Defaults: 600 steps, --from 1, --jobs 1. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/search.h"
#include "sim/trace.h"
#include "sim/workload.h"

static void usage(void)
{
    fprintf(stderr, "usage: sim --seed N [--steps K] [--skip LIST] [--without FEATURES] [--trace | --detail]\n"
                    "       sim --count M [--from N | --fresh] [--seconds S] [--jobs J] [--steps K] [--digests]\n"
                    "           [--report] [--no-shortening]\n"
                    "       sim --corpus FILE [--jobs J]\n"
                    "       sim --guided FILE --seconds S [--from N | --fresh] [--jobs J]\n");
    exit(2);
}

static void parse_skip(struct sim_run *run, const char *list)
{
    while (*list) {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (; first <= last && first < SIM_MAX_STEPS; first++)
            run->skip[first] = true;
        if (end == list || (*end && *end != ','))
            usage();
        list = *end ? end + 1 : end;
    }
}

static int run_one(const struct sim_run *run, enum sim_trace_level level)
{
    sim_trace_begin(level);
    sim_workload_run(run);
    const char *found = sim_first_violation();
    printf("seed %llu: %016llx, %llu calls%s%s\n", (unsigned long long)run->seed,
           (unsigned long long)sim_trace_digest(), (unsigned long long)sim_counts[SIM_COUNT_CALLS],
           found ? ", VIOLATION: " : "", found ? found : "");
    return found ? 1 : 0;
}

struct given {
    struct sim_search search;
    enum sim_trace_level level;
    bool one; /* a seed was given */
};

/* Returns false for an option that is not known. */
static bool parse_option(struct given *o, int option)
{
    struct sim_run *run = &o->search.run;
    uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;
    if (option == 's') {
        run->seed = number;
        o->one = true;
    } else if (option == 'k') {
        run->steps = (unsigned)number;
    } else if (option == 'x') {
        parse_skip(run, optarg);
    } else if (option == 'w') {
        if (!sim_features_parse(optarg, &run->without))
            usage();
    } else if (option == 't' || option == 'd') {
        o->level = option == 't' ? SIM_TRACE_STORY : SIM_TRACE_DETAIL;
    } else if (option == 'c') {
        o->search.count = number;
    } else if (option == 'f') {
        o->search.from = number;
    } else if (option == 'F') {
        o->search.from = (uint64_t)time(NULL) * 1000;
    } else if (option == 'S') {
        o->search.seconds = (unsigned)number;
    } else if (option == 'j') {
        o->search.jobs = (unsigned)number;
    } else if (option == 'N') {
        o->search.shortening = false;
    } else if (option == 'D') {
        o->search.digests = true;
    } else if (option == 'R') {
        o->search.report = true;
    } else if (option == 'C' || option == 'G') {
        o->search.corpus = optarg;
        o->search.guided = option == 'G';
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", 1, 0, 's'},    {"steps", 1, 0, 'k'},  {"skip", 1, 0, 'x'},    {"without", 1, 0, 'w'},
        {"trace", 0, 0, 't'},   {"detail", 0, 0, 'd'}, {"count", 1, 0, 'c'},   {"from", 1, 0, 'f'},
        {"seconds", 1, 0, 'S'}, {"jobs", 1, 0, 'j'},   {"digests", 0, 0, 'D'}, {"no-shortening", 0, 0, 'N'},
        {"fresh", 0, 0, 'F'},   {"report", 0, 0, 'R'}, {"corpus", 1, 0, 'C'},  {"guided", 1, 0, 'G'},
        {0, 0, 0, 0},
    };
    struct given o = {.search = {.run = {.steps = 600}, .from = 1, .jobs = 1, .shortening = true}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        if (!parse_option(&o, c))
            usage();
    const struct sim_search *search = &o.search;
    bool ends = o.one || search->count > 0 || search->seconds > 0 || (search->corpus && !search->guided);
    if (search->run.steps > SIM_MAX_STEPS || optind < argc || !ends)
        usage();
    return o.one ? run_one(&search->run, o.level) : sim_search(search);
}
