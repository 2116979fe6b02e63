/* bench/update's clients: programs that hold one xDS channel and send RPCs one after the other, as they are told on
 * standard input, a line an order:
 *
 *     first METHOD KEY                     opens the channel and sends an RPC; "first NS RSS_BEFORE_KB RSS_PEAK_KB"
 *     each METHOD KEY                      "each NS": the median of RPCs
 *     until METHOD KEY BACKEND ADDRESS     an RPC that BACKEND must not answer, "going", then RPCs until one that it
 *                                          does; "reached NS [PHASE_NS...]", by the monotonic clock
 *
 * KEY goes into the header that the route hashes; the backend's name is in the header x-backend, "-" stands for an RPC
 * that fails; ADDRESS is the endpoint's. A client that waits in vain for UPDATE_GIVE_UP_S
 * ends: C-core may work at what it was sent first, with 2,000 clusters, for a minute of a loaded machine. */
#ifndef TORC_BENCH_UPDATE_CLIENT_H
#define TORC_BENCH_UPDATE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define UPDATE_TARGET "xds:///svc"
#define UPDATE_KEY_HEADER "k"
#define UPDATE_TIMEOUT_MS 30000
#define UPDATE_GIVE_UP_S 180

enum {
    UPDATE_RECEIVED,  /* the response is there and unpacked */
    UPDATE_DECODED,   /* the resource is read and checked, and the config put together */
    UPDATE_IN_USE,    /* the tree of policies has taken it */
    UPDATE_PICKED,    /* an RPC picked the new endpoint */
    UPDATE_CONNECTED, /* which is connected */
    UPDATE_ANSWERED,
    UPDATE_PHASES
};

struct update_client {
    pid_t pid; /* 0: none runs */
    FILE *to, *from;
};

struct update_first {
    double ms;                 /* from opening the channel to the first answer */
    double before_kb, peak_kb; /* resident memory: before the channel, and the most there was by the first answer */
};

struct update_reached {
    uint64_t pushed_ns; /* filled in by who pushed */
    uint64_t at_ns;
    uint64_t phase_ns[UPDATE_PHASES]; /* 0: not told, or not passed */
};

/* Starts a program (argv, NULL-terminated) whose environment has the bootstrap of that control plane and node id. */
bool update_client_start(struct update_client *c, const char *const *argv, const char *control_plane, const char *node,
                         bool incremental);
/* Ends it by the end of its input; 0 is fine. */
void update_client_stop(struct update_client *c);

/* All false, with a message, when the client does not answer as it should. */
bool update_client_first(struct update_client *c, const char *method, const char *key, struct update_first *out);
bool update_client_each(struct update_client *c, const char *method, const char *key, double *ns);
/* Up to "going". */
bool update_client_until(struct update_client *c, const char *method, const char *key, const char *backend,
                         const char *address);
/* The rest. */
bool update_client_reached(struct update_client *c, struct update_reached *out);

#endif
