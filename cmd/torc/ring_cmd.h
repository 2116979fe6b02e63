/* torc ring: what its files share. */
#ifndef TORC_RING_CMD_H
#define TORC_RING_CMD_H

#include <stdint.h>

#include "base/vec.h"
#include "lb/ring.h"

#define RING_COMMAND "ring"

struct ring_endpoint {
    char *key;
    uint64_t weight; /* >= 1 */
    /* Of resources alone; else NULL. */
    char *address, *locality;
};

/* Endpoints in their order; keys differ, but for those of resources (hash_key is anybody's). */
struct ring_list {
    TC_VEC(struct ring_endpoint) at;
};

enum ring_mode { RING_TABLE, RING_DUMP, RING_KEYS, RING_WALK, RING_CHANGE };

struct ring_change {
    enum ring_change_kind { RING_ADD, RING_REMOVE, RING_REWEIGHT } kind;
    struct ring_endpoint endpoint; /* weight unused in RING_REMOVE */
};

struct ring_opts {
    struct ring_list endpoints;
    TC_VEC(const char *) resources; /* files and folders, borrowed from argv; none: endpoints are given */
    const char *endpoints_file;     /* the last of --endpoints */
    const char *cluster;
    uint64_t priority;
    bool priority_given;
    uint64_t min, max, cap; /* while options are read, 0: not given */
    enum ring_mode mode;
    TC_VEC(const char *) keys; /* of RING_KEYS and RING_WALK, borrowed from argv; "-": standard input */
    TC_VEC(struct ring_change) changes;
    const char *svg; /* NULL: none; "-": standard output, and nothing else goes there */
    bool json;
    bool help; /* it was asked for and printed */
};

/* 0, or an exit status with its message printed. `o` is zeroed by the caller and ended by ring_opts_fini. */
int ring_parse(int argc, char **argv, struct ring_opts *o);
void ring_opts_fini(struct ring_opts *o);

/* Endpoints and sizes out of the resources: an exit status. */
int ring_read_resources(struct ring_opts *o);

void ring_list_fini(struct ring_list *l);
/* The index of the key, or the list's length. */
size_t ring_list_find(const struct ring_list *l, const char *key);
/* The ring over the list, of the sizes that the options say. */
struct tc_ring *ring_build(const struct ring_list *l, const struct ring_opts *o);

/* Width of the part of the hash space that belongs to an entry, in 2^-64; 0 stands for all of it when the ring has one
 * entry. */
static inline uint64_t ring_width(const struct tc_ring *r, uint32_t entry)
{
    uint32_t before = entry ? entry - 1 : tc_ring_size(r) - 1;
    return tc_ring_hash_at(r, entry) - tc_ring_hash_at(r, before);
}

/* For each endpoint its part of the hash space, in [0, 1]; freed with tc_free. */
double *ring_shares(const struct tc_ring *r, size_t n);

/* --add, --remove, --reweight: an exit status. */
int ring_show_change(const struct ring_opts *o, const struct tc_ring *before);
/* The picture: an exit status. */
int ring_write_svg(const struct ring_opts *o, const struct tc_ring *r);

#endif
