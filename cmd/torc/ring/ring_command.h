/* torc ring: args.c reads the command line, resources.c reads xDS resources, ring.c builds the ring and prints it,
 * change.c compares two rings, svg.c draws one. A Maglev table is a struct tc_ring too. */
#ifndef TORC_RING_COMMAND_H
#define TORC_RING_COMMAND_H

#include <stdint.h>

#include "base/vec.h"
#include "ring/maglev.h"

#define RING_COMMAND "ring"

struct ring_endpoint {
    char *key;       /* owned */
    uint64_t weight; /* at least 1 */
    double part;     /* share of a Maglev table, from a Cluster that weights by locality; 0: weight / sum of weights */
    char *address, *locality; /* from resources, owned; else NULL */
    size_t origin;            /* in a changed copy of a list: 1 + the index in the list before; 0: new */
};

/* Endpoints in order. After ring_parse the keys of endpoints from the command line are unique. Several endpoints from
 * resources may have the same key, their hash_key. */
struct ring_list {
    TC_VEC(struct ring_endpoint) at;
};

enum ring_mode { RING_TABLE, RING_DUMP, RING_KEYS, RING_WALK, RING_CHANGE };

struct ring_change {
    enum ring_change_kind { RING_ADD, RING_REMOVE, RING_REWEIGHT } kind;
    struct ring_endpoint endpoint; /* RING_REMOVE does not use the weight */
};

struct ring_opts {
    struct ring_list endpoints;
    TC_VEC(const char *) resources; /* files and folders, borrowed from argv; empty if endpoints are given */
    const char *endpoints_file;     /* path of the last --endpoints; NULL: not given */
    const char *cluster;            /* borrowed from argv; NULL: not given */
    uint64_t priority;              /* counted from 0 */
    bool priority_given;
    uint64_t min, max, cap; /* 0 while options are read: not given */
    bool maglev;            /* a Maglev table instead of a ring */
    uint64_t table_size;    /* of the table; 0 for a ring, and while options are read: not given */
    enum ring_mode mode;
    TC_VEC(const char *) keys; /* of RING_KEYS and RING_WALK, borrowed from argv; "-": from standard input */
    TC_VEC(struct ring_change) changes;
    const char *svg; /* NULL: no picture; "-": the picture alone on standard output */
    bool json;
    bool help; /* --help was printed */
};

/* Reads options and resources, and fills in defaults. The caller zeroes *o before, and calls ring_opts_fini whatever is
 * returned. Returns 0, or an exit status with the error printed. */
int ring_parse(int argc, char **argv, struct ring_opts *o);
void ring_opts_fini(struct ring_opts *o);

/* Takes endpoints, o->maglev, and sizes that the options do not set from the resources. Returns 0, or an exit status
 * with the error printed. */
int ring_read_resources(struct ring_opts *o);

/* Frees the endpoints of the list with their texts. */
void ring_list_fini(struct ring_list *l);
/* Returns the index of the first endpoint with the key, or the length of the list. */
size_t ring_list_find(const struct ring_list *l, const char *key);
/* Builds the ring or table of the list, which is not empty, with the sizes of the options. Returns a reference, for
 * tc_ring_unref. */
struct tc_ring *ring_build(const struct ring_list *l, const struct ring_opts *o);

/* Returns how many of the 2^64 hashes an entry of a ring owns. 0 in a ring with one entry, which owns all. Not for
 * tables. */
static inline uint64_t ring_width(const struct tc_ring *r, uint32_t entry)
{
    uint32_t before = entry ? entry - 1 : tc_ring_size(r) - 1;
    return tc_ring_hash_at(r, entry) - tc_ring_hash_at(r, before);
}

/* Returns the share of the hash space of each of the `n` endpoints, in [0, 1], for tc_free. */
double *ring_shares(const struct tc_ring *r, size_t n);

/* Shows what --add, --remove and --reweight move. `before`: the ring or table of o->endpoints. Returns 0, or an exit
 * status with the error printed. */
int ring_show_change(const struct ring_opts *o, const struct tc_ring *before);
/* Writes the picture of --svg. `r` must not be a table. Returns 0, or an exit status with the error printed. */
int ring_write_svg(const struct ring_opts *o, const struct tc_ring *r);

#endif
