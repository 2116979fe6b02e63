/* bench/update's clients: programs that hold one xDS channel and send RPCs one after the other. An order is a line on
 * standard input; the answer is a line on standard output:
 *
 *     first METHOD KEY                   opens the channel and sends an RPC, which the backend "old" must answer;
 *                                        "first NS RSS_BEFORE_KB RSS_PEAK_KB", memory in units of 1,024 bytes
 *     each METHOD KEY                    sends 64 RPCs; "each NS", the median of their durations
 *     until METHOD KEY BACKEND ADDRESS   sends an RPC that BACKEND must not answer; "going"; then sends RPCs until
 *                                        BACKEND answers one; "reached NS [PHASE_NS...]", by the monotonic clock
 *
 * KEY goes into the header that the route hashes. A backend names itself in the response header x-backend; as BACKEND,
 * "-" stands for an RPC that fails. ADDRESS is that of the endpoint that comes or goes, or "-"; from the connection to
 * it Torc's client tells two of the phases. Each RPC has a deadline of UPDATE_TIMEOUT_MS. `until` gives up after
 * UPDATE_GIVE_UP_S: on a loaded machine C-core may work for a minute at a config of 2,000 clusters. A client that gives
 * up, or cannot do what an order says, ends without a further answer.
 *
 * One thread calls the functions. */
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

/* The phases of an update; a phase's time is that of its end. */
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
    pid_t pid;       /* 0: the client is not running */
    FILE *to, *from; /* its standard input and output; NULL: the client is not running */
};

struct update_first {
    double ms;                 /* from opening the channel to the first answer */
    double before_kb, peak_kb; /* resident memory in units of 1,024 bytes: before the channel was opened, and the peak
                                  until the first answer */
};

struct update_reached {
    uint64_t pushed_ns;               /* set by the pusher; all times are of measure_wall_ns */
    uint64_t at_ns;                   /* when BACKEND answered */
    uint64_t phase_ns[UPDATE_PHASES]; /* 0: not reported, or not reached */
};

/* Starts a program (argv, NULL-terminated). Its environment has a bootstrap of that control plane and node id, and the
 * largest cap on rings. incremental: the bootstrap asks for incremental ADS. Returns false, without a message, if the
 * system has no pipe or process for the program; the caller calls update_client_stop in any case. */
bool update_client_start(struct update_client *c, const char *const *argv, const char *control_plane, const char *node,
                         bool incremental);
/* Closes the client's pipes and waits for its end. Does nothing for a client that is not running. */
void update_client_stop(struct update_client *c);

/* The functions below send an order, read an answer, or do both. They return false if the client does not answer as
 * expected. The calling process must ignore SIGPIPE: then the functions also return if the client has ended.
 * update_client_each stores the median of the durations in *ns. */
bool update_client_first(struct update_client *c, const char *method, const char *key, struct update_first *out);
bool update_client_each(struct update_client *c, const char *method, const char *key, double *ns);
/* Sends `until` and waits for "going". */
bool update_client_until(struct update_client *c, const char *method, const char *key, const char *backend,
                         const char *address);
/* Waits for "reached" and the phases. Sets all of *out, pushed_ns to 0. */
bool update_client_reached(struct update_client *c, struct update_reached *out);

#endif
