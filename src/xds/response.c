/* A DiscoveryResponse, state of the world: what it does not have may not exist. */
#include "proto/unpack.h"
#include "xds/response_impl.h"

#define WRAPPER_URL "type.googleapis.com/envoy.service.discovery.v3.Resource"

static size_t one(const ProtobufCMessage *message)
{
    return ((const Envoy__Service__Discovery__V3__Resource *)message)->resource ? 1 : 0;
}

static Google__Protobuf__Any *any_of_wrapper(const ProtobufCMessage *message, size_t i)
{
    (void)i;
    return ((const Envoy__Service__Discovery__V3__Resource *)message)->resource;
}

static const struct tc_xds_form wrapper_form = {
    .type = &envoy__service__discovery__v3__resource__descriptor,
    .levels = 1,
    .most = 1,
    .count = one,
    .any = any_of_wrapper,
};

/* What is found is in the message and in `arena`. */
static bool unwrap(struct tc_xds_applying *a, const Google__Protobuf__Any *any, struct tc_arena *arena,
                   struct tc_xds_found *out)
{
    struct tc_faults f;
    ProtobufCMessage *m;
    bool ok = false;
    out->type_url = tc_xds_text(any->type_url);
    out->bytes = tc_proto_bytes(any->value);
    if (!tc_slice_eq_str(out->type_url, WRAPPER_URL))
        return true;
    tc_faults_init(&f);
    if (tc_xds_unpack(&wrapper_form, out->bytes, NULL, arena, &m, &f) != 0) {
        a->nameless = true;
        tc_xds_complain(a, out->index, tc_slice_of(NULL, 0), tc_faults_text(&f));
        goto done;
    }
    ok = tc_xds_open_wrapper(a, (const Envoy__Service__Discovery__V3__Resource *)m, out);
done:
    tc_faults_fini(&f);
    return ok;
}

/* In the state of the world a Listener or Cluster that is held and not in the response was deleted. */
static void apply_absence(struct tc_xds_applying *a)
{
    struct tc_xds_client *c = a->ch->client;
    TC_LIST_FOREACH(it, &c->realms)
    {
        struct tc_xds_realm *r = TC_CONTAINER_OF(it, struct tc_xds_realm, link);
        if (tc_xds_realm_index(r, a->ch) < 0 || a->type_index >= r->entries.len)
            continue;
        struct tc_xds_entry *e, *next;
        HASH_ITER(hh, r->entries.data[a->type_index], e, next)
        {
            if (e->resource && e->seen_in != c->responses)
                tc_xds_apply_deletion(a, e);
        }
    }
}

static struct tc_slice type_url(const ProtobufCMessage *message)
{
    return tc_xds_text(((const Envoy__Service__Discovery__V3__DiscoveryResponse *)message)->type_url);
}

static void each(struct tc_xds_applying *a, const ProtobufCMessage *message,
                 void (*fn)(struct tc_xds_applying *a, const struct tc_xds_found *found))
{
    const Envoy__Service__Discovery__V3__DiscoveryResponse *m =
        (const Envoy__Service__Discovery__V3__DiscoveryResponse *)message;
    for (size_t i = 0; i < m->n_resources; i++) {
        struct tc_xds_found found = {.index = i};
        struct tc_arena arena; /* of its wrapper */
        tc_arena_init(&arena, 0, tc_xds_decode_budget(a->ch->client, m->resources[i]->value.len));
        if (unwrap(a, m->resources[i], &arena, &found))
            fn(a, &found);
        tc_arena_fini(&arena);
    }
}

static void apply(struct tc_xds_applying *a, const ProtobufCMessage *message)
{
    const Envoy__Service__Discovery__V3__DiscoveryResponse *m =
        (const Envoy__Service__Discovery__V3__DiscoveryResponse *)message;
    if (!tc_xds_applying_begin(a, tc_xds_text(m->type_url)))
        return;
    TC_XDS_LOG(DEBUG, "xds %s: response %s version \"%s\" nonce \"%s\" resources %zu", tc_rstr_cstr(a->ch->server->uri),
               m->type_url, m->version_info, m->nonce, m->n_resources);
    a->version = tc_xds_text(m->version_info);
    each(a, message, tc_xds_apply_found);
    for (size_t i = 0; i < m->n_resource_errors; i++)
        tc_xds_apply_error(a, m->resource_errors[i]);
    /* What has no name may be any of those that seem to be absent. */
    if (a->type->all_resources_required_in_sotw && !a->nameless)
        apply_absence(a);
    tc_xds_applying_end(a, a->version, tc_xds_text(m->nonce));
}

static size_t count(const ProtobufCMessage *message)
{
    return ((const Envoy__Service__Discovery__V3__DiscoveryResponse *)message)->n_resources;
}

static Google__Protobuf__Any *any(const ProtobufCMessage *message, size_t i)
{
    return ((const Envoy__Service__Discovery__V3__DiscoveryResponse *)message)->resources[i];
}

static const struct tc_xds_form form = {
    .type = &envoy__service__discovery__v3__discovery_response__descriptor,
    .levels = 1,
    .count = count,
    .any = any,
    .type_url = type_url,
    .each = each,
    .apply = apply,
};

bool tc_xds_response_apply(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_done *done)
{
    return tc_xds_take_response(ch, message, done, &form);
}
