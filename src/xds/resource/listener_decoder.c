/* Decodes Listener resources (LDS): the HttpConnectionManager of an API listener, with its filters and with its routes,
 * inline or by RDS.
 *
 * A socket listener is valid, but a channel cannot use it: the dependency manager reports that. Errors are collected,
 * and tc_decode_end frees the listener if there are any. Runs on any thread. */
#include "base/mem.h"
#include "pb/envoy/config/listener/v3/listener.pb-c.h"
#include "xds/resource/decoded.h"
#include "xds/resource/http_filter_decoder.h"
#include "xds/resource/listener.h"
#include "xds/resource/route_config_decoder.h"

typedef Envoy__Config__Listener__V3__Listener Listener;
typedef Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__HttpConnectionManager Hcm;

#define ROUTE(x)                                                                                                       \
    ENVOY__EXTENSIONS__FILTERS__NETWORK__HTTP_CONNECTION_MANAGER__V3__HTTP_CONNECTION_MANAGER__ROUTE_SPECIFIER_##x

static void decode_rds(struct tc_decoder *dec,
                       const Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__Rds *m,
                       struct tc_listener *out)
{
    tc_validation_push(dec->errors, ".rds");
    out->rds_name = tc_resource_arena_rstr(dec->arena, m->route_config_name);
    tc_decode_nonempty(dec, m->route_config_name, ".route_config_name");
    tc_decode_config_source(dec, ".config_source", m->config_source);
    tc_validation_pop(dec->errors);
}

static void decode_routes(struct tc_decoder *dec, const Hcm *m, struct tc_listener *out)
{
    if (m->route_specifier_case == ROUTE(RDS)) {
        decode_rds(dec, m->rds, out);
    } else if (m->route_specifier_case == ROUTE(ROUTE_CONFIG)) {
        struct tc_route_table *table = TC_RESOURCE_NEW(dec->arena, struct tc_route_table);
        tc_validation_push(dec->errors, ".route_config");
        tc_decode_route_table(dec, m->route_config, table);
        tc_validation_pop(dec->errors);
        out->routes = table;
        out->routes_name = tc_resource_arena_rstr(dec->arena, m->route_config->name);
    } else {
        tc_validation_add(dec->errors, "neither route_config nor rds fields are present");
    }
}

static void decode_hcm(struct tc_decoder *dec, const Hcm *m, struct tc_listener *out)
{
    /* A41: these settings would change the address that a request is taken to come from. */
    if (m->xff_num_trusted_hops)
        tc_validation_add_at(dec->errors, ".xff_num_trusted_hops", "must be zero");
    if (m->n_original_ip_detection_extensions)
        tc_validation_add_at(dec->errors, ".original_ip_detection_extensions", "must be empty");
    if (m->common_http_protocol_options && m->common_http_protocol_options->max_stream_duration)
        tc_decode_duration_ns(dec, ".common_http_protocol_options.max_stream_duration",
                              m->common_http_protocol_options->max_stream_duration, &out->max_stream_duration_ns);
    tc_decode_http_filters(dec, m, out);
    decode_routes(dec, m, out);
}

static void decode_listener(struct tc_decoder *dec, const Listener *m, struct tc_listener *out)
{
    tc_decode_nonempty(dec, m->name, ".name");
    if (!m->api_listener) {
        if (!m->address)
            tc_validation_add(dec->errors, "Listener has neither address nor ApiListener");
        return;
    }
    out->is_api = true;
    tc_validation_push(dec->errors, ".api_listener.api_listener");
    const Hcm *hcm = TC_DECODE_ANY(
        dec, m->api_listener->api_listener,
        &envoy__extensions__filters__network__http_connection_manager__v3__http_connection_manager__descriptor, Hcm,
        "unsupported filter type");
    if (hcm)
        decode_hcm(dec, hcm, out);
    tc_validation_pop(dec->errors);
}

static bool trusted_routes(const struct tc_xds_resource *r)
{
    const struct tc_route_table *routes = tc_listener_of(r)->routes;
    return routes && routes->trusted;
}

/* Two listeners of equal bytes differ if their routes are inline, and the bootstrap trusts the server of one of them
 * alone (A81). */
static bool listener_equal(const struct tc_xds_resource *a, const struct tc_xds_resource *b)
{
    return tc_decoded_equal(a, b) && trusted_routes(a) == trusted_routes(b);
}

static struct tc_xds_resource *listener_decode(const struct tc_xds_resource_type *type,
                                               const struct tc_xds_decode_context *ctx, struct tc_slice bytes,
                                               struct tc_rstr **name, struct tc_validation_errors *errors)
{
    struct tc_listener *l = TC_NEW(struct tc_listener);
    struct tc_decoder dec;
    tc_decode_begin(&dec, &l->base, type, ctx, bytes, errors);
    const Listener *m = TC_DECODE(&dec, &envoy__config__listener__v3__listener__descriptor, Listener, bytes);
    l->name = tc_decode_take_name(&dec, m ? m->name : NULL, bytes, name);
    if (m)
        decode_listener(&dec, m, l);
    return tc_decode_end(&dec, &l->base, bytes);
}

const struct tc_xds_resource_type tc_listener_type = {
    .type_url = "type.googleapis.com/envoy.config.listener.v3.Listener",
    .short_name = "Listener",
    .any_thread = true,
    .all_resources_required_in_sotw = true,
    .decode = listener_decode,
    .peek_name = tc_decode_peek_name,
    .slow = tc_decode_may_be_slow,
    .equal = listener_equal,
    .free = tc_decoded_free,
};
