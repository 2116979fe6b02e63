/* torc simulate: how clients spread their calls over backends, computed with the real LB policies in virtual time.
 *
 * What is real: policies, pickers, the endpoint lists and configs of a mesh file, rings and tables, trackers of calls,
 * load reports as bytes, backoff. What is modelled:
 *
 *   client      A channel without its resolver: one policy, its picker, and the calls that wait for a pick. Each client
 *               has subchannels of its own. All clients get a change of the endpoints at the same moment.
 *   subchannel  An attempt to connect takes --connect. If the backend is dead then, the attempt fails and the backoff
 *               follows.
 *   call        A pick, a time of service, an end. A call fails if its pick fails or drops it, or if its backend dies;
 *               there are no retries. A call carries the hash of its key, and the key as the metadata field "key".
 *   backend     Serves a call in --service times its slow factor. Serves all its calls at once; with --capacity at most
 *               so many, and the other calls wait in order of arrival. Reports the load of the last whole second as
 *               ORCA does, in trailers and out of band.
 *
 * Time is that of a world (testing/world.h), here with one loop and no network. Clients begin during the first second,
 * calls after it. Then --warm-up passes, which counts nothing. Moments of changes count from the end of the warm-up,
 * where the first phase begins. The changes of one moment end a phase and begin the next. A phase counts its overload,
 * and the keys that moved since the last phase that called them.
 *
 * Two runs with the same options and seed do the same. The policy has no influence on arrivals, keys and random numbers
 * of calls, so all policies that are compared get the same calls. They run one after another, on one thread.
 *
 * args.c reads the options, run.c has the run, backend.c backends and subchannels, print.c and svg.c show results. */
#ifndef TORC_SIMULATE_H
#define TORC_SIMULATE_H

#include <stdio.h>

#include "base/headers.h"
#include "base/vec.h"
#include "lb/endpoint_map.h"
#include "lb/policy.h"
#include "testing/world.h"

#define SIMULATE_COMMAND "simulate"

enum sim_change_kind { SIM_KILL, SIM_RESTORE, SIM_ADD, SIM_REMOVE, SIM_SLOW, SIM_CHANGES };

/* The options' names without their leading dashes: "kill", ... */
extern const char *const sim_change_names[SIM_CHANGES];

struct sim_change {
    enum sim_change_kind kind;
    const char *text; /* of the option, borrowed from argv */
    size_t place;     /* among the changes of the command line */
    uint32_t backend; /* index in sim_opts.endpoints */
    double factor;    /* SIM_SLOW: multiplies the service time */
    bool from_start;  /* SIM_SLOW without a moment: applies before the warm-up */
    uint64_t at_ns;   /* from the end of the warm-up; 0 with from_start */
};

enum sim_form { SIM_TEXT, SIM_JSON, SIM_CSV };

/* A policy to simulate. */
struct sim_policy {
    const char *name;            /* as shown: the value of --policy, else the policy's name; borrowed */
    struct tc_lb_config *config; /* a reference */
};

struct sim_endpoint {
    struct tc_endpoint *endpoint; /* a reference */
    char *name;                   /* the first address; owned */
    bool absent;                  /* at the start: --add brings it */
};

struct sim_opts {
    TC_VEC(struct sim_endpoint) endpoints; /* every endpoint of the run, each once; those of --add last */
    struct tc_endpoints *tree;             /* the same endpoints, with localities, for policies; a reference */
    TC_VEC(struct sim_policy) policies;
    TC_VEC(struct sim_change) changes;                        /* those from the start, then the others by time */
    TC_VEC(const char *) resources;                           /* borrowed from argv */
    const char *cluster;                                      /* of --resources; borrowed from argv; NULL: not given */
    uint64_t priority, backends;                              /* backends: of made-up addresses; 0: not given */
    uint64_t clients, keys, hot_keys, capacity, seed, memory; /* capacity: 0: any number of calls. memory: bytes */
    uint64_t duration_ns, warm_up_ns, service_ns, connect_ns;
    double rate, zipf, hot;  /* rate: calls a second of each client. zipf: the exponent; 0: all keys are equally likely.
                                hot: the part of the calls (0 to 1) that draws from the hot keys */
    bool even;               /* arrivals at even intervals instead of a Poisson process */
    const char *svg, *calls; /* paths, borrowed from argv; svg "-": standard output; NULL: not given */
    enum sim_form output;
};

/* The load of one backend, after the warm-up. */
struct sim_load {
    uint64_t calls, failed;                 /* calls: picked for the backend; failed: those that its death ended */
    uint32_t peak;                          /* most calls at a time, with those that wait for the capacity */
    uint32_t connections, most_connections; /* at the end; at a time */
    uint64_t overload_ns;                   /* with more calls at a time than sim_result.limit */
};

/* A part of the run, from the end of the warm-up or a moment with changes to the next such moment or the end. */
struct sim_phase {
    char *name;             /* the changes that begin it, "kill 10.0.0.3:80"; or "start"; owned */
    uint64_t at_ns;         /* its beginning, from the end of the warm-up */
    uint64_t calls, failed; /* calls that began in the phase; calls that failed in it */
    uint32_t keys, moved;   /* keys called in this phase and in an earlier one; those whose backend changed since */
    uint64_t overload_ns;   /* sum over the backends */
    uint64_t longest_ns;    /* the longest time within the phase for which one backend was overloaded */
};

struct sim_result {
    const char *policy;     /* its name as shown; borrowed */
    struct sim_load *loads; /* by the index of the endpoint in the options; owned */
    TC_VEC(struct sim_phase) phases;
    uint64_t calls;   /* calls that began after the warm-up */
    uint64_t failed;  /* of `calls`: the pick failed or dropped the call, or the backend died */
    uint64_t waiting; /* of `calls`: still without a backend at the end */
    double limit;     /* calls at a time above which a backend is overloaded */
    char *why;        /* the status text of the first pick that failed or dropped one of `calls`, owned; NULL: none */
};

/* Returns 0, or an exit status with the message printed, or -1 if --help was printed. The caller calls sim_opts_fini in
 * every case. */
int sim_parse(int argc, char **argv, struct sim_opts *o);
void sim_opts_fini(struct sim_opts *o);

/* Runs one policy. `calls` (may be NULL) gets a line for each call that counts, when the call gets a backend. *out must
 * be zeroed. Returns 0, or an exit status with the error printed. The caller calls sim_result_fini in both cases. */
int sim_run(const struct sim_opts *o, const struct sim_policy *policy, FILE *calls, struct sim_result *out);
void sim_result_fini(struct sim_result *r);

/* Print the results, one for each policy in the order of the options. sim_write_svg returns an exit status. */
void sim_print(const struct sim_opts *o, const struct sim_result *results);
int sim_write_svg(const struct sim_opts *o, const struct sim_result *results);

/* --- the world: run.c and backend.c --- */

struct sim_client;

struct sim_call {
    struct tc_world_event event; /* the end of its service */
    struct tc_link link;         /* of a list of its backend, or of its client's `waiting` */
    struct sim_client *client;
    struct sim_backend *backend; /* NULL: it waits for a pick */
    struct tc_call_tracker *trackers;
    struct tc_arena arena;
    struct tc_headers headers;
    struct sim_call *next; /* in sim.free_calls */
    uint64_t random, service_ns;
    uint32_t key;
    bool counted; /* it began after the warm-up */
};

struct sim_backend {
    struct sim *sim;
    struct sim_load load;
    const char *name;
    bool absent, dead;
    double slow;                                /* multiplies the service time */
    struct tc_link subchannels, calls, waiting; /* calls: in service; waiting: for the capacity */
    uint32_t active, served;                    /* all its calls; those in service */
    uint64_t overloaded_since_ns;               /* not before the phase began; 0: not overloaded */
    uint64_t second, ended, busy_ns;            /* the present second; calls that ended in it; their service time */
    double qps, utilization;                    /* of the last whole second */
};

struct sim {
    const struct sim_opts *opts;
    struct sim_result *result;
    struct tc_loop *loop;
    struct tc_lb_config *config;
    struct tc_endpoints *list;     /* the tree without absent endpoints */
    struct tc_endpoint_map places; /* from every endpoint to its index in the options */
    struct sim_backend *backends;
    struct sim_client *clients;
    struct sim_call *free_calls;
    uint64_t active;           /* calls that have not ended */
    uint64_t begin_ns, end_ns; /* of the time that counts */
    bool counts;               /* the warm-up is over, and the run is not */
    uint64_t *hashes;          /* by key */
    double *cumulative;        /* by key, for --zipf; NULL: all keys are equally likely */
    uint32_t *homes, *before;  /* by key: 1 + the backend of its last call, in this phase and before it; 0: no call */
    FILE *calls;
};

/* Returns the present phase, valid until the next one begins. */
static inline struct sim_phase *sim_present(const struct sim *s)
{
    return &s->result->phases.data[s->result->phases.len - 1];
}

/* Makes the backend of the endpoint with this index in the options. It borrows from the options and from `s`. */
void sim_backend_init(struct sim_backend *b, struct sim *s, uint32_t index);
/* Serves the call for which a pick chose the backend, or lets the call wait for the capacity. */
void sim_backend_take(struct sim_backend *b, struct sim_call *call);
/* The backend is dead from now on: ends its connections and fails its calls. */
void sim_backend_kill(struct sim_backend *b);
/* Adds the overload so far to the backend's load and to the present phase; called when the overload or a phase ends. */
void sim_backend_close(struct sim_backend *b);

/* Returns a subchannel, which its policy frees with tc_subchannel_release before the backend ends. Takes references of
 * its own to endpoint and address. */
struct tc_subchannel *sim_subchannel_new(struct sim_backend *b, struct tc_endpoint *endpoint,
                                         const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg);
/* Returns the backend of the subchannel that a pick chose, which may be a wrapper; NULL: it is not connected. */
struct sim_backend *sim_backend_of(struct tc_subchannel *sc);

/* Ends a call whose service is over, with OK, and serves the next one that waits. */
void sim_call_on_served(struct tc_world_event *event);
/* Tells the call's trackers its status, counts a failure, and keeps its memory for another call. trailers may be
 * NULL. */
void sim_call_end(struct sim_call *call, int code, const struct tc_headers *trailers);

#endif
