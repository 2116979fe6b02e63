/* A DeltaDiscoveryResponse, incremental: what changed, and what is no more. */
#include "xds/response_impl.h"

static void apply_removal(struct tc_xds_applying *a, struct tc_slice text)
{
    struct tc_xds_client *c = a->ch->client;
    struct tc_xds_name name;
    char *why = NULL;
    if (!tc_xds_name_parse(a->type, text, &name, &why)) {
        tc_free(why);
        return;
    }
    struct tc_xds_entry *e = tc_xds_channel_entry(a->ch, a->type_index, &name);
    tc_xds_name_fini(&name);
    if (!e || e->seen_in == c->responses)
        return;
    e->seen_in = c->responses;
    if (e->resource)
        tc_xds_apply_deletion(a, e);
    else
        tc_xds_entry_fail(e, TC_XDS_DOES_NOT_EXIST,
                          tc_status_make(TORC_STATUS_NOT_FOUND, "xDS %s resource does not exist (node ID:%s)",
                                         a->type->short_name, tc_xds_node_id(c)),
                          a->version, false, a->done);
}

static struct tc_slice type_url(const ProtobufCMessage *message)
{
    return tc_xds_text(((const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *)message)->type_url);
}

static void each(struct tc_xds_applying *a, const ProtobufCMessage *message,
                 void (*fn)(struct tc_xds_applying *a, const struct tc_xds_found *found))
{
    const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *m =
        (const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *)message;
    for (size_t i = 0; i < m->n_resources; i++) {
        struct tc_xds_found found = {.index = i};
        a->version = tc_xds_text(m->resources[i]->version);
        if (tc_xds_open_wrapper(a, m->resources[i], &found))
            fn(a, &found);
    }
}

static void apply(struct tc_xds_applying *a, const ProtobufCMessage *message)
{
    const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *m =
        (const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *)message;
    if (!tc_xds_applying_begin(a, tc_xds_text(m->type_url)))
        return;
    TC_XDS_LOG(DEBUG, "xds %s: incremental response %s version \"%s\" nonce \"%s\" resources %zu removed %zu",
               tc_rstr_cstr(a->ch->server->uri), m->type_url, m->system_version_info, m->nonce, m->n_resources,
               m->n_removed_resources);
    each(a, message, tc_xds_apply_found);
    a->version = tc_xds_text(m->system_version_info);
    for (size_t i = 0; i < m->n_resource_errors; i++)
        tc_xds_apply_error(a, m->resource_errors[i]);
    for (size_t i = 0; i < m->n_removed_resources; i++)
        apply_removal(a, tc_xds_text(m->removed_resources[i]));
    tc_xds_applying_end(a, a->version, tc_xds_text(m->nonce));
}

static size_t count(const ProtobufCMessage *message)
{
    return ((const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *)message)->n_resources;
}

static Google__Protobuf__Any *any(const ProtobufCMessage *message, size_t i)
{
    return ((const Envoy__Service__Discovery__V3__DeltaDiscoveryResponse *)message)->resources[i]->resource;
}

static const struct tc_xds_form form = {
    .type = &envoy__service__discovery__v3__delta_discovery_response__descriptor,
    .levels = 2,
    .count = count,
    .any = any,
    .type_url = type_url,
    .each = each,
    .apply = apply,
};

bool tc_xds_response_apply_delta(struct tc_xds_channel *ch, struct tc_rstr *message, struct tc_xds_done *done)
{
    return tc_xds_take_response(ch, message, done, &form);
}
