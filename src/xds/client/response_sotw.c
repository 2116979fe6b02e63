/* A DiscoveryResponse, state of the world.
 *
 * A Listener or Cluster that the client holds and the response lacks was deleted. For other types absence means
 * nothing. Whether a resource that never came exists is left to its does-not-exist timer.
 *
 * A response deletes nothing if it has a resource without a readable name, because this may be a resource that the
 * response seems to lack. A wrapper without content has the same effect: the resource that the wrapper names must not
 * count as deleted.
 *
 * Resources may stand in Resource wrappers (the client feature xds.config.resource-in-sotw). Loop thread only. */
#include "xds/client/response.h"

#include "proto/unpack.h"
#include "xds/client/cache.h"
#include "xds/client/server_order.h"

#define WRAPPER_URL "type.googleapis.com/envoy.service.discovery.v3.Resource"

static size_t wrapper_count(const ProtobufCMessage *message)
{
    return ((const Envoy__Service__Discovery__V3__Resource *)message)->resource ? 1 : 0;
}

static Google__Protobuf__Any *wrapper_any(const ProtobufCMessage *message, size_t i)
{
    (void)i;
    return ((const Envoy__Service__Discovery__V3__Resource *)message)->resource;
}

static const struct tc_xds_response_variant wrapper_variant = {
    .type = &envoy__service__discovery__v3__resource__descriptor,
    .levels = 1,
    .most = 1,
    .count = wrapper_count,
    .any = wrapper_any,
};

/* Takes a resource out of its wrapper, if it has one. *out borrows from the message and from `arena`. Returns false,
 * with an error, if the wrapper cannot be unpacked or has no content. */
static bool sotw_unwrap(struct tc_xds_response_context *ctx, const Google__Protobuf__Any *any, struct tc_arena *arena,
                        struct tc_xds_response_resource *out)
{
    struct tc_validation_errors f = {0};
    ProtobufCMessage *m;
    bool ok = false;
    out->type_url = tc_xds_text(any->type_url);
    out->bytes = tc_proto_bytes(any->value);
    if (!tc_slice_eq_str(out->type_url, WRAPPER_URL))
        return true;
    if (tc_xds_response_unpack(&wrapper_variant, out->bytes, NULL, arena, &m, &f) != 0) {
        ctx->nameless = true;
        tc_xds_response_add_error(ctx, out->index, tc_slice_of(NULL, 0), tc_validation_text(&f));
        goto done;
    }
    ok = tc_xds_response_open_wrapper(ctx, (const Envoy__Service__Discovery__V3__Resource *)m, out);
done:
    tc_validation_fini(&f);
    return ok;
}

static void sotw_apply_absence(struct tc_xds_response_context *ctx)
{
    struct tc_xds_local_client *c = ctx->ch->client;
    TC_LIST_FOREACH(it, &c->authorities)
    {
        struct tc_xds_authority_state *s = TC_CONTAINER_OF(it, struct tc_xds_authority_state, link);
        if (tc_xds_authority_channel_index(s, ctx->ch) < 0 || ctx->type_index >= s->entries.len)
            continue;
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, s->entries.data[ctx->type_index], e, next)
        {
            if (e->resource && e->seen_in != c->responses)
                tc_xds_response_apply_deletion(ctx, e);
        }
    }
}

static struct tc_slice sotw_type_url(const ProtobufCMessage *message)
{
    return tc_xds_text(((const Envoy__Service__Discovery__V3__DiscoveryResponse *)message)->type_url);
}

static void sotw_each(struct tc_xds_response_context *ctx, const ProtobufCMessage *message,
                      void (*fn)(struct tc_xds_response_context *ctx, const struct tc_xds_response_resource *resource))
{
    const Envoy__Service__Discovery__V3__DiscoveryResponse *m =
        (const Envoy__Service__Discovery__V3__DiscoveryResponse *)message;
    for (size_t i = 0; i < m->n_resources; i++) {
        struct tc_xds_response_resource resource = {.index = i};
        struct tc_arena arena; /* of its wrapper */
        tc_arena_init(&arena, 0, tc_xds_decode_budget(ctx->ch->client, m->resources[i]->value.len));
        if (sotw_unwrap(ctx, m->resources[i], &arena, &resource))
            fn(ctx, &resource);
        tc_arena_fini(&arena);
    }
}

static void sotw_apply(struct tc_xds_response_context *ctx, const ProtobufCMessage *message)
{
    const Envoy__Service__Discovery__V3__DiscoveryResponse *m =
        (const Envoy__Service__Discovery__V3__DiscoveryResponse *)message;
    if (!tc_xds_response_begin(ctx, tc_xds_text(m->type_url)))
        return;
    TC_XDS_LOG(DEBUG, "xds %s: response %s version \"%s\" nonce \"%s\" resources %zu",
               tc_rstr_cstr(ctx->ch->server->uri), m->type_url, m->version_info, m->nonce, m->n_resources);
    ctx->version = tc_xds_text(m->version_info);
    sotw_each(ctx, message, tc_xds_response_apply_resource);
    for (size_t i = 0; i < m->n_resource_errors; i++)
        tc_xds_response_apply_error(ctx, m->resource_errors[i]);
    if (ctx->type->all_resources_required_in_sotw && !ctx->nameless)
        sotw_apply_absence(ctx);
    tc_xds_response_end(ctx, ctx->version, tc_xds_text(m->nonce));
}

static size_t sotw_count(const ProtobufCMessage *message)
{
    return ((const Envoy__Service__Discovery__V3__DiscoveryResponse *)message)->n_resources;
}

static Google__Protobuf__Any *sotw_any(const ProtobufCMessage *message, size_t i)
{
    return ((const Envoy__Service__Discovery__V3__DiscoveryResponse *)message)->resources[i];
}

const struct tc_xds_response_variant tc_xds_response_sotw = {
    .type = &envoy__service__discovery__v3__discovery_response__descriptor,
    .levels = 1,
    .count = sotw_count,
    .any = sotw_any,
    .type_url = sotw_type_url,
    .each = sotw_each,
    .apply = sotw_apply,
};
