/* The LB policy interface: what a policy is given (a helper), what it offers (update, exit_idle, ...), and the registry
 * of policies by name.
 *
 * Everything is on the loop thread. update_state and on_state callbacks of subchannels may arrive while a policy is
 * inside its own update of its children (a child may report at once from inside update or exit_idle: pickers are
 * published synchronously upwards); so each policy keeps facts and has one idempotent reconcile() that it calls when
 * its own update is complete (A56: no choosing while in the middle of an update). */
#ifndef TC_LB_POLICY_H
#define TC_LB_POLICY_H

#include <jansson.h>

#include "base/faults.h"
#include "io/loop.h"
#include "lb/picker.h"

struct tc_describe;
struct tc_lb_class;
struct tc_lb_registry;
struct tc_lb_policy;
struct tc_lb_helper;

/* A parsed policy config: shared, immutable. Implementations embed it first. */
struct tc_lb_config {
    const struct tc_lb_class *cls; /* of which policy it is the config */
    struct tc_ref ref;
};

struct tc_lb_config *tc_lb_config_ref(struct tc_lb_config *c);
void tc_lb_config_unref(struct tc_lb_config *c);
/* Both of one class and equal by that class's rule (the same pointer is always equal). */
bool tc_lb_config_eq(const struct tc_lb_config *a, const struct tc_lb_config *b);

struct tc_lb_turns;

/* What all policies of one channel share. Embedded in the channel; outlives its policies. */
struct tc_lb_env {
    struct tc_loop *loop;
    struct tc_lb_turns *turns; /* of the channel (lb/turns.h) */
    const struct tc_lb_registry *registry;
    struct tc_slice target;               /* for texts */
    struct tc_slice authority;            /* the channel's */
    bool secured_by_xds;                  /* A29: clusters say how their connections are secured */
    uint32_t ring_size_cap;               /* A42: 4096 by default, 1..8388608 */
    uint32_t ring_inline_entries;         /* a ring of more is built on another thread; 0: 32768 */
    uint64_t priority_failover_ms;        /* A56: 10000 */
    uint64_t priority_retention_ms;       /* A56: 900000 */
    uint64_t connection_attempt_delay_ms; /* A61: 250, clamped to [100, 2000] */
};

struct tc_lb_helper_ops {
    /* A subchannel for one address of the endpoint. Never NULL. State callbacks come by the serial queue; the first
     * state is reported too. */
    struct tc_subchannel *(*create_subchannel)(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                               const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg);
    /* Publishes state and picker; takes over the picker's reference. status is borrowed: why, in TRANSIENT_FAILURE. */
    void (*update_state)(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                         struct tc_picker *picker);
    void (*request_reresolution)(struct tc_lb_helper *h);
};

/* A policy's way up: the channel's, or the parent policy's (which embeds one for each child). */
struct tc_lb_helper {
    const struct tc_lb_helper_ops *ops;
    const struct tc_lb_env *env;
};

struct tc_lb_update {
    /* Borrowed for the call; the policy takes references of what it keeps. */
    struct tc_endpoints *endpoints;          /* NULL when endpoints_error says why there are none */
    const struct tc_status *endpoints_error; /* NULL or a failed resolution */
    struct tc_lb_config *config;             /* of the policy's own class; never NULL */
    struct tc_rstr *resolution_note;         /* A74, A88: added to the texts of failures; NULL: none */
    void *attributes;                        /* the resolver's (for cds: the XdsConfig); NULL: none */
    /* How to keep the attributes beyond the call, for policies that make children later. NULL: they cannot be kept, and
     * such children get none. */
    void *(*attributes_ref)(void *attributes);
    void (*attributes_unref)(void *attributes);
};

struct tc_lb_policy_ops {
    /* New endpoints or config. Returns OK, or why the update was refused (the resolver then backs off). The caller ends
     * the status. */
    struct tc_status (*update)(struct tc_lb_policy *p, const struct tc_lb_update *update);
    /* Connect, if idle. */
    void (*exit_idle)(struct tc_lb_policy *p);
    void (*reset_backoff)(struct tc_lb_policy *p);
    /* Stops: no callback into the helper after it returns. The memory goes through the serial queue, since the call may
     * come from inside the policy. */
    void (*shutdown)(struct tc_lb_policy *p);
    /* Writes what the policy is about, and its children (lb/describe.h). Not after shutdown. NULL: its name is all. */
    void (*describe)(const struct tc_lb_policy *p, struct tc_describe *d);
};

/* Implementations embed it first. */
struct tc_lb_policy {
    const struct tc_lb_policy_ops *ops;
    const struct tc_lb_class *cls;
    struct tc_lb_helper *helper; /* NULL after shutdown */
};

struct tc_lb_class {
    const char *name;  /* "ring_hash" */
    const char *alias; /* "ring_hash_experimental"; NULL: none */
    /* Makes the policy. */
    struct tc_lb_policy *(*create)(const struct tc_lb_class *cls, struct tc_lb_helper *helper);
    /* Parses the JSON object that stands for the policy in a service config. Adds faults and returns NULL when there
     * are any. `depth` counts nested policies (A52: 16 at most; tc_lb_parse_list checks). */
    struct tc_lb_config *(*parse_config)(const struct tc_lb_class *cls, const json_t *json,
                                         const struct tc_lb_registry *registry, unsigned depth,
                                         struct tc_faults *faults);
    void (*free_config)(struct tc_lb_config *config);
    bool (*equal_config)(const struct tc_lb_config *a, const struct tc_lb_config *b); /* NULL: by pointer only */
    void *arg; /* for policies that applications register */
};

struct tc_lb_registry *tc_lb_registry_new(void);
void tc_lb_registry_free(struct tc_lb_registry *r);
/* TORC_EEXIST when the name or alias is taken. The class must outlive the registry. */
int tc_lb_registry_add(struct tc_lb_registry *r, const struct tc_lb_class *cls);
/* By name or alias; NULL when unknown. */
const struct tc_lb_class *tc_lb_registry_find(const struct tc_lb_registry *r, struct tc_slice name);
/* pick_first, round_robin, weighted_target, priority, ring_hash, outlier_detection, xds_override_host. */
void tc_lb_registry_add_standard(struct tc_lb_registry *r);

/* Parses a loadBalancingConfig list [{"name": {config}}, ...]: the first known policy counts. Faults, and NULL, when
 * the list is malformed, none is known, the chosen config is bad, or depth exceeds 16. */
struct tc_lb_config *tc_lb_parse_list(const struct tc_lb_registry *r, const json_t *list, unsigned depth,
                                      struct tc_faults *faults);
/* The config of a policy with its default settings ({}); NULL when the policy is unknown or demands settings. */
struct tc_lb_config *tc_lb_default_config(const struct tc_lb_registry *r, const char *name);

static inline struct tc_lb_policy *tc_lb_create(const struct tc_lb_class *cls, struct tc_lb_helper *helper)
{
    return cls->create(cls, helper);
}

/* A child slot whose policy may change by name (as gRPC's child policy handlers do): a new policy of another class is
 * made beside the old one, which serves until the new one leaves CONNECTING. Sole owner: the parent. */
struct tc_lb_child;

/* Made with the parent's helper for the child: what the child policy reports goes there. */
struct tc_lb_child *tc_lb_child_new(struct tc_lb_helper *parent);
struct tc_status tc_lb_child_update(struct tc_lb_child *c, const struct tc_lb_update *update);
/* The next update makes a new policy as if its class were another, for what a policy cannot be told of (its subchannels
 * are not what they were). */
void tc_lb_child_renew(struct tc_lb_child *c);
void tc_lb_child_exit_idle(struct tc_lb_child *c);
void tc_lb_child_reset_backoff(struct tc_lb_child *c);
/* No callback after it; frees itself. */
void tc_lb_child_shutdown(struct tc_lb_child *c);

#endif
