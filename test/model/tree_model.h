/* A model of priority over ring_hash over pick_first, from the gRFCs alone (A56, A42, A61): two children, "a" and "b",
 * each a ring over some of three endpoints with one address each. Written for the reader, not for speed; it shares
 * nothing with src/lb. */
#ifndef MODEL_TREE_MODEL_H
#define MODEL_TREE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <torc/connectivity.h>

enum { CHILDREN = 2, ENDPOINTS = 3, FAILOVER_MS = 10000, RETENTION_MS = 900000, NO_TIMER = -1 };

/* The state of an endpoint in a child, as the child's pick_first has it. */
enum slot {
    ABSENT,     /* not in the child's list */
    IDLE,       /* no connection, none requested */
    CONNECTING, /* the first attempt */
    READY,
    BACKOFF,      /* failed, waiting */
    RECONNECTING, /* failed, connecting again: TRANSIENT_FAILURE until READY (A62) */
};

struct model_config {
    int n;                     /* number of priorities */
    int priority[CHILDREN];    /* the child of each */
    uint8_t members[CHILDREN]; /* of each child; bit e: endpoint e */
};

struct model_child {
    bool exists;
    bool failed_last; /* TRANSIENT_FAILURE was seen more recently than READY or IDLE */
    enum torc_connectivity state;
    int failover_ms;  /* time left, or NO_TIMER */
    int retention_ms; /* time left, or NO_TIMER; runs while the child is deactivated */
    enum slot slot[ENDPOINTS];
};

struct model {
    const struct model_config *config;
    struct model_child child[CHILDREN];
};

enum event_kind { CALL, CONNECTED, FAILED, BACKOFF_OVER, LOST, TIMER, UPDATE };

struct event {
    enum event_kind kind;
    int child, endpoint;               /* of a slot; CALL: the slot that the call wakes */
    const struct model_config *config; /* UPDATE */
};

/* Returns a slot's state as seen from outside: whether there is an attempt or a connection. */
enum torc_connectivity model_seen(enum slot s);

/* Makes the tree after its first update. */
void model_start(struct model *m, const struct model_config *config);
/* Applies the event. Where the gRFCs leave a choice (A61: "one IDLE endpoint, any"), follows `seen`, the choice of the
 * real tree. Returns NULL if that choice is allowed, otherwise a text with the violation. */
const char *model_apply(struct model *m, const struct event *e, enum torc_connectivity seen[CHILDREN][ENDPOINTS]);
/* Returns the child whose picker is the channel's. */
int model_chosen(const struct model *m);
enum torc_connectivity model_state(const struct model *m);
/* Returns the time until the next timer, or NO_TIMER. */
int model_next_timer(const struct model *m);

enum answer { SENT, QUEUED, FAILS };
/* Returns the answer to a call that meets the chosen child's n endpoints in this order on the ring. *endpoint: where
 * the call is sent, or which endpoint a QUEUED call wakes (-1: none). */
enum answer model_call(const struct model *m, const int *order, int n, int *endpoint);

#endif
