/* ADS, incremental: requests say what is subscribed to and what no more, responses what changed, and each response is
 * answered by its nonce. The next response is read only when the answer to the last was handed over, so that there is
 * one answer outstanding at most. Nothing is ever subscribed to by wildcard. */
#include <stdlib.h>

#include "xds/client_impl.h"

#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

/* A stream that is up this long has a server that has nothing to add to the versions that it was told. */
#define QUIET_MS 1000

typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest delta_request;
typedef Envoy__Service__Discovery__V3__DeltaDiscoveryRequest__InitialResourceVersionsEntry version_entry;

/* --- what the request says --- */

struct changes {
    TC_VEC(struct tc_xds_entry *) added;
    TC_VEC(char *) subscribe;
    TC_VEC(char *) unsubscribe;
    TC_VEC(version_entry) versions;
    TC_VEC(version_entry *) version_list;
};

static void changes_fini(struct changes *c)
{
    tc_vec_fini(&c->added);
    tc_vec_fini(&c->subscribe);
    tc_vec_fini(&c->unsubscribe);
    tc_vec_fini(&c->versions);
    tc_vec_fini(&c->version_list);
}

/* xDS protocol: who subscribes again gets the resource again, so nothing needs to be held back. */
static void collect_added(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    struct changes *c = arg;
    e->held_back &= ~bit;
    if ((e->sending_on | e->sent_on) & bit)
        return;
    e->sending_on |= bit;
    *tc_vec_push(&c->added) = e;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp((*(struct tc_xds_entry *const *)a)->name->data, (*(struct tc_xds_entry *const *)b)->name->data);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_held(const struct tc_xds_channel *ch, size_t type, const struct tc_rstr *name)
{
    TC_LIST_FOREACH(it, &ch->client->realms)
    {
        const struct tc_xds_realm *r = TC_CONTAINER_OF(it, struct tc_xds_realm, link);
        if (tc_xds_realm_index(r, ch) >= 0 && tc_xds_entry_find(r, type, tc_rstr_slice(name)))
            return true;
    }
    return false;
}

static void collect_dropped(const struct tc_xds_channel *ch, size_t type, struct changes *c)
{
    const struct tc_xds_ads_type *t = &ch->ads.types.data[type];
    for (size_t i = 0; i < t->dropped.len; i++)
        if (!is_held(ch, type, t->dropped.data[i]))
            *tc_vec_push(&c->unsubscribe) = t->dropped.data[i]->data;
    if (c->unsubscribe.len < 2)
        return;
    qsort(c->unsubscribe.data, c->unsubscribe.len, sizeof(char *), compare_texts);
    size_t kept = 1;
    for (size_t i = 1; i < c->unsubscribe.len; i++)
        if (strcmp(c->unsubscribe.data[i], c->unsubscribe.data[kept - 1]) != 0)
            c->unsubscribe.data[kept++] = c->unsubscribe.data[i];
    c->unsubscribe.len = kept;
}

/* Versions are the server's own. One whose state is not just that version is asked for anew, so that it is heard of
 * when the server has gone back to it. */
static bool has_version(const struct tc_xds_entry *e, const struct tc_xds_channel *ch)
{
    return e->resource && e->state == TC_XDS_ACKED && e->source == ch->server && e->version && e->version->len;
}

static void collect_versions(struct tc_xds_channel *ch, size_t type, struct changes *c)
{
    bool first = !ch->ads.types.data[type].requested;
    for (size_t i = 0; i < c->added.len; i++) {
        const struct tc_xds_entry *e = c->added.data[i];
        *tc_vec_push(&c->subscribe) = e->name->data;
        if (!first || !has_version(e, ch)) {
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

/* The answer to the last response is given; its token is the caller's. */
static struct tc_xds_done *take_answer(struct tc_xds_ads_type *t)
{
    struct tc_xds_done *ack = t->ack;
    tc_rstr_unref(t->nonce);
    tc_rstr_unref(t->nack);
    t->nonce = t->nack = NULL;
    t->ack = NULL;
    return ack;
}

static void make_request(struct tc_xds_channel *ch, size_t type, const struct changes *c, struct tc_buf *out)
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
    t->requested = true;
    ch->ads.acking = take_answer(t);
}

static bool request(struct tc_xds_channel *ch, size_t type, struct tc_buf *out)
{
    struct tc_xds_ads_type *t = &ch->ads.types.data[type];
    struct changes c = {0};
    tc_xds_ads_each_entry(ch, type, collect_added, &c);
    if (c.added.len)
        qsort(c.added.data, c.added.len, sizeof(*c.added.data), compare_entries);
    collect_dropped(ch, type, &c);
    collect_versions(ch, type, &c);
    /* A first request without names would be a wildcard. */
    bool due = c.subscribe.len || (t->requested && (c.unsubscribe.len || t->ack));
    if (due)
        make_request(ch, type, &c, out);
    else
        tc_xds_done_unref(take_answer(t));
    changes_fini(&c);
    return due;
}

/* --- servers that have nothing to add --- */

/* A server need not answer a client that has everything already, so silence must count as an answer some time. Where
 * something was asked for that the client does not have, it has as long as that may take. */
static void on_sent(struct tc_xds_channel *ch)
{
    struct tc_xds_ads *a = &ch->ads;
    if (!a->seen_response && a->gave_versions)
        tc_timer_start(&a->quiet, a->asked_anew ? ch->client->opts.resource_timeout_ms : QUIET_MS);
}

static bool has_all_from(const struct tc_xds_realm *r, const struct tc_xds_channel *ch)
{
    bool any = false;
    for (size_t type = 0; type < r->entries.len; type++) {
        const struct tc_xds_entry *e, *next;
        HASH_ITER(hh, r->entries.data[type], e, next)
        {
            if (e->resource && e->source != ch->server)
                return false;
            any = any || e->resource;
        }
    }
    return any;
}

void tc_xds_ads_on_quiet(struct tc_timer *timer)
{
    struct tc_xds_ads *a = TC_CONTAINER_OF(timer, struct tc_xds_ads, quiet);
    struct tc_xds_channel *ch = TC_CONTAINER_OF(a, struct tc_xds_channel, ads);
    TC_XDS_LOG(DEBUG, "xds %s: the server has nothing to add", tc_rstr_cstr(ch->server->uri));
    tc_xds_ads_proved(ch);
    tc_xds_channel_healthy(ch, NULL);
    TC_LIST_FOREACH(it, &ch->client->realms)
    {
        struct tc_xds_realm *r = TC_CONTAINER_OF(it, struct tc_xds_realm, link);
        int index = tc_xds_realm_index(r, ch);
        if (index >= 0 && has_all_from(r, ch))
            tc_xds_realm_cut(r, (size_t)index); /* A71, as when it had sent them */
    }
}

const struct tc_xds_ads_ops tc_xds_ads_delta = {
    .method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
    .node_field = 1,
    .request = request,
    .apply = tc_xds_response_apply_delta,
    .on_sent = on_sent,
};
