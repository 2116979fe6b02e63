/* A search: runs seeds in processes of their own, and shortens the first run that fails. */
#ifndef SIM_SEARCH_H
#define SIM_SEARCH_H

#include "sim/workload.h"

struct sim_search {
    struct sim_run run;   /* steps and features; the seed is set for each */
    uint64_t from, count; /* count 0: until `seconds` are over */
    unsigned seconds;     /* 0: no limit */
    unsigned jobs; /* processes at a time, 1 to 64; with several, the first failure is that of the first to end */
    bool shortening;
    bool digests;       /* print the digest of each seed */
    bool report;        /* name what occurred too rarely; it fails the search */
    const char *corpus; /* a file of runs (corpus.h), which are performed instead of seeds; NULL: none */
    bool guided;        /* goes on with runs near those, and writes the file: the program must count coverage */
};

/* Prints the table of counts, or the shortened run of the first seed that failed. Returns the exit status: 0, 1 if a
 * seed failed or, with `report`, something occurred too rarely, and 2 if the system has no memory. The program exits
 * with 2 if fork fails. */
int sim_search(const struct sim_search *search);

#endif
