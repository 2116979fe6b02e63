/* LB policies of the application's own. SPDX-License-Identifier: Apache-2.0
 *
 * An application gives a channel its factories (torc/channel.h), and a service config chooses one by its name. A policy
 * creates children of Torc's policies (pick_first for one endpoint, usually), hears their states, and chooses among the
 * children for each RPC. Torc owns the helper and the children; the policy owns its state, which `destroy` frees. All
 * functions and callbacks are for the loop's thread; `pick` is called for each RPC and must be fast. */
#ifndef TORC_LB_H
#define TORC_LB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <torc/connectivity.h>
#include <torc/export.h>
#include <torc/size.h>
#include <torc/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct torc_lb_helper torc_lb_helper;     /* the policy's way up */
typedef struct torc_lb_child torc_lb_child;       /* a child policy over some of the endpoints */
typedef struct torc_lb_endpoint torc_lb_endpoint; /* an endpoint of an update */
typedef struct torc_lb_pick torc_lb_pick;         /* one RPC that wants to be placed */

/* Returns how many addresses the endpoint has, 1 at least. */
TORC_API size_t torc_lb_endpoint_address_count(const torc_lb_endpoint *endpoint);
/* Returns the text of address i; borrowed as the endpoint is. */
TORC_API const char *torc_lb_endpoint_address(const torc_lb_endpoint *endpoint, size_t i);
/* Returns the weight that the resolver gave; 1 where it gave none. */
TORC_API uint64_t torc_lb_endpoint_weight(const torc_lb_endpoint *endpoint);
/* Returns the place on the ring (A76), borrowed as the endpoint is; "" where the resolver gave none. */
TORC_API const char *torc_lb_endpoint_hash_key(const torc_lb_endpoint *endpoint);

/* Returns a child with Torc's policy of that name ("pick_first", "round_robin", ...) in its default settings. `arg`
 * comes back in on_child_state. NULL when the name is unknown. */
TORC_API torc_lb_child *torc_lb_child_create(torc_lb_helper *helper, const char *policy, void *arg);
/* Gives the child its endpoints, which are borrowed for the call. pick_first and round_robin connect by themselves. */
TORC_API void torc_lb_child_set_endpoints(torc_lb_child *child, const torc_lb_endpoint *const *endpoints, size_t n);
/* Has a child connect that became idle. */
TORC_API void torc_lb_child_connect(torc_lb_child *child);
/* Ends and frees the child: on_child_state is no longer called for it. */
TORC_API void torc_lb_child_destroy(torc_lb_child *child);

/* Publishes the policy's state, which is CONNECTING before; picks that wait are tried again. message (copied, may be
 * NULL): the reason of TRANSIENT_FAILURE. */
TORC_API void torc_lb_update_state(torc_lb_helper *helper, enum torc_connectivity state, const char *message);
/* Asks the resolver for newer endpoints. */
TORC_API void torc_lb_request_reresolution(torc_lb_helper *helper);

/* The parts of an RPC that a pick may look at, borrowed until `pick` returns. Returns "/package.Service/Method". */
TORC_API const char *torc_lb_pick_method(const torc_lb_pick *pick);
/* Returns the value of a request header (several joined by ','); NULL: absent. */
TORC_API const char *torc_lb_pick_header(torc_lb_pick *pick, const char *name);
/* Returns a uniform random number. It stays the same while the RPC waits in the queue and is picked for again; each
 * retry and each hedge has a number of its own. */
TORC_API uint64_t torc_lb_pick_random(const torc_lb_pick *pick);

/* Makes policies of one name. */
struct torc_lb_factory {
    uint64_t size;
    const char *name; /* required; as service configs name it */
    /* Required. Makes a policy, and returns its state, which may be NULL. A channel that becomes IDLE destroys its
     * policy, and makes another when it leaves IDLE. */
    void *(*create)(torc_lb_helper *helper, void *arg);
    /* Required. New endpoints or config; config_json is its object in the service config ("{}" when empty). Both are
     * borrowed for the call. */
    void (*update)(void *state, const torc_lb_endpoint *const *endpoints, size_t n, const char *config_json);
    /* A child's new state (may be NULL). Never called inside another of these functions. It may destroy the child. */
    void (*on_child_state)(void *state, torc_lb_child *child, void *child_arg, enum torc_connectivity child_state);
    /* Connect, if idle (may be NULL). */
    void (*exit_idle)(void *state);
    /* Required. Chooses the child that serves the RPC (its own picker decides then), or NULL: the RPC waits for the
     * next torc_lb_update_state; while the policy shows TRANSIENT_FAILURE the RPC fails, unless it is wait-for-ready.
     * Must not call anything but the pick accessors. */
    torc_lb_child *(*pick)(void *state, torc_lb_pick *pick);
    /* Required. Ends it; children are destroyed by Torc if the policy has not. */
    void (*destroy)(void *state);
    void *arg; /* handed to create; may be NULL */
};

#ifdef __cplusplus
}
#endif
#endif
