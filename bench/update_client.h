/* bench/update's clients: programs that hold one xDS channel and send RPCs one after the other, as they are told on
 * standard input, a line an order:
 *
 *     first METHOD KEY                     opens the channel and sends an RPC; "first NS RSS_BEFORE_KB RSS_PEAK_KB"
 *     each METHOD KEY                      "each NS": the median of RPCs
 *     until METHOD KEY BACKEND ADDRESS     an RPC that BACKEND must not answer, "going", then RPCs until one that it
 *                                          does; "reached NS [PHASE_NS...]", by the monotonic clock
 *
 * KEY goes into the header that the route hashes; the backend's name is in the header x-backend, "-" stands for an RPC
 * that fails; ADDRESS is the endpoint's. An RPC has UPDATE_TIMEOUT_MS. `until` gives up after UPDATE_GIVE_UP_S, and the
 * client ends: on a loaded machine C-core may work for a minute at a config of 2,000 clusters. */
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
    UPDATE_RECEIVED,  /* the response has arrived and is unpacked */
    UPDATE_DECODED,   /* the resource is decoded and validated, and the config is complete */
    UPDATE_IN_USE,    /* the tree of policies has the update */
    UPDATE_PICKED,    /* an RPC picked the new endpoint */
    UPDATE_CONNECTED, /* the new endpoint is connected */
    UPDATE_ANSWERED,
    UPDATE_PHASES
};

struct update_client {
    pid_t pid; /* 0: the client is not running */
    FILE *to, *from;
};

struct update_first {
    double ms;                 /* from opening the channel to the first answer */
    double before_kb, peak_kb; /* resident memory: before the channel was opened, and the peak until the first answer */
};

struct update_reached {
    uint64_t pushed_ns; /* set by the pusher */
    uint64_t at_ns;
    uint64_t phase_ns[UPDATE_PHASES]; /* 0: not reported, or not reached */
};

/* Starts a program (argv, NULL-terminated) with a bootstrap of that control plane and node id, and the largest cap on
 * rings, in its environment. Returns false, without a message, if the system has no pipe or process for it; the caller
 * stops the client all the same. */
bool update_client_start(struct update_client *c, const char *const *argv, const char *control_plane, const char *node,
                         bool incremental);
/* Closes the client's input and waits for its end. Does nothing for pid 0. */
void update_client_stop(struct update_client *c);

/* The functions below return false, with a message, if the client does not answer as expected. */
bool update_client_first(struct update_client *c, const char *method, const char *key, struct update_first *out);
bool update_client_each(struct update_client *c, const char *method, const char *key, double *ns);
/* Waits for "going". */
bool update_client_until(struct update_client *c, const char *method, const char *key, const char *backend,
                         const char *address);
/* Waits for "reached" and the phases. */
bool update_client_reached(struct update_client *c, struct update_reached *out);

#endif
