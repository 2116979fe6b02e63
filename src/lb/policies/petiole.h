/* A base for petiole policies (A61: each endpoint has a pick_first of its own) that keep every endpoint connected and
 * differ in how they choose among the READY ones: round_robin, least_request, weighted_round_robin.
 *
 * The policy is READY if any endpoint is, else CONNECTING if any endpoint connects, else in TRANSIENT_FAILURE. A new
 * list keeps the children of endpoints that stay.
 *
 * A policy embeds `struct tc_petiole` first and, for state of an endpoint, `struct tc_petiole_child` first in a struct
 * of its own. It has a config, a struct tc_petiole_ops and a pick, which reads the `struct tc_petiole_set` that the
 * policy shares with its pickers. round_robin.c is the smallest example. Loop thread only. */
#ifndef TC_LB_POLICIES_PETIOLE_H
#define TC_LB_POLICIES_PETIOLE_H

#include "lb/connect_turns.h"
#include "lb/index_set.h"
#include "lb/policies/endpoint_child.h"

struct tc_petiole;

/* One endpoint; it stays over updates whose list has an endpoint with the same set of addresses. */
struct tc_petiole_child {
    struct tc_endpoint *endpoint;             /* of the last list; a reference */
    struct tc_endpoint_child *endpoint_child; /* owned; `index` is its place in `children`; NULL: not made yet */
    enum torc_connectivity state;             /* CONNECTING before the first report */
};

/* Shared by the policy and its pickers: the policy writes the pickers and `ready`, a pick advances `next`. When the
 * endpoints or their order change, the policy makes a new set, and empties the old one. */
struct tc_petiole_set {
    struct tc_lref ref;
    uint32_t n;
    uint32_t next; /* round robin: the next pick takes the first READY child from here on */
    struct tc_index_set ready;
    struct tc_petiole *owner; /* NULL once the policy gave the set up, which is then empty */
    struct tc_picker *at[];   /* a reference of the picker of owner->children[i] while that child is READY, else NULL */
};

struct tc_petiole_picker {
    struct tc_picker base;
    struct tc_petiole_set *set; /* a reference */
};

struct tc_petiole_ops {
    struct tc_picker_ops picker; /* of a struct tc_petiole_picker; free must be tc_petiole_picker_free */
    /* The size of the policy's struct for an endpoint. The base allocates the struct zeroed, and frees it after
     * on_child_end. */
    size_t child_size;
    /* A child has reported. `before` is its state before the report; it may be the same: a READY child that has another
     * subchannel now reports READY again. The set holds the picker of a READY child already, but nothing was published
     * for the report yet. Must not shut the policy down. NULL: nothing to do. */
    void (*on_state)(struct tc_petiole *p, struct tc_petiole_child *c, enum torc_connectivity before);
    /* A READY picker is about to be published, because the policy became READY, or the READY children, their pickers or
     * their places changed. The call may come by a task after the change: until then picks find READY children that
     * the last call of on_publish did not see, and miss others that it saw. NULL: nothing to do. */
    void (*on_publish)(struct tc_petiole *p);
    /* The child is about to end, since its endpoint left the list or the policy ends. Must not read p->children and
     * p->set: they may be of a new list already, to which the child's index does not belong, and other children may be
     * freed. NULL: nothing to do. */
    void (*on_child_end)(struct tc_petiole *p, struct tc_petiole_child *c);
};

struct tc_petiole {
    struct tc_lb_policy base; /* first */
    const struct tc_petiole_ops *ops;
    struct tc_petiole_child **children; /* owned, in the order of the list, each endpoint once */
    size_t n;
    /* The endpoint children of children[0] to children[given - 1] were made or updated with the last list. The
     * `endpoint` of each child is of the last list in any case. */
    size_t given;
    struct tc_petiole_set *set;             /* a reference; NULL: there are no children */
    struct tc_lb_config *pick_first_config; /* a reference, for the endpoint children; NULL after the shutdown */
    struct tc_rstr *resolution_note;        /* of the last update, a reference; NULL: none */
    struct tc_status last_error;            /* of the child that failed last; OK: none did */
    struct tc_picker *waiting;    /* a reference: the picker of the child that became CONNECTING last; NULL: none did */
    bool updating;                /* children are being replaced or updated: nothing is published */
    bool ready_changed;           /* READY children, their pickers or places may have changed */
    enum torc_connectivity state; /* as reported; TORC_CONNECTIVITY_SHUTDOWN: nothing yet */
    size_t counts[TORC_CONNECTIVITY_SHUTDOWN]; /* children by state */
    struct tc_task ready_task;                 /* reports changes among READY children together */
    struct tc_connect_turn turn;               /* gives the children their endpoints */
};

/* Prepares a zero-initialised policy made with TC_NEW. */
void tc_petiole_init(struct tc_petiole *p, const struct tc_lb_policy_ops *policy_ops, const struct tc_petiole_ops *ops,
                     const struct tc_lb_factory *factory, struct tc_lb_helper *helper);

/* For the policy's table of operations, or to be called by the policy's own operations. A policy with a config takes
 * the config first, then calls tc_petiole_update, which may shut the policy down. */
struct tc_status tc_petiole_update(struct tc_lb_policy *base, const struct tc_lb_update *update);
void tc_petiole_exit_idle(struct tc_lb_policy *base);
void tc_petiole_reset_backoff(struct tc_lb_policy *base);
void tc_petiole_shutdown(struct tc_lb_policy *base);
void tc_petiole_describe(const struct tc_lb_policy *base, struct tc_describe *d);

/* The `free` of the pickers. */
void tc_petiole_picker_free(struct tc_picker *picker);

/* Returns the child that a round robin picks next, or TC_INDEX_NONE if none is READY. */
static inline uint32_t tc_petiole_turn(const struct tc_petiole_set *set)
{
    uint32_t i = tc_index_set_next(&set->ready, set->next);
    return i == TC_INDEX_NONE ? tc_index_set_next(&set->ready, 0) : i;
}

/* Returns the child that a round robin picks, in O(log n) however many are not READY, and advances the turn unless the
 * pick is dry. */
static inline uint32_t tc_petiole_take_turn(struct tc_petiole_set *set, const struct tc_pick_args *args)
{
    uint32_t i = tc_petiole_turn(set);
    if (TC_LIKELY(i != TC_INDEX_NONE) && !args->dry)
        set->next = i + 1 == set->n ? 0 : i + 1;
    return i;
}

/* Picks by child i, which is READY, for the policy of that name (a static string). */
static inline enum tc_pick_kind tc_petiole_pick_child(struct tc_petiole_set *set, uint32_t i, const char *policy,
                                                      const struct tc_pick_args *args, struct tc_pick *out)
{
    if (TC_UNLIKELY(args->trace != NULL))
        args->trace->policy = tc_slice_str(policy);
    return tc_picker_pick(set->at[i], args, out);
}

#endif
