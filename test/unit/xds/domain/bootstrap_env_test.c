/* Errors in a bootstrap beyond its syntax, and the source of the bootstrap (file or variable) in their texts. */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "support/cmocka.h"
#include "xds/domain/bootstrap_env.h"
#include "xds/resolver/xds_resolver.h"

#define NODE "\"node\": {\"id\": \"n\"}"
#define SERVER(uri) "{\"server_uri\": \"" uri "\", \"channel_creds\": [{\"type\": \"insecure\"}]}"
#define BAD_PROVIDER                                                                                                   \
    "{\"xds_servers\": [" SERVER("s") "], " NODE                                                                       \
                                      ", \"certificate_providers\": {\"a\": {\"plugin_name\": \"file_watcher\"}}}"

/* Returns the error's text (tc_free). json: the channel's option; NULL: the bootstrap is read from the environment. */
static char *error_of(const char *json)
{
    struct tc_resolver_env env = {.xds_bootstrap_json = json};
    struct tc_status error = {0};
    assert_null(tc_bootstrap_env_read(&env, &error));
    assert_int_equal(error.code, TORC_STATUS_INVALID_ARGUMENT);
    char *text = tc_strdup(tc_status_text(&error));
    tc_status_fini(&error);
    return text;
}

static void expect(const char *json, const char *wanted)
{
    char *text = error_of(json);
    assert_string_equal(text, wanted);
    tc_free(text);
}

static void what_is_wrong_with_providers_names_file_and_variable(void **state)
{
    (void)state;
    static const char fault[] = "field certificate_providers[\"a\"].config: field not present";
    char path[] = "/tmp/torc-bootstrap-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, BAD_PROVIDER, strlen(BAD_PROVIDER)), strlen(BAD_PROVIDER));
    close(fd);
    setenv("GRPC_XDS_BOOTSTRAP", path, 1);
    char *wanted = tc_asprintf("xDS bootstrap file \"%s\" (GRPC_XDS_BOOTSTRAP): %s", path, fault);
    expect(NULL, wanted);
    tc_free(wanted);
    unlink(path);
    unsetenv("GRPC_XDS_BOOTSTRAP");
    setenv("GRPC_XDS_BOOTSTRAP_CONFIG", BAD_PROVIDER, 1);
    wanted = tc_asprintf("xDS bootstrap in GRPC_XDS_BOOTSTRAP_CONFIG: %s", fault);
    expect(NULL, wanted);
    tc_free(wanted);
    unsetenv("GRPC_XDS_BOOTSTRAP_CONFIG");
    expect(BAD_PROVIDER, fault); /* the channel's option: the error names no variable */
}

/* Reads a bootstrap whose two servers have this URI, which goes between the quotes of a JSON string as it is. reason:
 * what the error says of the second server, at least its first words; NULL: the bootstrap is accepted. */
static void expect_uri(const char *uri, const char *reason)
{
    struct tc_resolver_env env = {0};
    struct tc_status error = {0};
    char *json = tc_asprintf("{\"xds_servers\": [" SERVER("%s") ", " SERVER("%s") "], " NODE "}", uri, uri);
    env.xds_bootstrap_json = json;
    struct tc_xds_bootstrap *b = tc_bootstrap_env_read(&env, &error);
    if (!reason) {
        assert_non_null(b);
    } else {
        char *wanted = tc_asprintf("field xds_servers[1].server_uri: %s", reason);
        assert_null(b);
        assert_non_null(strstr(tc_status_text(&error), wanted));
        tc_free(wanted);
    }
    tc_xds_bootstrap_unref(b);
    tc_status_fini(&error);
    tc_free(json);
}

static void the_uri_of_a_server_must_be_a_target(void **state)
{
    (void)state;
    static const char *const good[] = {"s",
                                       "127.0.0.1:1",
                                       "[::1]:1",
                                       "dns:///a:1",
                                       "dns://127.0.0.1:53/a:1",
                                       "unix:/a/b",
                                       "ipv4:1.2.3.4:5,1.2.3.5:5",
                                       "ipv6:[::1]:5",
                                       "DNS:///a"};
    for (size_t i = 0; i < TC_ARRAY_LEN(good); i++)
        expect_uri(good[i], NULL);
    expect_uri("xds:///x", "target \"xds:///x\": a control plane is not found by xDS itself");
    expect_uri("http://x", "target \"http://x\": neither host:port nor of a known scheme (");
    expect_uri("a:99999", "target \"a:99999\": the port \"99999\" is not a number from 0 to 65535");
    expect_uri("ipv4:x:1", "target \"ipv4:x:1\": \"x:1\" is not an IPv4 address; a port may follow: 192.0.2.1:443");
    expect_uri("dns:///%zz", "target \"dns:///%zz\": a percent-encoding in it is malformed");
    expect_uri("a\\n:1", "a control character is in it");
    expect(
        "{\"xds_servers\": [" SERVER("s") "], " NODE
                                          ", \"authorities\": {\"east\": {\"xds_servers\": [" SERVER("xds:x") "]}}}",
        "field authorities[\"east\"].xds_servers[0].server_uri: target \"xds:x\": a control plane is not found by xDS "
        "itself");
    /* A71: beside another server, a server with a bad URI is accepted, and counts as down later. */
    struct tc_resolver_env env = {.xds_bootstrap_json =
                                      "{\"xds_servers\": [" SERVER("xds:///x") ", " SERVER("s") "], " NODE "}"};
    struct tc_status error = {0};
    struct tc_xds_bootstrap *b = tc_bootstrap_env_read(&env, &error);
    assert_non_null(b);
    tc_xds_bootstrap_unref(b);
}

int main(void)
{
    tc_resolver_register(&tc_xds_resolver_class);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_with_providers_names_file_and_variable),
        cmocka_unit_test(the_uri_of_a_server_must_be_a_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
