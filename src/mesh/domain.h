/* The xDS domain of a runtime: what its channels share of the mesh. xDS clients, one for each target and bootstrap
 * (A71), and the counters of circuit breaking (A32, A37). Loop thread only. */
#ifndef TC_MESH_DOMAIN_H
#define TC_MESH_DOMAIN_H

#include "mesh/xds_transport.h"
#include "resolver/resolver.h"
#include "xds/client.h"

struct tc_mesh_domain;

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
    struct tc_mesh_transport_factory factory;
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

/* RPCs that are under way to one {cluster, EDS service}, over all channels of the domain. */
struct tc_call_counter {
    uint32_t calls;
    struct tc_lref ref;
    struct tc_mesh_domain *domain; /* NULL: it belongs to none (any more) */
    struct tc_link link;
    struct tc_rstr *cluster, *service;
};

/* One more user of the counter. NULL domain: one of its own. service may be NULL. */
struct tc_call_counter *tc_call_counter_get(struct tc_mesh_domain *d, struct tc_rstr *cluster, struct tc_rstr *service);
struct tc_call_counter *tc_call_counter_ref(struct tc_call_counter *c);
void tc_call_counter_unref(struct tc_call_counter *c);

#endif
