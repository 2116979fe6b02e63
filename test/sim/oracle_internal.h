/* The oracle's state, for oracle.c (what happens, rules that always hold), oracle_groups.c (who may serve),
 * oracle_settled.c (rules of a settled world), oracle_requests.c (what backends are sent), oracle_shares.c (shares of
 * localities) and oracle_reports.c (load reports, client status). */
#ifndef SIM_ORACLE_INTERNAL_H
#define SIM_ORACLE_INTERNAL_H

#include "sim/oracle.h"

enum {
    KEYS = 16,
    MAX_TRIES = 8, /* of a call, at most */
    RUNTIMES = 2,
    SLACK_MS = 5,                /* by which moments may be off */
    LOOK_UP_INTERVAL_MS = 30000, /* the least between two look-ups of a name */
    FAST_MS = 5000,              /* in which a call ends that has to wait for nobody */
    FAILOVER_MS = 10000,         /* A56's timer */
    MAX_GROUPS = SIM_CHILDREN * SIM_LOCALITIES
};

struct tracked {
    struct oracle_call call;
    uint64_t began_ms, ended_ms;
    int64_t timeout_ms;             /* that is in effect when it is routed: the application's, or the route's limit */
    unsigned cluster;               /* of its service, when it began */
    unsigned n_received;            /* messages of a stream */
    unsigned n_seen;                /* tries that came to a backend */
    unsigned n_refused;             /* that a backend refused */
    unsigned n_failing;             /* tries that came to a sick backend */
    uint64_t failing_ms[MAX_TRIES]; /* when such a backend answers, at the earliest */
    uint64_t seen_ms;               /* when the last try came to a backend */
    int seen_host;                  /* the backend of that try */
    uint32_t previous;              /* bit N: a try had the grpc-previous-rpc-attempts N */
    int from;                       /* the host that sent the stream's messages; -1: none came */
    bool ended;
    bool serving;                        /* counted in oracle.serving */
    bool may_be_aborted, may_be_dropped; /* counted by oracle_count_chance */
};

/* A priority of a leaf cluster. */
struct group {
    bool member[SIM_HOSTS];
    size_t members, reachable, silent, sick;
    size_t unsure; /* reachable, and perhaps ejected by outlier detection */
    bool ring;
    const struct sim_cluster *cluster;
    unsigned priority;
};

/* The ends of a channel's calls at a host, as outlier detection has them: the moments of the last failure, of the last
 * failure that may have been there, and of the last success. 0: none. The ejection for failed_ms does not begin before
 * ejected_ms, and lasts `times` as long as the first. */
struct ends {
    uint64_t failed_ms, may_have_failed_ms, succeeded_ms, ejected_ms;
    unsigned times;
};

/* The reports of load of a host to a channel since the world settled: the first one since which none was missing for
 * the expiration of A58, and the last one. 0: none. */
struct reported {
    uint64_t first_ms, last_ms;
};

/* The last attempt of a runtime to connect to a host. */
struct dialled {
    const void *runtime; /* NULL: none so far */
    uint64_t began_ms;
    bool failed;
};

struct oracle_state {
    struct sim_mesh mesh;
    struct {
        bool up, silent;
        int sick;
    } hosts[SIM_HOSTS];
    /* When a host was last an endpoint of the service; UINT64_MAX: it is one. 0: it never was. */
    uint64_t member_ms[SIM_SERVICES][SIM_HOSTS];
    bool name_unknown[SIM_CLUSTERS];
    uint64_t name_asked_ms[SIM_CLUSTERS]; /* the last look-up */
    uint64_t name_lost_ms[SIM_CLUSTERS];  /* oracle_name_lost */
    bool name_due[SIM_CLUSTERS];          /* no look-up for LOOK_UP_INTERVAL_MS before name_lost_ms */
    struct ends ends[RUNTIMES][SIM_SERVICES][SIM_HOSTS];
    struct reported reported[RUNTIMES][SIM_SERVICES][SIM_HOSTS];
    uint64_t key_answered_ms[RUNTIMES][SIM_SERVICES]
                            [KEYS]; /* to a call that began settled, since disturbed_ms; 0: never */
    /* When a channel first failed a call because nothing can be reached, since disturbed_ms; 0: it did not. */
    uint64_t doomed_ms[RUNTIMES][SIM_SERVICES];
    uint64_t opened_ms[RUNTIMES][SIM_SERVICES]; /* when the channel took the place of another; 0: it is the first */
    struct dialled dialled[RUNTIMES][SIM_HOSTS];
    uint64_t disturbed_ms, connect_timeout_ms;
    uint64_t goaway_ms[2];            /* the last one, and the one before; 0: none */
    uint64_t routed_ms[SIM_SERVICES]; /* the last change of a service's route */
    struct tracked *calls;
    size_t n_calls, room;
    uint64_t attempts, succeeded, dropped; /* of calls that ended */
    uint64_t unsent;                       /* attempts that connections may have lost before they were sent */
    uint64_t unknown; /* attempts of calls that were freed, at most, and calls that may have succeeded unseen */
    /* Calls that began settled and are at a backend; of services without retries and hedging, to leaf clusters. */
    unsigned serving[SIM_CLUSTERS];
};
extern struct oracle_state oracle;

/* Fills in the groups of a service, in their order. Returns how many. */
size_t oracle_groups(unsigned service, struct group groups[MAX_GROUPS]);
/* Fills in how many reachable members of each group may have been ejected when the call began. */
void oracle_groups_eject(struct group *groups, size_t n, const struct tracked *t);
/* Returns whether calls of the service may have failed at the host before, so that it may be ejected now. */
bool oracle_had_failures(const struct tracked *t, unsigned host, uint64_t now_ms);
/* Returns whether the host must have been ejected, or may have been, when the call began (A50). */
bool oracle_must_be_ejected(const struct tracked *t, unsigned host);
bool oracle_may_be_ejected(const struct tracked *t, unsigned host);
/* Returns whether a group with a reachable endpoint may be passed over: see the exceptions in oracle.c. */
bool oracle_may_pass_over(const struct group *group);
/* Returns the group behind which no call goes: the first with a reachable endpoint that may not be passed over, else
 * the last; n: no endpoint can be reached. */
size_t oracle_last_group(const struct group *groups, size_t n);

/* Returns how many of the last two GOAWAYs may have met the call. */
unsigned oracle_goaways(const struct tracked *t);
/* Returns whether the client itself failed the call, as a filter or a resource asked: the fault filter, or a drop. */
bool oracle_aborted(const struct oracle_outcome *r);
bool oracle_dropped(const struct oracle_outcome *r);
/* A call begins that the fault filter, or a drop, fails with a probability, or one was failed. */
enum oracle_chance { ORACLE_ABORTS, ORACLE_DROPS, ORACLE_CHANCES };
void oracle_count_chance(enum oracle_chance which, double probability);
void oracle_count_chosen(enum oracle_chance which);
/* A host answered a call of the channel, with its load. */
void oracle_count_report(const struct tracked *t, int host, uint64_t now_ms);
/* A call went to a host of the group: counts it among the shares of the localities, and of the locality's hosts. */
void oracle_count_share(const struct tracked *t, int host, const struct group *group);
/* At the end of the run. */
void oracle_judge_shares(void);

/* Judges what a backend was sent. Before the request is counted. */
void oracle_judge_request(uint64_t id, struct tracked *t, const struct oracle_request *r, uint64_t now_ms);

/* Judges a call that began in a settled world and ended now. host: that answered, -1: none. */
void oracle_judge_settled(uint64_t id, const struct oracle_outcome *r, int host, uint64_t now_ms);

#endif
