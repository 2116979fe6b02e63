/* What runtimes with one xDS domain (torc/xds_domain.h) share: xDS clients, which run on the domain's loop, and
 * counters of circuit breaking. Inside src/mesh, for domain.c. */
#ifndef TC_MESH_SHARED_DOMAIN_H
#define TC_MESH_SHARED_DOMAIN_H

#include "io/mailbox.h"
#include "mesh/domain.h"

struct tc_shared_domain;

/* That of the runtime's xDS domain, a reference; NULL: the runtime shares none. */
struct tc_shared_domain *tc_shared_domain_of(torc_runtime *runtime);
void tc_shared_domain_unref(struct tc_shared_domain *s);

/* A client on the env's loop (whose mailbox is `here`) that watches through the domain's client of that key; makes that
 * one when there is none. NULL with *error when the bootstrap cannot be read. */
struct tc_xds_client *tc_shared_domain_client(struct tc_shared_domain *s, struct tc_mailbox *here, struct tc_rstr *key,
                                              const struct tc_resolver_env *env, struct tc_slice target,
                                              struct tc_status *error);

/* One more user of the counter of {cluster, service}. Any thread. */
struct tc_call_counter *tc_shared_domain_counter(struct tc_shared_domain *s, struct tc_rstr *cluster,
                                                 struct tc_rstr *service);
/* Users of such a counter. Any thread. */
void tc_shared_counter_ref(struct tc_call_counter *c);
void tc_shared_counter_unref(struct tc_call_counter *c);

#endif
