#include "mesh/shared_domain.h"

#include <pthread.h>

#include "base/mem.h"
#include "channel/runtime.h"
#include "channel/xds_domain.h"
#include "creds/creds.h"
#include "xds/replica.h"

struct tc_shared_domain {
    struct tc_ref ref; /* the xDS domain's, the runtimes', the counters' */
    torc_runtime *runtime;
    struct tc_mailbox *inbox; /* of the domain's loop */

    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct tc_call_counter *counters; /* by {cluster, EDS service} */
    struct tc_link origins;
};

/* A client that runs on the domain's loop for replicas on others. */
struct origin {
    struct tc_shared_domain *domain; /* borrowed: it lives until its loop ended */
    struct tc_rstr *key;
    struct tc_xds_bootstrap *bootstrap;
    /* Under the domain's mutex. */
    struct tc_link link;
    unsigned replicas;
};

/* --- the domain --- */

static void *make(torc_xds_domain *owner)
{
    struct tc_shared_domain *s = TC_NEW(struct tc_shared_domain);
    tc_ref_init(&s->ref);
    s->runtime = tc_xds_domain_runtime(owner);
    s->inbox = tc_mailbox_new(tc_runtime_loop(s->runtime));
    pthread_mutex_init(&s->mutex, NULL);
    tc_list_init(&s->origins);
    return s;
}

static void end(void *value)
{
    struct tc_shared_domain *s = value;
    tc_mailbox_close(s->inbox);
}

static void release(void *value)
{
    tc_shared_domain_unref(value);
}

struct tc_shared_domain *tc_shared_domain_of(torc_runtime *runtime)
{
    static const struct tc_xds_domain_part part = {.make = make, .end = end, .release = release};
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

/* One more replica of the origin; makes the origin. NULL with *error. */
static struct origin *origin_get(struct tc_shared_domain *s, struct tc_rstr *key, const struct tc_resolver_env *env,
                                 struct tc_status *error)
{
    struct origin *o = NULL;
    pthread_mutex_lock(&s->mutex);
    TC_LIST_FOREACH(it, &s->origins)
    if (tc_rstr_eq(TC_CONTAINER_OF(it, struct origin, link)->key, key))
        o = TC_CONTAINER_OF(it, struct origin, link);
    struct tc_xds_bootstrap *bootstrap = o ? NULL : tc_domain_bootstrap(env, error);
    if (bootstrap) {
        o = TC_NEW(struct origin);
        o->domain = s;
        o->key = tc_rstr_ref(key);
        o->bootstrap = bootstrap;
        tc_list_init(&o->link);
        tc_list_append(&s->origins, &o->link);
    }
    if (o)
        o->replicas++;
    pthread_mutex_unlock(&s->mutex);
    return o;
}

static void origin_release(struct origin *o)
{
    struct tc_shared_domain *s = o->domain;
    pthread_mutex_lock(&s->mutex);
    bool last = --o->replicas == 0;
    if (last)
        tc_list_remove(&o->link);
    pthread_mutex_unlock(&s->mutex);
    if (!last)
        return;
    tc_xds_bootstrap_unref(o->bootstrap);
    tc_rstr_unref(o->key);
    tc_free(o);
}

/* A replica's hold on its origin: what the domain's loop needs to know. */
struct hold {
    struct origin *origin;
    struct tc_resolver_env env; /* of what it holds, only what a client is made of */
    struct tc_rstr *target;
    struct tc_domain_client *client; /* the domain's loop; NULL: not yet */
};

static struct tc_xds_client *hold_open(void *arg)
{
    struct hold *h = arg;
    torc_runtime *runtime = h->origin->domain->runtime;
    h->env.loop = tc_runtime_loop(runtime);
    h->env.runtime = runtime;
    h->client = tc_domain_client_get_keyed(tc_mesh_domain_of(runtime), h->origin->key, h->origin->bootstrap, &h->env,
                                           tc_rstr_slice(h->target));
    return h->client->client;
}

static void hold_close(void *arg)
{
    struct hold *h = arg;
    tc_domain_client_release(h->client);
    origin_release(h->origin);
    torc_credentials_unref(h->env.credentials);
    tc_rstr_unref(h->target);
    tc_free(h);
}

struct tc_xds_client *tc_shared_domain_client(struct tc_shared_domain *s, struct tc_mailbox *here, struct tc_rstr *key,
                                              const struct tc_resolver_env *env, struct tc_slice target,
                                              struct tc_status *error)
{
    struct origin *o = origin_get(s, key, env, error);
    if (!o)
        return NULL;
    struct hold *h = TC_NEW(struct hold);
    h->origin = o;
    h->env.xds_resource_timeout_ms = env->xds_resource_timeout_ms;
    h->env.backoff = env->backoff;
    h->env.credentials = env->credentials ? torc_credentials_ref(env->credentials) : NULL;
    h->target = tc_rstr_new(target.data, target.len);
    struct tc_xds_replica_opts opts = {
        .here = here, .there = s->inbox, .open = hold_open, .close = hold_close, .arg = h};
    return tc_xds_client_new_replica(env->loop, o->bootstrap, &opts);
}

/* --- counters --- */

struct tc_call_counter *tc_shared_domain_counter(struct tc_shared_domain *s, struct tc_rstr *cluster,
                                                 struct tc_rstr *service)
{
    pthread_mutex_lock(&s->mutex);
    struct tc_call_counter *c = tc_call_counter_get_in(&s->counters, cluster, service);
    if (!c->shared) {
        c->shared = s;
        tc_ref_inc(&s->ref);
    }
    pthread_mutex_unlock(&s->mutex);
    return c;
}

void tc_shared_counter_ref(struct tc_call_counter *c)
{
    pthread_mutex_lock(&c->shared->mutex);
    tc_lref_inc(&c->ref);
    pthread_mutex_unlock(&c->shared->mutex);
}

void tc_shared_counter_unref(struct tc_call_counter *c)
{
    struct tc_shared_domain *s = c->shared;
    pthread_mutex_lock(&s->mutex);
    bool last = tc_lref_dec(&c->ref);
    if (last)
        tc_call_counter_free(c);
    pthread_mutex_unlock(&s->mutex);
    if (last)
        tc_shared_domain_unref(s);
}
