/* A model of priority over ring_hash over pick_first, from the gRFCs alone (A42, A56, A61, A62, A115): two children,
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
    CONNECTING, /* the first attempt since IDLE */
    READY,
    BACKOFF,      /* the attempt failed; the backoff runs */
    RECONNECTING, /* a further attempt: pick_first stays in TRANSIENT_FAILURE until READY (A62) */
};

struct model_config {
    int n;                     /* number of priorities */
    int priority[CHILDREN];    /* priority[p]: the child that has priority p */
    uint8_t members[CHILDREN]; /* members[i]: the endpoints of child i; bit e: endpoint e */
};

struct model_child {
    bool exists;
    bool failed_last; /* TRANSIENT_FAILURE was seen more recently than READY or IDLE */
    enum torc_connectivity state;
    int failover_ms;  /* left, or NO_TIMER */
    int retention_ms; /* left, or NO_TIMER; runs while the child is deactivated */
    enum slot slot[ENDPOINTS];
};

struct model {
    const struct model_config *config;
    struct model_child child[CHILDREN];
};

enum event_kind { CALL, CONNECTED, FAILED, BACKOFF_OVER, LOST, TIMER, UPDATE };

struct event {
    enum event_kind kind;
    int child, endpoint;               /* the slot that changes (CALL: the one that is woken); not of TIMER, UPDATE */
    const struct model_config *config; /* UPDATE */
};

/* Returns the state of the slot's subchannel; IDLE if the slot is ABSENT. */
enum torc_connectivity model_seen(enum slot s);

/* Sets *m to the tree after its first update. The model borrows a config, also an event's, until the next UPDATE. */
void model_start(struct model *m, const struct model_config *config);
/* Applies the event. `seen` has the states of the real tree's subchannels after it: where the gRFCs leave a choice
 * (A61: which IDLE endpoint is connected), the model follows them. Returns NULL, or a static text that says why the
 * model cannot follow. */
const char *model_apply(struct model *m, const struct event *e, enum torc_connectivity seen[CHILDREN][ENDPOINTS]);
/* Returns the child that the priority policy serves from. */
int model_chosen(const struct model *m);
/* Returns the state that the tree reports. */
enum torc_connectivity model_state(const struct model *m);
/* Returns the milliseconds until the next timer, or NO_TIMER. */
int model_next_timer(const struct model *m);

enum answer { SENT, QUEUED, FAILS };
/* Returns the answer to a call that meets the chosen child's n endpoints in this order on the ring. Stores in *endpoint
 * the endpoint that the call is SENT to or that the QUEUED call wakes; -1: none. */
enum answer model_call(const struct model *m, const int *order, int n, int *endpoint);

#endif
