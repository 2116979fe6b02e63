/* Searching and shortening.
 *
 * A seed runs in a child process, since trace and counts are of the process, and a crash is a finding too. A child
 * leaves its finding in a slot of shared memory. Shortening tries, in this order: fewer steps at the end, steps left
 * out (halves, quarters, ..., single ones), features turned off. It keeps a changed run that breaks the same rule.
 *
 * The parent has one thread and the slots, which last until its end. A slot belongs to its child from slot_run until
 * slot_wait has returned the slot; then the parent reads it and may run the next seed in it. Before it shortens, the
 * parent waits for all children: then slot 0 alone is in use. Read sim_search first, then slot_run and shorten. */
#include "sim/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/corpus.h"
#include "sim/coverage.h"
#include "sim/trace.h"

enum { MAX_JOBS = 64, SEED_SECONDS = 10, MAX_SHORTENINGS = 400, SIM_REPORT_LEAST = 1000, CORPUS_MOST = 300 };

/* A child's place in shared memory. The child leaves digest, counts, violation and coverage there for the parent. */
struct slot {
    pid_t pid; /* 0: no child runs */
    uint64_t seed, without, digest;
    uint64_t counts[SIM_COUNT_ALL];
    char violation[512]; /* empty: the child ended without a finding */
    struct sim_coverage coverage;
};

static struct slot *slots; /* MAX_JOBS of them, shared with the children */
static uint64_t totals[SIM_COUNT_ALL];
static uint32_t seen[SIM_COVERAGE_EDGES]; /* what all runs have reached (sim_coverage_add) */

/* Starts a child that performs the run and fills the slot. Returns in the parent; ends the program if fork fails. */
static void slot_run(struct slot *slot, const struct sim_run *run)
{
    slot->seed = run->seed;
    slot->without = run->without;
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
    /* A limit of processor time is enough: a run that hangs goes on turning its loops. */
    setrlimit(RLIMIT_CPU, &(struct rlimit){SEED_SECONDS, SEED_SECONDS});
    sim_trace_begin(SIM_TRACE_NONE);
    sim_coverage_count_in(&slot->coverage);
    sim_workload_run(run);
    sim_coverage_count_in(NULL);
    const char *found = sim_first_violation();
    snprintf(slot->violation, sizeof(slot->violation), "%s", found ? found : "");
    slot->digest = sim_trace_digest();
    memcpy(slot->counts, sim_counts, sizeof(sim_counts));
    exit(0); /* leaks are looked for at exit */
}

/* Waits until a child ends. Returns the child's slot, one of the first `jobs`; NULL if there is no child. */
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

/* Performs the run in slot 0. Returns whether it breaks the rule of `violation`: the text up to the first colon. */
static bool fails_alike(const struct sim_run *run, const char *violation)
{
    size_t rule = strcspn(violation, ":");
    slot_run(&slots[0], run);
    struct slot *slot = slot_wait(1);
    return slot && strncmp(slot->violation, violation, rule + 1) == 0;
}

/* Leaves out n further steps from `first` on, if the run still breaks the rule. Returns whether it does. */
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

/* Changes *run to a shorter one that breaks the rule of `violation`. Tries at most MAX_SHORTENINGS runs with fewer
 * steps, and one for each feature. */
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
    sim_features_print(stdout, " --without ", run->without);
    printf(" --trace\n");
}

/* --- searching --- */

/* Ends a search whose run in the slot failed: prints the finding, shortens the run, and prints the command that replays
 * it. Returns the exit status. */
static int search_failed(const struct sim_search *search, const struct slot *slot)
{
    struct sim_run run = search->run;
    char violation[sizeof(slot->violation)];
    memcpy(violation, slot->violation, sizeof(violation));
    run.seed = slot->seed;
    run.without = slot->without;
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

/* Returns the CPU time, in seconds, of the children that have ended. */
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

/* The runs of a search, one after another: seeds from search->from on; with a corpus its entries instead; with `guided`
 * first the entries, then what sim_corpus_choose says. On the stack of sim_search, which ends the corpus. */
struct source {
    const struct sim_search *search; /* borrowed */
    struct sim_corpus corpus;
    struct tc_rng rng;
    uint64_t begun, end; /* how many runs have begun, and how many may */
};

static void source_begin(struct source *s, const struct sim_search *search)
{
    *s = (struct source){.search = search, .end = search->count ? search->count : UINT64_MAX};
    tc_rng_init_seed(&s->rng, search->from);
    if (search->corpus)
        sim_corpus_read(&s->corpus, search->corpus);
    if (search->corpus && !search->guided)
        s->end = s->corpus.at.len;
}

static void source_start_next(struct source *s, struct slot *slot)
{
    struct sim_run run = s->search->run;
    uint64_t i = s->begun++;
    run.seed = s->search->from + i;
    if (i < s->corpus.at.len && s->search->corpus) {
        run.seed = s->corpus.at.data[i].seed;
        run.without = s->corpus.at.data[i].without;
    } else if (s->search->guided) {
        sim_corpus_choose(&s->corpus, &s->rng, run.seed, &run);
    }
    slot_run(slot, &run);
}

/* With `guided`, takes a run into the corpus if it has reached what no run before it did, and zeroes the coverage of
 * the slot for the next run. Without `guided` does nothing. */
static void source_take(struct source *s, struct slot *slot)
{
    struct sim_entry entry = {.seed = slot->seed, .without = slot->without};
    if (!s->search->guided)
        return;
    entry.added = sim_coverage_add(seen, &slot->coverage);
    memset(&slot->coverage, 0, sizeof(slot->coverage));
    for (size_t i = 0; i < s->corpus.at.len; i++)
        if (s->corpus.at.data[i].seed == entry.seed && s->corpus.at.data[i].without == entry.without) {
            s->corpus.at.data[i].added += entry.added;
            return;
        }
    if (entry.added > 0)
        *tc_vec_push(&s->corpus.at) = entry;
}

int sim_search(const struct sim_search *search)
{
    const double begin = clock_seconds();
    uint64_t done = 0;
    unsigned jobs = search->jobs < 1 ? 1 : search->jobs > MAX_JOBS ? MAX_JOBS : search->jobs;
    struct source source;
    slots = mmap(NULL, sizeof(*slots) * MAX_JOBS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED)
        return 2;
    source_begin(&source, search);
    for (unsigned i = 0; i < jobs && source.begun < source.end; i++)
        source_start_next(&source, &slots[i]);
    for (struct slot *slot; (slot = slot_wait(jobs));) {
        if (slot->violation[0])
            return search_failed(search, slot);
        if (search->digests)
            printf("%llu %016llx\n", (unsigned long long)slot->seed, (unsigned long long)slot->digest);
        for (int i = 0; i < SIM_COUNT_ALL; i++)
            totals[i] += slot->counts[i];
        source_take(&source, slot);
        done++;
        if (source.begun < source.end && (search->seconds == 0 || clock_seconds() - begin < search->seconds))
            source_start_next(&source, slot);
    }
    if (search->guided)
        sim_corpus_write(&source.corpus, search->corpus, CORPUS_MOST);
    tc_vec_fini(&source.corpus.at);
    return print_counts(done, clock_seconds() - begin, search->report) > 0 ? 1 : 0;
}
