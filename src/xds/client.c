#include "xds/client.h"

#include "xds/client_impl.h"
#include "xds/replica_impl.h"

#define RESOURCE_TIMEOUT_MS 15000
#define MAX_RESOURCES_PER_RESPONSE 65536

void tc_xds_client_opts_init(struct tc_xds_client_opts *opts)
{
    *opts = (struct tc_xds_client_opts){
        .resource_timeout_ms = RESOURCE_TIMEOUT_MS,
        .backoff = tc_backoff_default,
        .max_resources_per_response = MAX_RESOURCES_PER_RESPONSE,
    };
}

const char *tc_xds_node_id(const struct tc_xds_client *c)
{
    return tc_rstr_cstr(c->bootstrap->node_id);
}

size_t tc_xds_type_index(const struct tc_xds_client *c, struct tc_slice type_url)
{
    for (size_t i = 0; i < c->types.len; i++)
        if (tc_slice_eq_str(type_url, c->types.data[i]->type_url))
            return i;
    return TC_XDS_NO_TYPE;
}

/* --- life --- */

static void on_settle(struct tc_task *task);

struct tc_xds_client *tc_xds_client_new(struct tc_loop *loop, struct tc_xds_bootstrap *bootstrap,
                                        struct tc_xds_transport_factory *factory, const struct tc_xds_client_opts *opts)
{
    struct tc_xds_client *c = TC_NEW(struct tc_xds_client);
    tc_lref_init(&c->refs);
    c->loop = loop;
    c->bootstrap = tc_xds_bootstrap_ref(bootstrap);
    c->factory = factory;
    if (opts)
        c->opts = *opts;
    else
        tc_xds_client_opts_init(&c->opts);
    c->target = tc_rstr_new(c->opts.target.data, c->opts.target.len);
    c->opts.target = tc_rstr_slice(c->target);
    tc_list_init(&c->realms);
    tc_list_init(&c->channels);
    tc_list_init(&c->orphans);
    tc_task_init(&c->settle, on_settle);
    return c;
}

struct tc_xds_client *tc_xds_client_ref(struct tc_xds_client *c)
{
    if (c)
        tc_lref_inc(&c->refs);
    return c;
}

static void stop_watches(struct tc_link *watches)
{
    while (!tc_list_empty(watches))
        tc_xds_watch_stop(TC_CONTAINER_OF(watches->next, struct tc_xds_watcher, link));
}

/* Drops the entries that nobody watches, all of them when `all`, and then the realm if it is empty. */
static void settle_realm(struct tc_xds_realm *r, bool all)
{
    bool empty = true;
    for (size_t type = 0; type < r->entries.len; type++) {
        bool dropped = false;
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, r->entries.data[type], e, next)
        {
            if (all)
                stop_watches(&e->watches);
            if (tc_list_empty(&e->watches)) {
                tc_xds_entry_free(e);
                dropped = true;
            }
        }
        if (dropped)
            tc_xds_realm_request(r, type);
        empty = empty && r->entries.data[type] == NULL;
    }
    if (empty)
        tc_xds_realm_free(r);
}

static void settle(struct tc_xds_client *c, bool all)
{
    for (struct tc_link *it = c->realms.next, *next; it != &c->realms; it = next) {
        next = it->next;
        settle_realm(TC_CONTAINER_OF(it, struct tc_xds_realm, link), all);
    }
}

static void on_settle(struct tc_task *task)
{
    settle(TC_CONTAINER_OF(task, struct tc_xds_client, settle), false);
}

void tc_xds_client_unref(struct tc_xds_client *c)
{
    if (!c || !tc_lref_dec(&c->refs))
        return;
    if (c->replica)
        tc_xds_replica_end(c->replica);
    tc_task_cancel(&c->settle);
    stop_watches(&c->orphans);
    settle(c, true);
    while (!tc_list_empty(&c->channels)) { /* those that had loads to report */
        struct tc_xds_channel *ch = TC_CONTAINER_OF(c->channels.next, struct tc_xds_channel, link);
        tc_xds_lrs_free(ch->lrs);
        ch->lrs = NULL;
        tc_xds_channel_release(ch);
    }
    tc_vec_fini(&c->types);
    tc_rstr_unref(c->target);
    tc_xds_bootstrap_unref(c->bootstrap);
    tc_free(c);
}

/* --- watches --- */

/* A watcher of a name that cannot be asked for gets the reason, and nothing ever after. */
static void watch_in_vain(struct tc_xds_client *c, struct tc_xds_watcher *w, const char *why)
{
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, "%s (node ID:%s)", why, tc_xds_node_id(c));
    tc_xds_watch_start(c, w, NULL);
    tc_xds_watch_changed(w, NULL, &error, NULL);
    tc_status_fini(&error);
}

static size_t type_add(struct tc_xds_client *c, const struct tc_xds_resource_type *type)
{
    size_t i = tc_xds_type_index(c, tc_slice_str(type->type_url));
    if (i != TC_XDS_NO_TYPE)
        return i;
    *tc_vec_push(&c->types) = type;
    return c->types.len - 1;
}

/* What the cache has comes first, an ambient error after it (A88). */
static void tell_present(struct tc_xds_entry *e, struct tc_xds_watcher *w)
{
    const struct tc_status *error = tc_xds_entry_error(e);
    bool failing = !tc_status_ok(error);
    if (e->resource) {
        tc_xds_watch_changed(w, e->resource, NULL, NULL);
        if (failing)
            tc_xds_watch_ambient(w, error, NULL);
    } else if (failing) {
        tc_xds_watch_changed(w, NULL, error, NULL);
    }
}

void tc_xds_client_watch(struct tc_xds_client *c, const struct tc_xds_resource_type *type, struct tc_slice name,
                         struct tc_xds_watcher *watcher)
{
    if (c->replica) {
        tc_xds_replica_watch(c, type, name, watcher);
        return;
    }
    struct tc_xds_name parsed;
    char *why = NULL;
    const struct tc_xds_authority *authority = NULL;
    if (!tc_xds_name_parse(type, name, &parsed, &why)) {
        watch_in_vain(c, watcher, why);
        goto done;
    }
    if (parsed.federated) {
        authority = tc_xds_bootstrap_authority(c->bootstrap, tc_rstr_slice(parsed.authority));
        if (!authority) {
            why = tc_asprintf("authority \"%s\" is not in the xDS bootstrap", tc_rstr_cstr(parsed.authority));
            watch_in_vain(c, watcher, why);
            goto done_name;
        }
    }
    size_t index = type_add(c, type);
    struct tc_xds_realm *r = tc_xds_realm_get(c, authority);
    struct tc_xds_entry *e = tc_xds_entry_find(r, index, tc_rstr_slice(parsed.text));
    bool added = e == NULL;
    if (added) {
        e = tc_xds_entry_new(r, index, parsed.text);
        tc_xds_realm_request(r, index);
        /* A71: a new name may be what is missing while the server is down. */
        tc_xds_realm_fall_back(r);
    }
    tc_xds_watch_start(c, watcher, e);
    tell_present(e, watcher);
    if (added)
        tc_status_set(&e->told_error, tc_status_ref(tc_xds_entry_error(e)));
done_name:
    tc_xds_name_fini(&parsed);
done:
    tc_free(why);
}

void tc_xds_client_unwatch(struct tc_xds_client *c, struct tc_xds_watcher *watcher)
{
    if (!watcher->internal)
        return;
    if (c->replica) {
        tc_xds_replica_unwatch(c, watcher);
        return;
    }
    const struct tc_xds_entry *e = tc_xds_watch_entry(watcher);
    tc_xds_watch_stop(watcher);
    /* Not at once: who takes over within the same turn finds the value still there. */
    if (e && tc_list_empty(&e->watches))
        tc_loop_defer(c->loop, &c->settle);
}

void tc_xds_client_reset_backoff(struct tc_xds_client *c)
{
    if (c->replica) {
        tc_xds_replica_reset_backoff(c);
        return;
    }
    TC_LIST_FOREACH(it, &c->channels)
    {
        struct tc_xds_channel *ch = TC_CONTAINER_OF(it, struct tc_xds_channel, link);
        ch->transport->ops->reset_backoff(ch->transport);
        tc_xds_ads_reset_backoff(ch);
        if (ch->lrs)
            tc_xds_lrs_reset_backoff(ch->lrs);
    }
}

const struct tc_xds_bootstrap *tc_xds_client_bootstrap(const struct tc_xds_client *c)
{
    return c->bootstrap;
}

struct tc_slice tc_xds_client_target(const struct tc_xds_client *c)
{
    return tc_rstr_slice(c->target);
}

/* --- the dump --- */

static void dump_entry(const struct tc_xds_client *c, const struct tc_xds_entry *e, tc_xds_dump_fn fn, void *arg)
{
    const struct tc_xds_dump_entry out = {
        .type = c->types.data[e->type],
        .name = tc_rstr_slice(e->name),
        .state = e->state,
        .version = tc_rstr_slice(e->version),
        .updated_ns = e->updated_ns,
        .bytes = e->bytes,
        .error = tc_status_ok(&e->error) ? NULL : &e->error,
        .failed_version = tc_rstr_slice(e->failed_version),
        .failed_ns = e->failed_ns,
    };
    fn(arg, &out);
}

void tc_xds_client_dump(const struct tc_xds_client *c, tc_xds_dump_fn fn, void *arg)
{
    TC_LIST_FOREACH(it, &c->realms)
    {
        const struct tc_xds_realm *r = TC_CONTAINER_OF(it, struct tc_xds_realm, link);
        for (size_t type = 0; type < r->entries.len; type++) {
            const struct tc_xds_entry *e, *next;
            HASH_ITER(hh, r->entries.data[type], e, next)
            {
                dump_entry(c, e, fn, arg);
            }
        }
    }
}
