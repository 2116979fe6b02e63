/* A DeltaDiscoveryResponse, incremental: changed resources, names of removed resources, and errors of resources that
 * the server does not send. A resource that the response does not name stays as it is. */
#include "xds/client/response.h"

#include "xds/client/ads.h"
#include "xds/client/cache.h"
#include "xds/client/server_order.h"

static void delta_apply_removal(struct tc_xds_response_context *ctx, struct tc_slice text)
{
    struct tc_xds_local_client *c = ctx->ch->client;
    struct tc_xds_entry *e = tc_xds_response_entry(ctx, text);
    if (!e || e->seen_in == c->responses)
        return;
    e->seen_in = c->responses;
    if (e->resource)
        tc_xds_response_apply_deletion(ctx, e);
    else if (tc_xds_channel_speaks_for(ctx->ch, e))
        tc_xds_entry_fail(e, TC_XDS_DOES_NOT_EXIST,
                          tc_status_make(TORC_STATUS_NOT_FOUND, TORC_LAYER_XDS,
                                         "xDS %s resource does not exist (node ID:%s)", ctx->type->short_name,
                                         tc_xds_node_id(&c->base)),
                          ctx->version, false, ctx->ch->server, ctx->token);
}

static struct tc_slice delta_type_url(const ProtobufCMessage *message)
{
    return tc_xds_text(((const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *)message)->type_url);
}

static void delta_each(struct tc_xds_response_context *ctx, const ProtobufCMessage *message,
                       void (*fn)(struct tc_xds_response_context *ctx, const struct tc_xds_response_resource *resource))
{
    const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *m =
        (const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *)message;
    for (size_t i = 0; i < m->n_resources; i++) {
        struct tc_xds_response_resource resource = {.index = i};
        ctx->version = tc_xds_text(m->resources[i]->version);
        if (tc_xds_response_open_wrapper(ctx, m->resources[i], &resource))
            fn(ctx, &resource);
    }
}

static void delta_apply(struct tc_xds_response_context *ctx, const ProtobufCMessage *message)
{
    const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *m =
        (const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *)message;
    if (!tc_xds_response_begin(ctx, tc_xds_text(m->type_url)))
        return;
    TC_XDS_LOG(DEBUG, "xds %s: incremental response %s version \"%s\" nonce \"%s\" resources %zu removed %zu",
               tc_rstr_cstr(ctx->ch->server->uri), m->type_url, m->system_version_info, m->nonce, m->n_resources,
               m->n_removed_resources);
    delta_each(ctx, message, tc_xds_response_apply_resource);
    ctx->version = tc_xds_text(m->system_version_info);
    for (size_t i = 0; i < m->n_resource_errors; i++)
        tc_xds_response_apply_error(ctx, m->resource_errors[i]);
    for (size_t i = 0; i < m->n_removed_resources; i++)
        delta_apply_removal(ctx, tc_xds_text(m->removed_resources[i]));
    tc_xds_response_end(ctx, ctx->version, tc_xds_text(m->nonce));
}

static size_t delta_count(const ProtobufCMessage *message)
{
    return ((const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *)message)->n_resources;
}

static Google__Protobuf__Any *delta_any(const ProtobufCMessage *message, size_t i)
{
    return ((const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *)message)->resources[i]->resource;
}

const struct tc_xds_response_variant tc_xds_response_delta = {
    .type = &envoy__service__discovery__v3__delta_discovery_response__descriptor,
    .levels = 2,
    .count = delta_count,
    .any = delta_any,
    .type_url = delta_type_url,
    .each = delta_each,
    .apply = delta_apply,
};
