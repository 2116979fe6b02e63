/* The stateful session filter's config and overrides (A55). */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/resource.h"

#include "base/mem.h"
#include "xds/filter/session_filter.h"
#include "xds/resource/listener.h"
#include "xds/resource/session_filter.h"

#define TYPE(x) "'@type':'type.googleapis.com/" x "'"
#define HCM TYPE("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager")
#define ROUTER TYPE("envoy.extensions.filters.http.router.v3.Router")
#define FILTER TYPE("envoy.extensions.filters.http.stateful_session.v3.StatefulSession")
#define PER_ROUTE TYPE("envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute")
#define STATE TYPE("envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState")
#define STATE_OF(fields) "'sessionState':{'name':'n','typedConfig':{" fields "}}"
#define COOKIE(fields) STATE_OF(STATE ",'cookie':{" fields "}")

/* Returns the JSON (tc_free) of a listener: the filter has these fields, and the one route has this override of the
 * filter (empty: none). */
static char *listener(const char *fields, const char *override)
{
    return tc_asprintf("{'name':'l','apiListener':{'apiListener':{%s,'httpFilters':["
                       "{'name':'session','typedConfig':{%s%s%s}},{'name':'router','typedConfig':{%s}}],"
                       "'routeConfig':{'virtualHosts':[{'name':'v','domains':['*'],'routes':[{'match':{'prefix':''},"
                       "'route':{'cluster':'c'},'typedPerFilterConfig':{%s%s%s}}]}]}}}}",
                       HCM, FILTER, *fields ? "," : "", fields, ROUTER, *override ? "'session':{" PER_ROUTE "," : "",
                       override, *override ? "}" : "");
}

static struct tc_xds_resource *valid(const char *fields, const char *override)
{
    char *json = listener(fields, override);
    struct tc_xds_resource *r = kit_resource_valid(&tc_listener_type, NULL, json);
    tc_free(json);
    return r;
}

static void refused(const char *fields, const char *override, const char *fault)
{
    char *json = listener(fields, override);
    kit_resource_refused(&tc_listener_type, NULL, json, fault);
    tc_free(json);
}

static const struct tc_session_config *config_of(struct tc_xds_resource *r)
{
    assert_ptr_equal(tc_listener_of(r)->filters[0].type, &tc_http_filter_session);
    return tc_listener_of(r)->filters[0].config;
}

static const struct tc_session_config *override_of(struct tc_xds_resource *r)
{
    const struct tc_route *route = &tc_listener_of(r)->routes->vhosts[0].routes[0];
    assert_int_equal(route->overrides.n, 1);
    return route->overrides.at[0].config;
}

static void a_cookie(void **state)
{
    (void)state;
    struct tc_xds_resource *r = valid(COOKIE("'name':'s','ttl':'1.000000001s','path':'/a.B'"), "");
    const struct tc_session_config *c = config_of(r);
    assert_true(c->on);
    assert_true(tc_slice_eq_str(c->name, "s"));
    assert_true(tc_slice_eq_str(c->path, "/a.B"));
    assert_int_equal(c->ttl_s, 2);
    tc_xds_resource_unref(r);
    r = valid(COOKIE("'name':'s'"), "");
    assert_true(tc_slice_eq_str(config_of(r)->path, "/"));
    assert_int_equal(config_of(r)->ttl_s, 0);
    tc_xds_resource_unref(r);
    r = valid(COOKIE("'name':'s','ttl':'0s'"), "");
    assert_int_equal(config_of(r)->ttl_s, 0);
    tc_xds_resource_unref(r);
    /* A filter without state stays in the chain for its overrides. */
    r = valid("", "'statefulSession':{" COOKIE("'name':'t'") "}");
    assert_false(config_of(r)->on);
    assert_true(override_of(r)->on);
    assert_true(tc_slice_eq_str(override_of(r)->name, "t"));
    tc_xds_resource_unref(r);
}

static void overrides_that_turn_the_filter_off(void **state)
{
    (void)state;
    static const char *const off[] = {"'disabled':true", "'disabled':false", "'statefulSession':{}"};
    for (size_t i = 0; i < TC_ARRAY_LEN(off); i++) {
        struct tc_xds_resource *r = valid(COOKIE("'name':'s'"), off[i]);
        assert_true(config_of(r)->on);
        assert_false(override_of(r)->on);
        tc_xds_resource_unref(r);
    }
}

static void refusals(void **state)
{
    (void)state;
    refused(COOKIE(""), "", "session_state.typed_config.cookie.name: must be non-empty");
    refused(STATE_OF(STATE), "", "session_state.typed_config.cookie: field not present");
    refused(COOKIE("'name':'s','ttl':'-1s'"), "", "session_state.typed_config.cookie.ttl.seconds");
    refused(STATE_OF(FILTER), "", "unsupported session state type envoy.extensions.filters.http");
    refused("'sessionState':{'name':'n'}", "", "session_state.typed_config: field not present");
    refused("", "'statefulSession':{" COOKIE("") "}", "stateful_session.session_state.typed_config.cookie.name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cookie),
        cmocka_unit_test(overrides_that_turn_the_filter_off),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
