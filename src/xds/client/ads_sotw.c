/* ADS, state of the world: a request has all names of its type, and its nonce answers the last response. A name may be
 * dropped and wanted again before the server has seen a request without the name: none was sent, or the server may have
 * ignored it (`sent_dropped`). Then the next request leaves the name out (`held_back`), and the request after that has
 * the name: otherwise the server would see no change and not send the resource. */
#include "xds/client/ads.h"

#include <stdlib.h>

#include "xds/client/server_order.h"
#include "xds/client/subscriptions.h"

#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

struct sotw_names {
    TC_VEC(char *) v; /* borrowed from the entries */
    bool incomplete;  /* some names are left out, see `held_back` */
    const struct tc_xds_server *server;
    bool lost; /* entry_is_lost is true for at least one of the names in `v` */
};

/* Returns whether the client may have lost the value that this server sent with the last ACKed version: another server
 * has superseded the value (A71), or the entry has no value because the server's resource was rejected. */
static bool entry_is_lost(const struct tc_xds_entry *e, const struct tc_xds_server *server)
{
    return tc_xds_entry_is_superseded(e, server) || (!e->resource && e->state == TC_XDS_NACKED);
}

static void collect_name(struct tc_xds_entry *e, uint32_t bit, void *arg)
{
    struct sotw_names *names = arg;
    if (e->held_back & bit) {
        e->held_back &= ~bit;
        names->incomplete = true;
        return;
    }
    *tc_vec_push(&names->v) = e->name->data;
    names->lost |= entry_is_lost(e, names->server);
    e->sending_on |= bit;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sotw_write_request(struct tc_xds_channel *ch, size_t type, const struct sotw_names *names,
                               struct tc_buf *out)
{
    struct tc_xds_ads_type *t = &ch->ads.types.data[type];
    Envoy__Service__Discovery__V3__DiscoveryRequest m = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_REQUEST__INIT;
    Google__Rpc__Status detail = GOOGLE__RPC__STATUS__INIT;

    /* A server that finds its newest version in the first request of a stream would send nothing. */
    if (!t->asked && names->lost)
        tc_rstr_clear(&t->version);
    m.version_info = (char *)tc_rstr_cstr(t->version);
    m.response_nonce = (char *)tc_rstr_cstr(t->nonce);
    m.type_url = (char *)ch->client->types.data[type]->type_url;
    m.resource_names = names->v.data;
    m.n_resource_names = names->v.len;
    if (t->nack) {
        detail.code = TORC_STATUS_INVALID_ARGUMENT;
        detail.message = t->nack->data;
        m.error_detail = &detail;
    }
    size_t len = envoy__service__discovery__v3__discovery_request__get_packed_size(&m);
    out->len += envoy__service__discovery__v3__discovery_request__pack(&m, (uint8_t *)tc_buf_reserve(out, len));
    TC_XDS_LOG(DEBUG, "xds %s: request %s version \"%s\" nonce \"%s\" names %zu%s%s", tc_rstr_cstr(ch->server->uri),
               m.type_url, m.version_info, m.response_nonce, names->v.len, t->nack ? " NACK: " : "",
               tc_rstr_cstr(t->nack));
    tc_rstr_clear(&t->nack);
    ch->ads.gave_versions |= *m.version_info != '\0';
    t->requested = t->asked = true;
    if (names->v.len == 0) {
        /* The server has no subscription of the type now: the next one begins without version and nonce. */
        t->requested = false;
        tc_rstr_clear(&t->nonce);
        tc_rstr_clear(&t->version);
    }
}

static bool sotw_make_request(struct tc_xds_channel *ch, size_t type, struct tc_buf *out)
{
    struct sotw_names names = {.server = ch->server};
    tc_xds_ads_each_entry(ch, type, collect_name, &names);
    if (names.v.len)
        qsort(names.v.data, names.v.len, sizeof(*names.v.data), compare_names);
    /* A first request without names would ask for everything. A later one unsubscribes from the last names. When a
     * response has crossed such an unsubscribing request, the server has ignored the request, which has the nonce of an
     * older response. Then the same request goes again, with the new nonce. */
    const struct tc_xds_ads_type *t = &ch->ads.types.data[type];
    bool due = names.v.len || t->requested || (t->asked && t->nonce);
    if (due)
        sotw_write_request(ch, type, &names, out);
    if (names.incomplete)
        tc_xds_ads_request(ch, type);
    tc_vec_fini(&names.v);
    return due;
}

const struct tc_xds_ads_ops tc_xds_ads_sotw = {
    .method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
    .node_field = 2,
    .request = sotw_make_request,
};
