/* Queries on the servers of an authority (A71). They read the state only: they start nothing and notify nobody. Loop
 * thread only. */
#include "xds/client/server_order.h"

#include "xds/client/channel_internal.h"

int tc_xds_authority_channel_index(const struct tc_xds_authority_state *s, const struct tc_xds_channel *ch)
{
    for (size_t i = 0; i < s->channels.len; i++)
        if (s->channels.data[i] == ch)
            return (int)i;
    return -1;
}

const struct tc_status *tc_xds_authority_error_in_use(const struct tc_xds_authority_state *s)
{
    for (size_t i = 0; i < s->channels.len; i++)
        if (tc_status_ok(&s->channels.data[i]->status))
            return &s->channels.data[i]->status;
    return &s->channels.data[s->channels.len - 1]->status;
}

/* Returns whether the list has a server to which the authority has no channel. Equal entries are one server. */
static bool has_untried_server(const struct tc_xds_authority_state *s)
{
    for (size_t i = s->channels.len; i < s->n_servers; i++) {
        bool in_use = false;
        for (size_t j = 0; j < s->channels.len && !in_use; j++)
            in_use = tc_rstr_eq(s->channels.data[j]->server->key, s->servers[i].key);
        if (!in_use)
            return true;
    }
    return false;
}

/* A71: watchers get connectivity errors only when all servers of the list have become unreachable. */
const struct tc_status *tc_xds_authority_error(const struct tc_xds_authority_state *s)
{
    static const struct tc_status none;
    return has_untried_server(s) ? &none : tc_xds_authority_error_in_use(s);
}

bool tc_xds_entry_is_superseded(const struct tc_xds_entry *e, const struct tc_xds_server *server)
{
    return (e->resource && e->source != server) || (e->failed_by && e->failed_by != server);
}

bool tc_xds_channel_has_fallback(const struct tc_xds_channel *ch)
{
    TC_LIST_FOREACH(it, &ch->client->authorities)
    {
        const struct tc_xds_authority_state *s = TC_CONTAINER_OF(it, struct tc_xds_authority_state, link);
        int index = tc_xds_authority_channel_index(s, ch);
        if (index >= 0 && (size_t)index + 1 < s->channels.len)
            return true;
    }
    return false;
}

/* A71: while a fallback server serves, an error or an absence at the preferred server leaves the resources of the
 * fallback server in use. Only a valid resource from the preferred server ends the fallback, or what counts as one
 * (tc_xds_channel_nothing_to_add). */
bool tc_xds_channel_speaks_for(const struct tc_xds_channel *ch, const struct tc_xds_entry *e)
{
    const struct tc_xds_authority_state *s = e->authority;
    return e->source == ch->server || s->channels.data[s->channels.len - 1] == ch;
}
