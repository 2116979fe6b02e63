/* LB policies of the application's own. SPDX-License-Identifier: Apache-2.0
 *
 * An application gives a channel its factories (torc/channel.h), and a service config chooses one by its name. A policy
 * creates children, each with a policy of Torc's (pick_first for one endpoint, usually) or with one that a config
 * names, hears their states, and chooses among the children for each RPC. Torc owns the helper and the children; the
 * policy owns its state, which `destroy` frees. Functions and callbacks are for the loop's thread, except
 * `check_config` with the functions that it may call, and `release`. `pick` is called for each RPC and must be fast.
 *
 * A policy with one child for each endpoint, which sends each RPC to a random one of those that are connected:
 *
 *     static void update(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json)
 *     {
 *         struct policy *p = state; // from `create`, with the helper
 *         while (p->n > 0)
 *             torc_lb_child_destroy(p->at[--p->n]); // connections stay in the pool for the new children
 *         for (; p->n < n && p->n < MOST; p->n++) {
 *             p->at[p->n] = torc_lb_child_create(p->helper, "pick_first", NULL);
 *             torc_lb_child_set_endpoints(p->at[p->n], &endpoints[p->n], 1);
 *         }
 *         torc_lb_update_state_of_children(p->helper, "there are no endpoints");
 *     }
 *
 *     static void on_child_state(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity now)
 *     {
 *         struct policy *p = state;
 *         torc_lb_child_connect(child); // if it is idle, as its connection ended
 *         torc_lb_update_state_of_children(p->helper, torc_lb_child_text(child));
 *     }
 *
 *     static torc_lb_child *pick(void *state, torc_lb_pick *pick)
 *     {
 *         struct policy *p = state;
 *         size_t first = p->n > 0 ? torc_lb_pick_random(pick) % p->n : 0;
 *         for (size_t i = 0; i < p->n; i++)
 *             if (torc_lb_child_state(p->at[(first + i) % p->n]) == TORC_CONNECTIVITY_READY)
 *                 return p->at[(first + i) % p->n];
 *         return NULL; // waits, or fails with the policy's text
 *     }
 *
 *     static const struct torc_lb_factory random_factory = {
 *         TORC_SIZE(torc_lb_factory), .name = "random", .create = create, .update = update,
 *         .on_child_state = on_child_state, .pick = pick};
 *     static const struct torc_lb_factory *const policies[] = {&random_factory, NULL};
 *     struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = credentials,
 *                                      .lb_policies = policies,
 *                                      .service_config_json = "{\"loadBalancingConfig\":[{\"random\":{}}]}"};
 */
#ifndef TORC_LB_H
#define TORC_LB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <torc/connectivity.h>
#include <torc/error.h>
#include <torc/export.h>
#include <torc/size.h>
#include <torc/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct torc_lb_helper torc_lb_helper;     /* what a policy calls Torc with */
typedef struct torc_lb_child torc_lb_child;       /* a child policy over some of the endpoints */
typedef struct torc_lb_endpoint torc_lb_endpoint; /* an endpoint of an update */
typedef struct torc_lb_pick torc_lb_pick;         /* one RPC for which a child is chosen */
typedef struct torc_lb_call_end torc_lb_call_end; /* the end of an RPC that was picked for */
typedef struct torc_lb_check torc_lb_check;       /* a config in check_config */

/* Returns how many addresses the endpoint has, 1 at least. */
TORC_API size_t torc_lb_endpoint_address_count(const torc_lb_endpoint *endpoint);
/* Returns the text of address i ("127.0.0.1:80"), counted from 0; borrowed as the endpoint is. NULL beyond the last. */
TORC_API const char *torc_lb_endpoint_address(const torc_lb_endpoint *endpoint, size_t i);
/* Returns the weight that the resolver gave; 1 where it gave none. */
TORC_API uint64_t torc_lb_endpoint_weight(const torc_lb_endpoint *endpoint);
/* Returns the place on the ring (A76), borrowed as the endpoint is; "" where the resolver gave none. */
TORC_API const char *torc_lb_endpoint_hash_key(const torc_lb_endpoint *endpoint);

/* Returns a new child, without endpoints, with Torc's policy of that name ("pick_first", "round_robin", ...) in its
 * default settings. policy NULL: torc_lb_child_set_config gives the child its policy, and endpoints are ignored until
 * then. `arg` comes back in on_child_state as child_arg. Health checks (healthCheckConfig) and outlier_detection do not
 * work for a pick_first child: use round_robin instead, if need be one child for each endpoint. NULL when Torc has no
 * policy of the name (a policy of the application can be a child only by config), the policy demands settings (priority
 * and weighted_target, say), or the helper's policy is being destroyed. */
TORC_API torc_lb_child *torc_lb_child_create(torc_lb_helper *helper, const char *policy, void *arg);
/* Gives the child a policy by config, from its next torc_lb_child_set_endpoints on. The config is a list as service
 * configs have it, [{"name": {...}}, ...]; the first policy in it that is known counts. `field` NULL: config_json is
 * the list; else config_json is an object, and the list is its member `field` ("childPolicy"). The list may name Torc's
 * policies and those of the channel's lb_policies, nested at most 16 deep. If the policy changes, the child keeps the
 * old one until the new one has left CONNECTING. Returns 0, or a code with an error, and the child keeps what it has:
 * TORC_EINVAL (the text is not JSON, the list is missing or malformed, no policy is known, a setting is refused),
 * TORC_ESTATE (the helper's policy is being destroyed). */
TORC_API int torc_lb_child_set_config(torc_lb_child *child, const char *config_json, const char *field,
                                      torc_error **error);
/* Gives the child n endpoints, which are borrowed for the call and replace those that it had; a connection to an
 * endpoint that stays is kept. round_robin connects by itself, and pick_first does with its first endpoints; a
 * pick_first that has become IDLE waits for an RPC or torc_lb_child_connect. */
TORC_API void torc_lb_child_set_endpoints(torc_lb_child *child, const torc_lb_endpoint *const *endpoints, size_t n);
/* Returns the state that on_child_state was last called with, or is called with now; CONNECTING before the first. */
TORC_API enum torc_connectivity torc_lb_child_state(const torc_lb_child *child);
/* Returns why the child is in TRANSIENT_FAILURE ("127.0.0.1:80: Connection refused"), "" in another state. Borrowed
 * until the child's next state. */
TORC_API const char *torc_lb_child_text(const torc_lb_child *child);
/* Has the child connect if it is IDLE; does nothing in another state. */
TORC_API void torc_lb_child_connect(torc_lb_child *child);
/* Ends and frees the child: on_child_state is no longer called for it, and `pick` must not return it. RPCs that it was
 * chosen for go on. NULL is allowed. */
TORC_API void torc_lb_child_destroy(torc_lb_child *child);

/* Publishes the policy's state; RPCs that wait are picked for again. Until the first call the state is CONNECTING, or
 * TRANSIENT_FAILURE if name resolution has failed. SHUTDOWN and unknown numbers count as TRANSIENT_FAILURE. message
 * (copied, may be NULL): the reason of TRANSIENT_FAILURE, for the text of RPCs, which fail with UNAVAILABLE. */
TORC_API void torc_lb_update_state(torc_lb_helper *helper, enum torc_connectivity state, const char *message);
/* Calls torc_lb_update_state with READY if a child of the policy is READY, else with CONNECTING if one is CONNECTING,
 * else with IDLE if one is IDLE, else, and without children, with TRANSIENT_FAILURE. */
TORC_API void torc_lb_update_state_of_children(torc_lb_helper *helper, const char *message);
/* Asks the resolver for newer endpoints; `update` follows if there are any. Resolvers limit how often they ask. */
TORC_API void torc_lb_request_reresolution(torc_lb_helper *helper);

/* Returns the time of the runtime's clock, in milliseconds from an arbitrary start; it never goes back. */
TORC_API int64_t torc_lb_now_ms(const torc_lb_helper *helper);
/* Has on_timer called once, after delay_ms; a timer that was set before is replaced. A negative delay: no timer. */
TORC_API void torc_lb_set_timer(torc_lb_helper *helper, int64_t delay_ms);

/* Returns "/package.Service/Method", borrowed until `pick` returns. */
TORC_API const char *torc_lb_pick_method(const torc_lb_pick *pick);
/* Returns the value of a field of the request's metadata, by its name in lower case (several joined by ','), borrowed
 * until `pick` returns; NULL: absent. The value of a "-bin" field may have a NUL inside, which ends the text. */
TORC_API const char *torc_lb_pick_header(torc_lb_pick *pick, const char *name);
/* Returns a uniform random number. It stays the same while the RPC waits in the queue and is picked for again; each
 * retry and each hedge has a number of its own. */
TORC_API uint64_t torc_lb_pick_random(const torc_lb_pick *pick);
/* Returns 1 if the pick only explains (torc_explain), and no RPC follows, so the policy must not count it; else 0. */
TORC_API int torc_lb_pick_explains(const torc_lb_pick *pick);
/* Has on_call_end called once with call_arg, however the pick comes out. If the policy is destroyed before, on_call_end
 * is not called, and the policy frees call_arg itself. If called twice for a pick, the last call_arg counts. Does
 * nothing for a pick that only explains, and if the factory has no on_call_end. */
TORC_API void torc_lb_pick_watch(torc_lb_pick *pick, void *call_arg);

/* Returns the status code of the RPC's attempt (each retry and hedge is a pick of its own); -1 if the pick led to no
 * attempt: `pick` returned NULL, the child let the RPC wait or fail, the connection took no more RPCs, the RPC had to
 * wait for its call credentials (another pick follows), or the RPC failed before it asked the connection for a stream
 * (its deadline, its call credentials). An RPC that ends in the connection's queue for a stream has its own code. */
TORC_API int torc_lb_call_end_code(const torc_lb_call_end *end);
/* Returns the value of a trailer, by its name in lower case (several joined by ','), borrowed until on_call_end
 * returns; NULL: absent. The value of a "-bin" trailer may have a NUL inside, which ends the text. */
TORC_API const char *torc_lb_call_end_trailer(torc_lb_call_end *end, const char *name);
/* Stores a value of the load report (ORCA, gRFC A51) that the backend sent with the end of the RPC, and returns 1; 0:
 * there is no such report or value, and *value is untouched. metric: one of enum torc_orca_metric (torc/orca.h). name:
 * that of a metric with names; NULL for the others. The value is the backend's, whatever double that is. */
TORC_API int torc_lb_call_end_load(const torc_lb_call_end *end, int metric, const char *name, double *value);

/* Refuses the config: `field` (NULL: the config as a whole) and `text` are copied into the error. */
TORC_API void torc_lb_check_refuse(torc_lb_check *check, const char *field, const char *text);
/* Refuses the config if torc_lb_child_set_config would refuse its `field`, which must not be NULL. */
TORC_API void torc_lb_check_child(torc_lb_check *check, const char *field);

/* Makes policies of one name. Torc copies the struct; `name` and what `arg` points at must live until `release` is
 * called. */
struct torc_lb_factory {
    uint64_t size;
    const char *name; /* required, not empty; as service configs name it */
    /* Required. Makes a policy, and returns its state, which may be NULL; the helper is valid until `destroy` has
     * returned. A channel without calls for idle_timeout_ms destroys its policy, and makes another when it leaves IDLE.
     */
    void *(*create)(torc_lb_helper *helper, void *arg);
    /* Required. Takes new endpoints or a new config; config_json is the policy's object in the service config ("{}"
     * when empty). Both are borrowed for the call. */
    void (*update)(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json);
    /* A child has a new state. Never called inside another of these functions. It may destroy the child. May be NULL.
     */
    void (*on_child_state)(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity child_state);
    /* Has the policy connect, if it is idle: the application or the policy above asks for it (torc_channel_connect,
     * torc_lb_child_connect), or `pick` returned NULL for an RPC while the policy shows IDLE. May be NULL. */
    void (*exit_idle)(void *state);
    /* Required. Chooses the child that serves the RPC (its own picker decides then), or NULL: the RPC waits for the
     * next torc_lb_update_state or state of a child; while the policy shows TRANSIENT_FAILURE the RPC fails, unless it
     * is wait-for-ready. Must not call anything but torc_lb_child_state, torc_lb_child_text, torc_lb_now_ms and the
     * functions that take the pick. */
    torc_lb_child *(*pick)(void *state, torc_lb_pick *pick);
    /* Ends the policy. Torc destroys the children that are left afterwards. May be NULL. */
    void (*destroy)(void *state);
    void *arg; /* handed to create; may be NULL */
    /* The channel gives the factory up, and calls none of its functions again: this function may free `arg`. Called
     * once for each channel that was made with the factory, when the channel and the handles of its RPCs have been
     * freed, by the thread that frees the last of them or that drives the loop. Not called if torc_channel_new failed.
     * May be NULL. */
    void (*release)(void *arg);
    /* An RPC has ended for which `pick` called torc_lb_pick_watch; not called after `destroy`. What call_arg points at
     * must live until then. Must not call anything but the accessors of `end`, torc_lb_now_ms, torc_lb_set_timer,
     * torc_lb_request_reresolution, torc_lb_update_state and torc_lb_update_state_of_children; what the last two
     * publish takes effect after this function has returned. A policy that publishes when the code is -1 has the RPC
     * picked for again: if `pick` returns NULL each time, that never ends. May be NULL. */
    void (*on_call_end)(void *state, void *call_arg, torc_lb_call_end *end);
    /* The time of torc_lb_set_timer has come. May be NULL. */
    void (*on_timer)(void *state);
    /* Checks a config before it is used. A config that it refuses makes the service config invalid, and the channel
     * keeps the last good one. If this is NULL, every JSON object is accepted. Called on any thread, by several at
     * once, and also before `create`; must not call anything but torc_lb_check_refuse and torc_lb_check_child. */
    void (*check_config)(torc_lb_check *check, const char *config_json, void *arg);
};

#ifdef __cplusplus
}
#endif
#endif
