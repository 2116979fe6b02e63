/* The xDS clients that runtimes with one xDS domain (torc/xds_domain.h) share. They run on the domain's loop. The
 * functions are for the loop's thread of the runtime that calls them. */
#ifndef TC_XDS_DOMAIN_SHARED_DOMAIN_H
#define TC_XDS_DOMAIN_SHARED_DOMAIN_H

#include "io/mailbox.h"
#include "resolver/resolver.h"
#include "xds/client/client.h"

struct tc_shared_domain;

/* Names a client: where its bootstrap is from, its options, its target (client_pool.c). */
struct tc_shared_client_key {
    struct tc_rstr *source, *options, *target;
    struct tc_xds_bootstrap *bootstrap; /* what was read from `source`; not compared */
};

/* How clients are made: by the pool of the domain's runtime, which stands above this file. Called on the domain's
 * loop. */
struct tc_shared_domain_ops {
    /* env->runtime is the domain's. Returns the client, borrowed until `close` of *hold. */
    struct tc_xds_client *(*open)(const struct tc_shared_client_key *key, const struct tc_resolver_env *env,
                                  void **hold);
    void (*close)(void *hold);
};

/* Returns the shared domain of the runtime's xDS domain, a reference; NULL: the runtime has no xDS domain. */
struct tc_shared_domain *tc_shared_domain_of(torc_runtime *runtime);
/* NULL is allowed. */
void tc_shared_domain_unref(struct tc_shared_domain *s);

/* Returns a client on the env's loop, whose mailbox is `here`, with one reference. It watches through the domain's
 * client of this key, which is made if it does not exist. Key and env are borrowed for the call; `ops` is static. */
struct tc_xds_client *tc_shared_domain_client(struct tc_shared_domain *s, struct tc_mailbox *here,
                                              const struct tc_shared_client_key *key, const struct tc_resolver_env *env,
                                              const struct tc_shared_domain_ops *ops);

#endif
