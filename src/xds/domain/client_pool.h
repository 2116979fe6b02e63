/* The xDS clients of a runtime, and which targets share a client.
 *
 * A71 gives each target a client of its own, because a target that lacks a resource may fall back to another server
 * while a target that has all resources stays. An authority with one server has nothing to fall back to, so one client
 * holds its resources for all targets of a group: one ADS stream, one cache. If that server also stands in a list with
 * fallbacks, the authority is not shared. The bootstrap's "torc.share_client" may say instead that all authorities are
 * shared, or none (tc_xds_bootstrap_shares).
 *
 *   source   where a bootstrap is from; the bootstrap is read once for all clients of a source
 *   group    targets of one source whose options are equal, as far as group_options_text (client_pool.c) compares them;
 *            has the client that these targets share
 *   client   of one target. If some authorities are shared and some are not, it passes each watch to the target's own
 *            client or to the shared client (xds/client/forwarding_client.h)
 *
 * In a runtime that has an xDS domain (torc/xds_domain.h) a target's client is a remote client, and the pool of the
 * domain's runtime has the clients that the remote clients watch through (xds/domain/shared_domain.h). The pool also
 * has the list of certificate providers that the channels of the runtime share. Loop thread only. */
#ifndef TC_XDS_DOMAIN_CLIENT_POOL_H
#define TC_XDS_DOMAIN_CLIENT_POOL_H

#include "base/table.h"
#include "resolver/resolver.h"
#include "xds/client/local_client.h"
#include "xds/domain/xds_transport.h"

struct tc_client_group;
struct tc_client_source;
struct tc_xds_client_pool;

/* The client of one target, counted by the channels that use it; in the pool of an xDS domain's runtime, by the remote
 * clients that use it. */
struct tc_pool_client {
    struct tc_xds_client *client;                /* a reference */
    struct tc_xds_client_pool *pool;             /* borrowed; NULL: the pool is gone */
    struct tc_client_group *group;               /* borrowed: a group lives as long as it has a client */
    struct tc_channel_transport_factory factory; /* of the target's own client; zeroed: there is none */
    struct tc_lref ref;
    struct tc_rstr *target; /* a reference */
    UT_hash_handle hh;      /* the group's */
};

/* Returns the runtime's pool, never NULL, borrowed; made on first use, ends with the runtime. */
struct tc_xds_client_pool *tc_xds_client_pool_of(torc_runtime *runtime);
/* Returns the runtime's pool, borrowed; NULL if tc_xds_client_pool_of was not called yet. */
const struct tc_xds_client_pool *tc_xds_client_pool_find(torc_runtime *runtime);
/* Returns a pool that the runtime does not know, without an xDS domain. The caller frees the pool. `runtime` is
 * borrowed. Used by tc_xds_client_pool_of and by tests. */
struct tc_xds_client_pool *tc_xds_client_pool_new(torc_runtime *runtime);
/* Frees the pool. Clients in use stay until they are released, with `pool` NULL. */
void tc_xds_client_pool_free(struct tc_xds_client_pool *p);

/* Returns the client for a channel's target, with one more reference; made if it does not exist. Returns NULL with
 * *error if the bootstrap cannot be read or used. `env` and `target` are borrowed for the call. */
struct tc_pool_client *tc_pool_client_get(struct tc_xds_client_pool *p, const struct tc_resolver_env *env,
                                          struct tc_slice target, struct tc_status *error);
/* Gives back a reference. NULL is allowed. */
void tc_pool_client_release(struct tc_pool_client *c);
/* Calls fn for each shared client, and for each target's client that is not the shared client itself. `scope` has the
 * targets that use the client, separated by spaces; for a shared client at most TC_CLIENT_SCOPE_BYTES, then " ...".
 * Both are borrowed for the call. `fn` must not get or release clients. In a runtime with an xDS domain the clients are
 * remote, and their dump is empty. */
enum { TC_CLIENT_SCOPE_BYTES = 16384 };
void tc_xds_client_pool_each(const struct tc_xds_client_pool *p,
                             void (*fn)(void *arg, const struct tc_xds_client *c, struct tc_slice scope), void *arg);

/* Returns the pool's list of certificate providers, for tc_cert_provider_get. Borrowed. */
struct tc_link *tc_xds_client_pool_cert_providers(struct tc_xds_client_pool *p);

#endif
