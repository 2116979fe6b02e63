/* The subscriptions of an ADS stream. This file queues requests, and starts the stream's tasks `send` and `outdated`
 * and its timer `replace`. ads.c has the functions of tasks and timer. Loop thread only. */
#include "xds/client/subscriptions.h"

#include "xds/client/server_order.h"

struct tc_xds_ads_type *tc_xds_ads_type(struct tc_xds_channel *ch, size_t type)
{
    while (ch->ads.types.len <= type)
        (void)tc_vec_push(&ch->ads.types);
    return &ch->ads.types.data[type];
}

void tc_xds_ads_each_entry(struct tc_xds_channel *ch, size_t type,
                           void (*fn)(struct tc_xds_entry *e, uint32_t bit, void *arg), void *arg)
{
    TC_LIST_FOREACH(it, &ch->client->authorities)
    {
        struct tc_xds_authority_state *s = TC_CONTAINER_OF(it, struct tc_xds_authority_state, link);
        int index = tc_xds_authority_channel_index(s, ch);
        if (index < 0 || type >= s->entries.len)
            continue;
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, s->entries.data[type], e, next)
        {
            fn(e, UINT32_C(1) << index, arg);
        }
    }
}

void tc_xds_ads_forget_dropped(struct tc_xds_ads_type *t)
{
    struct tc_xds_dropped_name *d, *next;
    HASH_ITER(hh, t->dropped, d, next)
    {
        HASH_DEL(t->dropped, d);
        tc_rstr_unref(d->name);
        tc_free(d);
    }
    t->sent_dropped = false;
}

static bool ads_type_has_dropped(const struct tc_xds_ads_type *t, const struct tc_rstr *name)
{
    const struct tc_xds_dropped_name *d = NULL;
    HASH_FIND(hh, t->dropped, name->data, name->len, d);
    return d != NULL;
}

void tc_xds_ads_drop(struct tc_xds_channel *ch, size_t type, struct tc_rstr *name)
{
    struct tc_xds_ads_type *t = tc_xds_ads_type(ch, type);
    if (ads_type_has_dropped(t, name))
        return;
    struct tc_xds_dropped_name *d = TC_NEW(struct tc_xds_dropped_name);
    d->name = tc_rstr_ref(name);
    HASH_ADD_KEYPTR(hh, t->dropped, d->name->data, d->name->len, d);
}

bool tc_xds_ads_dropped(const struct tc_xds_channel *ch, size_t type, const struct tc_rstr *name)
{
    if (type >= ch->ads.types.len)
        return false;
    const struct tc_xds_ads_type *t = &ch->ads.types.data[type];
    return t->sent_dropped || ads_type_has_dropped(t, name);
}

void tc_xds_ads_request(struct tc_xds_channel *ch, size_t type)
{
    struct tc_xds_ads *a = &ch->ads;
    struct tc_xds_ads_type *t = tc_xds_ads_type(ch, type);
    if (!a->stream)
        return; /* the next stream asks for everything */
    if (!t->turn)
        t->turn = ++a->last_turn;
    if (!a->sending)
        tc_loop_defer(ch->client->base.loop, &a->send);
}

/* How long a server may take to send its own value again by itself. Also limits the rate of new streams while a
 * fallback server sends one value after another. */
enum { REPLACE_MS = 1000 };

void tc_xds_ads_replace_soon(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    if (a->stream && (a->sent || a->gave_versions) && !tc_timer_active(&a->replace))
        tc_timer_start(&a->replace, REPLACE_MS);
}

struct superseded {
    const struct tc_xds_server *server;
    bool any;
};

static void entry_check_superseded(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    struct superseded *found = arg;
    (void)bit;
    found->any |= tc_xds_entry_is_superseded(e, found->server);
}

bool tc_xds_ads_has_superseded(struct tc_xds_channel *ch)
{
    struct superseded found = {ch->server, false};
    for (size_t type = 0; type < ch->client->types.len; type++)
        tc_xds_ads_each_entry(ch, type, entry_check_superseded, &found);
    return found.any;
}

void tc_xds_ads_outdate(struct tc_xds_channel *ch, bool superseded)
{
    struct tc_xds_ads *a = &ch->ads;
    if (a->stream && !a->sent && a->gave_versions)
        tc_loop_defer(ch->client->base.loop, &a->outdated);
    if (superseded) /* also with the task: the requests may find a connection before it runs */
        tc_xds_ads_replace_soon(ch);
}
