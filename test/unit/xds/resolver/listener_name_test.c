/* Listener names from targets and templates, and the data plane's authorities from targets. */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"

#include "base/mem.h"
#include "xds/resolver/listener_name.h"

static bool known(void *arg, struct tc_slice scheme)
{
    (void)arg;
    return tc_slice_eq_str(scheme, "xds");
}

static bool supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)type;
    (void)config;
    return true;
}

/* Asserts the listener's name for a target, "" if the authority is unknown. `more`: further members of the
 * bootstrap. */
static void expect_name(const char *more, const char *target, const char *want)
{
    struct tc_target t;
    struct tc_status why = {0};
    struct tc_buf name = {0};
    char *json = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"s\", \"channel_creds\": [{\"type\": "
                             "\"insecure\"}]}], \"node\": {\"id\": \"n1\"}%s}",
                             more);
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_parse(tc_slice_str(json), supported, NULL, &why);
    assert_string_equal(tc_status_text(&why), "");
    assert_int_equal(tc_target_parse(&t, target, known, NULL, NULL), 0);
    assert_int_equal(tc_listener_name(b, &t, &name), *want ? 0 : TORC_ENOTFOUND);
    assert_string_equal(tc_buf_cstr(&name), want);
    tc_target_fini(&t);
    tc_xds_bootstrap_unref(b);
    tc_buf_fini(&name);
    tc_free(json);
}

#define TEMPLATE(t) ", \"client_default_listener_resource_name_template\": \"" t "\""
#define AUTHORITY(a, t) ", \"authorities\": {\"" a "\": {\"client_listener_resource_name_template\": \"" t "\"}}"

static void names(void **state)
{
    TC_CASE(AD30);
    (void)state;
    expect_name("", "xds:///svc", "svc");
    expect_name("", "xds:svc", "svc");
    expect_name("", "xds:///a/b c", "a/b c");
    expect_name(TEMPLATE("grpc/%s/x"), "xds:///svc", "grpc/svc/x");
    expect_name(TEMPLATE("%s-%s"), "xds:///svc", "svc-svc");
    expect_name(TEMPLATE("xdstp://auth/envoy.config.listener.v3.Listener/%s?a=1"), "xds:///[::1]:8080",
                "xdstp://auth/envoy.config.listener.v3.Listener/%5B::1%5D:8080?a=1");
    expect_name(", \"authorities\": {\"auth\": {}}", "xds://auth/a/b c",
                "xdstp://auth/envoy.config.listener.v3.Listener/a/b%20c");
    expect_name(AUTHORITY("auth", "xdstp://auth/envoy.config.listener.v3.Listener/client/%s"), "xds://auth/svc",
                "xdstp://auth/envoy.config.listener.v3.Listener/client/svc");
    expect_name("", "xds://nobody/svc", "");
}

static void expect_authority(const char *target, const char *want)
{
    struct tc_target t;
    struct tc_buf out = {0};
    assert_int_equal(tc_target_parse(&t, target, known, NULL, NULL), 0);
    tc_data_plane_authority(&t, &out);
    assert_string_equal(tc_buf_cstr(&out), want);
    tc_target_fini(&t);
    tc_buf_fini(&out);
}

static void authorities(void **state)
{
    TC_CASE(LR23);
    (void)state;
    expect_authority("xds:///svc", "svc");
    expect_authority("xds:///svc:80", "svc:80");
    expect_authority("xds://auth/svc", "svc");
    expect_authority("xds:///svc/2nd component", "svc%2F2nd%20component");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(authorities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
