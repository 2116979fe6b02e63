#include "resource/filter_parse.h"

#include "base/mem.h"
#include "pb/envoy/config/route/v3/route_components.pb-c.h"
#include "pb/udpa/type/v1/typed_struct.pb-c.h"
#include "pb/xds/type/v3/typed_struct.pb-c.h"
#include "proto/json.h"

typedef Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__HttpConnectionManager Hcm;
typedef Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__HttpFilter HttpFilter;
typedef Envoy__Config__Route__V3__FilterConfig FilterConfig;

#define STRUCT_DEPTH 32

/* A TypedStruct's type, and its value as that type's message (A39). An unknown type keeps its name alone. */
static bool from_struct(struct tc_reading *p, const char *type_url, const Google__Protobuf__Struct *value,
                        struct tc_any *any)
{
    const ProtobufCMessageDescriptor *type = tc_proto_type_of_url(tc_slice_str(type_url));
    const char *slash = strrchr(type_url, '/');
    if (!slash || !slash[1]) {
        tc_faults_add_at(p->faults, ".type_url", "invalid value \"%s\"", tc_read_clip(p, tc_slice_str(type_url)));
        return false;
    }
    *any = (struct tc_any){.name = tc_slice_str(slash + 1)};
    if (!type)
        return true;
    size_t faults = p->faults->count;
    ProtobufCMessage *m = NULL;
    /* As in protobuf itself, fields that are not read do no harm. */
    const struct tc_proto_json_options options = {.ignore_unknown = true};
    tc_faults_push(p->faults, ".value");
    json_t *json = tc_read_struct(p, value, STRUCT_DEPTH);
    if (json && tc_proto_from_json(type, json, &options, &p->scratch, &m, p->faults) == 0) {
        size_t size = protobuf_c_message_get_packed_size(m);
        uint8_t *bytes = tc_arena_alloc(&p->scratch, size);
        if (bytes)
            any->bytes = tc_slice_of(bytes, protobuf_c_message_pack(m, bytes));
        else
            tc_faults_add(p->faults, "too large");
    }
    json_decref(json);
    tc_faults_pop(p->faults);
    return p->faults->count == faults;
}

/* A filter's config in its Any, or in a TypedStruct in it. */
static bool read_config(struct tc_reading *p, const Google__Protobuf__Any *from, struct tc_any *any)
{
    typedef Xds__Type__V3__TypedStruct XdsStruct;
    typedef Udpa__Type__V1__TypedStruct UdpaStruct;
    if (!tc_read_any(p, from, any))
        return false;
    if (tc_slice_eq_str(any->name, "xds.type.v3.TypedStruct")) {
        const XdsStruct *m = TC_READ(p, &xds__type__v3__typed_struct__descriptor, XdsStruct, any->bytes);
        return m && from_struct(p, m->type_url, m->value, any);
    }
    if (tc_slice_eq_str(any->name, "udpa.type.v1.TypedStruct")) {
        const UdpaStruct *m = TC_READ(p, &udpa__type__v1__typed_struct__descriptor, UdpaStruct, any->bytes);
        return m && from_struct(p, m->type_url, m->value, any);
    }
    return true;
}

/* The filter type of one chain entry; NULL when it is left out (LR05, LR06), with a fault unless it is optional. */
static const struct tc_http_filter_type *chain_type(struct tc_reading *p, const struct tc_any *any, bool optional)
{
    const struct tc_http_filter_type *type = tc_xds_registries_filter(p->reg, any->name);
    if (type && !tc_slice_eq_str(any->name, type->config_name))
        type = NULL; /* the message of an override is no config */
    if (type && type->on_clients)
        return type;
    if (!optional && type)
        tc_faults_add(p->faults, "filter %s is not supported on clients", type->config_name);
    else if (!optional)
        tc_faults_add(p->faults, "unsupported filter type %s", tc_read_clip(p, any->name));
    return NULL;
}

/* False when the filter is left out. */
static bool read_filter(struct tc_reading *p, const HttpFilter *from, struct tc_http_filter *out)
{
    struct tc_any any;
    if (!*from->name)
        tc_faults_add_at(p->faults, ".name", "empty filter name");
    tc_faults_push(p->faults, ".typed_config");
    bool typed =
        from->config_type_case ==
        ENVOY__EXTENSIONS__FILTERS__NETWORK__HTTP_CONNECTION_MANAGER__V3__HTTP_FILTER__CONFIG_TYPE_TYPED_CONFIG;
    bool used = false;
    if (!typed && !from->is_optional) {
        tc_faults_add(p->faults, "field not present");
    } else if (typed && read_config(p, from->typed_config, &any)) {
        out->name = tc_store_text(p->store, from->name);
        out->disabled = from->disabled;
        out->type = chain_type(p, &any, from->is_optional);
        if (out->type)
            out->config = out->type->parse(out->type, any.bytes, p);
        used = out->type != NULL;
    }
    tc_faults_pop(p->faults);
    return used;
}

static bool name_taken(const struct tc_http_filter *filters, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (tc_slice_eq_str(filters[i].name, name))
            return true;
    return false;
}

static void check_chain(struct tc_reading *p, const struct tc_http_filter *filters, size_t n)
{
    if (n == 0) {
        tc_faults_add(p->faults, "expected at least one HTTP filter");
        return;
    }
    for (size_t i = 0; i + 1 < n; i++)
        if (filters[i].type->terminal)
            tc_faults_add(p->faults, "terminal filter %s must be the last filter in the chain",
                          filters[i].type->config_name);
    if (!filters[n - 1].type->terminal)
        tc_faults_add(p->faults, "non-terminal filter %s is the last filter in the chain",
                      filters[n - 1].type->config_name);
}

void tc_read_http_filters(struct tc_reading *p, const Hcm *m, struct tc_listener *out)
{
    size_t faults = p->faults->count;
    tc_faults_push(p->faults, ".http_filters");
    if (m->n_http_filters > p->limits.http_filters) {
        tc_faults_add(p->faults, "%zu filters, more than %zu", m->n_http_filters, p->limits.http_filters);
        goto done;
    }
    struct tc_http_filter *filters = TC_STORE_ARRAY(p->store, m->n_http_filters, struct tc_http_filter);
    size_t n = 0;
    for (size_t i = 0; i < m->n_http_filters; i++) {
        const HttpFilter *from = m->http_filters[i];
        tc_faults_push(p->faults, "[%zu]", i);
        if (*from->name && name_taken(filters, n, from->name))
            tc_faults_add_at(p->faults, ".name", "duplicate HTTP filter name: %s", from->name);
        if (read_filter(p, from, &filters[n]))
            n++;
        tc_faults_pop(p->faults);
    }
    out->n_filters = n;
    out->filters = filters;
    if (p->faults->count == faults)
        check_chain(p, filters, n);
done:
    tc_faults_pop(p->faults);
}

/* Takes the override out of its wrapper, if it has one. False when there is nothing to read: a fault, an empty optional
 * wrapper, or one that disables the filter. */
static bool unwrap(struct tc_reading *p, const Google__Protobuf__Any *config, struct tc_any *any, bool *optional,
                   bool *disabled)
{
    if (!read_config(p, config, any))
        return false;
    if (!tc_slice_eq_str(any->name, "envoy.config.route.v3.FilterConfig"))
        return true;
    const FilterConfig *wrapper =
        TC_READ(p, &envoy__config__route__v3__filter_config__descriptor, FilterConfig, any->bytes);
    if (!wrapper)
        return false;
    *optional = wrapper->is_optional;
    *disabled = wrapper->disabled;
    if (*disabled || (!wrapper->config && *optional))
        return false;
    tc_faults_push(p->faults, ".config");
    bool ok = read_config(p, wrapper->config, any);
    tc_faults_pop(p->faults);
    return ok;
}

bool tc_read_filter_override(struct tc_reading *p, const char *name, const Google__Protobuf__Any *config,
                             struct tc_http_filter_override *out)
{
    struct tc_any any;
    bool optional = false;
    *out = (struct tc_http_filter_override){.name = tc_store_text(p->store, name)};
    tc_faults_push(p->faults, ".typed_per_filter_config[\"%s\"]", tc_read_clip(p, tc_slice_str(name)));
    if (!*name)
        tc_faults_add(p->faults, "filter name must be non-empty");
    if (!unwrap(p, config, &any, &optional, &out->disabled))
        goto done;
    const struct tc_http_filter_type *type = tc_xds_registries_filter(p->reg, any.name);
    if (type && type->override_name && tc_slice_eq_str(any.name, type->override_name)) {
        out->type = type;
        out->config = type->parse_override(type, any.bytes, p);
    } else if (type && !optional) {
        tc_faults_add(p->faults, "filter %s does not support config overrides", type->config_name);
    } else if (!optional) {
        tc_faults_add(p->faults, "unsupported filter type %s", tc_read_clip(p, any.name));
    }
done:
    tc_faults_pop(p->faults);
    return out->type || out->disabled;
}
