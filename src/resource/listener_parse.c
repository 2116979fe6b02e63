#include "base/mem.h"
#include "pb/envoy/config/listener/v3/listener.pb-c.h"
#include "resource/filter_parse.h"
#include "resource/listener.h"
#include "resource/route_parse.h"

typedef Envoy__Config__Listener__V3__Listener Listener;
typedef Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__HttpConnectionManager Hcm;

#define HCM "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
#define ROUTE(x)                                                                                                       \
    ENVOY__EXTENSIONS__FILTERS__NETWORK__HTTP_CONNECTION_MANAGER__V3__HTTP_CONNECTION_MANAGER__ROUTE_SPECIFIER_##x

static void read_rds(struct tc_reading *p, const Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__Rds *m,
                     struct tc_listener *out)
{
    tc_faults_push(p->faults, ".rds");
    out->rds_name = tc_store_rstr(p->store, m->route_config_name);
    tc_read_nonempty(p, m->route_config_name, ".route_config_name");
    if (!m->config_source)
        tc_faults_add_at(p->faults, ".config_source", "field not present");
    else if (!tc_read_is_ads_or_self(m->config_source))
        tc_faults_add_at(p->faults, ".config_source", "must be ads or self");
    tc_faults_pop(p->faults);
}

static void read_routes(struct tc_reading *p, const Hcm *m, struct tc_listener *out)
{
    if (m->route_specifier_case == ROUTE(RDS)) {
        read_rds(p, m->rds, out);
    } else if (m->route_specifier_case == ROUTE(ROUTE_CONFIG)) {
        struct tc_route_table *table = TC_STORE_NEW(p->store, struct tc_route_table);
        tc_faults_push(p->faults, ".route_config");
        tc_read_route_table(p, m->route_config, table);
        tc_faults_pop(p->faults);
        out->routes = table;
        out->routes_name = tc_store_rstr(p->store, m->route_config->name);
    } else {
        tc_faults_add(p->faults, "neither route_config nor rds fields are present");
    }
}

static void read_hcm(struct tc_reading *p, const Hcm *m, struct tc_listener *out)
{
    /* A41: these settings would change whom a request is taken to come from. */
    if (m->xff_num_trusted_hops)
        tc_faults_add_at(p->faults, ".xff_num_trusted_hops", "must be zero");
    if (m->n_original_ip_detection_extensions)
        tc_faults_add_at(p->faults, ".original_ip_detection_extensions", "must be empty");
    if (m->common_http_protocol_options && m->common_http_protocol_options->max_stream_duration) {
        tc_faults_push(p->faults, ".common_http_protocol_options.max_stream_duration");
        tc_read_duration_ns(p, m->common_http_protocol_options->max_stream_duration, &out->max_stream_duration_ns);
        tc_faults_pop(p->faults);
    }
    tc_read_http_filters(p, m, out);
    read_routes(p, m, out);
}

static void read_listener(struct tc_reading *p, const Listener *m, struct tc_listener *out)
{
    struct tc_any any;
    tc_read_nonempty(p, m->name, ".name");
    if (!m->api_listener) {
        if (!m->address)
            tc_faults_add(p->faults, "Listener has neither address nor ApiListener");
        return;
    }
    out->is_api = true;
    tc_faults_push(p->faults, ".api_listener.api_listener");
    if (tc_read_any(p, m->api_listener->api_listener, &any)) {
        const Hcm *hcm = NULL;
        if (!tc_slice_eq_str(any.name, HCM))
            tc_faults_add(p->faults, "unsupported filter type %s", tc_read_clip(p, any.name));
        else
            hcm = TC_READ(
                p,
                &envoy__extensions__filters__network__http_connection_manager__v3__http_connection_manager__descriptor,
                Hcm, any.bytes);
        if (hcm)
            read_hcm(p, hcm, out);
    }
    tc_faults_pop(p->faults);
}

static void listener_free(struct tc_xds_resource *r)
{
    struct tc_listener *l = (struct tc_listener *)(void *)r;
    tc_store_fini(&l->store);
    tc_free(l);
}

static bool listener_equal(const struct tc_xds_resource *a, const struct tc_xds_resource *b)
{
    return tc_slice_eq(tc_listener_of(a)->store.bytes, tc_listener_of(b)->store.bytes);
}

static struct tc_xds_resource *listener_decode(const struct tc_xds_resource_type *type,
                                               const struct tc_xds_decode_context *ctx, struct tc_slice bytes,
                                               struct tc_rstr **name, struct tc_faults *faults)
{
    size_t before = faults->count;
    struct tc_listener *l = TC_NEW(struct tc_listener);
    struct tc_reading r;
    tc_ref_init(&l->head.ref);
    l->head.type = type;
    tc_store_init(&l->store);
    tc_read_init(&r, ctx, &l->store, bytes.len, faults);
    const Listener *m = TC_READ(&r, &envoy__config__listener__v3__listener__descriptor, Listener, bytes);
    if (m) {
        l->name = tc_store_rstr(&l->store, m->name);
        *name = tc_rstr_ref(l->name);
        read_listener(&r, m, l);
    } else {
        *name = tc_read_name(bytes);
    }
    tc_read_fini(&r);
    if (faults->count == before) {
        tc_store_set_bytes(&l->store, bytes);
        return &l->head;
    }
    listener_free(&l->head);
    return NULL;
}

const struct tc_xds_resource_type tc_listener_type = {
    .type_url = "type.googleapis.com/envoy.config.listener.v3.Listener",
    .short_name = "Listener",
    .any_thread = true,
    .all_resources_required_in_sotw = true,
    .decode = listener_decode,
    .peek_name = tc_read_peek_name,
    .slow = tc_read_may_be_slow,
    .equal = listener_equal,
    .free = listener_free,
};
