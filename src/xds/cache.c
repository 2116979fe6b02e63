/* The cache's entries: what is known of a watched resource (A88's states), and what its watchers were told. */
#include "xds/client_impl.h"

#define STALLED_RETRY_MS 1000

static const struct tc_xds_resource_type *type_of(const struct tc_xds_entry *e)
{
    return e->realm->client->types.data[e->type];
}

struct tc_xds_entry **tc_xds_entries(struct tc_xds_realm *r, size_t type)
{
    while (r->entries.len <= type)
        *tc_vec_push(&r->entries) = NULL;
    return &r->entries.data[type];
}

struct tc_xds_entry *tc_xds_entry_find(const struct tc_xds_realm *r, size_t type, struct tc_slice name)
{
    struct tc_xds_entry *e = NULL;
    if (type < r->entries.len)
        HASH_FIND(hh, r->entries.data[type], name.data ? name.data : "", name.len, e);
    return e;
}

/* --- the does-not-exist timer --- */

static const struct tc_xds_channel *first_sent_on(const struct tc_xds_entry *e)
{
    return e->realm->channels.data[__builtin_ctz(e->sent_on)];
}

/* An answer may have come that is not read yet, because a watcher is still busy with the one before. */
static bool answer_may_wait(const struct tc_xds_entry *e)
{
    for (size_t i = 0; i < e->realm->channels.len; i++)
        if ((e->sent_on & (UINT32_C(1) << i)) && e->realm->channels.data[i]->ads.token)
            return true;
    return false;
}

static void on_timer(struct tc_timer *timer)
{
    struct tc_xds_entry *e = TC_CONTAINER_OF(timer, struct tc_xds_entry, timer);
    const struct tc_xds_client *c = e->realm->client;
    if (answer_may_wait(e)) {
        tc_timer_start(timer, STALLED_RETRY_MS);
        return;
    }
    const char *type = type_of(e)->short_name;
    TC_XDS_LOG(WARN, "xds %s: %s \"%s\" was not received in time", tc_rstr_cstr(first_sent_on(e)->server->uri), type,
               e->name->data);
    if (first_sent_on(e)->server->resource_timer_is_transient_error) /* A88 */
        tc_xds_entry_fail(e, TC_XDS_TIMEOUT,
                          tc_status_make(TORC_STATUS_UNAVAILABLE,
                                         "xDS %s resource was not received from server %s in time (node ID:%s)", type,
                                         tc_rstr_cstr(first_sent_on(e)->server->uri), tc_xds_node_id(c)),
                          tc_slice_of(NULL, 0), false, NULL);
    else
        tc_xds_entry_fail(e, TC_XDS_DOES_NOT_EXIST,
                          tc_status_make(TORC_STATUS_NOT_FOUND, "xDS %s resource does not exist (node ID:%s)", type,
                                         tc_xds_node_id(c)),
                          tc_slice_of(NULL, 0), false, NULL);
}

void tc_xds_entry_check_timer(struct tc_xds_entry *e)
{
    /* A57: only for what was never seen, only while the subscription is with a connected transport. */
    if (e->state != TC_XDS_REQUESTED || e->sent_on == 0) {
        tc_timer_stop(&e->timer);
        return;
    }
    if (tc_timer_active(&e->timer))
        return;
    uint64_t timeout_ms = e->realm->client->opts.resource_timeout_ms;
    /* A88: 30 s in place of 15 s. */
    tc_timer_start(&e->timer,
                   first_sent_on(e)->server->resource_timer_is_transient_error ? 2 * timeout_ms : timeout_ms);
}

/* --- life --- */

struct tc_xds_entry *tc_xds_entry_new(struct tc_xds_realm *r, size_t type, struct tc_rstr *name)
{
    struct tc_xds_entry *e = TC_NEW(struct tc_xds_entry);
    struct tc_xds_entry **table = tc_xds_entries(r, type);
    e->realm = r;
    e->type = type;
    e->name = tc_rstr_ref(name);
    e->state = TC_XDS_REQUESTED;
    tc_list_init(&e->watches);
    tc_timer_init(&e->timer, r->client->loop, on_timer);
    for (size_t i = 0; i < r->channels.len; i++)
        if (tc_xds_ads_dropped(r->channels.data[i], type, name))
            e->held_back |= UINT32_C(1) << i;
    HASH_ADD_KEYPTR(hh, *table, e->name->data, e->name->len, e);
    return e;
}

static void drop_resource(struct tc_xds_entry *e)
{
    e->realm->client->held_bytes -= e->bytes ? e->bytes->len : 0;
    tc_xds_resource_unref(e->resource);
    tc_rstr_unref(e->bytes);
    tc_rstr_unref(e->version);
    e->resource = NULL;
    e->bytes = e->version = NULL;
    e->source = NULL;
    e->updated_ns = 0;
}

static void drop_error(struct tc_xds_entry *e)
{
    tc_status_fini(&e->error);
    tc_rstr_unref(e->failed_version);
    e->failed_version = NULL;
    e->failed_ns = 0;
}

void tc_xds_entry_free(struct tc_xds_entry *e)
{
    struct tc_xds_entry **table = tc_xds_entries(e->realm, e->type);
    HASH_DEL(*table, e);
    for (size_t i = 0; i < e->realm->channels.len; i++)
        if ((e->sending_on | e->sent_on | e->held_back) & (UINT32_C(1) << i))
            tc_xds_ads_drop(e->realm->channels.data[i], e->type, e->name);
    tc_timer_stop(&e->timer);
    drop_resource(e);
    drop_error(e);
    tc_xds_resource_unref(e->told_resource);
    tc_status_fini(&e->told_error);
    tc_rstr_unref(e->name);
    tc_free(e);
}

/* --- news --- */

bool tc_xds_entry_fits(const struct tc_xds_entry *e, size_t bytes, uint64_t *most)
{
    const struct tc_xds_client *c = e->realm->client;
    uint64_t set = c->bootstrap->limits.held_bytes, own = e->bytes ? e->bytes->len : 0;
    *most = set ? set : TC_XDS_HELD_BYTES;
    return bytes <= own || c->held_bytes - own + bytes <= *most;
}

void tc_xds_entry_accept(struct tc_xds_entry *e, const struct tc_xds_server *source, struct tc_xds_resource *resource,
                         struct tc_slice bytes, struct tc_slice version, struct tc_xds_done *done)
{
    /* An equal resource keeps the old one in place, so that no one downstream sees a change. What it means may depend
     * on where it is from. */
    bool same_bytes = e->resource && tc_slice_eq(tc_rstr_slice(e->bytes), bytes);
    if (e->resource && ((same_bytes && e->source == source) || type_of(e)->equal(e->resource, resource))) {
        tc_xds_resource_unref(resource);
        resource = tc_xds_resource_ref(e->resource);
    }
    struct tc_rstr *kept = same_bytes ? tc_rstr_ref(e->bytes) : tc_rstr_new(bytes.data, bytes.len);
    drop_resource(e);
    drop_error(e);
    e->resource = resource;
    e->bytes = kept;
    e->realm->client->held_bytes += kept->len;
    e->version = tc_rstr_new(version.data, version.len);
    e->source = source;
    e->updated_ns = tc_loop_realtime_ns(e->realm->client->loop);
    e->state = TC_XDS_ACKED;
    tc_xds_entry_check_timer(e);
    tc_xds_entry_reconcile(e, done);
}

void tc_xds_entry_fail(struct tc_xds_entry *e, enum tc_xds_state state, struct tc_status error, struct tc_slice version,
                       bool drop, struct tc_xds_done *done)
{
    drop_error(e);
    e->state = state;
    e->error = error;
    e->failed_version = tc_rstr_new(version.data, version.len);
    e->failed_ns = tc_loop_realtime_ns(e->realm->client->loop);
    if (drop)
        drop_resource(e);
    tc_xds_entry_check_timer(e);
    tc_xds_entry_reconcile(e, done);
}

/* --- what watchers know --- */

const struct tc_status *tc_xds_entry_error(const struct tc_xds_entry *e)
{
    const struct tc_status *unreachable = tc_xds_realm_error(e->realm);
    return tc_status_ok(unreachable) ? &e->error : unreachable;
}

void tc_xds_entry_reconcile(struct tc_xds_entry *e, struct tc_xds_done *done)
{
    const struct tc_status *error = tc_xds_entry_error(e);
    bool new_resource = e->resource != e->told_resource;
    bool new_error = !tc_status_eq(error, &e->told_error);
    if (!new_resource && !new_error)
        return;
    TC_LIST_FOREACH(it, &e->watches)
    {
        struct tc_xds_watcher *w = TC_CONTAINER_OF(it, struct tc_xds_watcher, link);
        if (e->resource) {
            if (new_resource)
                tc_xds_watch_changed(w, e->resource, NULL, done);
            /* A88: on_changed ends an ambient error by itself. */
            if (new_resource ? !tc_status_ok(error) : new_error)
                tc_xds_watch_ambient(w, error, done);
        } else if (!tc_status_ok(error)) {
            tc_xds_watch_changed(w, NULL, error, done);
        }
    }
    tc_xds_resource_unref(e->told_resource);
    e->told_resource = tc_xds_resource_ref(e->resource);
    tc_status_set(&e->told_error, tc_status_ref(error));
}
