/* Decodes HTTP filter chains of listeners, and overrides of virtual hosts, routes and weighted clusters (A39).
 *
 * A config is an Any. If the Any holds a TypedStruct, the struct is converted into the message that it names. In a
 * chain, a filter that is unknown or for servers only is an error, or left out if it is optional. A chain must end with
 * a terminal filter (the router) and have no other terminal filter. An override may stand in a FilterConfig wrapper,
 * which can disable the filter or make the override optional. An override that no known filter accepts is an error,
 * or left out if it is optional; overrides of filters for servers are accepted. The filter types come from the
 * registries (registry.c). What is parsed lives in the resource's arena; messages are in the scratch arena of the
 * decoder. Runs on any thread. */
#include "xds/resource/http_filter_decoder.h"
#include "xds/resource/registry.h"

#include "base/mem.h"
#include "pb/envoy/config/route/v3/route_components.pb-c.h"
#include "pb/xds/type/v3/typed_struct.pb-c.h"
#include "proto/json.h"

typedef Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__HttpConnectionManager Hcm;
typedef Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__HttpFilter HttpFilter;
typedef Envoy__Config__Route__V3__FilterConfig FilterConfig;

/* Converts a TypedStruct (A39): stores the name of its type, and its value as the bytes of a message of that type, in
 * dec->scratch. If the type is unknown, stores the name alone. Returns false with errors. */
static bool any_from_struct(struct tc_decoder *dec, const Xds__Type__V3__TypedStruct *from, struct tc_any *any)
{
    const ProtobufCMessageDescriptor *type = tc_proto_type_of_url(tc_slice_str(from->type_url));
    const char *name = tc_decode_type_name(dec, from->type_url);
    if (!name)
        return false;
    *any = (struct tc_any){.name = tc_slice_str(name)};
    if (!type)
        return true;
    size_t errors = dec->errors->count;
    ProtobufCMessage *m = NULL;
    /* Unknown fields are ignored, as in a binary message. */
    const struct tc_proto_json_options options = {.ignore_unknown = true};
    tc_validation_push(dec->errors, ".value");
    json_t *json = tc_decode_struct(dec, from->value);
    if (json && tc_proto_from_json(type, json, &options, &dec->scratch, &m, dec->errors) == 0) {
        size_t size = protobuf_c_message_get_packed_size(m);
        uint8_t *bytes = tc_arena_alloc(&dec->scratch, size);
        if (bytes)
            any->bytes = tc_slice_of(bytes, protobuf_c_message_pack(m, bytes));
        else
            tc_validation_add(dec->errors, "too large");
    }
    json_decref(json);
    tc_validation_pop(dec->errors);
    return dec->errors->count == errors;
}

/* Takes the Any of a filter's config apart; converts it if it is a TypedStruct. Returns false with errors. */
static bool decode_config(struct tc_decoder *dec, const Google__Protobuf__Any *from, struct tc_any *any)
{
    if (!tc_decode_any(dec, from, any))
        return false;
    if (!tc_decode_is_typed_struct(any->name))
        return true;
    const Xds__Type__V3__TypedStruct *m =
        TC_DECODE(dec, &xds__type__v3__typed_struct__descriptor, Xds__Type__V3__TypedStruct, any->bytes);
    return m && any_from_struct(dec, m, any);
}

/* Returns the filter type of one chain entry. NULL if the type is unknown or for servers only: the entry is left out,
 * with an error unless it is optional. */
static const struct tc_http_filter_type *chain_filter_type(struct tc_decoder *dec, const struct tc_any *any,
                                                           bool optional)
{
    const struct tc_http_filter_type *type = tc_xds_registries_filter(dec->reg, any->name);
    if (type && !tc_slice_eq_str(any->name, type->config_name))
        type = NULL; /* the message of an override is not a config */
    if (type && type->on_clients)
        return type;
    if (!optional && type)
        tc_validation_add(dec->errors, "filter %s is not supported on clients", type->config_name);
    else if (!optional)
        tc_validation_add(dec->errors, "unsupported filter type %s", tc_decode_clip(dec, any->name));
    return NULL;
}

/* Returns false when the filter is left out. */
static bool decode_filter(struct tc_decoder *dec, const HttpFilter *from, struct tc_http_filter *out)
{
    struct tc_any any;
    if (!*from->name)
        tc_validation_add_at(dec->errors, ".name", "empty filter name");
    tc_validation_push(dec->errors, ".typed_config");
    bool typed =
        from->config_type_case ==
        ENVOY__EXTENSIONS__FILTERS__NETWORK__HTTP_CONNECTION_MANAGER__V3__HTTP_FILTER__CONFIG_TYPE_TYPED_CONFIG;
    bool used = false;
    if (!typed && !from->is_optional) {
        tc_validation_add(dec->errors, "field not present");
    } else if (typed && decode_config(dec, from->typed_config, &any)) {
        out->name = tc_resource_arena_text(dec->arena, from->name);
        out->disabled = from->disabled;
        out->type = chain_filter_type(dec, &any, from->is_optional);
        if (out->type)
            out->config = out->type->parse(out->type, any.bytes, dec);
        used = out->type != NULL;
    }
    tc_validation_pop(dec->errors);
    return used;
}

/* Returns whether one of the first n filters of the message has the name, even if it is left out. */
static bool filter_name_taken(const Hcm *m, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(m->http_filters[i]->name, name) == 0)
            return true;
    return false;
}

static void filter_chain_check(struct tc_decoder *dec, const struct tc_http_filter *filters, size_t n)
{
    if (n == 0) {
        tc_validation_add(dec->errors, "expected at least one HTTP filter");
        return;
    }
    for (size_t i = 0; i + 1 < n; i++)
        if (filters[i].type->terminal)
            tc_validation_add(dec->errors, "terminal filter %s must be the last filter in the chain",
                              filters[i].type->config_name);
    if (!filters[n - 1].type->terminal)
        tc_validation_add(dec->errors, "non-terminal filter %s is the last filter in the chain",
                          filters[n - 1].type->config_name);
}

void tc_decode_http_filters(struct tc_decoder *dec, const Hcm *m, struct tc_listener *out)
{
    size_t errors = dec->errors->count;
    tc_validation_push(dec->errors, ".http_filters");
    if (m->n_http_filters > dec->limits.http_filters) {
        tc_validation_add(dec->errors, "%zu filters, more than %zu", m->n_http_filters, dec->limits.http_filters);
        goto done;
    }
    struct tc_http_filter *filters = TC_RESOURCE_ARRAY(dec->arena, m->n_http_filters, struct tc_http_filter);
    size_t n = 0;
    for (size_t i = 0; i < m->n_http_filters; i++) {
        const HttpFilter *from = m->http_filters[i];
        tc_validation_push(dec->errors, "[%zu]", i);
        if (*from->name && filter_name_taken(m, i, from->name))
            tc_validation_add_at(dec->errors, ".name", "duplicate HTTP filter name: %s", from->name);
        if (decode_filter(dec, from, &filters[n]))
            n++;
        tc_validation_pop(dec->errors);
    }
    out->n_filters = n;
    out->filters = filters;
    if (dec->errors->count == errors)
        filter_chain_check(dec, filters, n);
done:
    tc_validation_pop(dec->errors);
}

/* Takes the override out of its wrapper, if it has one. Returns false if there is no config to read: there was an
 * error, or the wrapper disables the filter, or is optional and without a config. */
static bool override_unwrap(struct tc_decoder *dec, const Google__Protobuf__Any *config, struct tc_any *any,
                            bool *optional, bool *disabled)
{
    if (!decode_config(dec, config, any))
        return false;
    if (!tc_slice_eq_str(any->name, "envoy.config.route.v3.FilterConfig"))
        return true;
    const FilterConfig *wrapper =
        TC_DECODE(dec, &envoy__config__route__v3__filter_config__descriptor, FilterConfig, any->bytes);
    if (!wrapper)
        return false;
    *optional = wrapper->is_optional;
    *disabled = wrapper->disabled;
    if (*disabled || (!wrapper->config && *optional))
        return false;
    tc_validation_push(dec->errors, ".config");
    bool ok = decode_config(dec, wrapper->config, any);
    tc_validation_pop(dec->errors);
    return ok;
}

bool tc_decode_filter_override(struct tc_decoder *dec, const char *name, const Google__Protobuf__Any *config,
                               struct tc_http_filter_override *out)
{
    struct tc_any any;
    bool optional = false;
    *out = (struct tc_http_filter_override){.name = tc_resource_arena_text(dec->arena, name)};
    tc_validation_push_key(dec->errors, ".typed_per_filter_config", tc_decode_clip(dec, tc_slice_str(name)));
    if (!*name)
        tc_validation_add(dec->errors, "filter name must be non-empty");
    if (!override_unwrap(dec, config, &any, &optional, &out->disabled))
        goto done;
    const struct tc_http_filter_type *type = tc_xds_registries_filter(dec->reg, any.name);
    if (type && type->override_name && tc_slice_eq_str(any.name, type->override_name)) {
        out->type = type;
        out->config = type->parse_override(type, any.bytes, dec);
    } else if (type && type->override_name && !optional) {
        tc_validation_add(dec->errors, "override must be of type %s", type->override_name);
    } else if (type && !optional) {
        tc_validation_add(dec->errors, "filter %s does not support config overrides", type->config_name);
    } else if (!optional) {
        tc_validation_add(dec->errors, "unsupported filter type %s", tc_decode_clip(dec, any.name));
    }
done:
    tc_validation_pop(dec->errors);
    return out->type || out->disabled;
}
