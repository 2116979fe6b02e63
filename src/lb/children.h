/* The named children of a policy: for priority, weighted_target and xds_cluster_manager.
 *
 * A child is a policy under a name, in a graceful switch, with its last report. It lives from the tc_children_list that
 * makes it until it is ended, or until its retention is over: a child that is no longer needed may be kept for a while,
 * so that its connections are there if it comes back (A56, A28).
 *
 * The policy has a `struct tc_children`, which owns the children: embedded, or in a table that the policy shares with
 * its pickers. The policy's own struct for a child begins with a `struct tc_named_child`. The cost of one child's event
 * does not grow with the number of children. Only tc_children_sweep, tc_children_reset_backoff and tc_children_end walk
 * over all of them. Loop thread only. */
#ifndef TC_LB_CHILDREN_H
#define TC_LB_CHILDREN_H

#include "base/table.h"
#include "lb/policy.h"

struct tc_children;
struct tc_graceful_switch;

struct tc_named_child {
    struct tc_lb_helper helper;        /* the child's policy reports to it */
    struct tc_children *set;           /* the set that has the child */
    struct tc_rstr *name;              /* a reference */
    struct tc_graceful_switch *policy; /* owned */
    /* The last report; CONNECTING and a picker that queues before the first one. */
    enum torc_connectivity state;
    struct tc_status status;   /* of the last TRANSIENT_FAILURE: why; OK before the first one */
    struct tc_picker *picker;  /* a reference */
    uint64_t listed;           /* `update` of the set when the child was listed last */
    struct tc_timer retention; /* ends the child; the policy stops it when the child is needed again */
    struct tc_task free_task;  /* frees the memory of a child that has ended */
    UT_hash_handle hh;
};

struct tc_children_ops {
    size_t child_size; /* of the policy's struct */
    /* The child's helper; update_state must be tc_children_update_state. */
    struct tc_lb_helper_ops helper;
    /* A child was made; the policy's members behind the tc_named_child are zero. NULL: nothing to do. */
    void (*on_new)(struct tc_named_child *c);
    /* The child reported, and its members hold the report; `before` is its state before the report. The call may come
     * from inside the child's update, and may end the child. */
    void (*on_state)(struct tc_named_child *c, enum torc_connectivity before);
    /* The child ends; all of its members are still valid. NULL: nothing to do. */
    void (*on_end)(struct tc_named_child *c);
};

struct tc_children {
    const struct tc_children_ops *ops;
    struct tc_lb_policy *policy;  /* the owner */
    struct tc_named_child *first; /* uthash by name; hh.next goes in the order in which the children were made */
    uint64_t update;              /* the number of the last update */
};

/* Makes an empty set. Borrows `ops` and `policy`, which must outlive the children. */
void tc_children_init(struct tc_children *set, const struct tc_children_ops *ops, struct tc_lb_policy *policy);
/* Ends all children. Called in the policy's shutdown, before tc_lb_policy_end. */
void tc_children_end(struct tc_children *set);

/* --- an update --- */

/* Begins an update, in which no child is listed yet. */
void tc_children_begin_update(struct tc_children *set);
/* Lists the child of that name, after making it if need be, and returns it (borrowed). Takes a reference of `name` for
 * a new child. Leaves a retention timer that runs as it is. Between updates the child counts as listed in the last. */
struct tc_named_child *tc_children_list(struct tc_children *set, struct tc_rstr *name);
/* Ends the children that the present update has not listed: at once if retention_ms is 0, else by
 * tc_named_child_retain. */
void tc_children_sweep(struct tc_children *set, uint64_t retention_ms);
/* Updates the child with `config`, the child's own list out of update->endpoints (an empty list if no list has its
 * name; NULL stays NULL), and the rest of `update`. Returns the child's answer; the caller ends the status. */
struct tc_status tc_named_child_update(struct tc_named_child *c, const struct tc_lb_update *update,
                                       struct tc_lb_config *config);

/* --- at any time --- */

/* Returns the child of that name (borrowed), or NULL. Inline, because the picks of xds_cluster_manager call it. */
static inline struct tc_named_child *tc_children_find(const struct tc_children *set, struct tc_slice name)
{
    struct tc_named_child *c = NULL;
    HASH_FIND(hh, set->first, name.data, name.len, c);
    return c;
}

void tc_children_reset_backoff(struct tc_children *set);
/* Ends the child after retention_ms. Does nothing if the child's retention timer runs already. */
void tc_named_child_retain(struct tc_named_child *c, uint64_t retention_ms);
/* Calls on_end, takes the child out of the set, and shuts the child's policy down; a task frees the child's memory. */
void tc_named_child_end(struct tc_named_child *c);
/* Writes `state`, the child's own or the one that its policy counts it as, as "state". If that is TRANSIENT_FAILURE,
 * writes why the child failed last as "error". */
void tc_named_child_describe_state(const struct tc_named_child *c, enum torc_connectivity state, struct tc_describe *d);

/* The update_state of `ops->helper`: takes over the picker, stores the child's report, and calls on_state. */
void tc_children_update_state(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                              struct tc_picker *picker);

#endif
