/* The LB policy interface: the operations that a policy offers (update, exit_idle, ...), the helper through which it
 * reaches its parent, and the factory that makes it. docs/internals/adding-a-policy.md has a complete policy.
 *
 * Policies run on the loop's thread. Configs are for any thread: the background thread parses the LB config of a
 * Cluster that it decodes, and may free the config. A child reports synchronously, often while its parent still updates
 * its children. So a policy with several children stores each report, and one idempotent reconcile function publishes
 * what follows from the reports. Each event calls that function last. While an update is under way, the function does
 * nothing (A56 forbids a choice in the middle of an update). */
#ifndef TC_LB_POLICY_H
#define TC_LB_POLICY_H

#include <jansson.h>

#include "base/validation_errors.h"
#include "io/loop.h"
#include "lb/picker.h"

struct tc_describe;
struct tc_lb_factory;
struct tc_lb_registry;
struct tc_lb_policy;
struct tc_lb_helper;

/* A parsed config: shared and immutable. Policies embed it first in a struct of their own. */
struct tc_lb_config {
    const struct tc_lb_factory *factory; /* the factory whose policies understand the config */
    struct tc_ref ref;
};

/* Prepares the head of a new config, with one reference. */
static inline void tc_lb_config_init(struct tc_lb_config *c, const struct tc_lb_factory *factory)
{
    c->factory = factory;
    tc_ref_init(&c->ref);
}
/* NULL is allowed in all three. Any thread. */
struct tc_lb_config *tc_lb_config_ref(struct tc_lb_config *c);
void tc_lb_config_unref(struct tc_lb_config *c);
/* Returns true if both are the same pointer, or have the same factory and are equal by its equal_config. */
bool tc_lb_config_eq(const struct tc_lb_config *a, const struct tc_lb_config *b);

struct tc_connect_turns;

/* The environment that all policies of one channel share. Embedded in the channel; outlives its policies. */
struct tc_lb_env {
    struct tc_loop *loop;
    struct tc_connect_turns *connect_turns; /* the channel's (lb/connect_turns.h) */
    const struct tc_lb_registry *registry;
    struct tc_slice target;               /* the channel's, for texts */
    struct tc_slice authority;            /* the channel's default :authority */
    bool secured_by_xds;                  /* A29: a cluster may say how its connections are secured */
    uint32_t ring_size_cap;               /* A42: 1..8388608; 4096 unless option or environment say otherwise */
    uint32_t ring_inline_entries;         /* a ring or table that may cost more than a ring of so many entries is built
                                             on the background thread; 0: 32768 */
    uint64_t priority_failover_ms;        /* A56: 10000 */
    uint64_t priority_retention_ms;       /* A56: 900000; for weighted_target (A28), too */
    uint64_t connection_attempt_delay_ms; /* A61: 250; pick_first clamps it to [100, 2000] */
};

/* A policy's requests to its parent, through the functions of lb/delegate.h. NULL delegates the operation to the parent
 * of the helper. */
struct tc_lb_helper_ops {
    /* Returns a subchannel for one address of the endpoint, never NULL; the caller ends it with tc_subchannel_release.
     * Takes references of its own to endpoint and address. All states come through the serial queue, first IDLE. */
    struct tc_subchannel *(*create_subchannel)(struct tc_lb_helper *h, struct tc_endpoint *endpoint,
                                               const struct tc_addr *addr, tc_subchannel_state_fn on_state, void *arg);
    /* Publishes state and picker, and takes ownership of the picker's reference. `status` is borrowed: why, in
     * TRANSIENT_FAILURE; otherwise OK or NULL. */
    void (*update_state)(struct tc_lb_helper *h, enum torc_connectivity state, const struct tc_status *status,
                         struct tc_picker *picker);
    /* Asks the resolver to resolve again, as soon as it may. */
    void (*request_reresolution)(struct tc_lb_helper *h);
    /* Returns the prefix of log lines of the policies below, the name of their cluster for example, borrowed for the
     * line. Where no helper has this operation, the lines begin with the target. */
    struct tc_slice (*log_name)(const struct tc_lb_helper *h);
};

/* A policy's way to its parent. The parent embeds a helper for each child, or passes its own helper on to the child.
 * The channel has the root policy's helper. */
struct tc_lb_helper {
    const struct tc_lb_helper_ops *ops;
    const struct tc_lb_env *env;
    struct tc_lb_helper *parent; /* the next helper towards the channel; NULL: this is the channel's */
};

/* Borrowed for the call, with all that it points to; the policy takes references of its own. */
struct tc_lb_update {
    struct tc_endpoints *endpoints;          /* NULL: the resolution failed */
    const struct tc_status *endpoints_error; /* why there are no endpoints; NULL if `endpoints` is not NULL */
    struct tc_lb_config *config;             /* of the policy's own factory; never NULL */
    struct tc_rstr *resolution_note;         /* A74, A88: added to the texts of failures; NULL: none */
    void *attributes;                        /* the resolver's (for cds: the XdsConfig); NULL: none */
    /* Keep the attributes beyond the call, for a policy that makes children later. NULL: they cannot be kept, and
     * children that are made later get no attributes. */
    void *(*attributes_ref)(void *attributes);
    void (*attributes_unref)(void *attributes);
};

struct tc_lb_policy_ops {
    /* Takes new endpoints or a new config. Returns OK, or why the update was refused: a polling resolver then tries
     * again with backoff. The caller ends the status. */
    struct tc_status (*update)(struct tc_lb_policy *p, const struct tc_lb_update *update);
    /* Connects, if IDLE. */
    void (*exit_idle)(struct tc_lb_policy *p);
    /* Ends the backoff of all subchannels of the policy and of its children at once. */
    void (*reset_backoff)(struct tc_lb_policy *p);
    /* Stops the policy: it does not call its helper afterwards. A task frees the policy, since the call may come from
     * inside the policy. May be called again before that task runs. */
    void (*shutdown)(struct tc_lb_policy *p);
    /* Writes what the policy does at present, and its children (lb/describe.h). Not called after shutdown. NULL: the
     * policy's name is all that is written. */
    void (*describe)(const struct tc_lb_policy *p, struct tc_describe *d);
};

/* Policies embed it first. */
struct tc_lb_policy {
    const struct tc_lb_policy_ops *ops;
    const struct tc_lb_factory *factory;
    struct tc_lb_helper *helper; /* NULL after shutdown */
    struct tc_task free_task;
};

/* The last step of a policy's shutdown: takes its helper away, and frees the policy's struct by a task. */
void tc_lb_policy_end(struct tc_lb_policy *p);

struct tc_lb_factory {
    const char *name;  /* "ring_hash" */
    const char *alias; /* "ring_hash_experimental"; NULL: none */
    /* Returns a new policy, never NULL, which ops->shutdown ends. `helper` lives until then. May report from inside. */
    struct tc_lb_policy *(*create)(const struct tc_lb_factory *factory, struct tc_lb_helper *helper);
    /* Parses the JSON object that configures the policy in a service config. Returns a config with one reference; adds
     * errors and returns NULL if there are any. `depth` counts the policies around this one in the config: 16 at
     * most (A52), which tc_lb_parse_list checks. Any thread. */
    struct tc_lb_config *(*parse_config)(const struct tc_lb_factory *factory, const json_t *json,
                                         const struct tc_lb_registry *registry, unsigned depth,
                                         struct tc_validation_errors *errors);
    void (*free_config)(struct tc_lb_config *config);                                 /* NULL: tc_free */
    bool (*equal_config)(const struct tc_lb_config *a, const struct tc_lb_config *b); /* NULL: by pointer only */
    void *arg; /* for the factory's owner; api/lb_adapter.h: the application's factory */
};

static inline struct tc_lb_policy *tc_lb_create(const struct tc_lb_factory *factory, struct tc_lb_helper *helper)
{
    return factory->create(factory, helper);
}

#endif
