/* What priority over ring_hash over pick_first is to do, out of the texts alone (A56, A42, A61): two children, "a" and
 * "b", each a ring over some of three endpoints with one address each. Written for the reader, not for speed; it shares
 * nothing with src/lb. */
#ifndef MODEL_TREE_MODEL_H
#define MODEL_TREE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <torc/connectivity.h>

enum { CHILDREN = 2, ENDPOINTS = 3, FAILOVER_MS = 10000, RETENTION_MS = 900000, NO_TIMER = -1 };

/* An endpoint in a child, as the child's pick_first has it. */
enum slot {
    ABSENT,     /* not in the child's list */
    IDLE,       /* no connection, none asked for */
    CONNECTING, /* the first attempt */
    READY,
    BACKOFF,      /* failed, waits */
    RECONNECTING, /* failed, tries again: TRANSIENT_FAILURE until READY (A62) */
};

struct model_config {
    int n; /* priorities */
    int priority[CHILDREN];
    uint8_t members[CHILDREN]; /* bit e: endpoint e */
};

struct model_child {
    bool exists;
    bool failed_last; /* TRANSIENT_FAILURE was seen more recently than READY or IDLE */
    enum torc_connectivity state;
    int failover_ms;  /* left, or NO_TIMER */
    int retention_ms; /* likewise; runs while it is deactivated */
    enum slot slot[ENDPOINTS];
};

struct model {
    const struct model_config *config;
    struct model_child child[CHILDREN];
};

enum event_kind { CALL, CONNECTED, FAILED, BACKOFF_OVER, LOST, TIMER, UPDATE };

struct event {
    enum event_kind kind;
    int child, endpoint;               /* of a slot; CALL: that the call wakes */
    const struct model_config *config; /* UPDATE */
};

/* What is seen of a slot from outside: whether there is an attempt or a connection. */
enum torc_connectivity model_seen(enum slot s);

/* The tree after its first update. */
void model_start(struct model *m, const struct model_config *config);
/* After the event. Where the texts leave a choice (A61: "one IDLE endpoint, any") it follows `seen`, what the real one
 * did; NULL when all is as it must be, else what is not. */
const char *model_apply(struct model *m, const struct event *e, enum torc_connectivity seen[CHILDREN][ENDPOINTS]);
/* The child whose picker is the channel's. */
int model_chosen(const struct model *m);
enum torc_connectivity model_state(const struct model *m);
/* Until the next timer; NO_TIMER. */
int model_next_timer(const struct model *m);

enum answer { SENT, QUEUED, FAILS };
/* What a call gets that meets the chosen child's endpoints in this order on the ring (n: those that the child has);
 * *endpoint: where it is sent, or what it wakes (QUEUED; -1: nothing). */
enum answer model_call(const struct model *m, const int *order, int n, int *endpoint);

#endif
