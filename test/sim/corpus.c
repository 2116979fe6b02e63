/* The file of a corpus, and what a guided search tries next: a fresh seed or, in half of the tries once there are
 * entries, an entry with one feature changed. The run of an entry depends on the code of test/sim, so the file is to be
 * renewed (make sim-corpus) when that code changes. */
#include "sim/corpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *path, const char *why)
{
    fprintf(stderr, "sim: %s: %s\n", path, why);
    exit(2);
}

void sim_corpus_read(struct sim_corpus *c, const char *path)
{
    char line[1024];
    FILE *f = fopen(path, "r");
    if (!f && errno == ENOENT)
        return;
    if (!f)
        fail(path, strerror(errno));
    while (fgets(line, sizeof(line), f)) {
        char *end;
        struct sim_entry e = {.seed = strtoull(line, &end, 10)};
        end[strcspn(end, "\n")] = '\0';
        if (end == line || (*end && (*end != ' ' || !sim_features_parse(end + 1, &e.without))))
            fail(path, "a line is not a seed and names of features");
        *tc_vec_push(&c->at) = e;
    }
    fclose(f);
}

static int compare_added(const void *a, const void *b)
{
    const struct sim_entry *x = a, *y = b;
    return (x->added < y->added) - (x->added > y->added);
}

static int compare_seeds(const void *a, const void *b)
{
    const struct sim_entry *x = a, *y = b;
    return x->seed != y->seed ? (x->seed > y->seed) - (x->seed < y->seed)
                              : (x->without > y->without) - (x->without < y->without);
}

void sim_corpus_write(struct sim_corpus *c, const char *path, size_t most)
{
    FILE *f = fopen(path, "w");
    if (!f)
        fail(path, strerror(errno));
    qsort(c->at.data, c->at.len, sizeof(c->at.data[0]), compare_added);
    size_t n = c->at.len < most ? c->at.len : most;
    qsort(c->at.data, n, sizeof(c->at.data[0]), compare_seeds);
    for (size_t i = 0; i < n; i++) {
        fprintf(f, "%llu", (unsigned long long)c->at.data[i].seed);
        sim_features_print(f, " ", c->at.data[i].without);
        fputc('\n', f);
    }
    if (fclose(f) != 0)
        fail(path, strerror(errno));
}

void sim_corpus_choose(const struct sim_corpus *c, struct tc_rng *rng, uint64_t fresh_seed, struct sim_run *run)
{
    run->seed = fresh_seed;
    run->without = 0;
    if (c->at.len == 0 || tc_rng_below(rng, 2) == 0)
        return;
    const struct sim_entry *e = &c->at.data[tc_rng_below(rng, c->at.len)];
    run->seed = e->seed;
    run->without = e->without ^ (UINT64_C(1) << tc_rng_below(rng, SIM_FEATURE_ALL));
}
