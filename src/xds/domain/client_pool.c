/* The xDS clients of a runtime (client_pool.h says why they are shared).
 *
 *   source   by the text of source_text; ends with its last group
 *   group    by the text of group_options_text; ends with its last target
 *   client   by target, counted; a new client is one of
 *              remote       the runtime has an xDS domain: the domain's pool has the clients
 *              shared       all authorities are shared (tc_xds_bootstrap_shares): the group's common client itself
 *              own          no authority is shared
 *              forwarding   some are: an own client, and the group's common one
 *
 * A source has its groups, and a group its clients; users hold references of clients, and the last user ends a client.
 * At the end of a runtime the users (channels, or the holds of remote clients) end before the pool. A client that is
 * still in use when its pool is freed, as in a unit test, stays with its group and source; its c->pool is NULL then.
 * Loop thread only. Read tc_pool_client_get and source_client first. */
#include "xds/domain/client_pool.h"

#include <stdlib.h>

#include "base/mem.h"
#include "creds/creds.h"
#include "runtime/runtime.h"
#include "xds/client/forwarding_client.h"
#include "xds/client/local_client.h"
#include "xds/domain/bootstrap_env.h"
#include "xds/domain/shared_domain.h"
#include "xds/domain/validation_context.h"

/* Responses of this size and larger take milliseconds to decode, which RPCs must not wait for. */
#define DECODE_THREAD_BYTES ((size_t)128 << 10)

struct tc_xds_client_pool {
    torc_runtime *runtime;            /* borrowed */
    struct tc_shared_domain *shared;  /* a reference; NULL: the runtime has no xDS domain */
    struct tc_mailbox *inbox;         /* where the shared domain answers; NULL without an xDS domain */
    struct tc_client_source *sources; /* by text */
    struct tc_link cert_providers;    /* of struct tc_cert_provider, borrowed: the pool holds no reference */
};

struct tc_client_source {
    struct tc_xds_client_pool *pool;    /* NULL: the pool is gone */
    struct tc_rstr *text;               /* source_text; a reference */
    struct tc_xds_bootstrap *bootstrap; /* a reference */
    struct tc_link groups;              /* of struct tc_client_group */
    UT_hash_handle hh;                  /* the pool's, by text */
};

struct tc_client_group {
    struct tc_client_source *source; /* borrowed: a source lives as long as it has a group */
    struct tc_link link;             /* the source's */
    struct tc_rstr *options;         /* group_options_text; a reference */
    /* The client that the targets share, a reference. NULL: no authority is shared, or the clients are remote. */
    struct tc_xds_client *common;
    struct tc_channel_transport_factory factory; /* of `common`; zeroed while `common` is NULL */
    struct tc_pool_client *clients;              /* by target */
};

/* --- sources --- */

static const char *environment_get(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* Returns a text that says where the bootstrap is from, with one reference: the bootstrap's own text, or the values of
 * the two variables. Equal for equal sources. */
static struct tc_rstr *source_text(const struct tc_resolver_env *env)
{
    if (env->xds_bootstrap_json)
        return tc_rstr_printf("json\n%s", env->xds_bootstrap_json);
    return tc_rstr_printf("environment\n%s\n%s", environment_get("GRPC_XDS_BOOTSTRAP"),
                          environment_get("GRPC_XDS_BOOTSTRAP_CONFIG"));
}

/* Returns the source of this text, or NULL. */
static struct tc_client_source *source_find(const struct tc_xds_client_pool *p, const struct tc_rstr *text)
{
    struct tc_client_source *s;
    HASH_FIND(hh, p->sources, text->data, text->len, s);
    return s;
}

/* Returns a new source without a group. Takes references of text and bootstrap. */
static struct tc_client_source *source_add(struct tc_xds_client_pool *p, struct tc_rstr *text,
                                           struct tc_xds_bootstrap *bootstrap)
{
    struct tc_client_source *s = TC_NEW(struct tc_client_source);
    s->pool = p;
    s->text = tc_rstr_ref(text);
    s->bootstrap = tc_xds_bootstrap_ref(bootstrap);
    tc_list_init(&s->groups);
    HASH_ADD_KEYPTR(hh, p->sources, s->text->data, s->text->len, s);
    return s;
}

/* Ends the source if it has no group. */
static void source_settle(struct tc_client_source *s)
{
    if (!tc_list_empty(&s->groups))
        return;
    if (s->pool)
        HASH_DEL(s->pool->sources, s);
    tc_xds_bootstrap_unref(s->bootstrap);
    tc_rstr_unref(s->text);
    tc_free(s);
}

/* --- groups --- */

/* Returns a text that is equal for channels whose targets may share a client, with one reference. The channel's
 * credentials are in the text only if a server of the bootstrap takes them: otherwise channels with different
 * credentials share one stream. The backoff's multiplier and jitter are not compared: the client has those of the
 * channel that came first. */
static struct tc_rstr *group_options_text(const struct tc_xds_bootstrap *b, const struct tc_resolver_env *env)
{
    bool credentials = env->credentials && tc_xds_bootstrap_uses_channel_credentials(b);
    return tc_rstr_printf("%llu %llu %llu %s", (unsigned long long)env->xds_resource_timeout_ms,
                          (unsigned long long)env->backoff.initial_ms, (unsigned long long)env->backoff.max_ms,
                          credentials ? tc_rstr_cstr(env->credentials->key) : "");
}

/* Returns the group of the env's options, made if it does not exist. A new group has no target yet: the caller adds
 * one. */
static struct tc_client_group *group_get(struct tc_client_source *s, const struct tc_resolver_env *env)
{
    struct tc_rstr *options = group_options_text(s->bootstrap, env);
    TC_LIST_FOREACH(it, &s->groups)
    {
        struct tc_client_group *g = TC_CONTAINER_OF(it, struct tc_client_group, link);
        if (tc_rstr_eq(g->options, options)) {
            tc_rstr_unref(options);
            return g;
        }
    }
    struct tc_client_group *g = TC_NEW(struct tc_client_group);
    g->source = s;
    g->options = options;
    tc_list_init(&g->link);
    tc_list_append(&s->groups, &g->link);
    return g;
}

/* Ends the group if it has no target, and then its source if that has no other group. */
static void group_settle(struct tc_client_group *g)
{
    if (g->clients)
        return;
    tc_list_remove(&g->link);
    tc_xds_client_unref(g->common);
    torc_credentials_unref(g->factory.credentials);
    source_settle(g->source);
    tc_rstr_unref(g->options);
    tc_free(g);
}

/* --- clients --- */

/* Returns a client that asks servers itself, with one reference. `target` is empty for a shared client. Initialises
 * the factory, which must outlive the client. */
static struct tc_xds_client *local_client_new(const struct tc_client_group *g,
                                              struct tc_channel_transport_factory *factory,
                                              const struct tc_resolver_env *env, struct tc_slice target)
{
    struct tc_xds_bootstrap *bootstrap = g->source->bootstrap;
    tc_channel_transport_init(factory, g->source->pool->runtime, env->credentials, &env->backoff);
    struct tc_xds_client_opts opts;
    tc_xds_client_opts_init(&opts);
    opts.target = target;
    opts.resource_timeout_ms = env->xds_resource_timeout_ms;
    opts.backoff = env->backoff;
    opts.registries = tc_xds_validation_context();
    opts.decode_thread_bytes = DECODE_THREAD_BYTES;
    if (bootstrap->limits.resources_per_response)
        opts.max_resources_per_response = (size_t)bootstrap->limits.resources_per_response;
    if (bootstrap->limits.ads_message_bytes)
        factory->max_message_bytes = bootstrap->limits.ads_message_bytes;
    return tc_xds_local_client_new(env->loop, bootstrap, &factory->base, &opts);
}

/* Returns the client for a new target, with one reference. Makes the group's common client if the client needs it. */
static struct tc_xds_client *target_client(struct tc_client_group *g, struct tc_pool_client *c,
                                           const struct tc_resolver_env *env, struct tc_slice target)
{
    const struct tc_xds_bootstrap *b = g->source->bootstrap;
    if (!g->common && tc_xds_bootstrap_any(b, true))
        g->common = local_client_new(g, &g->factory, env, tc_slice_of(NULL, 0));
    if (!tc_xds_bootstrap_any(b, false))
        return tc_xds_client_ref(g->common);
    struct tc_xds_client *own = local_client_new(g, &c->factory, env, target);
    return g->common ? tc_xds_forwarding_client_new(own, g->common) : own;
}

static const struct tc_shared_domain_ops shared_ops;

/* Returns the target's client, in the group of the env's options, with one more reference; made if it does not
 * exist. */
static struct tc_pool_client *source_client(struct tc_client_source *s, const struct tc_resolver_env *env,
                                            struct tc_slice target)
{
    struct tc_xds_client_pool *p = s->pool;
    struct tc_client_group *g = group_get(s, env);
    struct tc_pool_client *c;
    HASH_FIND(hh, g->clients, target.data, target.len, c);
    if (c) {
        tc_lref_inc(&c->ref);
        return c;
    }
    c = TC_NEW(struct tc_pool_client);
    tc_lref_init(&c->ref);
    c->pool = p;
    c->group = g;
    c->target = tc_rstr_new(target.data, target.len);
    if (p->shared)
        c->client = tc_shared_domain_client(
            p->shared, p->inbox, &(struct tc_shared_client_key){s->text, g->options, c->target, s->bootstrap}, env,
            &shared_ops);
    else
        c->client = target_client(g, c, env, target);
    HASH_ADD_KEYPTR(hh, g->clients, c->target->data, c->target->len, c);
    return c;
}

/* --- for remote clients, on the loop of the xDS domain --- */

static struct tc_xds_client *shared_open(const struct tc_shared_client_key *key, const struct tc_resolver_env *env,
                                         void **hold)
{
    struct tc_xds_client_pool *p = tc_xds_client_pool_of(env->runtime);
    struct tc_client_source *s = source_find(p, key->source);
    struct tc_pool_client *c =
        source_client(s ? s : source_add(p, key->source, key->bootstrap), env, tc_rstr_slice(key->target));
    *hold = c;
    return c->client;
}

static void shared_close(void *hold)
{
    tc_pool_client_release(hold);
}

static const struct tc_shared_domain_ops shared_ops = {.open = shared_open, .close = shared_close};

/* --- for channels --- */

struct tc_pool_client *tc_pool_client_get(struct tc_xds_client_pool *p, const struct tc_resolver_env *env,
                                          struct tc_slice target, struct tc_status *error)
{
    struct tc_rstr *text = source_text(env);
    struct tc_client_source *s = source_find(p, text);
    struct tc_xds_bootstrap *bootstrap = s ? NULL : tc_bootstrap_env_read(env, error);
    if (bootstrap)
        s = source_add(p, text, bootstrap);
    tc_xds_bootstrap_unref(bootstrap);
    tc_rstr_unref(text);
    return s ? source_client(s, env, target) : NULL;
}

void tc_pool_client_release(struct tc_pool_client *c)
{
    if (!c || !tc_lref_dec(&c->ref))
        return;
    HASH_DEL(c->group->clients, c);
    tc_xds_client_unref(c->client);
    torc_credentials_unref(c->factory.credentials);
    tc_rstr_unref(c->target);
    group_settle(c->group);
    tc_free(c);
}

/* --- all clients --- */

static void group_append_scope(struct tc_buf *out, const struct tc_client_group *g)
{
    for (const struct tc_pool_client *c = g->clients; c; c = c->hh.next) {
        if (out->len + c->target->len >= TC_CLIENT_SCOPE_BYTES) {
            tc_buf_append_str(out, " ...");
            return;
        }
        tc_buf_printf(out, "%s%s", out->len ? " " : "", c->target->data);
    }
}

static void group_each_client(const struct tc_client_group *g,
                              void (*fn)(void *arg, const struct tc_xds_client *c, struct tc_slice scope), void *arg)
{
    if (g->common) {
        struct tc_buf scope = {0};
        group_append_scope(&scope, g);
        fn(arg, g->common, tc_buf_slice(&scope));
        tc_buf_fini(&scope);
    }
    for (const struct tc_pool_client *c = g->clients; c; c = c->hh.next)
        if (c->client != g->common)
            fn(arg, c->client, tc_rstr_slice(c->target));
}

void tc_xds_client_pool_each(const struct tc_xds_client_pool *p,
                             void (*fn)(void *arg, const struct tc_xds_client *c, struct tc_slice scope), void *arg)
{
    for (const struct tc_client_source *s = p->sources; s; s = s->hh.next)
        TC_LIST_FOREACH(it, &s->groups)
    group_each_client(TC_CONTAINER_OF(it, struct tc_client_group, link), fn, arg);
}

/* --- the pool --- */

/* Takes the sources off the pool: clients in use outlive it. */
static void pool_forget_sources(struct tc_xds_client_pool *p)
{
    struct tc_client_source *s, *next;
    HASH_ITER(hh, p->sources, s, next)
    {
        HASH_DEL(p->sources, s);
        s->pool = NULL;
        TC_LIST_FOREACH(it, &s->groups)
        {
            struct tc_pool_client *c = TC_CONTAINER_OF(it, struct tc_client_group, link)->clients;
            for (; c; c = c->hh.next)
                c->pool = NULL;
        }
    }
}

struct tc_xds_client_pool *tc_xds_client_pool_new(torc_runtime *runtime)
{
    struct tc_xds_client_pool *p = TC_NEW(struct tc_xds_client_pool);
    p->runtime = runtime;
    tc_list_init(&p->cert_providers);
    return p;
}

void tc_xds_client_pool_free(struct tc_xds_client_pool *p)
{
    pool_forget_sources(p);
    while (tc_list_pop(&p->cert_providers)) {
    }
    if (p->inbox)
        tc_mailbox_close(p->inbox);
    tc_mailbox_unref(p->inbox);
    tc_shared_domain_unref(p->shared);
    tc_free(p);
}

static void pool_destroy(void *pool)
{
    tc_xds_client_pool_free(pool);
}

static const char slot;

const struct tc_xds_client_pool *tc_xds_client_pool_find(torc_runtime *runtime)
{
    return tc_runtime_extra(runtime, &slot);
}

struct tc_xds_client_pool *tc_xds_client_pool_of(torc_runtime *runtime)
{
    struct tc_xds_client_pool *p = tc_runtime_extra(runtime, &slot);
    if (p)
        return p;
    p = tc_xds_client_pool_new(runtime);
    p->shared = tc_shared_domain_of(runtime);
    p->inbox = p->shared ? tc_mailbox_new(tc_runtime_loop(runtime)) : NULL;
    tc_runtime_set_extra(runtime, &slot, p, pool_destroy);
    return p;
}

struct tc_link *tc_xds_client_pool_cert_providers(struct tc_xds_client_pool *p)
{
    return &p->cert_providers;
}
