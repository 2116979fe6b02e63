/* The cache's entries: the state of a watched resource, and the last notification of its watchers.
 *
 *               accept            fail
 *   REQUESTED ----------> ACKED ----------> failed: NACKED, DOES_NOT_EXIST, RECEIVED_ERROR, TIMEOUT
 *       |                   ^                  |          ^
 *       |                   +----- accept -----+          |
 *       +----------- fail, also by the timer -------------+
 *
 * A failed entry keeps its last value, if it had one, and watchers get an ambient error. Only a data error from a
 * server with the feature fail_on_data_errors drops the value (A88). Without a value, watchers get the error instead.
 *
 * News reach the watchers by tc_xds_entry_reconcile alone. This function compares the entry's present state (the value,
 * and an error of the data or of all servers) with the last notification, so that a second call does nothing. A new
 * watcher gets the present state by tc_xds_entry_tell. If a new value equals the old one, the entry keeps the old
 * object: readers compare pointers.
 *
 * The does-not-exist timer runs only while the state is REQUESTED, from on_sent of a request with the subscription to
 * the end of the stream (A57), and leads to DOES_NOT_EXIST or TIMEOUT. It counts for the last server of the list that
 * was asked: absence at an earlier server would prove nothing (A71). The time depends on the last server's features,
 * and starts again when another server becomes the last one.
 *
 * An entry belongs to its authority's table. local_client.c makes entries, and frees those without watches. */
#include "xds/client/cache.h"

#include "xds/client/server_order.h"
#include "xds/client/subscriptions.h"
#include "xds/client/watcher.h"

/* A timer that has fired waits at most this long before it looks again for a response that may have come
 * (on_resource_timer). */
enum { STALLED_RETRY_MS = 1000 };

static const struct tc_xds_resource_type *entry_type(const struct tc_xds_entry *e)
{
    return e->authority->client->types.data[e->type];
}

/* Returns the authority's table of a type, made if it does not exist; valid until the next table is made. */
static struct tc_xds_entry **authority_entries(struct tc_xds_authority_state *s, size_t type)
{
    while (s->entries.len <= type)
        *tc_vec_push(&s->entries) = NULL;
    return &s->entries.data[type];
}

struct tc_xds_entry *tc_xds_entry_find(const struct tc_xds_authority_state *s, size_t type, struct tc_slice name)
{
    struct tc_xds_entry *e = NULL;
    if (type < s->entries.len)
        HASH_FIND(hh, s->entries.data[type], name.data ? name.data : "", name.len, e);
    return e;
}

struct tc_xds_entry *tc_xds_channel_entry(struct tc_xds_channel *ch, size_t type, const struct tc_xds_name *name)
{
    const struct tc_xds_authority *authority = NULL;
    if (name->federated) {
        authority = tc_xds_bootstrap_authority(ch->client->base.bootstrap, tc_rstr_slice(name->authority));
        if (!authority)
            return NULL;
    }
    TC_LIST_FOREACH(it, &ch->client->authorities)
    {
        struct tc_xds_authority_state *s = TC_CONTAINER_OF(it, struct tc_xds_authority_state, link);
        if (s->config == authority)
            return tc_xds_authority_channel_index(s, ch) < 0 ? NULL
                                                             : tc_xds_entry_find(s, type, tc_rstr_slice(name->text));
    }
    return NULL;
}

/* --- types --- */

size_t tc_xds_type_index(const struct tc_xds_local_client *c, struct tc_slice type_url)
{
    for (size_t i = 0; i < c->types.len; i++)
        if (tc_slice_eq_str(type_url, c->types.data[i]->type_url))
            return i;
    return TC_XDS_NO_TYPE;
}

size_t tc_xds_type_add(struct tc_xds_local_client *c, const struct tc_xds_resource_type *type)
{
    size_t i = tc_xds_type_index(c, tc_slice_str(type->type_url));
    if (i != TC_XDS_NO_TYPE)
        return i;
    *tc_vec_push(&c->types) = type;
    return c->types.len - 1;
}

/* --- the log --- */

void tc_xds_entries_check_log(struct tc_xds_local_client *c)
{
    c->logs_states = tc_log_enabled(TC_LOG_RESOURCE, TORC_LOG_INFO);
}

/* Logs the entry's state: at INFO when something changed, else at DEBUG. */
static void entry_log_state(const struct tc_xds_entry *e, bool changed)
{
    static const char *const states[] = {
        [TC_XDS_REQUESTED] = "requested",
        [TC_XDS_DOES_NOT_EXIST] = "does not exist: ",
        [TC_XDS_ACKED] = "acked version ",
        [TC_XDS_NACKED] = "NACKed: ",
        [TC_XDS_RECEIVED_ERROR] = "error from the server: ",
        [TC_XDS_TIMEOUT] = "timeout: ",
    };
    if (!e->authority->client->logs_states)
        return;
    const char *detail = e->state == TC_XDS_ACKED ? tc_rstr_cstr(e->version) : tc_status_text(&e->error);
    bool keeps = e->state != TC_XDS_ACKED && e->resource;
    TC_LOG(TC_LOG_RESOURCE, changed ? TORC_LOG_INFO : TORC_LOG_DEBUG, "%s " TC_SHOWN ": %s%s%s%s",
           entry_type(e)->short_name, TC_SHOW(e->name->data), states[e->state], detail,
           keeps ? "; stays in use with version " : "", keeps ? tc_rstr_cstr(e->version) : "");
}

/* --- the does-not-exist timer --- */

/* Returns how long the timer runs for the server of `timed_on`, which must be set. A88: a server with the feature
 * resource_timer_is_transient_error gets twice the time, by default 30 s instead of 15 s. */
static uint64_t resource_timeout_ms(const struct tc_xds_entry *e)
{
    const struct tc_xds_server *server = e->authority->channels.data[e->timed_on - 1]->server;
    uint64_t ms = e->authority->client->opts.resource_timeout_ms;
    return server->resource_timer_is_transient_error ? 2 * ms : ms;
}

static void on_resource_timer(struct tc_timer *timer)
{
    struct tc_xds_entry *e = TC_CONTAINER_OF(timer, struct tc_xds_entry, timer);
    struct tc_xds_local_client *c = e->authority->client;
    const struct tc_xds_channel *ch = e->authority->channels.data[e->timed_on - 1];
    /* A response may have come in time and not be read, while an earlier one is worked on, or during a pause. The timer
     * waits for such a response, but at most as long again as the timer took to fire. */
    uint64_t now_ms = tc_loop_now_ms(c->base.loop);
    if (!e->late_until_ms)
        e->late_until_ms = now_ms + resource_timeout_ms(e);
    if (now_ms < e->late_until_ms && (ch->ads.token || tc_timer_active(&ch->ads.pause))) {
        tc_timer_start(timer, TC_MIN((uint64_t)STALLED_RETRY_MS, e->late_until_ms - now_ms));
        return;
    }
    const char *type = entry_type(e)->short_name, *uri = tc_rstr_cstr(ch->server->uri);
    tc_xds_entries_check_log(c);
    TC_XDS_LOG(WARN, "xds %s: %s \"" TC_SHOWN "\" was not received in time", uri, type, TC_SHOW(e->name->data));
    if (ch->server->resource_timer_is_transient_error) /* A88 */
        tc_xds_entry_fail(e, TC_XDS_TIMEOUT,
                          tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_XDS,
                                         "xDS %s resource was not received from server %s in time (node ID:%s)", type,
                                         uri, tc_xds_node_id(&c->base)),
                          tc_slice_of(NULL, 0), false, NULL, NULL);
    else
        tc_xds_entry_fail(e, TC_XDS_DOES_NOT_EXIST,
                          tc_status_make(TORC_STATUS_NOT_FOUND, TORC_LAYER_XDS,
                                         "xDS %s resource does not exist (node ID:%s)", type, tc_xds_node_id(&c->base)),
                          tc_slice_of(NULL, 0), false, NULL, NULL);
}

void tc_xds_entry_check_timer(struct tc_xds_entry *e)
{
    unsigned on = e->state == TC_XDS_REQUESTED && e->sent_on ? 32 - (unsigned)__builtin_clz(e->sent_on) : 0;
    if (on == e->timed_on)
        return;
    e->timed_on = on;
    e->late_until_ms = 0;
    tc_timer_stop(&e->timer);
    if (on == 0)
        return;
    tc_timer_start(&e->timer, resource_timeout_ms(e));
}

/* --- life --- */

struct tc_xds_entry *tc_xds_entry_new(struct tc_xds_authority_state *s, size_t type, struct tc_rstr *name)
{
    struct tc_xds_entry *e = TC_NEW(struct tc_xds_entry);
    struct tc_xds_entry **table = authority_entries(s, type);
    e->authority = s;
    e->type = type;
    e->name = tc_rstr_ref(name);
    e->state = TC_XDS_REQUESTED;
    tc_list_init(&e->watches);
    tc_timer_init(&e->timer, s->client->base.loop, on_resource_timer);
    for (size_t i = 0; i < s->channels.len; i++)
        if (tc_xds_ads_dropped(s->channels.data[i], type, name))
            e->held_back |= UINT32_C(1) << i;
    HASH_ADD_KEYPTR(hh, *table, e->name->data, e->name->len, e);
    tc_xds_entries_check_log(s->client);
    entry_log_state(e, true);
    return e;
}

static void entry_drop_resource(struct tc_xds_entry *e)
{
    e->authority->client->held_bytes -= e->bytes ? e->bytes->len : 0;
    tc_xds_resource_unref(e->resource);
    tc_rstr_unref(e->bytes);
    tc_rstr_unref(e->version);
    e->resource = NULL;
    e->bytes = e->version = NULL;
    e->source = NULL;
    e->updated_ns = 0;
}

static void entry_drop_error(struct tc_xds_entry *e)
{
    tc_status_fini(&e->error);
    tc_rstr_unref(e->failed_version);
    e->absent = false;
    e->failed_version = NULL;
    e->failed_by = NULL;
    e->failed_ns = 0;
}

void tc_xds_entry_free(struct tc_xds_entry *e)
{
    struct tc_xds_entry **table = authority_entries(e->authority, e->type);
    HASH_DEL(*table, e);
    for (size_t i = 0; i < e->authority->channels.len; i++)
        if ((e->sending_on | e->sent_on) & (UINT32_C(1) << i))
            tc_xds_ads_drop(e->authority->channels.data[i], e->type, e->name);
    tc_timer_stop(&e->timer);
    entry_drop_resource(e);
    entry_drop_error(e);
    tc_xds_resource_unref(e->told_resource);
    tc_status_fini(&e->told_error);
    tc_rstr_unref(e->name);
    tc_free(e);
}

/* --- news --- */

/* Returns a bit for each of the authority's channels for whose server tc_xds_entry_is_superseded is true. */
static uint32_t entry_superseded_on(const struct tc_xds_entry *e)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < e->authority->channels.len; i++)
        if (tc_xds_entry_is_superseded(e, e->authority->channels.data[i]->server))
            bits |= UINT32_C(1) << i;
    return bits;
}

/* Called after a change of the entry. Calls tc_xds_ads_outdate for each channel whose server the change has superseded:
 * the first requests of the channel's stream may give the version of that server's value. before: what
 * entry_superseded_on returned before the change; lost: the server whose good value the change superseded, or NULL. The
 * next stream does not give the version. So another server that sends values or errors without end costs one stream for
 * each name. */
static void entry_outdate_requests(const struct tc_xds_entry *e, uint32_t before, const struct tc_xds_server *lost)
{
    uint32_t newly = entry_superseded_on(e) & ~before;
    for (size_t i = 0; i < e->authority->channels.len; i++) {
        struct tc_xds_channel *ch = e->authority->channels.data[i];
        if (ch->server == lost || newly >> i & 1)
            tc_xds_ads_outdate(ch, ch->server == lost);
    }
}

bool tc_xds_entry_fits(const struct tc_xds_entry *e, size_t bytes, uint64_t *most)
{
    const struct tc_xds_local_client *c = e->authority->client;
    uint64_t set = c->base.bootstrap->limits.held_bytes, own = e->bytes ? e->bytes->len : 0;
    *most = set ? set : TC_XDS_HELD_BYTES;
    return bytes <= own || c->held_bytes - own + bytes <= *most;
}

void tc_xds_entry_accept(struct tc_xds_entry *e, const struct tc_xds_server *source, struct tc_xds_resource *resource,
                         struct tc_slice bytes, struct tc_slice version, struct tc_xds_token *token)
{
    /* If the new resource equals the old one, the old object stays, so that no reader sees a change. Equal bytes prove
     * this only if both are from one server: the decoder also depends on the server (tc_xds_decode_context). */
    bool same_bytes = e->resource && tc_slice_eq(tc_rstr_slice(e->bytes), bytes);
    if (e->resource && ((same_bytes && e->source == source) || entry_type(e)->equal(e->resource, resource))) {
        tc_xds_resource_unref(resource);
        resource = tc_xds_resource_ref(e->resource);
    }
    bool changed = e->state != TC_XDS_ACKED || resource != e->resource;
    struct tc_rstr *kept = same_bytes ? tc_rstr_ref(e->bytes) : tc_rstr_new(bytes.data, bytes.len);
    const struct tc_xds_server *lost = e->source != source ? e->source : NULL;
    uint32_t superseded = entry_superseded_on(e);
    entry_drop_resource(e);
    entry_drop_error(e);
    e->resource = resource;
    e->bytes = kept;
    e->authority->client->held_bytes += kept->len;
    e->version = tc_rstr_new(version.data, version.len);
    e->source = source;
    e->updated_ns = tc_loop_realtime_ns(e->authority->client->base.loop);
    e->state = TC_XDS_ACKED;
    entry_outdate_requests(e, superseded, lost);
    entry_log_state(e, changed);
    tc_xds_entry_check_timer(e);
    tc_xds_entry_reconcile(e, token);
}

void tc_xds_entry_fail(struct tc_xds_entry *e, enum tc_xds_state state, struct tc_status error, struct tc_slice version,
                       bool drop, const struct tc_xds_server *by, struct tc_xds_token *token)
{
    bool changed = e->state != state || !tc_status_eq(&e->error, &error);
    const struct tc_xds_server *lost = e->state == TC_XDS_ACKED && by && by != e->source ? e->source : NULL;
    uint32_t superseded = entry_superseded_on(e);
    entry_drop_error(e);
    e->state = state;
    e->failed_by = by;
    e->absent = state == TC_XDS_DOES_NOT_EXIST;
    e->error = error;
    e->failed_version = tc_rstr_new(version.data, version.len);
    e->failed_ns = tc_loop_realtime_ns(e->authority->client->base.loop);
    entry_outdate_requests(e, superseded, lost);
    if (drop)
        entry_drop_resource(e);
    entry_log_state(e, changed);
    tc_xds_entry_check_timer(e);
    tc_xds_entry_reconcile(e, token);
}

/* --- notification of watchers --- */

const struct tc_status *tc_xds_entry_error(const struct tc_xds_entry *e)
{
    const struct tc_status *unreachable = tc_xds_authority_error(e->authority);
    return tc_status_ok(unreachable) ? &e->error : unreachable;
}

void tc_xds_entry_tell(const struct tc_xds_entry *e, struct tc_xds_watcher *w, bool new_resource,
                       struct tc_xds_token *token)
{
    const struct tc_status *error = tc_xds_entry_error(e);
    if (e->resource && new_resource)
        tc_xds_watch_changed(w, e->resource, NULL, token);
    /* A88: on_changed ends an ambient error, so no OK is needed after it. */
    if (e->resource && (!new_resource || !tc_status_ok(error)))
        tc_xds_watch_ambient(w, error, token);
    if (!e->resource && !tc_status_ok(error))
        tc_xds_watch_changed(w, NULL, error, token);
}

void tc_xds_entry_reconcile(struct tc_xds_entry *e, struct tc_xds_token *token)
{
    const struct tc_status *error = tc_xds_entry_error(e);
    bool new_resource = e->resource != e->told_resource;
    bool new_error = !tc_status_eq(error, &e->told_error);
    if (!new_resource && !new_error)
        return;
    TC_LIST_FOREACH(it, &e->watches)
    tc_xds_entry_tell(e, TC_CONTAINER_OF(it, struct tc_xds_watcher, link), new_resource, token);
    tc_xds_resource_unref(e->told_resource);
    e->told_resource = tc_xds_resource_ref(e->resource);
    tc_status_set(&e->told_error, tc_status_ref(error));
}
