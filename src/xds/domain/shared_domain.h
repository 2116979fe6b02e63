/* The xDS clients that the runtimes of one xDS domain (torc/xds_domain.h) share. The clients run on the domain's loop.
 * The functions are for the loop's thread of the calling runtime; tc_shared_domain_unref is for any thread. */
#ifndef TC_XDS_DOMAIN_SHARED_DOMAIN_H
#define TC_XDS_DOMAIN_SHARED_DOMAIN_H

#include "io/mailbox.h"
#include "resolver/resolver.h"
#include "xds/client/client.h"

struct tc_shared_domain;

/* Identifies a client: the text of its source, the text of its options, its target (client_pool.c). No member is
 * NULL. */
struct tc_shared_client_key {
    struct tc_rstr *source, *options, *target;
    struct tc_xds_bootstrap *bootstrap; /* read from the source; not compared */
};

/* Makes and gives back the clients of the domain's runtime: client_pool.c, which stands above this file. Called on the
 * domain's loop. */
struct tc_shared_domain_ops {
    /* Returns the client of the key, made if it does not exist, borrowed until `close` of *hold, which is not NULL.
     * env->loop and env->runtime are the domain's. */
    struct tc_xds_client *(*open)(const struct tc_shared_client_key *key, const struct tc_resolver_env *env,
                                  void **hold);
    void (*close)(void *hold);
};

/* Returns the shared domain of the runtime's xDS domain, with one more reference; NULL: the runtime has no xDS
 * domain. */
struct tc_shared_domain *tc_shared_domain_of(torc_runtime *runtime);
/* NULL is allowed. */
void tc_shared_domain_unref(struct tc_shared_domain *s);

/* Returns a remote client on the env's loop, with one reference. `here` is a mailbox of that loop. The client watches
 * through the domain's client of this key, which is made if it does not exist. Key and env are borrowed for the call,
 * but the credentials of the env are kept by a reference; `ops` is static. */
struct tc_xds_client *tc_shared_domain_client(struct tc_shared_domain *s, struct tc_mailbox *here,
                                              const struct tc_shared_client_key *key, const struct tc_resolver_env *env,
                                              const struct tc_shared_domain_ops *ops);

#endif
