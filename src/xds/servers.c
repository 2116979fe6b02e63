/* Which servers serve which names: realms, channels, and A71's fallback between them. */
#include "xds/client_impl.h"
#include "xds/replica_impl.h"

/* --- channels --- */

static void on_connectivity(void *arg, const struct tc_status *failure)
{
    struct tc_xds_channel *ch = arg;
    tc_xds_channel_fail(ch, tc_status_make(TORC_STATUS_UNAVAILABLE, "xDS channel for server %s: %s (node ID:%s)",
                                           tc_rstr_cstr(ch->server->uri), tc_status_text(failure),
                                           tc_xds_node_id(ch->client)));
}

/* A47: one channel for equal entries, whichever authority names them. */
static struct tc_xds_channel *channel_get(struct tc_xds_client *c, const struct tc_xds_server *server)
{
    TC_LIST_FOREACH(it, &c->channels)
    {
        struct tc_xds_channel *ch = TC_CONTAINER_OF(it, struct tc_xds_channel, link);
        if (tc_rstr_eq(ch->server->key, server->key))
            return ch;
    }
    struct tc_xds_channel *ch = TC_NEW(struct tc_xds_channel);
    ch->client = c;
    ch->server = server;
    tc_list_append(&c->channels, &ch->link);
    tc_xds_ads_init(ch);
    ch->transport = c->factory->create(c->factory, server, on_connectivity, ch);
    TC_XDS_LOG(INFO, "xds %s: channel created for %s", tc_rstr_cstr(server->uri), tc_rstr_cstr(c->target));
    return ch;
}

void tc_xds_channel_release(struct tc_xds_channel *ch)
{
    if (ch->users || (ch->lrs && tc_xds_lrs_active(ch->lrs)))
        return;
    TC_XDS_LOG(INFO, "xds %s: channel closed", tc_rstr_cstr(ch->server->uri));
    tc_xds_lrs_free(ch->lrs);
    tc_xds_ads_fini(ch);
    ch->transport->ops->shutdown(ch->transport);
    tc_list_remove(&ch->link);
    tc_status_fini(&ch->status);
    tc_free(ch);
}

static void channel_put(struct tc_xds_channel *ch)
{
    if (--ch->users)
        return;
    if (ch->lrs) { /* it may stay, without the resources */
        tc_xds_ads_fini(ch);
        ch->ads = (struct tc_xds_ads){0};
        tc_xds_ads_init(ch);
    }
    tc_xds_channel_release(ch);
}

static const struct tc_xds_server *find_server(const struct tc_xds_server *servers, size_t n, const struct tc_rstr *key)
{
    for (size_t i = 0; i < n; i++)
        if (tc_rstr_eq(servers[i].key, key))
            return &servers[i];
    return NULL;
}

static const struct tc_xds_server *server_of(const struct tc_xds_bootstrap *b, const struct tc_rstr *key)
{
    const struct tc_xds_server *server = find_server(b->servers, b->n_servers, key);
    for (size_t i = 0; i < b->n_authorities && !server; i++)
        server = find_server(b->authorities[i].servers, b->authorities[i].n_servers, key);
    return server;
}

struct tc_load_cluster *tc_xds_client_load(struct tc_xds_client *c, const struct tc_rstr *server_key,
                                           struct tc_rstr *cluster, struct tc_rstr *service)
{
    const struct tc_xds_server *server = server_of(c->bootstrap, server_key);
    if (!server)
        return NULL;
    if (c->replica)
        return tc_xds_replica_load(c, server->key, cluster, service);
    struct tc_xds_channel *ch = channel_get(c, server);
    if (!ch->lrs)
        ch->lrs = tc_xds_lrs_new(ch);
    return tc_load_cluster_get(tc_xds_lrs_store(ch->lrs), cluster, service, tc_loop_now_ns(c->loop));
}

static void reconcile_all(struct tc_xds_realm *r, struct tc_xds_done *done)
{
    for (size_t type = 0; type < r->entries.len; type++) {
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, r->entries.data[type], e, next)
        {
            tc_xds_entry_reconcile(e, done);
        }
    }
}

static bool is_last(const struct tc_xds_realm *r, const struct tc_xds_channel *ch)
{
    return r->channels.len && r->channels.data[r->channels.len - 1] == ch;
}

void tc_xds_channel_fail(struct tc_xds_channel *ch, struct tc_status status)
{
    TC_XDS_LOG(WARN, "%s", tc_status_text(&status));
    tc_status_set(&ch->status, status);
    TC_LIST_FOREACH(it, &ch->client->realms)
    {
        struct tc_xds_realm *r = TC_CONTAINER_OF(it, struct tc_xds_realm, link);
        if (!is_last(r, ch))
            continue;
        tc_xds_realm_fall_back(r);
        reconcile_all(r, NULL);
    }
}

void tc_xds_channel_healthy(struct tc_xds_channel *ch, struct tc_xds_done *done)
{
    if (tc_status_ok(&ch->status))
        return;
    TC_XDS_LOG(INFO, "xds %s: the server answers again", tc_rstr_cstr(ch->server->uri));
    tc_status_fini(&ch->status);
    TC_LIST_FOREACH(it, &ch->client->realms)
    {
        struct tc_xds_realm *r = TC_CONTAINER_OF(it, struct tc_xds_realm, link);
        if (is_last(r, ch))
            reconcile_all(r, done);
    }
}

struct tc_xds_entry *tc_xds_channel_entry(struct tc_xds_channel *ch, size_t type, const struct tc_xds_name *name)
{
    const struct tc_xds_authority *authority = NULL;
    if (name->federated) {
        authority = tc_xds_bootstrap_authority(ch->client->bootstrap, tc_rstr_slice(name->authority));
        if (!authority)
            return NULL;
    }
    TC_LIST_FOREACH(it, &ch->client->realms)
    {
        struct tc_xds_realm *r = TC_CONTAINER_OF(it, struct tc_xds_realm, link);
        if (r->authority == authority)
            return tc_xds_realm_index(r, ch) < 0 ? NULL : tc_xds_entry_find(r, type, tc_rstr_slice(name->text));
    }
    return NULL;
}

/* --- realms --- */

int tc_xds_realm_index(const struct tc_xds_realm *r, const struct tc_xds_channel *ch)
{
    for (size_t i = 0; i < r->channels.len; i++)
        if (r->channels.data[i] == ch)
            return (int)i;
    return -1;
}

const struct tc_status *tc_xds_realm_error(const struct tc_xds_realm *r)
{
    return &r->channels.data[r->channels.len - 1]->status;
}

void tc_xds_realm_request(struct tc_xds_realm *r, size_t type)
{
    for (size_t i = 0; i < r->channels.len; i++)
        tc_xds_ads_request(r->channels.data[i], type);
}

/* A server that stands twice in one list is used once. */
static void add_channel(struct tc_xds_realm *r)
{
    struct tc_xds_channel *ch = channel_get(r->client, &r->servers[r->channels.len]);
    ch->users++;
    *tc_vec_push(&r->channels) = ch;
    tc_xds_ads_start(ch);
    for (size_t type = 0; type < r->entries.len; type++)
        if (r->entries.data[type])
            tc_xds_ads_request(ch, type);
}

struct tc_xds_realm *tc_xds_realm_get(struct tc_xds_client *c, const struct tc_xds_authority *authority)
{
    TC_LIST_FOREACH(it, &c->realms)
    {
        struct tc_xds_realm *r = TC_CONTAINER_OF(it, struct tc_xds_realm, link);
        if (r->authority == authority)
            return r;
    }
    struct tc_xds_realm *r = TC_NEW(struct tc_xds_realm);
    r->client = c;
    r->authority = authority;
    bool own = authority && authority->n_servers;
    r->servers = own ? authority->servers : c->bootstrap->servers;
    r->n_servers = own ? authority->n_servers : c->bootstrap->n_servers;
    tc_list_append(&c->realms, &r->link);
    add_channel(r);
    return r;
}

/* Takes the last channel off the list. */
static void remove_channel(struct tc_xds_realm *r)
{
    uint32_t bit = UINT32_C(1) << (r->channels.len - 1);
    struct tc_xds_channel *ch = r->channels.data[--r->channels.len];
    for (size_t type = 0; type < r->entries.len; type++) {
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, r->entries.data[type], e, next)
        {
            if ((e->sending_on | e->sent_on) & bit)
                tc_xds_ads_drop(ch, type, e->name);
            e->sending_on &= ~bit;
            e->sent_on &= ~bit;
            e->held_back &= ~bit;
            tc_xds_entry_check_timer(e);
        }
        tc_xds_ads_request(ch, type);
    }
    channel_put(ch);
}

void tc_xds_realm_free(struct tc_xds_realm *r)
{
    while (r->channels.len)
        remove_channel(r);
    tc_list_remove(&r->link);
    tc_vec_fini(&r->channels);
    tc_vec_fini(&r->entries);
    tc_free(r);
}

/* A71: received, or known to be absent, is enough. A95: unless the authority asks for more than that. */
static bool wants_fallback(const struct tc_xds_realm *r)
{
    if (r->authority && r->authority->fallback_on_reachability_only)
        return true;
    for (size_t type = 0; type < r->entries.len; type++) {
        const struct tc_xds_entry *e, *next;
        HASH_ITER(hh, r->entries.data[type], e, next)
        {
            if (!e->resource && e->state != TC_XDS_DOES_NOT_EXIST && e->state != TC_XDS_RECEIVED_ERROR)
                return true;
        }
    }
    return false;
}

void tc_xds_realm_fall_back(struct tc_xds_realm *r)
{
    size_t before = r->channels.len;
    while (r->channels.len < r->n_servers && !tc_status_ok(tc_xds_realm_error(r)) && wants_fallback(r)) {
        TC_XDS_LOG(WARN, "xds %s: falling back to %s", tc_rstr_cstr(r->servers[r->channels.len - 1].uri),
                   tc_rstr_cstr(r->servers[r->channels.len].uri));
        add_channel(r);
    }
    if (r->channels.len != before)
        reconcile_all(r, NULL);
}

void tc_xds_realm_cut(struct tc_xds_realm *r, size_t index)
{
    if (r->channels.len <= index + 1)
        return;
    while (r->channels.len > index + 1)
        remove_channel(r);
    reconcile_all(r, NULL);
}
