/* torc simulate: how clients spread their calls over backends, computed with the real LB policies in virtual time.
 *
 * What is real: policies, pickers, the endpoint lists and configs of a mesh file, rings and tables, trackers of calls,
 * load reports as bytes, backoff. What is modelled:
 *
 *   client      A channel without its resolver: one policy, its picker, and the calls that wait for a pick. Nothing is
 *               shared between clients. All clients hear of a change of the endpoints at the same moment.
 *   subchannel  Connects in --connect to a backend that lives; is refused, and waits by backoff, while it is dead.
 *   call        A pick, a time of service, an end. A call whose pick fails, or whose backend dies, fails: nothing is
 *               tried again. A call carries the hash of its key, and the key as metadata of the name "key".
 *   backend     Serves any number of calls at a time, each for --service times its slowness; with --capacity only so
 *               many, and others wait in order of arrival. Its load is that of the last whole second; it reports the
 *               load as ORCA does, with the trailers of calls and out of band.
 *
 * Time is src/testing's world (testing/world.h), which test/sim has too: here with one loop, and no network. Clients
 * begin during the first second; then comes --warm-up, which counts nothing; moments of changes count from the end of
 * both. Phases lie between changes: each has the keys that moved since an earlier phase called them, and its overload.
 *
 * Two runs with the same options and seed do the same. Arrivals, keys and random numbers of calls follow from the seed
 * and the client alone, so that policies which are compared get the same calls.
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

/* The options' names without dashes: "kill", ... */
extern const char *const sim_change_names[SIM_CHANGES];

struct sim_change {
    enum sim_change_kind kind;
    const char *text; /* of the option, borrowed from argv */
    uint32_t backend;
    double factor;   /* SIM_SLOW: times the service time */
    bool from_start; /* SIM_SLOW without a moment */
    uint64_t at_ns;  /* from the end of the warm-up */
};

enum sim_form { SIM_TEXT, SIM_JSON, SIM_CSV };

/* A policy to simulate, with its name as it is shown. */
struct sim_policy {
    const char *name;
    struct tc_lb_config *config;
};

struct sim_endpoint {
    struct tc_endpoint *endpoint;
    char *name;  /* the first address */
    bool absent; /* at the start: --add brings it */
};

struct sim_opts {
    TC_VEC(struct sim_endpoint) endpoints; /* all that are ever there, in the order of the list */
    struct tc_endpoints *tree;             /* the same endpoints as policies get them, with localities */
    TC_VEC(struct sim_policy) policies;
    TC_VEC(struct sim_change) changes; /* by time */
    TC_VEC(const char *) resources;    /* borrowed from argv */
    const char *cluster;
    uint64_t priority, backends;                              /* backends: of made-up addresses; 0: not given */
    uint64_t clients, keys, hot_keys, capacity, seed, memory; /* capacity: 0: any number of calls. memory: bytes */
    uint64_t duration_ns, warm_up_ns, service_ns, connect_ns;
    double rate, zipf, hot; /* hot: the part of the calls that has one of the hot keys */
    bool even;              /* arrivals at even intervals instead of a Poisson process */
    const char *svg, *calls;
    enum sim_form output;
};

/* The load of one backend, after the warm-up. */
struct sim_load {
    uint64_t calls, failed;                 /* failed: the backend died under them */
    uint32_t peak;                          /* calls at a time, those that wait included */
    uint32_t connections, most_connections; /* at the end; at a time */
    uint64_t overload_ns;                   /* with more calls at a time than sim_result.limit */
};

/* The time between two changes. */
struct sim_phase {
    char *name; /* "kill 10.0.0.3:80", or "start" */
    uint64_t at_ns;
    uint64_t calls, failed;
    uint32_t keys, moved; /* keys called in this phase and before, and those that changed their backend */
    uint64_t overload_ns; /* sum over the backends */
    uint64_t longest_ns;  /* the longest time for which one backend was overloaded */
};

struct sim_result {
    const char *policy;
    struct sim_load *loads; /* by the index of the endpoint in the options */
    TC_VEC(struct sim_phase) phases;
    uint64_t calls;   /* all that began after the warm-up */
    uint64_t failed;  /* among them, with a failed pick or a backend that died */
    uint64_t waiting; /* among them, without a pick at the end */
    double limit;     /* calls at a time above which a backend is overloaded */
    char *why;        /* the text of the first pick that failed, of a call that counts; NULL: none failed */
};

/* Returns 0, or an exit status with the message printed, or -1 if --help was printed. */
int sim_parse(int argc, char **argv, struct sim_opts *o);
void sim_opts_fini(struct sim_opts *o);

/* Runs one policy. `calls` (may be NULL) gets a line for each call that counts and was picked. Returns 0, or an exit
 * status with the error printed. */
int sim_run(const struct sim_opts *o, const struct sim_policy *policy, FILE *calls, struct sim_result *out);
void sim_result_fini(struct sim_result *r);

void sim_print(const struct sim_opts *o, const struct sim_result *results);
/* Returns an exit status. */
int sim_write_svg(const struct sim_opts *o, const struct sim_result *results);

/* --- the world: run.c and backend.c --- */

struct sim_client;

struct sim_call {
    struct tc_world_event event; /* the end of its service */
    struct tc_link link;         /* among the calls of its backend, or those of its client that wait for a pick */
    struct sim_client *client;
    struct sim_backend *backend; /* NULL: it waits for a pick */
    struct tc_call_tracker *trackers;
    struct tc_arena arena;
    struct tc_headers headers;
    struct sim_call *next; /* in the list of free ones */
    uint64_t random, service_ns;
    uint32_t key;
    bool counted; /* it began after the warm-up */
};

struct sim_backend {
    struct sim *sim;
    struct sim_load load;
    const char *name;
    bool absent, dead;
    double slow;                                /* times the service time */
    struct tc_link subchannels, calls, waiting; /* calls: in service; waiting: for the capacity */
    uint32_t active, served;                    /* calls here; those in service */
    uint64_t overloaded_since_ns;               /* 0: it is not */
    uint64_t second, ended, busy_ns;            /* the present second; calls that ended in it, and their service */
    double qps, utilization;                    /* of the last second */
};

struct sim {
    const struct sim_opts *opts;
    struct sim_result *result;
    struct tc_loop *loop;
    struct tc_lb_config *config;
    struct tc_endpoints *list;     /* of the endpoints that are there */
    struct tc_endpoint_map places; /* of all endpoints */
    struct sim_backend *backends;
    struct sim_client *clients;
    struct sim_call *free_calls;
    uint64_t active;           /* calls that have not ended */
    uint64_t begin_ns, end_ns; /* of the time that counts */
    bool counts;               /* the warm-up is over, and the run is not */
    uint64_t *hashes;          /* by key */
    double *cumulative;        /* by key; NULL: every key is as likely as another */
    uint32_t *homes, *before;  /* by key: 1 + the backend of its last call, in this phase and before it */
    FILE *calls;
};

static inline struct sim_phase *sim_present(const struct sim *s)
{
    return &s->result->phases.data[s->result->phases.len - 1];
}

void sim_backend_init(struct sim_backend *b, struct sim *s, uint32_t index);
/* Serves a call that was picked, or lets it wait for the capacity. */
void sim_backend_take(struct sim_backend *b, struct sim_call *call);
/* Fails the calls and ends the connections. */
void sim_backend_kill(struct sim_backend *b);
/* Adds the overload so far to the backend's load and to the present phase; called when the overload or a phase ends. */
void sim_backend_close(struct sim_backend *b);

struct tc_subchannel *sim_subchannel_new(struct sim_backend *b, struct tc_endpoint *endpoint,
                                         const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg);
/* Returns the backend of the subchannel that a pick chose; NULL: its connection is lost. */
struct sim_backend *sim_backend_of(struct tc_subchannel *sc);

/* Ends a call whose service is over, with OK, and serves the next one that waits. */
void sim_call_on_served(struct tc_world_event *event);
/* Tells the call's trackers its status, and keeps its memory for another call. */
void sim_call_end(struct sim_call *call, int code, const struct tc_headers *trailers);

#endif
