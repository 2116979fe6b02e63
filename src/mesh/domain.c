#include "mesh/domain.h"

#include <stdlib.h>

#include "base/mem.h"
#include "channel/runtime.h"
#include "creds/creds.h"
#include "mesh/registries.h"
#include "mesh/shared_domain.h"

struct tc_mesh_domain {
    torc_runtime *runtime;
    struct tc_link clients;           /* of tc_domain_client */
    struct tc_call_counter *counters; /* by {cluster, EDS service} */
    /* NULL: it shares nothing. */
    struct tc_shared_domain *shared;
    struct tc_mailbox *inbox; /* where the shared one answers */
    struct tc_link cert_providers;
};

static void destroy(void *domain)
{
    tc_mesh_domain_free(domain);
}

static const char slot;

const struct tc_mesh_domain *tc_mesh_domain_find(torc_runtime *runtime)
{
    return tc_runtime_extra(runtime, &slot);
}

struct tc_mesh_domain *tc_mesh_domain_of(torc_runtime *runtime)
{
    struct tc_mesh_domain *d = tc_runtime_extra(runtime, &slot);
    if (!d) {
        d = tc_mesh_domain_new(runtime);
        d->shared = tc_shared_domain_of(runtime);
        d->inbox = d->shared ? tc_mailbox_new(tc_runtime_loop(runtime)) : NULL;
        tc_runtime_set_extra(runtime, &slot, d, destroy);
    }
    return d;
}

struct tc_mesh_domain *tc_mesh_domain_new(torc_runtime *runtime)
{
    struct tc_mesh_domain *d = TC_NEW(struct tc_mesh_domain);
    d->runtime = runtime;
    tc_list_init(&d->clients);
    tc_list_init(&d->cert_providers);
    return d;
}

/* Users may outlive it by a turn; they then find themselves alone. */
void tc_mesh_domain_free(struct tc_mesh_domain *d)
{
    struct tc_link *link;
    struct tc_call_counter *counter, *next;
    while ((link = tc_list_pop(&d->clients)))
        TC_CONTAINER_OF(link, struct tc_domain_client, link)->domain = NULL;
    HASH_ITER(hh, d->counters, counter, next)
    {
        HASH_DEL(d->counters, counter);
        counter->table = NULL;
    }
    while (tc_list_pop(&d->cert_providers)) {
    }
    if (d->inbox)
        tc_mailbox_close(d->inbox);
    tc_mailbox_unref(d->inbox);
    tc_shared_domain_unref(d->shared);
    tc_free(d);
}

struct tc_link *tc_mesh_domain_cert_providers(struct tc_mesh_domain *d)
{
    return &d->cert_providers;
}

/* --- clients --- */

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* Equal for channels that may share a client. */
static struct tc_rstr *client_key(const struct tc_resolver_env *env, struct tc_slice target)
{
    struct tc_buf b = {0};
    tc_buf_append_slice(&b, target);
    if (env->xds_bootstrap_json)
        tc_buf_printf(&b, "\njson\n%s", env->xds_bootstrap_json);
    else
        tc_buf_printf(&b, "\nenvironment\n%s\n%s", environment("GRPC_XDS_BOOTSTRAP"),
                      environment("GRPC_XDS_BOOTSTRAP_CONFIG"));
    tc_buf_printf(&b, "\n%s\n%llu %llu %llu", env->credentials ? tc_rstr_cstr(env->credentials->key) : "",
                  (unsigned long long)env->xds_resource_timeout_ms, (unsigned long long)env->backoff.initial_ms,
                  (unsigned long long)env->backoff.max_ms);
    struct tc_rstr *key = tc_rstr_new(b.data, b.len);
    tc_buf_fini(&b);
    return key;
}

/* Takes over the client. */
static struct tc_domain_client *add(struct tc_mesh_domain *d, struct tc_rstr *key, struct tc_domain_client *c)
{
    tc_lref_init(&c->ref);
    c->key = tc_rstr_ref(key);
    c->domain = d;
    tc_list_append(&d->clients, &c->link);
    return c;
}

/* What takes a few milliseconds to decode. */
#define AHEAD_BYTES ((size_t)128 << 10)

static struct tc_domain_client *client_new(struct tc_mesh_domain *d, struct tc_rstr *key,
                                           struct tc_xds_bootstrap *bootstrap, const struct tc_resolver_env *env,
                                           struct tc_slice target)
{
    struct tc_domain_client *c = TC_NEW(struct tc_domain_client);
    tc_mesh_transport_factory_init(&c->factory, d->runtime, env->credentials, &env->backoff);
    struct tc_xds_client_opts opts;
    tc_xds_client_opts_init(&opts);
    opts.target = target;
    opts.resource_timeout_ms = env->xds_resource_timeout_ms;
    opts.backoff = env->backoff;
    opts.registries = tc_mesh_registries();
    opts.ahead_bytes = AHEAD_BYTES;
    if (bootstrap->limits.resources_per_response)
        opts.max_resources_per_response = (size_t)bootstrap->limits.resources_per_response;
    if (bootstrap->limits.ads_message_bytes)
        c->factory.max_message_bytes = bootstrap->limits.ads_message_bytes;
    c->client = tc_xds_client_new(env->loop, bootstrap, &c->factory.base, &opts);
    return add(d, key, c);
}

static struct tc_domain_client *replica_new(struct tc_mesh_domain *d, struct tc_rstr *key,
                                            const struct tc_resolver_env *env, struct tc_slice target,
                                            struct tc_status *error)
{
    struct tc_xds_client *client = tc_shared_domain_client(d->shared, d->inbox, key, env, target, error);
    if (!client)
        return NULL;
    struct tc_domain_client *c = TC_NEW(struct tc_domain_client);
    c->client = client;
    return add(d, key, c);
}

/* With one more user; NULL: there is none yet. */
static struct tc_domain_client *find(const struct tc_mesh_domain *d, const struct tc_rstr *key)
{
    TC_LIST_FOREACH(it, &d->clients)
    {
        struct tc_domain_client *c = TC_CONTAINER_OF(it, struct tc_domain_client, link);
        if (tc_rstr_eq(c->key, key)) {
            tc_lref_inc(&c->ref);
            return c;
        }
    }
    return NULL;
}

struct tc_domain_client *tc_domain_client_get_keyed(struct tc_mesh_domain *d, struct tc_rstr *key,
                                                    struct tc_xds_bootstrap *bootstrap,
                                                    const struct tc_resolver_env *env, struct tc_slice target)
{
    struct tc_domain_client *c = find(d, key);
    return c ? c : client_new(d, key, bootstrap, env, target);
}

struct tc_domain_client *tc_domain_client_get(struct tc_mesh_domain *d, const struct tc_resolver_env *env,
                                              struct tc_slice target, struct tc_status *error)
{
    struct tc_rstr *key = client_key(env, target);
    struct tc_domain_client *c = find(d, key);
    if (!c && d->shared) {
        c = replica_new(d, key, env, target, error);
    } else if (!c) {
        struct tc_xds_bootstrap *bootstrap = tc_domain_bootstrap(env, error);
        c = bootstrap ? client_new(d, key, bootstrap, env, target) : NULL;
        tc_xds_bootstrap_unref(bootstrap);
    }
    tc_rstr_unref(key);
    return c;
}

void tc_domain_client_release(struct tc_domain_client *c)
{
    if (!c || !tc_lref_dec(&c->ref))
        return;
    tc_list_remove(&c->link);
    tc_xds_client_unref(c->client);
    tc_mesh_transport_factory_fini(&c->factory);
    tc_rstr_unref(c->key);
    tc_free(c);
}

void tc_mesh_domain_each_client(const struct tc_mesh_domain *d, void (*fn)(void *arg, const struct tc_xds_client *c),
                                void *arg)
{
    TC_LIST_FOREACH(it, &d->clients)
    fn(arg, TC_CONTAINER_OF(it, struct tc_domain_client, link)->client);
}

/* --- counters --- */

struct tc_call_counter *tc_call_counter_get_in(struct tc_call_counter **table, const struct tc_rstr *cluster,
                                               const struct tc_rstr *service)
{
    struct tc_rstr *key = tc_rstr_pair(cluster, service);
    struct tc_call_counter *c = NULL;
    if (table)
        HASH_FIND(hh, *table, key->data, key->len, c);
    if (c) {
        tc_rstr_unref(key);
        tc_lref_inc(&c->ref);
        return c;
    }
    c = TC_NEW(struct tc_call_counter);
    tc_lref_init(&c->ref);
    c->key = key;
    c->table = table;
    if (table)
        HASH_ADD_KEYPTR(hh, *table, key->data, key->len, c);
    return c;
}

void tc_call_counter_free(struct tc_call_counter *c)
{
    if (c->table)
        HASH_DEL(*c->table, c);
    tc_rstr_unref(c->key);
    tc_free(c);
}

struct tc_call_counter *tc_call_counter_get(struct tc_mesh_domain *d, struct tc_rstr *cluster, struct tc_rstr *service)
{
    if (d && d->shared)
        return tc_shared_domain_counter(d->shared, cluster, service);
    return tc_call_counter_get_in(d ? &d->counters : NULL, cluster, service);
}

struct tc_call_counter *tc_call_counter_ref(struct tc_call_counter *c)
{
    if (c->shared)
        tc_shared_counter_ref(c);
    else
        tc_lref_inc(&c->ref);
    return c;
}

void tc_call_counter_unref(struct tc_call_counter *c)
{
    if (c && c->shared)
        tc_shared_counter_unref(c);
    else if (c && tc_lref_dec(&c->ref))
        tc_call_counter_free(c);
}
