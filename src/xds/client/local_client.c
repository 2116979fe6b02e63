/* The xDS client that asks servers itself.
 *
 *   local client     types, authorities, channels
 *   authority        an authority of the bootstrap, or its top level: entries by type and name, channels in order of
 *                    preference
 *   entry            a watched resource (cache.c)
 *   xds_channel      the connection to one server, shared by the authorities that name the server: ADS, LRS
 *
 * This file starts and ends watches, and wires the parts: struct tc_xds_channel_events has the functions to which a
 * channel reports. A watch makes the authority and the entry if they do not exist. The last unwatch of an entry does
 * not drop the entry. The task `settle` drops it later, so that a watch which takes over before finds the value.
 *
 * The client owns its authorities, and an authority owns its entries and ends with the last one. A channel ends when no
 * authority uses it and its load reports are done (xds_channel.c). The watchers are the callers' own.
 *
 * Read next: cache.c, authority.c, ads.c, response.c. Loop thread only. */
#include "xds/client/local_client.h"

#include "xds/client/authority.h"
#include "xds/client/cache.h"
#include "xds/client/lrs.h"
#include "xds/client/response.h"
#include "xds/client/watcher.h"
#include "xds/client/xds_channel.h"

enum {
    RESOURCE_TIMEOUT_MS = 15000,
    MAX_RESOURCES_PER_RESPONSE = 65536,
};

void tc_xds_client_opts_init(struct tc_xds_client_opts *opts)
{
    *opts = (struct tc_xds_client_opts){
        .resource_timeout_ms = RESOURCE_TIMEOUT_MS,
        .backoff = tc_backoff_default,
        .max_resources_per_response = MAX_RESOURCES_PER_RESPONSE,
    };
}

static struct tc_xds_local_client *local_of(struct tc_xds_client *base)
{
    return TC_CONTAINER_OF(base, struct tc_xds_local_client, base);
}

/* --- resources without watchers --- */

/* Drops the entries that nobody watches; with `all`, stops all watches first. Then frees the authority if no entry is
 * left. */
static void authority_settle(struct tc_xds_authority_state *s, bool all)
{
    bool empty = true;
    for (size_t type = 0; type < s->entries.len; type++) {
        bool dropped = false;
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, s->entries.data[type], e, next)
        {
            if (all)
                tc_xds_watch_stop_all(&e->watches);
            if (tc_list_empty(&e->watches)) {
                tc_xds_entry_free(e);
                dropped = true;
            }
        }
        if (dropped)
            tc_xds_authority_request(s, type);
        empty = empty && s->entries.data[type] == NULL;
    }
    if (empty)
        tc_xds_authority_free(s);
}

static void client_settle(struct tc_xds_local_client *c, bool all)
{
    for (struct tc_link *it = c->authorities.next, *next; it != &c->authorities; it = next) {
        next = it->next;
        authority_settle(TC_CONTAINER_OF(it, struct tc_xds_authority_state, link), all);
    }
}

static void on_client_settle(struct tc_task *task)
{
    client_settle(TC_CONTAINER_OF(task, struct tc_xds_local_client, settle), false);
}

/* --- watches --- */

/* Tells a watcher `why` its name cannot be requested. The watcher gets no later event. */
static void watcher_fail(struct tc_xds_local_client *c, struct tc_xds_watcher *w, const char *why)
{
    struct tc_status error =
        tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS, "%s (node ID:%s)", why, tc_xds_node_id(&c->base));
    tc_xds_watch_start(w, &c->base, NULL, &c->orphans);
    tc_xds_watch_changed(w, NULL, &error, NULL);
    tc_status_fini(&error);
}

/* `authority` NULL: the top level. `name` is canonical. */
static void client_watch_name(struct tc_xds_local_client *c, const struct tc_xds_resource_type *type,
                              const struct tc_xds_authority *authority, struct tc_rstr *name,
                              struct tc_xds_watcher *watcher)
{
    size_t index = tc_xds_type_add(c, type);
    struct tc_xds_authority_state *s = tc_xds_authority_get(c, authority);
    struct tc_xds_entry *e = tc_xds_entry_find(s, index, tc_rstr_slice(name));
    bool added = e == NULL;
    if (added) {
        e = tc_xds_entry_new(s, index, name);
        tc_xds_authority_request(s, index);
        /* A71: a new name may be the missing resource that starts the fallback while the server is down. */
        tc_xds_authority_fall_back(s);
    }
    tc_xds_watch_start(watcher, &c->base, e, &e->watches);
    tc_xds_entry_tell(e, watcher, true, NULL);
    if (added)
        tc_status_set(&e->told_error, tc_status_ref(tc_xds_entry_error(e)));
}

static void local_watch(struct tc_xds_client *base, const struct tc_xds_resource_type *type, struct tc_slice name,
                        struct tc_xds_watcher *watcher)
{
    struct tc_xds_local_client *c = local_of(base);
    struct tc_xds_name parsed;
    char *why = NULL;
    const struct tc_xds_authority *authority = NULL;
    if (!tc_xds_name_parse(type, name, &parsed, &why)) {
        watcher_fail(c, watcher, why);
        tc_free(why);
        return;
    }
    if (parsed.federated)
        authority = tc_xds_bootstrap_authority(base->bootstrap, tc_rstr_slice(parsed.authority));
    if (parsed.federated && !authority) {
        why = tc_asprintf("authority \"" TC_SHOWN "\" is not in the xDS bootstrap",
                          TC_SHOW(tc_rstr_cstr(parsed.authority)));
        watcher_fail(c, watcher, why);
        tc_free(why);
    } else {
        client_watch_name(c, type, authority, parsed.text, watcher);
    }
    tc_xds_name_fini(&parsed);
}

static void local_unwatch(struct tc_xds_client *base, struct tc_xds_watcher *watcher)
{
    const struct tc_xds_entry *e = tc_xds_watch_entry(watcher);
    tc_xds_watch_stop(watcher);
    if (e && tc_list_empty(&e->watches))
        tc_loop_defer(base->loop, &local_of(base)->settle);
}

/* --- backoff, loads --- */

static void local_reset_backoff(struct tc_xds_client *base)
{
    TC_LIST_FOREACH(it, &local_of(base)->channels)
    tc_xds_channel_reset_backoff(TC_CONTAINER_OF(it, struct tc_xds_channel, link));
}

static struct tc_load_cluster *local_load(struct tc_xds_client *base, const struct tc_xds_server *server,
                                          struct tc_rstr *cluster, struct tc_rstr *service)
{
    struct tc_xds_lrs *lrs = tc_xds_channel_lrs(tc_xds_channel_get(local_of(base), server));
    return tc_load_cluster_get(tc_xds_lrs_store(lrs), cluster, service, tc_loop_now_ns(base->loop));
}

/* --- the dump --- */

static void entry_dump(const struct tc_xds_local_client *c, const struct tc_xds_entry *e, tc_xds_dump_fn fn, void *arg)
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

static void local_dump(const struct tc_xds_client *base, tc_xds_dump_fn fn, void *arg)
{
    const struct tc_xds_local_client *c = (const struct tc_xds_local_client *)base;
    TC_LIST_FOREACH(it, &c->authorities)
    {
        const struct tc_xds_authority_state *s = TC_CONTAINER_OF(it, struct tc_xds_authority_state, link);
        for (size_t type = 0; type < s->entries.len; type++) {
            const struct tc_xds_entry *e, *next;
            HASH_ITER(hh, s->entries.data[type], e, next)
            {
                entry_dump(c, e, fn, arg);
            }
        }
    }
}

/* --- life --- */

static void local_free(struct tc_xds_client *base)
{
    struct tc_xds_local_client *c = local_of(base);
    tc_task_cancel(&c->settle);
    tc_xds_watch_stop_all(&c->orphans);
    client_settle(c, true);
    while (!tc_list_empty(&c->channels)) /* those that load reports keep */
        tc_xds_channel_stop_lrs(TC_CONTAINER_OF(c->channels.next, struct tc_xds_channel, link));
    tc_vec_fini(&c->types);
    tc_rstr_unref(c->target);
    tc_xds_bootstrap_unref(base->bootstrap);
    tc_free(c);
}

static bool on_channel_response(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_token *token)
{
    return tc_xds_on_response(ch, message, token,
                              ch->server->incremental ? &tc_xds_response_delta : &tc_xds_response_sotw);
}

static const struct tc_xds_channel_events channel_events = {
    .on_response = on_channel_response,
    .on_unreachable = tc_xds_channel_fail,
    .on_reachable = tc_xds_channel_healthy,
    .on_nothing_to_add = tc_xds_channel_nothing_to_add,
};

static const struct tc_xds_client_ops local_ops = {
    .watch = local_watch,
    .unwatch = local_unwatch,
    .reset_backoff = local_reset_backoff,
    .load = local_load,
    .dump = local_dump,
    .free = local_free,
};

struct tc_xds_client *tc_xds_local_client_new(struct tc_loop *loop, struct tc_xds_bootstrap *bootstrap,
                                              struct tc_xds_transport_factory *factory,
                                              const struct tc_xds_client_opts *opts)
{
    struct tc_xds_local_client *c = TC_NEW(struct tc_xds_local_client);
    tc_xds_client_init(&c->base, &local_ops, loop, bootstrap);
    c->factory = factory;
    c->events = &channel_events;
    if (opts)
        c->opts = *opts;
    else
        tc_xds_client_opts_init(&c->opts);
    c->target = tc_rstr_new(c->opts.target.data, c->opts.target.len);
    c->opts.target = tc_rstr_slice(c->target);
    tc_list_init(&c->authorities);
    tc_list_init(&c->channels);
    tc_list_init(&c->orphans);
    tc_task_init(&c->settle, on_client_settle);
    return &c->base;
}
