/* A corpus: runs that have reached code that no run before them did. A line of its file is a seed and, if some are off,
 * the features that are off: "7 dns,streams". */
#ifndef SIM_CORPUS_H
#define SIM_CORPUS_H

#include "base/random.h"
#include "base/vec.h"
#include "sim/workload.h"

struct sim_entry {
    uint64_t seed, without;
    unsigned added; /* what it reached first (sim_coverage_add) */
};

struct sim_corpus {
    TC_VEC(struct sim_entry) at;
};

/* Reads a file, which need not exist. Ends the program with 2 if a line is malformed. */
void sim_corpus_read(struct sim_corpus *c, const char *path);
/* Writes the entries that added most, at most `most`, in the order of their seeds. Ends the program with 2 on failure.
 * */
void sim_corpus_write(struct sim_corpus *c, const char *path, size_t most);
/* Sets the seed and the features of the next run to try: a fresh seed, or an entry with one more feature on or off. */
void sim_corpus_choose(const struct sim_corpus *c, struct tc_rng *rng, uint64_t fresh_seed, struct sim_run *run);

#endif
