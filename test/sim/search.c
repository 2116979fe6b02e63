/* Searching and shortening.
 *
 * A seed runs in a child process: a run leaves its counts and its trace to the process, and a crash is a finding too. A
 * child leaves its finding in a slot of shared memory. Shortening tries, in this order: fewer steps at the end, steps
 * left out (halves, quarters, ..., single ones), features turned off; a shorter run counts when it breaks the same
 * rule. */
#include "sim/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/trace.h"

enum { MAX_JOBS = 64, SEED_SECONDS = 10, MAX_SHORTENINGS = 400, SIM_REPORT_LEAST = 1000 };

struct slot {
    pid_t pid;
    uint64_t seed, digest;
    uint64_t counts[SIM_COUNT_ALL];
    char violation[512];
};

static struct slot *slots;
static uint64_t totals[SIM_COUNT_ALL];

static void slot_run(struct slot *slot, const struct sim_run *run)
{
    slot->seed = run->seed;
    snprintf(slot->violation, sizeof(slot->violation), "crash: the process did not come to its end");
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) {
        perror("sim: fork");
        exit(2);
    }
    if (child != 0) {
        slot->pid = child;
        return;
    }
    /* Of processor time: a run that hangs turns its loop, and a seed takes a second at most, also under a sanitizer. */
    setrlimit(RLIMIT_CPU, &(struct rlimit){SEED_SECONDS, SEED_SECONDS});
    sim_trace_begin(SIM_TRACE_NONE);
    sim_workload_run(run);
    const char *found = sim_first_violation();
    snprintf(slot->violation, sizeof(slot->violation), "%s", found ? found : "");
    slot->digest = sim_trace_digest();
    memcpy(slot->counts, sim_counts, sizeof(sim_counts));
    exit(0); /* leaks are looked for at exit */
}

/* Waits for a child. Returns its slot; NULL: there is no child. */
static struct slot *slot_wait(unsigned jobs)
{
    int status;
    pid_t pid = wait(&status);
    for (unsigned i = 0; pid > 0 && i < jobs; i++) {
        if (slots[i].pid != pid)
            continue;
        slots[i].pid = 0;
        if (status != 0 && !slots[i].violation[0])
            snprintf(slots[i].violation, sizeof(slots[i].violation), "crash: exit status %d", status);
        return &slots[i];
    }
    return NULL;
}

/* --- shortening --- */

static bool fails_alike(const struct sim_run *run, const char *violation)
{
    size_t rule = strcspn(violation, ":");
    slot_run(&slots[0], run);
    struct slot *slot = slot_wait(1);
    return slot && strncmp(slot->violation, violation, rule + 1) == 0;
}

static bool try_without_steps(struct sim_run *run, unsigned first, unsigned n, const char *violation)
{
    struct sim_run shorter = *run;
    bool any = false;
    for (unsigned i = first; i < first + n && i < run->steps; i++) {
        any = any || !shorter.skip[i];
        shorter.skip[i] = true;
    }
    if (!any || !fails_alike(&shorter, violation))
        return false;
    *run = shorter;
    return true;
}

static void shorten(struct sim_run *run, const char *violation)
{
    unsigned tries = 0;
    for (unsigned steps = run->steps / 2; steps > 0; steps /= 2) {
        struct sim_run shorter = *run;
        while (shorter.steps > steps && tries++ < MAX_SHORTENINGS) {
            shorter.steps -= steps;
            if (!fails_alike(&shorter, violation))
                break;
            *run = shorter;
        }
    }
    for (unsigned n = run->steps / 2; n > 0; n /= 2)
        for (unsigned first = 0; first < run->steps && tries++ < MAX_SHORTENINGS; first += n)
            try_without_steps(run, first, n, violation);
    for (int f = 0; f < SIM_FEATURE_ALL; f++) {
        struct sim_run shorter = *run;
        shorter.without |= UINT64_C(1) << f;
        if (fails_alike(&shorter, violation))
            *run = shorter;
    }
}

static void print_replay(const struct sim_run *run)
{
    printf("replay: sim --seed %llu --steps %u", (unsigned long long)run->seed, run->steps);
    const char *before = " --skip ";
    for (unsigned i = 0; i < run->steps; i++) {
        unsigned last = i;
        if (!run->skip[i])
            continue;
        while (last + 1 < run->steps && run->skip[last + 1])
            last++;
        printf(last > i ? "%s%u-%u" : "%s%u", before, i, last);
        before = ",";
        i = last;
    }
    before = " --without ";
    for (int f = 0; f < SIM_FEATURE_ALL; f++)
        if ((run->without >> f) & 1) {
            printf("%s%s", before, sim_feature_names[f]);
            before = ",";
        }
    printf(" --trace\n");
}

/* --- searching --- */

static int search_failed(const struct sim_search *search, const struct slot *slot)
{
    struct sim_run run = search->run;
    char violation[sizeof(slot->violation)];
    memcpy(violation, slot->violation, sizeof(violation));
    run.seed = slot->seed;
    printf("seed %llu: VIOLATION: %s\n", (unsigned long long)run.seed, violation);
    while (slot_wait(search->jobs)) {
    }
    if (search->shortening) {
        printf("seed %llu: shortening\n", (unsigned long long)run.seed);
        shorten(&run, violation);
    }
    print_replay(&run);
    return 1;
}

/* CPU time of the children that have ended. */
static double children_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* Prints the table. Returns, with `report`, how many of its rows are below SIM_REPORT_LEAST; else 0. */
static unsigned print_counts(uint64_t seeds, double seconds, bool report)
{
    double cpu_seconds = children_seconds();
    unsigned rare = 0;
    for (int i = 0; i < SIM_COUNT_ALL; i++) {
        bool is_rare = report && totals[i] < SIM_REPORT_LEAST;
        printf("%12llu  %s%s\n", (unsigned long long)totals[i], sim_count_texts[i], is_rare ? "  (rare)" : "");
        rare += is_rare;
    }
    printf("%llu seeds without a violation in %.1f s, %.0f calls a second and core\n", (unsigned long long)seeds,
           seconds, (double)totals[SIM_COUNT_CALLS] / (cpu_seconds > 0 ? cpu_seconds : 1));
    if (rare > 0)
        printf("%u rows are below %d\n", rare, SIM_REPORT_LEAST);
    return rare;
}

static double clock_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void slot_start_next(const struct sim_search *search, struct slot *slot, uint64_t seed)
{
    struct sim_run run = search->run;
    run.seed = seed;
    slot_run(slot, &run);
}

int sim_search(const struct sim_search *search)
{
    const double begin = clock_seconds();
    uint64_t next = search->from, end = search->count ? search->from + search->count : UINT64_MAX, done = 0;
    unsigned jobs = search->jobs < 1 ? 1 : search->jobs > MAX_JOBS ? MAX_JOBS : search->jobs;
    slots = mmap(NULL, sizeof(*slots) * MAX_JOBS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        return 2;
    for (unsigned i = 0; i < jobs && next < end; i++)
        slot_start_next(search, &slots[i], next++);
    for (struct slot *slot; (slot = slot_wait(jobs));) {
        if (slot->violation[0])
            return search_failed(search, slot);
        if (search->digests)
            printf("%llu %016llx\n", (unsigned long long)slot->seed, (unsigned long long)slot->digest);
        for (int i = 0; i < SIM_COUNT_ALL; i++)
            totals[i] += slot->counts[i];
        done++;
        if (next < end && (search->seconds == 0 || clock_seconds() - begin < search->seconds))
            slot_start_next(search, slot, next++);
    }
    return print_counts(done, clock_seconds() - begin, search->report) > 0 ? 1 : 0;
}
