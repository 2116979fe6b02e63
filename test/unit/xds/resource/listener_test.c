/* Decoding of Listener resources from proto3 JSON (kits/resource): routes, HTTP filters and their overrides in valid
 * ones, and the errors of refused ones. Most are decoded with `ctx`, which knows the router and two fake filters: one
 * that clients support, and one for servers only, which has the fault filter's name here. */
#include "xds/resource/decoder.h"
#include "xds/resource/listener.h"
#include "xds/resource/registry.h"

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/resource.h"

#include "base/mem.h"

#define TYPE "type.googleapis.com/"
#define HCM_TYPE TYPE "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
#define LISTENER(hcm) "{'name':'l','api_listener':{'api_listener':{'@type':'" HCM_TYPE "'," hcm "}}}"
#define RDS "'rds':{'config_source':{'ads':{}},'route_config_name':'rc'}"
#define FILTER(name, type, more) "{'name':'" name "','typed_config':{'@type':'" TYPE type "'}" more "}"
#define ROUTER FILTER("router", "envoy.extensions.filters.http.router.v3.Router", "")
#define FILTERS(list) LISTENER(RDS ",'http_filters':[" list "]")
#define AT "field api_listener.api_listener"

#define FAULT_TYPE "envoy.extensions.filters.http.fault.v3.HTTPFault"
#define SESSION_TYPE "envoy.extensions.filters.http.stateful_session.v3.StatefulSession"
#define OVERRIDE_TYPE "envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute"

/* Parses a config or an override of a fake filter: only an empty one is valid. */
static const void *parse(const struct tc_http_filter_type *type, struct tc_slice config, struct tc_decoder *p)
{
    if (config.len)
        tc_validation_add(p->errors, "refused by the filter");
    return config.len ? NULL : type;
}

static const struct tc_http_filter_type session = {.config_name = SESSION_TYPE,
                                                   .override_name = OVERRIDE_TYPE,
                                                   .on_clients = true,
                                                   .parse = parse,
                                                   .parse_override = parse};
static const struct tc_http_filter_type server_only = {.config_name = FAULT_TYPE, .parse = parse};
static const struct tc_http_filter_type *const types[] = {&tc_http_filter_router, &session, &server_only};
static struct tc_xds_registries reg;
static const struct tc_xds_decode_context ctx = {.registries = &reg};

static int setup(void **state)
{
    (void)state;
    tc_xds_registries_init(&reg);
    reg.filters = types;
    reg.n_filters = TC_ARRAY_LEN(types);
    return 0;
}

static struct tc_xds_resource *valid(const char *json)
{
    return kit_resource_valid(&tc_listener_type, &ctx, json);
}

static void refused(const char *json, const char *fault)
{
    kit_resource_refused(&tc_listener_type, &ctx, json, fault);
}

static void routes_by_rds(void **state)
{
    (void)state;
    struct tc_xds_resource *r =
        valid(LISTENER(RDS ",'http_filters':[" ROUTER "],'common_http_protocol_options':{'max_stream_duration':'3s'}"));
    const struct tc_listener *l = tc_listener_of(r);
    assert_string_equal(l->name->data, "l");
    assert_true(l->is_api);
    assert_string_equal(l->rds_name->data, "rc");
    assert_null(l->routes);
    assert_int_equal(l->n_filters, 1);
    assert_ptr_equal(l->filters[0].type, &tc_http_filter_router);
    assert_int_equal(l->max_stream_duration_ns, 3000000000);
    tc_xds_resource_unref(r);
    /* The router is known without registries, too. */
    tc_xds_resource_unref(kit_resource_valid(&tc_listener_type, &(struct tc_xds_decode_context){0}, FILTERS(ROUTER)));
}

static void routes_inline(void **state)
{
    (void)state;
    struct tc_xds_resource *r =
        valid(LISTENER("'route_config':{'virtual_hosts':[{'domains':['*'],'routes':[{'match':{'prefix':''},"
                       "'route':{'cluster':'c'}}]}]},'http_filters':[" ROUTER "]"));
    const struct tc_listener *l = tc_listener_of(r);
    assert_null(l->rds_name);
    assert_string_equal(l->routes_name->data, "");
    assert_string_equal(l->routes->vhosts[0].routes[0].cluster->data, "c");
    tc_xds_resource_unref(r);
    refused(LISTENER("'route_config':{'virtual_hosts':[{}]},'http_filters':[" ROUTER "]"),
            AT ".route_config.virtual_hosts[0].domains: must be non-empty");
}

static void a_listener_has_an_address(void **state)
{
    TC_CASE(LR01);
    (void)state;
    refused("{'name':'l'}", "Listener has neither address nor ApiListener");
    struct tc_xds_resource *r =
        valid("{'name':'l','address':{'socket_address':{'address':'127.0.0.1','port_value':1}}}");
    assert_false(tc_listener_of(r)->is_api);
    tc_xds_resource_unref(r);
    refused("{'name':'l','api_listener':{}}", AT ": field not present");
    refused("{'name':'l','api_listener':{'api_listener':{'@type':'" TYPE "envoy.config.cluster.v3.Cluster'}}}",
            AT ": unsupported filter type envoy.config.cluster.v3.Cluster");
}

static void the_chain_ends_with_a_terminal_filter(void **state)
{
    TC_CASE(LR02);
    TC_CASE(LR03);
    (void)state;
    refused(FILTERS(""), AT ".http_filters: expected at least one HTTP filter");
    refused(FILTERS(FILTER("s", SESSION_TYPE, "")),
            AT ".http_filters: non-terminal filter " SESSION_TYPE " is the last filter in the chain");
    refused(FILTERS(ROUTER "," FILTER("s", SESSION_TYPE, "")), ".Router must be the last filter in the chain");
    struct tc_xds_resource *r = valid(FILTERS(FILTER("s", SESSION_TYPE, "") "," ROUTER));
    assert_int_equal(tc_listener_of(r)->n_filters, 2);
    assert_true(tc_slice_eq_str(tc_listener_of(r)->filters[0].name, "s"));
    assert_ptr_equal(tc_listener_of(r)->filters[0].config, &session);
    tc_xds_resource_unref(r);
}

static void filters_have_names_of_their_own(void **state)
{
    TC_CASE(LR04);
    (void)state;
    refused(FILTERS(FILTER("", SESSION_TYPE, "") "," ROUTER), AT ".http_filters[0].name: empty filter name");
    refused(FILTERS(FILTER("s", SESSION_TYPE, "") "," FILTER("s", SESSION_TYPE, "") "," ROUTER),
            AT ".http_filters[1].name: duplicate HTTP filter name: s");
    /* Names of optional filters that are left out count, too. */
    refused(FILTERS(FILTER("s", "envoy.config.cluster.v3.Cluster", ",'is_optional':true") "," FILTER("s", SESSION_TYPE,
                                                                                                     "") "," ROUTER),
            AT ".http_filters[1].name: duplicate HTTP filter name: s");
}

static void chains_are_bounded(void **state)
{
    (void)state;
    struct tc_xds_bootstrap b = {.limits.http_filters = 2};
    const struct tc_xds_decode_context bounded = {.registries = &reg, .bootstrap = &b};
    assert_int_equal(reg.limits.http_filters, 1024);
    tc_xds_resource_unref(
        kit_resource_valid(&tc_listener_type, &bounded, FILTERS(FILTER("a", SESSION_TYPE, "") "," ROUTER)));
    kit_resource_refused(&tc_listener_type, &bounded,
                         FILTERS(FILTER("a", SESSION_TYPE, "") "," FILTER("b", SESSION_TYPE, "") "," ROUTER),
                         AT ".http_filters: 3 filters, more than 2");
}

static void unknown_filters_are_refused_unless_optional(void **state)
{
    TC_CASE(LR05);
    (void)state;
    refused(FILTERS(FILTER("x", "envoy.config.cluster.v3.Cluster", "") "," ROUTER),
            AT ".http_filters[0].typed_config: unsupported filter type envoy.config.cluster.v3.Cluster");
    refused(FILTERS("{'name':'x'}," ROUTER), ".http_filters[0].typed_config: field not present");
    struct tc_xds_resource *r =
        valid(FILTERS(FILTER("x", "envoy.config.cluster.v3.Cluster", ",'is_optional':true") "," ROUTER));
    assert_int_equal(tc_listener_of(r)->n_filters, 1);
    tc_xds_resource_unref(r);
    refused(FILTERS("{'name':'s','typed_config':{'@type':'" TYPE SESSION_TYPE "','session_state':{}}}," ROUTER),
            AT ".http_filters[0].typed_config: refused by the filter");
}

static void filters_for_servers_are_refused_unless_optional(void **state)
{
    TC_CASE(LR06);
    (void)state;
    refused(FILTERS(FILTER("f", FAULT_TYPE, "") "," ROUTER), FAULT_TYPE " is not supported on clients");
    struct tc_xds_resource *r = valid(FILTERS(FILTER("f", FAULT_TYPE, ",'is_optional':true") "," ROUTER));
    assert_int_equal(tc_listener_of(r)->n_filters, 1);
    tc_xds_resource_unref(r);
    char *errors = NULL;
    assert_null(kit_resource_decode(&tc_listener_type, NULL,
                                    FILTERS("{'name':'f','typed_config':{'@type':'" TYPE
                                            "envoy.extensions.filters.http.rbac.v3.RBAC','value':''}}," ROUTER),
                                    &errors));
    assert_non_null(strstr(errors, "filter envoy.extensions.filters.http.rbac.v3.RBAC is not supported on clients"));
    tc_free(errors);
}

static void origin_settings_are_refused(void **state)
{
    TC_CASE(LR07);
    (void)state;
    refused(LISTENER(RDS ",'http_filters':[" ROUTER "],'xff_num_trusted_hops':1"),
            AT ".xff_num_trusted_hops: must be zero");
    refused(LISTENER(RDS ",'http_filters':[" ROUTER "],'original_ip_detection_extensions':[{}]"),
            AT ".original_ip_detection_extensions: must be empty");
}

static void routes_are_by_ads_or_self(void **state)
{
    TC_CASE(LR08);
    (void)state;
    refused(LISTENER("'http_filters':[" ROUTER "]"), AT ": neither route_config nor rds fields are present");
    refused(LISTENER("'scoped_routes':{},'http_filters':[" ROUTER "]"), "neither route_config nor rds");
    refused(LISTENER("'rds':{'config_source':{'path':'x'},'route_config_name':'rc'},'http_filters':[" ROUTER "]"),
            AT ".rds.config_source: must be ads or self");
    refused(LISTENER("'rds':{'route_config_name':'rc'},'http_filters':[" ROUTER "]"),
            AT ".rds.config_source: field not present");
    refused(LISTENER("'rds':{'config_source':{'self':{}}},'http_filters':[" ROUTER "]"),
            AT ".rds.route_config_name: must be non-empty");
}

#define ROUTE_WITH(overrides)                                                                                          \
    LISTENER("'route_config':{'virtual_hosts':[{'domains':['*'],'routes':[{'match':{'prefix':''},"                     \
             "'route':{'cluster':'c'},'typed_per_filter_config':{" overrides "}}]}]},'http_filters':[" ROUTER "]")
#define OVERRIDE(type) "'s':{'@type':'" TYPE type "'}"
#define WRAPPED(type, more)                                                                                            \
    "'s':{'@type':'" TYPE "envoy.config.route.v3.FilterConfig','config':{'@type':'" TYPE type "'}" more "}"

static void overrides_are_read(void **state)
{
    (void)state;
    struct tc_xds_resource *r = valid(ROUTE_WITH(OVERRIDE(OVERRIDE_TYPE)));
    const struct tc_http_filter_overrides *o = &tc_listener_of(r)->routes->vhosts[0].routes[0].overrides;
    assert_int_equal(o->n, 1);
    assert_ptr_equal(tc_http_filter_override_find(o, tc_slice_str("s"))->type, &session);
    assert_null(tc_http_filter_override_find(o, tc_slice_str("t")));
    tc_xds_resource_unref(r);
    r = valid(ROUTE_WITH(WRAPPED(OVERRIDE_TYPE, "")));
    assert_int_equal(tc_listener_of(r)->routes->vhosts[0].routes[0].overrides.n, 1);
    tc_xds_resource_unref(r);
    r = valid(ROUTE_WITH(WRAPPED("envoy.config.cluster.v3.Cluster", ",'is_optional':true")));
    assert_int_equal(tc_listener_of(r)->routes->vhosts[0].routes[0].overrides.n, 0);
    tc_xds_resource_unref(r);
    refused(ROUTE_WITH(WRAPPED("envoy.config.cluster.v3.Cluster", "")),
            ".typed_per_filter_config[\"s\"]: unsupported filter type envoy.config.cluster.v3.Cluster");
    refused(ROUTE_WITH("'s':{'@type':'" TYPE "envoy.config.route.v3.FilterConfig'}"),
            "[\"s\"].config: field not present");
    refused(ROUTE_WITH(OVERRIDE("envoy.extensions.filters.http.router.v3.Router")),
            "does not support config overrides");
    refused(ROUTE_WITH("'':{'@type':'" TYPE OVERRIDE_TYPE "'}"), "filter name must be non-empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_by_rds),
        cmocka_unit_test(routes_inline),
        cmocka_unit_test(a_listener_has_an_address),
        cmocka_unit_test(the_chain_ends_with_a_terminal_filter),
        cmocka_unit_test(filters_have_names_of_their_own),
        cmocka_unit_test(chains_are_bounded),
        cmocka_unit_test(unknown_filters_are_refused_unless_optional),
        cmocka_unit_test(filters_for_servers_are_refused_unless_optional),
        cmocka_unit_test(origin_settings_are_refused),
        cmocka_unit_test(routes_are_by_ads_or_self),
        cmocka_unit_test(overrides_are_read),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
