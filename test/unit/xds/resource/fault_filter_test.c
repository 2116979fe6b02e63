/* Fault injection's settings (A33): valid ones, and refused ones. */
#include "support/cmocka.h"
#include "support/kits/resource.h"

#include "base/mem.h"
#include "xds/filter/fault_filter.h"
#include "xds/resource/fault_filter.h"
#include "xds/resource/listener.h"

#define LISTENER                                                                                                       \
    "{'name':'l','apiListener':{'apiListener':{'@type':'type.googleapis.com/"                                          \
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',"                              \
    "'rds':{'routeConfigName':'r','configSource':{'ads':{}}},'httpFilters':[{'name':'f','typedConfig':{'@type':"       \
    "'type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault'%s}},"                                      \
    "{'name':'router','typedConfig':{'@type':'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}]}" \
    "}}"
#define AT "http_filters[0].typed_config"

/* Returns a Listener with a fault filter of these settings. *out: the filter's config, borrowed from the Listener. */
static struct tc_xds_resource *read(const char *settings, const struct tc_fault_config **out)
{
    char *json = tc_asprintf(LISTENER, settings);
    struct tc_xds_resource *r = kit_resource_valid(&tc_listener_type, NULL, json);
    const struct tc_listener *l = tc_listener_of(r);
    tc_free(json);
    assert_int_equal(l->n_filters, 2);
    assert_ptr_equal(l->filters[0].type, &tc_http_filter_fault);
    *out = l->filters[0].config;
    return r;
}

static void defaults(void **state)
{
    (void)state;
    const struct tc_fault_config *f;
    struct tc_xds_resource *r = read("", &f);
    assert_int_equal(f->delay, TC_FAULT_NO_DELAY);
    assert_int_equal(f->abort, TC_FAULT_NO_ABORT);
    assert_int_equal(f->max_active, UINT32_MAX);
    tc_xds_resource_unref(r);
    /* An absent share means 0. */
    r = read(",'delay':{'fixedDelay':'1s'},'abort':{'httpStatus':503},'maxActiveFaults':0", &f);
    assert_int_equal(f->delay_share.numerator, 0);
    assert_int_equal(f->abort_share.numerator, 0);
    assert_int_equal(f->max_active, 0);
    tc_xds_resource_unref(r);
}

static void all_settings(void **state)
{
    (void)state;
    const struct tc_fault_config *f;
    struct tc_xds_resource *r =
        read(",'delay':{'fixedDelay':'1.5s','percentage':{'numerator':7}},'abort':{'grpcStatus':"
             "16,'percentage':{'numerator':5,'denominator':'TEN_THOUSAND'}},"
             "'maxActiveFaults':3",
             &f);
    assert_int_equal(f->delay, TC_FAULT_FIXED_DELAY);
    assert_int_equal(f->delay_ns, 1500000000);
    assert_int_equal(f->delay_share.numerator, 7);
    assert_int_equal(f->delay_share.unit, 10000);
    assert_int_equal(f->abort, TC_FAULT_GRPC_ABORT);
    assert_int_equal(f->abort_status, 16);
    assert_int_equal(f->abort_share.numerator, 5);
    assert_int_equal(f->abort_share.unit, 100);
    assert_int_equal(f->max_active, 3);
    tc_xds_resource_unref(r);
    r = read(",'delay':{'headerDelay':{},'percentage':{'numerator':1,'denominator':'MILLION'}},'abort':{'headerAbort':"
             "{}}",
             &f);
    assert_int_equal(f->delay, TC_FAULT_HEADER_DELAY);
    assert_int_equal(f->delay_share.unit, 1);
    assert_int_equal(f->abort, TC_FAULT_HEADER_ABORT);
    tc_xds_resource_unref(r);
    r = read(",'abort':{'httpStatus':429}", &f);
    assert_int_equal(f->abort, TC_FAULT_HTTP_ABORT);
    assert_int_equal(f->abort_status, 429);
    tc_xds_resource_unref(r);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *fault;
    } cases[] = {
        {",'abort':{'grpcStatus':17}", AT ".abort.grpc_status: invalid gRPC status code: 17"},
        {",'abort':{'percentage':{'denominator':9}}", AT ".abort.percentage.denominator: unknown denominator type"},
        {",'delay':{'percentage':{'denominator':9}}", AT ".delay.percentage.denominator: unknown denominator type"},
        {",'delay':{'fixedDelay':'-1s'}", AT ".delay.fixed_delay"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        char *json = tc_asprintf(LISTENER, cases[i].settings);
        kit_resource_refused(&tc_listener_type, NULL, json, cases[i].fault);
        tc_free(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(all_settings),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
