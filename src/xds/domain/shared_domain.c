/* The xDS clients of the runtimes of one xDS domain. The clients run on the domain's loop. Each runtime has a remote
 * client for each of its targets.
 *
 *   runtime A, runtime B    tc_shared_domain_client: finds or adds the origin under the mutex, makes a remote client
 *   domain's loop           hold_open: the pool of the domain's runtime makes the real client, or finds it
 *                           hold_close: gives the real client back; the last hold removes the origin
 *
 * An origin is a key with a count: the remote clients of equal targets share one bootstrap object and one real client.
 * The xDS domain and the pool of each runtime hold a reference of struct tc_shared_domain. When the xDS domain ends,
 * domain_end closes the mailbox, and then the domain's loop ends. */
#include "xds/domain/shared_domain.h"

#include <pthread.h>

#include "base/mem.h"
#include "creds/creds.h"
#include "runtime/runtime.h"
#include "runtime/xds_domain.h"
#include "xds/client/remote_client.h"

struct tc_shared_domain {
    struct tc_ref ref;        /* held by the xDS domain and by each runtime's pool */
    torc_runtime *runtime;    /* the xDS domain's own; borrowed, for the domain's loop */
    struct tc_mailbox *inbox; /* of the domain's loop; a reference */

    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct tc_link origins; /* of struct shared_origin */
};

/* Stands for a client on the domain's loop that remote clients on other loops use. Does not hold the client. */
struct shared_origin {
    struct tc_shared_domain *domain; /* borrowed: it outlives the domain's loop */
    struct tc_shared_client_key key; /* references; constant */
    /* Under the domain's mutex. */
    struct tc_link link;
    unsigned remotes; /* remote clients that use the origin */
};

/* --- the domain --- */

static void *domain_make(torc_xds_domain *owner)
{
    struct tc_shared_domain *s = TC_NEW(struct tc_shared_domain);
    tc_ref_init(&s->ref);
    s->runtime = tc_xds_domain_runtime(owner);
    s->inbox = tc_mailbox_new(tc_runtime_loop(s->runtime));
    pthread_mutex_init(&s->mutex, NULL);
    tc_list_init(&s->origins);
    return s;
}

static void domain_end(void *value)
{
    struct tc_shared_domain *s = value;
    tc_mailbox_close(s->inbox);
}

static void domain_release(void *value)
{
    tc_shared_domain_unref(value);
}

struct tc_shared_domain *tc_shared_domain_of(torc_runtime *runtime)
{
    static const struct tc_xds_domain_part part = {.make = domain_make, .end = domain_end, .release = domain_release};
    torc_xds_domain *owner = tc_runtime_xds_domain(runtime);
    struct tc_shared_domain *s = owner ? tc_xds_domain_get(owner, &part) : NULL;
    if (s)
        tc_ref_inc(&s->ref);
    return s;
}

void tc_shared_domain_unref(struct tc_shared_domain *s)
{
    if (!s || !tc_ref_dec(&s->ref))
        return;
    tc_mailbox_unref(s->inbox);
    pthread_mutex_destroy(&s->mutex);
    tc_free(s);
}

/* --- clients --- */

/* Returns the origin of this key, or NULL. Called with the mutex held. */
static struct shared_origin *origin_find(const struct tc_shared_domain *s, const struct tc_shared_client_key *key)
{
    TC_LIST_FOREACH(it, &s->origins)
    {
        struct shared_origin *o = TC_CONTAINER_OF(it, struct shared_origin, link);
        if (tc_rstr_eq(o->key.target, key->target) && tc_rstr_eq(o->key.options, key->options) &&
            tc_rstr_eq(o->key.source, key->source))
            return o;
    }
    return NULL;
}

/* Returns the origin of this key, made if it does not exist, with one more remote client. */
static struct shared_origin *origin_get(struct tc_shared_domain *s, const struct tc_shared_client_key *key)
{
    pthread_mutex_lock(&s->mutex);
    struct shared_origin *o = origin_find(s, key);
    if (!o) {
        o = TC_NEW(struct shared_origin);
        o->domain = s;
        o->key = (struct tc_shared_client_key){tc_rstr_ref(key->source), tc_rstr_ref(key->options),
                                               tc_rstr_ref(key->target), tc_xds_bootstrap_ref(key->bootstrap)};
        tc_list_init(&o->link);
        tc_list_append(&s->origins, &o->link);
    }
    o->remotes++;
    pthread_mutex_unlock(&s->mutex);
    return o;
}

/* Gives back the use of one remote client; the last one frees the origin. */
static void origin_release(struct shared_origin *o)
{
    struct tc_shared_domain *s = o->domain;
    pthread_mutex_lock(&s->mutex);
    bool last = --o->remotes == 0;
    if (last)
        tc_list_remove(&o->link);
    pthread_mutex_unlock(&s->mutex);
    if (!last)
        return;
    tc_xds_bootstrap_unref(o->key.bootstrap);
    tc_rstr_unref(o->key.source);
    tc_rstr_unref(o->key.options);
    tc_rstr_unref(o->key.target);
    tc_free(o);
}

/* A remote client's hold on its origin. The runtime's thread makes it; then it is for the domain's loop, where
 * hold_close frees it. */
struct shared_hold {
    const struct tc_shared_domain_ops *ops;
    struct shared_origin *origin; /* counted in origin->remotes */
    struct tc_resolver_env env;   /* only the members that a client needs; a reference of the credentials */
    void *hold;                   /* what ops->open stored; NULL: `open` was not called */
};

/* hold_open and hold_close are a remote client's `open` and `close` (xds/client/remote_client.h). */
static struct tc_xds_client *hold_open(void *arg)
{
    struct shared_hold *h = arg;
    const struct tc_shared_domain *s = h->origin->domain;
    h->env.loop = tc_runtime_loop(s->runtime);
    h->env.runtime = s->runtime;
    return h->ops->open(&h->origin->key, &h->env, &h->hold);
}

static void hold_close(void *arg)
{
    struct shared_hold *h = arg;
    if (h->hold)
        h->ops->close(h->hold);
    origin_release(h->origin);
    torc_credentials_unref(h->env.credentials);
    tc_free(h);
}

struct tc_xds_client *tc_shared_domain_client(struct tc_shared_domain *s, struct tc_mailbox *here,
                                              const struct tc_shared_client_key *key, const struct tc_resolver_env *env,
                                              const struct tc_shared_domain_ops *ops)
{
    struct shared_hold *h = TC_NEW(struct shared_hold);
    h->ops = ops;
    h->origin = origin_get(s, key);
    h->env.xds_resource_timeout_ms = env->xds_resource_timeout_ms;
    h->env.backoff = env->backoff;
    h->env.credentials = env->credentials ? torc_credentials_ref(env->credentials) : NULL;
    struct tc_xds_remote_opts opts = {
        .here = here, .there = s->inbox, .open = hold_open, .close = hold_close, .arg = h};
    return tc_xds_remote_client_new(env->loop, h->origin->key.bootstrap, &opts);
}
