/* The oracle's state, for oracle.c (what happens, rules that always hold), oracle_groups.c (who may serve),
 * oracle_settled.c (rules of a settled world), oracle_requests.c (what backends are sent), oracle_shares.c (shares of
 * calls) and oracle_reports.c (load reports, client status). */
#ifndef SIM_ORACLE_INTERNAL_H
#define SIM_ORACLE_INTERNAL_H

#include "sim/oracle.h"

enum {
    KEYS = 16,
    MAX_TRIES = 8, /* no call has more */
    RUNTIMES = 2,
    SLACK_MS = 5,                /* by how much moments may be off */
    LOOK_UP_INTERVAL_MS = 30000, /* the least time between two look-ups of a name */
    FAST_MS = 5000,              /* a call that has to wait for nothing ends within this time */
    FAILOVER_MS = 10000,         /* A56's timer */
    MAX_GROUPS = SIM_CHILDREN * SIM_LOCALITIES
};

struct tracked {
    struct oracle_call call;
    uint64_t began_ms, ended_ms;
    int64_t timeout_ms;             /* once it is routed: the shorter of the application's and the route's; < 0: none */
    unsigned cluster;               /* of its service, when it began */
    unsigned n_received;            /* messages that the application got */
    unsigned n_seen;                /* tries that backends took */
    unsigned n_refused;             /* tries that backends refused */
    unsigned n_failing;             /* tries that sick backends took */
    uint64_t failing_ms[MAX_TRIES]; /* when each of these backends answers, at the earliest */
    uint64_t seen_ms;               /* when a backend took the last try */
    int seen_host;                  /* the backend that took the last try */
    uint32_t previous;              /* bit N: a try had the grpc-previous-rpc-attempts N */
    int from;                       /* the host of the stream's last message; -1: none came */
    bool ended;
    bool serving;                        /* counted in oracle.serving */
    bool may_be_aborted, may_be_dropped; /* counted by oracle_count_chance */
};

/* A priority of a leaf cluster. */
struct group {
    bool member[SIM_HOSTS];
    size_t members, reachable, silent, sick;
    size_t unsure; /* reachable, and perhaps ejected by outlier detection (oracle_groups_eject) */
    bool ring;     /* ring_hash or maglev */
    const struct sim_cluster *cluster;
    unsigned priority;
};

/* How a channel's calls ended at a host, for outlier detection: the moments of the last failure that can begin
 * an ejection (count_ends), of the last failure that may have been at this host, and of the last success. 0: none.
 * The ejection for the failure at failed_ms begins at ejected_ms or later, and lasts for `times` * SIM_EJECTION_MS. */
struct ends {
    uint64_t failed_ms, may_have_failed_ms, succeeded_ms, ejected_ms;
    unsigned times;
};

/* A host's load reports to a channel in a settled world: the last one, and the first one since which reports came
 * without a gap as long as A58's expiration. 0: none. */
struct reported {
    uint64_t first_ms, last_ms;
};

/* The last attempt of a runtime to connect to a host. */
struct dialled {
    const void *runtime; /* NULL: none so far */
    uint64_t began_ms;
    bool failed; /* the host refused */
};

struct oracle_state {
    struct sim_mesh mesh;
    struct {
        bool up, silent;
        int sick;
    } hosts[SIM_HOSTS];
    /* When a host was last an endpoint of the service; UINT64_MAX: it is one. 0: it never was. */
    uint64_t member_ms[SIM_SERVICES][SIM_HOSTS];
    bool name_unknown[SIM_CLUSTERS];      /* no client knows the name (oracle_name) */
    uint64_t name_asked_ms[SIM_CLUSTERS]; /* the last look-up */
    uint64_t name_lost_ms[SIM_CLUSTERS];  /* oracle_name_lost */
    bool name_due[SIM_CLUSTERS];          /* no look-up for LOOK_UP_INTERVAL_MS before name_lost_ms */
    struct ends ends[RUNTIMES][SIM_SERVICES][SIM_HOSTS];
    struct reported reported[RUNTIMES][SIM_SERVICES][SIM_HOSTS];
    uint64_t key_answered_ms[RUNTIMES][SIM_SERVICES]
                            [KEYS]; /* the last OK of a call with the key in this settled world; 0: none */
    /* When a channel first failed a call because nothing can be reached, since disturbed_ms; 0: it did not. */
    uint64_t doomed_ms[RUNTIMES][SIM_SERVICES];
    uint64_t opened_ms[RUNTIMES][SIM_SERVICES]; /* when the channel replaced another; 0: it is the first */
    struct dialled dialled[RUNTIMES][SIM_HOSTS];
    uint64_t disturbed_ms, connect_timeout_ms; /* disturbed_ms: the last disturbance, which may lie ahead */
    uint64_t goaway_ms[2];                     /* the last two GOAWAYs of any host, the last one first; 0: none */
    uint64_t routed_ms[SIM_SERVICES];          /* the last change of a service's route */
    struct tracked *calls;                     /* by id; owned. oracle_call_begins may move them */
    size_t n_calls, room;
    /* Of calls that ended, without those of services that hedge: what load reports should say. */
    uint64_t attempts, succeeded, dropped;
    uint64_t unsent;  /* further attempts, at most, that connections may have lost before they were sent */
    uint64_t unknown; /* attempts of calls that were freed, at most, and calls that may have succeeded unseen */
    /* Calls that a backend has, of services without retries and hedging, to leaf clusters, in a settled world. */
    unsigned serving[SIM_CLUSTERS];
};
extern struct oracle_state oracle;

/* Fills in the groups of a service, in the order in which they may serve, with `unsure` 0. Returns how many. */
size_t oracle_groups(unsigned service, struct group groups[MAX_GROUPS]);
/* Fills in `unsure` of each group: how many members may have been ejected when the call began. */
void oracle_groups_eject(struct group *groups, size_t n, const struct tracked *t);
/* Returns whether calls of the call's channel may have failed at the host so lately that it may be ejected now. */
bool oracle_had_failures(const struct tracked *t, unsigned host, uint64_t now_ms);
/* Return whether the host must have been ejected from the call's begin to its end, or may have been when the call began
 * (A50). */
bool oracle_must_be_ejected(const struct tracked *t, unsigned host);
bool oracle_may_be_ejected(const struct tracked *t, unsigned host);
/* Returns whether a group with a reachable endpoint may be passed over: see the exceptions in oracle.c. */
bool oracle_may_pass_over(const struct group *group);
/* Returns the last group that a call may go to: the first one with a reachable endpoint that may not be passed over,
 * else group n - 1. Returns n if no endpoint can be reached. */
size_t oracle_last_group(const struct group *groups, size_t n);

/* Returns how many of the last two GOAWAYs may have met the call. */
unsigned oracle_goaways(const struct tracked *t);
/* Return whether the fault filter, or a drop of the endpoints' resource, failed the call. */
bool oracle_aborted(const struct oracle_outcome *r);
bool oracle_dropped(const struct oracle_outcome *r);
/* oracle_count_chance: a call begins, which the fault filter or a drop fails with this probability.
 * oracle_count_chosen: such a call was failed by it. */
enum oracle_chance { ORACLE_ABORTS, ORACLE_DROPS, ORACLE_CHANCES };
void oracle_count_chance(enum oracle_chance which, double probability);
void oracle_count_chosen(enum oracle_chance which);
/* A host answered a call with OK and its load. */
void oracle_count_report(const struct tracked *t, int host, uint64_t now_ms);
/* A call went to a host of the group: counts it among the shares of the localities, and of the locality's hosts. */
void oracle_count_share(const struct tracked *t, int host, const struct group *group);
/* Judges all shares, at the end of the run. */
void oracle_judge_shares(void);

/* Judges the request that a backend was sent. Called before t->n_seen counts the request. */
void oracle_judge_request(uint64_t id, struct tracked *t, const struct oracle_request *r, uint64_t now_ms);

/* Judges a call that began in a settled world and ended now. host: the one that answered OK; -1: none. */
void oracle_judge_settled(uint64_t id, const struct oracle_outcome *r, int host, uint64_t now_ms);

#endif
