/* The insides of a channel, for the files of src/channel. What the first part holds is fixed when the channel is made
 * and may be read by any thread; the rest belongs to the loop. */
#ifndef TC_CHANNEL_CHANNEL_STRUCT_H
#define TC_CHANNEL_CHANNEL_STRUCT_H

#include "channel/app_lb.h"
#include "channel/app_resolver.h"
#include "channel/channel.h"
#include "channel/pool.h"
#include "channel/service_config.h"
#include "lb/policy.h"
#include "lb/turns.h"
#include "resolver/proxy.h"
#include "resolver/resolver.h"

struct tc_call;

struct torc_channel {
    struct tc_ref ref; /* the handle's, the loop's until the end, each call's */
    torc_runtime *rt;
    struct tc_loop *loop;
    bool is_private;
    struct torc_channel_options opts; /* pointers in it are not kept, but for those below */
    struct tc_target target;
    const struct tc_resolver_class *resolver_class;
    struct tc_app_resolver_class app_resolver; /* behind resolver_class when it is the application's */
    struct tc_proxy_class proxied;             /* behind it when connections go by a proxy */
    const struct tc_lb_registry *registry;
    struct tc_app_lb_classes *app_lb; /* NULL: the registry is the process's */
    struct tc_rstr *authority;
    struct tc_rstr *user_agent;
    char *xds_bootstrap_json;
    struct tc_service_config *default_config; /* NULL: none */
    torc_credentials *credentials;

    atomic_int published; /* the state, for torc_channel_state */
    struct tc_task free_task;
    atomic_flag connect_posted; /* exit_idle_task is on its way */
    struct tc_task exit_idle_task;

    /* The loop's. */
    struct tc_link runtime_link;
    bool ended;
    struct tc_status end_status;
    struct tc_task unref_task;
    struct tc_conn_config *conn_config;

    struct tc_resolver_env resolver_env;
    struct tc_resolver *resolver; /* NULL: the channel is idle */
    bool resolved;                /* a result came that calls can use */
    struct tc_status resolve_error;
    struct tc_config_selector *selector;      /* the resolver's; NULL: the service config's methods */
    struct tc_service_config *service_config; /* in force */
    struct tc_retry_throttle throttle;        /* as it has it */
    uint64_t kept_bytes;                      /* of requests, for other attempts: of all calls */
    struct tc_lb_config *lb_config;           /* as last given to the policy */

    struct tc_lb_env lb_env;
    struct tc_lb_turns lb_turns;
    struct tc_lb_helper helper;
    struct tc_lb_child *child;
    bool connect_wanted; /* exit_idle the policy when it has its first endpoints */
    enum torc_connectivity state;
    struct tc_status status; /* why, in TRANSIENT_FAILURE */
    struct tc_picker *picker;

    struct tc_link calls;          /* all that run */
    struct tc_link waiting_config; /* for a resolver's result, by tc_call.queue */
    struct tc_link waiting_pick;   /* for another picker, by tc_call.queue */
    struct tc_task retry;          /* tries those of waiting_pick again */
    size_t n_calls;
    uint64_t last_active_ms;
    struct tc_timer idle_timer;

    struct tc_link watches; /* tc_channel_watch */
    struct tc_link states;  /* published and not yet told */
    struct tc_task tell;
    torc_channel_event_fn observer;
    void *observer_arg;
};

/* channel_new.c. All three by any thread. */
torc_channel *tc_channel_make(torc_runtime *rt, const char *target, const struct torc_channel_options *options,
                              bool is_private, char **why);
torc_channel *tc_channel_ref(torc_channel *ch);
void tc_channel_unref(torc_channel *ch);

/* channel.c: on the loop. */
/* The first step on the loop; harmless when repeated. */
void tc_channel_attach(torc_channel *ch);
/* Ends the channel and its calls with the status; with `tell`, their on_done and the watches hear of it. */
void tc_channel_end(torc_channel *ch, const struct tc_status *status, bool tell);
void tc_channel_observe_event(torc_channel *ch, const char *kind, const char *detail, const char *reason);
/* A call began, a call ended. */
void tc_channel_call_began(torc_channel *ch);
void tc_channel_call_ended(torc_channel *ch);
bool tc_channel_on_result(void *arg, struct tc_resolver_result *result);
/* Takes over the picker. */
void tc_channel_set_state(torc_channel *ch, enum torc_connectivity state, const struct tc_status *status,
                          struct tc_picker *picker);

/* explain.c: what torc_channel_describe gives. */
void tc_channel_describe(const torc_channel *ch, const char *key, struct tc_describe *d);

/* watch.c */
void tc_channel_publish(torc_channel *ch);
void tc_channel_watch_init(torc_channel *ch);
void tc_channel_watch_end(torc_channel *ch, bool tell);

/* pick_queue.c */
void tc_pick_queue_init(torc_channel *ch);
/* A new picker: those that wait are tried again, once a turn. */
void tc_pick_queue_wake(torc_channel *ch);
/* A result came, or resolution failed. */
void tc_pick_queue_resolved(torc_channel *ch);

#endif
