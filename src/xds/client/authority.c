/* An authority in use, and A71's fallback between its servers.
 *
 * The `channels` of an authority lead to the first of its `servers`, in order; one channel at first. Two rules:
 *
 *   fall back      while no server in use can be reached and a resource is missing, the next server gets a channel
 *   end fallback   a valid resource from channel i gives back the channels behind i; so does silence of channel i, if
 *                  all resources are from its server (tc_xds_channel_nothing_to_add)
 *
 * Until the fallback ends, an error or an absence at an earlier server leaves resources of the fallback server in use:
 * only the server that a resource is from, or the last server in use, may say that the resource is invalid or absent
 * (tc_xds_channel_speaks_for). A95's fallback_on_reachability_only leaves out the condition that a resource is missing.
 *
 * Every change in the state of a server ends in authority_reconcile, which notifies watchers of news.
 *
 * The client owns the authorities, and frees one that has no entry left. An authority holds a use of each of its
 * channels (tc_xds_channel_use). Loop thread only. */
#include "xds/client/authority.h"

#include "xds/client/ads.h"
#include "xds/client/cache.h"
#include "xds/client/server_order.h"
#include "xds/client/subscriptions.h"
#include "xds/client/xds_channel.h"

/* Notifies the watchers of all entries of what has changed. token: of the response that brought the change, or NULL. */
static void authority_reconcile(struct tc_xds_authority_state *s, struct tc_xds_token *token)
{
    for (size_t type = 0; type < s->entries.len; type++) {
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, s->entries.data[type], e, next)
        {
            tc_xds_entry_reconcile(e, token);
        }
    }
}

void tc_xds_channel_fail(struct tc_xds_channel *ch, struct tc_status status, bool of_stream)
{
    TC_XDS_LOG(WARN, "%s", tc_status_text(&status));
    tc_status_set(&ch->status, status);
    ch->stream_failed = of_stream;
    TC_LIST_FOREACH(it, &ch->client->authorities)
    {
        struct tc_xds_authority_state *s = TC_CONTAINER_OF(it, struct tc_xds_authority_state, link);
        if (tc_xds_authority_channel_index(s, ch) < 0)
            continue;
        tc_xds_authority_fall_back(s);
        authority_reconcile(s, NULL);
    }
}

void tc_xds_channel_healthy(struct tc_xds_channel *ch, struct tc_xds_token *token)
{
    if (tc_status_ok(&ch->status))
        return;
    TC_XDS_LOG(INFO, "xds %s: the server can be reached again", tc_rstr_cstr(ch->server->uri));
    tc_status_fini(&ch->status);
    TC_LIST_FOREACH(it, &ch->client->authorities)
    {
        struct tc_xds_authority_state *s = TC_CONTAINER_OF(it, struct tc_xds_authority_state, link);
        if (tc_xds_authority_channel_index(s, ch) >= 0)
            authority_reconcile(s, token);
    }
}

/* --- authorities --- */

void tc_xds_authority_request(struct tc_xds_authority_state *s, size_t type)
{
    for (size_t i = 0; i < s->channels.len; i++)
        tc_xds_ads_request(s->channels.data[i], type);
}

/* Gets a channel to the next server. A server that is in the list twice has one channel, at two places. If another
 * authority uses the channel, names of this authority may be among the channel's dropped names, from an earlier
 * fallback: their entries are held back (`held_back`). */
static void authority_add_channel(struct tc_xds_authority_state *s)
{
    uint32_t bit = UINT32_C(1) << s->channels.len;
    struct tc_xds_channel *ch = tc_xds_channel_get(s->client, &s->servers[s->channels.len]);
    *tc_vec_push(&s->channels) = ch;
    tc_xds_channel_use(ch);
    for (size_t type = 0; type < s->entries.len; type++) {
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, s->entries.data[type], e, next)
        {
            if (tc_xds_ads_dropped(ch, type, e->name))
                e->held_back |= bit;
        }
        if (s->entries.data[type])
            tc_xds_ads_request(ch, type);
    }
}

struct tc_xds_authority_state *tc_xds_authority_get(struct tc_xds_local_client *c,
                                                    const struct tc_xds_authority *authority)
{
    TC_LIST_FOREACH(it, &c->authorities)
    {
        struct tc_xds_authority_state *s = TC_CONTAINER_OF(it, struct tc_xds_authority_state, link);
        if (s->config == authority)
            return s;
    }
    struct tc_xds_authority_state *s = TC_NEW(struct tc_xds_authority_state);
    s->client = c;
    s->config = authority;
    bool own = authority && authority->n_servers;
    s->servers = own ? authority->servers : c->base.bootstrap->servers;
    s->n_servers = own ? authority->n_servers : c->base.bootstrap->n_servers;
    tc_list_append(&c->authorities, &s->link);
    authority_add_channel(s);
    return s;
}

/* Gives back the last channel, and queues requests that leave out the authority's names. */
static void authority_remove_channel(struct tc_xds_authority_state *s)
{
    uint32_t bit = UINT32_C(1) << (s->channels.len - 1);
    struct tc_xds_channel *ch = s->channels.data[--s->channels.len];
    for (size_t type = 0; type < s->entries.len; type++) {
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, s->entries.data[type], e, next)
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
    tc_xds_channel_put(ch);
}

void tc_xds_authority_free(struct tc_xds_authority_state *s)
{
    while (s->channels.len)
        authority_remove_channel(s);
    tc_list_remove(&s->link);
    tc_vec_fini(&s->channels);
    tc_vec_fini(&s->entries);
    tc_free(s);
}

/* A71: a resource that is in use, or is known not to exist, needs no fallback. Any other error does not say whether the
 * resource exists. A95: fallback_on_reachability_only ignores the cache. */
static bool authority_wants_fallback(const struct tc_xds_authority_state *s)
{
    if (s->config && s->config->fallback_on_reachability_only)
        return true;
    for (size_t type = 0; type < s->entries.len; type++) {
        const struct tc_xds_entry *e, *next;
        HASH_ITER(hh, s->entries.data[type], e, next)
        {
            if (!e->resource && !e->absent)
                return true;
        }
    }
    return false;
}

void tc_xds_authority_fall_back(struct tc_xds_authority_state *s)
{
    size_t before = s->channels.len;
    while (s->channels.len < s->n_servers && !tc_status_ok(tc_xds_authority_error_in_use(s)) &&
           authority_wants_fallback(s)) {
        TC_XDS_LOG(WARN, "xds %s: falling back to %s", tc_rstr_cstr(s->servers[s->channels.len - 1].uri),
                   tc_rstr_cstr(s->servers[s->channels.len].uri));
        authority_add_channel(s);
    }
    if (s->channels.len != before)
        authority_reconcile(s, NULL);
}

void tc_xds_authority_end_fallback(struct tc_xds_authority_state *s, size_t index)
{
    if (s->channels.len <= index + 1)
        return;
    TC_XDS_LOG(INFO, "xds %s: serves again, fallback to %s ends", tc_rstr_cstr(s->servers[index].uri),
               tc_rstr_cstr(s->servers[s->channels.len - 1].uri));
    while (s->channels.len > index + 1)
        authority_remove_channel(s);
    /* Errors that this server sent for values of other servers did not count (tc_xds_channel_speaks_for). */
    tc_xds_ads_replace_soon(s->channels.data[index]);
    authority_reconcile(s, NULL);
}

/* Returns whether the authority has resources and all of them are from this server. */
static bool authority_has_all_from(const struct tc_xds_authority_state *s, const struct tc_xds_channel *ch)
{
    bool any = false;
    for (size_t type = 0; type < s->entries.len; type++) {
        const struct tc_xds_entry *e, *next;
        HASH_ITER(hh, s->entries.data[type], e, next)
        {
            if (e->resource && e->source != ch->server)
                return false;
            any = any || e->resource;
        }
    }
    return any;
}

void tc_xds_channel_nothing_to_add(struct tc_xds_channel *ch)
{
    tc_xds_channel_healthy(ch, NULL);
    TC_LIST_FOREACH(it, &ch->client->authorities)
    {
        struct tc_xds_authority_state *s = TC_CONTAINER_OF(it, struct tc_xds_authority_state, link);
        int index = tc_xds_authority_channel_index(s, ch);
        if (index >= 0 && authority_has_all_from(s, ch))
            tc_xds_authority_end_fallback(s, (size_t)index); /* A71: as if the server had sent the resources */
    }
}
