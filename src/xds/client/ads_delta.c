/* ADS, incremental: a request names new and removed subscriptions, a response has the changes, and a request with the
 * nonce of a response answers it.
 *
 * The next response is read only when the answer to the last was handed to the transport (the type's `token`, then
 * `sent_token`), so that at most one answer is outstanding. The first request of a type always has names, since without
 * names it would be a wildcard. The first requests of a stream give the versions of the values in use that this server
 * sent and the client ACKed (entry_has_version).
 *
 * Two kinds of servers need help. A server that has nothing newer than these versions stays silent, and must count as
 * reachable in the end (`quiet`). And istiod remembers only the names of the last request that had any: asked for one
 * more name, istiod never sends updates of the earlier ones. So to istiod each request that adds a name has all
 * names. */
#include "xds/client/ads.h"

#include <stdlib.h>

#include "xds/client/cache.h"
#include "xds/client/server_order.h"
#include "xds/client/subscriptions.h"

#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

/* How long a server that was given versions may stay silent after a request; then it counts as having nothing newer.
 * delta_on_sent says when the time is longer, and when silence does not matter. */
enum { QUIET_MS = 1000 };

typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest delta_request;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest__InitialResourceVersionsEntry version_entry;

/* --- the changes that a request carries --- */

/* The names and versions are borrowed from entries and dropped names. */
struct delta_changes {
    TC_VEC(struct tc_xds_entry *) added;
    TC_VEC(char *) subscribe;
    TC_VEC(char *) unsubscribe;
    TC_VEC(version_entry) versions;
    TC_VEC(version_entry *) version_list; /* points into `versions`, as protobuf-c wants it */
};

static void changes_fini(struct delta_changes *c)
{
    tc_vec_fini(&c->added);
    tc_vec_fini(&c->subscribe);
    tc_vec_fini(&c->unsubscribe);
    tc_vec_fini(&c->versions);
    tc_vec_fini(&c->version_list);
}

/* Adds an entry that this stream did not ask for yet. Clears held_back: the server of an incremental stream sends a
 * resource again to a client that subscribes again. */
static void collect_added(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    struct delta_changes *c = arg;
    e->held_back &= ~bit;
    if ((e->sending_on | e->sent_on) & bit)
        return;
    e->sending_on |= bit;
    *tc_vec_push(&c->added) = e;
}

/* Adds an entry that was asked for already, for istiod. */
static void collect_again(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    struct delta_changes *c = arg;
    if (!(e->sent_on & bit) || (e->sending_on & bit))
        return;
    e->sending_on |= bit;
    *tc_vec_push(&c->added) = e;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp((*(struct tc_xds_entry *const *)a)->name->data, (*(struct tc_xds_entry *const *)b)->name->data);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool name_is_held(const struct tc_xds_channel *ch, size_t type, const struct tc_rstr *name)
{
    TC_LIST_FOREACH(it, &ch->client->authorities)
    {
        const struct tc_xds_authority_state *s = TC_CONTAINER_OF(it, struct tc_xds_authority_state, link);
        if (tc_xds_authority_channel_index(s, ch) >= 0 && tc_xds_entry_find(s, type, tc_rstr_slice(name)))
            return true;
    }
    return false;
}

/* Fills `unsubscribe` with the dropped names that no authority of this channel wants again. */
static void collect_dropped(const struct tc_xds_channel *ch, size_t type, struct delta_changes *c)
{
    const struct tc_xds_ads_type *t = &ch->ads.types.data[type];
    for (const struct tc_xds_dropped_name *d = t->dropped; d; d = d->hh.next)
        if (!name_is_held(ch, type, d->name))
            *tc_vec_push(&c->unsubscribe) = d->name->data;
    if (c->unsubscribe.len)
        qsort(c->unsubscribe.data, c->unsubscribe.len, sizeof(char *), compare_names);
}

/* Returns whether the first request of a stream may give the resource's version: only if the value in use is what this
 * server last sent. Otherwise the request leaves the version out, and the server sends the resource in any case, even
 * if the server has gone back to that version. */
static bool entry_has_version(const struct tc_xds_entry *e, const struct tc_xds_channel *ch)
{
    return e->resource && e->state == TC_XDS_ACKED && e->source == ch->server && e->version && e->version->len;
}

/* Fills `subscribe` from `added`, and `versions` if this is the first request of the type on the stream. */
static void collect_versions(struct tc_xds_channel *ch, size_t type, struct delta_changes *c)
{
    bool first = !ch->ads.types.data[type].requested;
    for (size_t i = 0; i < c->added.len; i++) {
        const struct tc_xds_entry *e = c->added.data[i];
        *tc_vec_push(&c->subscribe) = e->name->data;
        if (!first || !entry_has_version(e, ch)) {
            ch->ads.asked_anew = true;
            continue;
        }
        version_entry *v = tc_vec_push(&c->versions);
        envoy__service__discovery__v3__delta_discovery_request__initial_resource_versions_entry__init(v);
        v->key = e->name->data;
        v->value = e->version->data;
        ch->ads.gave_versions = true;
    }
    for (size_t i = 0; i < c->versions.len; i++)
        *tc_vec_push(&c->version_list) = &c->versions.data[i];
}

/* --- the request --- */

/* Clears the answer that was due to a response. Returns the response's token, whose reference becomes the caller's;
 * NULL if no answer was due. */
static struct tc_xds_token *type_take_answer(struct tc_xds_ads_type *t)
{
    struct tc_xds_token *token = t->token;
    tc_rstr_clear(&t->nonce);
    tc_rstr_clear(&t->nack);
    t->token = NULL;
    return token;
}

static void delta_write_request(struct tc_xds_channel *ch, size_t type, const struct delta_changes *c,
                                struct tc_buf *out)
{
    struct tc_xds_ads_type *t = &ch->ads.types.data[type];
    delta_request m = ENVOY__SERVICE__DISCOVERY__V3__DELTA_DISCOVERY_REQUEST__INIT;
    Google__Rpc__Status detail = GOOGLE__RPC__STATUS__INIT;
    m.type_url = (char *)ch->client->types.data[type]->type_url;
    m.response_nonce = (char *)tc_rstr_cstr(t->nonce);
    m.resource_names_subscribe = c->subscribe.data;
    m.n_resource_names_subscribe = c->subscribe.len;
    m.resource_names_unsubscribe = c->unsubscribe.data;
    m.n_resource_names_unsubscribe = c->unsubscribe.len;
    m.initial_resource_versions = c->version_list.data;
    m.n_initial_resource_versions = c->version_list.len;
    if (t->nack) {
        detail.code = TORC_STATUS_INVALID_ARGUMENT;
        detail.message = t->nack->data;
        m.error_detail = &detail;
    }
    size_t len = envoy__service__discovery__v3__delta_discovery_request__get_packed_size(&m);
    out->len += envoy__service__discovery__v3__delta_discovery_request__pack(&m, (uint8_t *)tc_buf_reserve(out, len));
    TC_XDS_LOG(DEBUG, "xds %s: incremental request %s nonce \"%s\" subscribe %zu unsubscribe %zu versions %zu%s%s",
               tc_rstr_cstr(ch->server->uri), m.type_url, m.response_nonce, c->subscribe.len, c->unsubscribe.len,
               c->versions.len, t->nack ? " NACK: " : "", tc_rstr_cstr(t->nack));
    t->requested = t->asked = true;
    ch->ads.sent_token = type_take_answer(t);
}

static bool delta_make_request(struct tc_xds_channel *ch, size_t type, struct tc_buf *out)
{
    struct tc_xds_ads_type *t = &ch->ads.types.data[type];
    struct delta_changes c = {0};
    tc_xds_ads_each_entry(ch, type, collect_added, &c);
    if (ch->client->base.bootstrap->for_istiod && c.added.len && t->requested)
        tc_xds_ads_each_entry(ch, type, collect_again, &c);
    if (c.added.len)
        qsort(c.added.data, c.added.len, sizeof(*c.added.data), compare_entries);
    collect_dropped(ch, type, &c);
    collect_versions(ch, type, &c);
    /* A first request without names would be a wildcard. */
    bool due = c.subscribe.len || (t->requested && (c.unsubscribe.len || t->token));
    if (due)
        delta_write_request(ch, type, &c, out);
    else
        tc_xds_token_unref(type_take_answer(t));
    changes_fini(&c);
    return due;
}

/* --- servers that have nothing to add --- */

/* A server need not answer a client that has everything already, so silence counts as an answer when `quiet` runs out.
 * During a fallback this holds even after a response, which may only have named what the server does not have. If the
 * client asked for a resource without giving a version, the server gets resource_timeout_ms. */
static void delta_on_sent(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    if (a->gave_versions && (!a->seen_response || (tc_xds_channel_has_fallback(ch) && !tc_timer_active(&a->quiet))))
        tc_timer_start(&a->quiet, a->asked_anew ? ch->client->opts.resource_timeout_ms : QUIET_MS);
}

static void delta_on_quiet(struct tc_xds_channel *ch)
{
    TC_XDS_LOG(DEBUG, "xds %s: the server has nothing to add", tc_rstr_cstr(ch->server->uri));
    tc_xds_ads_proved(ch);
    ch->client->events->on_nothing_to_add(ch);
}

const struct tc_xds_ads_ops tc_xds_ads_delta = {
    .method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
    .node_field = 1,
    .request = delta_make_request,
    .on_sent = delta_on_sent,
    .on_quiet = delta_on_quiet,
};
