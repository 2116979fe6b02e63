/* A search: runs seeds in processes of their own, and shortens the first run that fails. */
#ifndef SIM_SEARCH_H
#define SIM_SEARCH_H

#include "sim/workload.h"

struct sim_search {
    /* The steps, and the features that are off. Each run gets its own seed; a run of a corpus gets its own features,
     * and so does every run with `guided`. */
    struct sim_run run;
    /* The first seed, and how many; count 0: until `seconds` are over. With a corpus, unless `guided`, neither counts:
     * the runs are the corpus's. */
    uint64_t from, count;
    unsigned seconds;   /* of the machine's time, after which no run begins; 0: no limit */
    unsigned jobs;      /* processes at a time, 1 to 64; with several, the first failure is the one that ends first */
    bool shortening;    /* shorten the run that failed */
    bool digests;       /* print the digest of each seed */
    bool report;        /* mark the rows of the table that occurred too rarely; such a row fails the search */
    const char *corpus; /* a file of runs (corpus.h), which are performed instead of seeds; NULL: none */
    bool guided; /* with a corpus: go on with runs near its entries, then write the file. Needs counting of coverage */
};

/* Prints the table of counts or, if a seed failed, the command that replays its run. Returns the exit status: 0; 1 if a
 * seed failed or, with `report`, something occurred too rarely; 2 if there is no shared memory. Ends the program with 2
 * if fork fails, or the corpus is malformed, cannot be read (a file that is not there is an empty corpus) or
 * cannot be written. Call once in a process. */
int sim_search(const struct sim_search *search);

#endif
