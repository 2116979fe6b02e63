/* The xDS domain of a runtime: what its channels share of the mesh, with those of other runtimes when it was given an
 * xDS domain (torc/xds_domain.h). xDS clients, one for each target and bootstrap (A71), and the counters of circuit
 * breaking (A32, A37). Loop thread only. */
#ifndef TC_MESH_DOMAIN_H
#define TC_MESH_DOMAIN_H

#include <stdatomic.h>
#include <uthash.h>

#include "mesh/xds_transport.h"
#include "resolver/resolver.h"
#include "xds/client.h"

struct tc_mesh_domain;
struct tc_shared_domain;

/* The runtime's; made on first use, ends with the runtime. */
struct tc_mesh_domain *tc_mesh_domain_of(torc_runtime *runtime);
/* The same, or NULL when there was no use for it so far. */
const struct tc_mesh_domain *tc_mesh_domain_find(torc_runtime *runtime);
/* One by itself, for tests. */
struct tc_mesh_domain *tc_mesh_domain_new(torc_runtime *runtime);
void tc_mesh_domain_free(struct tc_mesh_domain *d);

/* A shared client; ends with its last user. */
struct tc_domain_client {
    struct tc_xds_client *client;
    struct tc_mesh_transport_factory factory; /* without a runtime when it is a replica */
    struct tc_mesh_domain *domain;
    struct tc_link link;
    struct tc_lref ref;
    struct tc_rstr *key;
};

/* The client for a channel's target, with one more user; makes it when there is none. NULL with *error when the
 * bootstrap cannot be read. */
struct tc_domain_client *tc_domain_client_get(struct tc_mesh_domain *d, const struct tc_resolver_env *env,
                                              struct tc_slice target, struct tc_status *error);
void tc_domain_client_release(struct tc_domain_client *c);
/* Calls fn for each that is in use. */
void tc_mesh_domain_each_client(const struct tc_mesh_domain *d, void (*fn)(void *arg, const struct tc_xds_client *c),
                                void *arg);

/* For src/mesh/shared_domain.c: the bootstrap that the env speaks of (NULL with *error), and the client of a key with
 * one more user, made with this bootstrap when there is none. */
struct tc_xds_bootstrap *tc_domain_bootstrap(const struct tc_resolver_env *env, struct tc_status *error);
/* Why this cannot be the target of a control plane (tc_free); NULL: it can. */
char *tc_domain_uri_fault(const char *uri);
struct tc_domain_client *tc_domain_client_get_keyed(struct tc_mesh_domain *d, struct tc_rstr *key,
                                                    struct tc_xds_bootstrap *bootstrap,
                                                    const struct tc_resolver_env *env, struct tc_slice target);
/* Of struct tc_cert_provider (mesh/cert_providers.h), by link. */
struct tc_link *tc_mesh_domain_cert_providers(struct tc_mesh_domain *d);

/* RPCs that are under way to one {cluster, EDS service}, over all channels of the domain. */
struct tc_call_counter {
    atomic_uint calls;
    struct tc_lref ref;
    struct tc_shared_domain *shared; /* other runtimes count too; NULL: the rest belongs to this loop alone */
    struct tc_call_counter **table;  /* the domain's; NULL: it belongs to none (any more) */
    struct tc_rstr *key;             /* in the table */
    UT_hash_handle hh;
};

/* One more user of the counter. NULL domain: one of its own. service may be NULL. */
struct tc_call_counter *tc_call_counter_get(struct tc_mesh_domain *d, struct tc_rstr *cluster, struct tc_rstr *service);
struct tc_call_counter *tc_call_counter_ref(struct tc_call_counter *c);
void tc_call_counter_unref(struct tc_call_counter *c);

/* Counts one more RPC unless `max` are under way: then false. Never lets more in, however many runtimes count. *full is
 * the caller's, false at first: after a refusal it asks before it counts, so that what runtimes refuse under overload
 * does not have them write to one cache line. */
static inline bool tc_call_counter_begin(struct tc_call_counter *c, uint32_t max, bool *full)
{
    if (!c->shared) {
        uint32_t calls = atomic_load_explicit(&c->calls, memory_order_relaxed);
        if (calls >= max)
            return false;
        atomic_store_explicit(&c->calls, calls + 1, memory_order_relaxed);
        return true;
    }
    if (*full && atomic_load_explicit(&c->calls, memory_order_relaxed) >= max)
        return false;
    *full = atomic_fetch_add_explicit(&c->calls, 1, memory_order_relaxed) >= max;
    if (*full)
        atomic_fetch_sub_explicit(&c->calls, 1, memory_order_relaxed);
    return !*full;
}

static inline void tc_call_counter_end(struct tc_call_counter *c)
{
    if (c->shared)
        atomic_fetch_sub_explicit(&c->calls, 1, memory_order_relaxed);
    else
        atomic_store_explicit(&c->calls, atomic_load_explicit(&c->calls, memory_order_relaxed) - 1,
                              memory_order_relaxed);
}

/* For src/mesh/shared_domain.c: the counter in a table (NULL: none has it) with one more user, made when there is none,
 * and its end; whoever guards the table. */
struct tc_call_counter *tc_call_counter_get_in(struct tc_call_counter **table, const struct tc_rstr *cluster,
                                               const struct tc_rstr *service);
void tc_call_counter_free(struct tc_call_counter *c);

#endif
