/* The insides of a channel, for the files of src/channel and src/api. create.c makes one, channel.c runs it.
 *
 * The first part of torc_channel, apart from `ref`, is fixed when the channel is made, and any thread may read it. The
 * second part is for public functions on any thread. The third part belongs to the loop, except
 * `connectivity.published`. */
#ifndef TC_CHANNEL_CHANNEL_INTERNAL_H
#define TC_CHANNEL_CHANNEL_INTERNAL_H

#include "base/ref.h"
#include "channel/channel.h"
#include "channel/interceptors.h"
#include "channel/pick_queue.h"
#include "channel/retry.h"
#include "channel/service_config.h"
#include "channel/state_watch.h"
#include "lb/connect_turns.h"
#include "lb/graceful_switch.h"
#include "resolver/proxy.h"
#include "resolver/resolver.h"
#include "subchannel/conn_config.h"
#include "subchannel/subchannel.h"

/* The LB policies and resolvers that the channel may use. */
struct tc_channel_plugins {
    const struct tc_lb_registry *policies; /* built-in policies, and the application's own; outlives the channel */
    /* Returns the application's resolver for the scheme, valid until `release`, or NULL. Called inside of
     * tc_channel_make alone. May be NULL: the application has no resolvers. */
    const struct tc_resolver_class *(*find_resolver)(void *arg, struct tc_slice scheme);
    void *arg; /* for both functions */
    /* Called when the channel's memory goes; `made`: tc_channel_make succeeded. May be NULL. Any thread. */
    void (*release)(void *arg, bool made);
};

/* The resolver's last result. */
struct tc_channel_resolution {
    struct tc_resolver_env env;
    struct tc_resolver *resolver;             /* NULL: the channel is idle, or has ended */
    bool usable;                              /* a result came that calls can use */
    struct tc_status error;                   /* why `usable` is false; OK: it is true, or no result came */
    struct tc_config_selector *selector;      /* a reference; NULL: the service config's methods apply */
    struct tc_service_config *service_config; /* in force, a reference; NULL: none */
    uint64_t logged;                          /* hash of the addresses or the error that were logged last; 0: none */
};

/* The LB policy, and what it uses. */
struct tc_channel_lb {
    struct tc_lb_env env;
    struct tc_connect_turns connect_turns;
    struct tc_scaling scaling; /* of the subchannels: the service config's limit; 1 with xDS, or without such a limit */
    struct tc_lb_helper helper;
    struct tc_graceful_switch *child; /* NULL: idle, ended, or no result has reached a policy yet */
    struct tc_lb_config *config;      /* of the policy's last update, a reference; NULL: there is none */
    struct tc_picker *picker;         /* a reference; NULL before tc_channel_attach and after the end */
    bool connect_wanted;              /* the policy is to leave IDLE after its first update */
};

/* The calls that run. */
struct tc_channel_calls {
    struct tc_link all;                /* struct tc_channel_call; a call in DONE only while interceptors hold up its
                                          end */
    size_t n;                          /* calls that have begun and are not in DONE, hedged attempts included */
    uint64_t kept_bytes;               /* of the messages in the calls' send buffers (send_buffer.h) */
    struct tc_retry_throttle throttle; /* with the settings of the service config in force */
    uint64_t last_active_ms;           /* when n became 0, or the channel left IDLE (tc_loop_now_ms) */
    struct tc_timer idle_timer;
};

/* A call, as its channel knows it; embedded in the call. */
struct tc_channel_call {
    struct tc_link link;
    /* The channel ends: the call takes itself off the list and ends with the status (borrowed). NULL: the call ends
     * without on_done. */
    void (*end)(struct tc_channel_call *call, const struct tc_status *status);
};

struct torc_channel {
    struct tc_ref ref; /* the handle's, the loop's, each call's, each posted request's, each torc_channel_watch_state's,
                          each waiting thread's */
    torc_runtime *rt;  /* a reference */
    struct tc_loop *loop;
    bool is_private;
    struct torc_channel_options opts; /* its pointers are valid only inside tc_channel_make */
    struct tc_target target;
    const struct tc_resolver_class *resolver_class;
    struct tc_proxy_class proxied; /* resolver_class is its base if connections go through a proxy; else zeroed */
    struct tc_channel_plugins plugins;
    struct tc_rstr *authority;
    struct tc_rstr *user_agent;
    char *xds_bootstrap_json;                 /* NULL: none */
    struct tc_service_config *default_config; /* a reference; NULL: none */
    torc_credentials *credentials;            /* a reference */
    struct tc_conn_config *conn_config;       /* a reference */
    struct tc_interceptors *interceptors;     /* NULL: none */

    /* Of public functions, which any thread may call. */
    atomic_bool freed; /* torc_channel_free was called */
    struct tc_task free_task;
    atomic_flag connect_posted; /* exit_idle_task is on its way */
    struct tc_task exit_idle_task;

    /* The loop's. */
    struct tc_runtime_member member;
    bool ended;
    struct tc_status end_status; /* why the channel ended; later calls end with it */
    struct tc_task unref_task;   /* gives back the loop's reference */
    struct tc_channel_resolution resolution;
    struct tc_channel_lb lb;
    struct tc_channel_connectivity connectivity;
    struct tc_channel_calls calls;
    struct tc_pick_queue queue;
};

/* Any thread. */
torc_channel *tc_channel_ref(torc_channel *ch);
void tc_channel_unref(torc_channel *ch);

/* Joins the runtime. Called on the loop before a call, a watch or anything that connects; repeated calls do nothing.
 * Ends the channel at once if the runtime was shut down. */
void tc_channel_attach(torc_channel *ch);
/* Ends the channel, which is attached, and its calls with the status (borrowed), once. With `tell`, the watches are
 * called from inside and the calls' on_done comes by the serial queue; without it, neither is called. */
void tc_channel_end(torc_channel *ch, const struct tc_status *status, bool tell);
/* Counts a call. The first one has an idle channel resolve its target; the call's pick decides what connects. */
void tc_channel_call_began(torc_channel *ch);
/* Counts a call down. */
void tc_channel_call_ended(torc_channel *ch);
/* tc_resolver_env.on_result; `arg` is the channel. */
bool tc_channel_on_result(void *arg, struct tc_resolver_result *result);
/* Sets the channel's state and picker, and has queued picks try again. Publishes the state if it changed or is
 * TRANSIENT_FAILURE. Takes over the picker. `status` is borrowed (may be NULL), and kept in TRANSIENT_FAILURE alone. */
void tc_channel_set_state(torc_channel *ch, enum torc_connectivity state, const struct tc_status *status,
                          struct tc_picker *picker);

#endif
