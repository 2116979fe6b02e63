/* A corpus: runs that reached code which no run before them had reached, or reached code a number of times whose
 * magnitude was new (coverage.h). A line of its file has a seed and the features that are off whatever the seed says,
 * if any: "7 dns,streams". */
#ifndef SIM_CORPUS_H
#define SIM_CORPUS_H

#include "base/random.h"
#include "base/vec.h"
#include "sim/workload.h"

struct sim_entry {
    uint64_t seed, without;
    unsigned added; /* the sum of what sim_coverage_add returned for it; not in the file */
};

struct sim_corpus {
    TC_VEC(struct sim_entry) at;
};

/* Appends the entries of a file, which need not exist, to c->at; the caller ends it with tc_vec_fini. Ends the program
 * with 2 if the file cannot be opened or a line is malformed. */
void sim_corpus_read(struct sim_corpus *c, const char *path);
/* Writes the entries that added most, at most `most`, in the order of their seeds. Reorders c->at. Ends the program
 * with 2 on failure. */
void sim_corpus_write(struct sim_corpus *c, const char *path, size_t most);
/* Sets run->seed and run->without for the next run to try: the fresh seed alone, or an entry with one change: a further
 * feature is off, or a feature that was off is left to the seed again. */
void sim_corpus_choose(const struct sim_corpus *c, struct tc_rng *rng, uint64_t fresh_seed, struct sim_run *run);

#endif
