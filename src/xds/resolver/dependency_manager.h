/* XdsDependencyManager (A74): watches the listener and the resources that the listener leads to, and reports
 * configurations. A configuration is whole: a value or an error of each of these resources is known. The caller owns
 * the manager. Loop thread only. */
#ifndef TC_XDS_RESOLVER_DEPENDENCY_MANAGER_H
#define TC_XDS_RESOLVER_DEPENDENCY_MANAGER_H

#include "resolver/resolver.h"
#include "xds/client/client.h"
#include "xds/resource/xds_config.h"

struct tc_dependency_manager;

/* Called by the loop. A callback may free the manager. */
struct tc_dependency_events {
    /* A config that differs from the last report; borrowed. */
    void (*on_config)(void *arg, struct tc_xds_config *config);
    /* There is nothing to route by: the listener or the route configuration cannot be had (it does not exist, is
     * invalid, or no xDS server can be reached), the listener is for servers, no virtual host is for the authority, or
     * that virtual host needs too many HTTP filters. The config reported before no longer holds. The error is
     * UNAVAILABLE, names the xDS node, and differs from the last report; borrowed. */
    void (*on_error)(void *arg, const struct tc_status *error);
};

struct tc_dependency_opts {
    struct tc_slice listener;          /* resource name; copied */
    struct tc_slice authority;         /* of the data plane; copied */
    const struct tc_resolver_env *dns; /* for LOGICAL_DNS clusters; must outlive the manager; NULL: they fail */
    struct tc_xds_client_pool *pool;   /* for tc_xds_config.pool; borrowed; may be NULL */
};

/* Starts to watch. Client and events are borrowed and must outlive the manager. */
struct tc_dependency_manager *tc_dependency_manager_new(struct tc_loop *loop, struct tc_xds_client *client,
                                                        const struct tc_dependency_opts *opts,
                                                        const struct tc_dependency_events *events, void *arg);
/* Frees the manager: no callback follows. NULL is allowed. */
void tc_dependency_manager_free(struct tc_dependency_manager *m);

/* Keeps a cluster in the config whether or not routes name it, until unsubscribe was called as often as subscribe (A74:
 * clusters that RPCs hold). */
void tc_dependency_manager_subscribe(struct tc_dependency_manager *m, struct tc_slice cluster);
void tc_dependency_manager_unsubscribe(struct tc_dependency_manager *m, struct tc_slice cluster);
/* A74: resolves again the name of every LOGICAL_DNS cluster that has had an answer since the last such request. */
void tc_dependency_manager_request_reresolution(struct tc_dependency_manager *m);
/* Ends the waits after failed DNS queries: resolves these names at once. */
void tc_dependency_manager_reset_backoff(struct tc_dependency_manager *m);
/* Appends the resources and DNS names that a config still waits for: 'CDS resource "c", EDS resource "e"'. Names the
 * first four, and appends the number of the others. Appends nothing if all are known. */
void tc_dependency_manager_pending(const struct tc_dependency_manager *m, struct tc_buf *out);

#endif
