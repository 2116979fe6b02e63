/* The bootstrap: which members are accepted and which are refused, with the texts of the errors; the environment
 * variables; the keys of servers; the limits; which authorities share a client.
 *
 * Each test parses texts, and compares the parsed bootstrap or the error, which lists every invalid field with its
 * place in the JSON ("xds_servers[0].server_uri"). The only supported types of channel credentials are "insecure" and
 * "tls" (kit_xds_creds_supported). The node is compared as the message that goes to the server, since the parser
 * serialises it.
 *
 * The tests have no fixture: each drops its references. `environment` sets the process's variables and makes a file in
 * /tmp; it removes both at its end. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <torc/version.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/xds.h"

#include "base/mem.h"
#include "xds/bootstrap/bootstrap.h"

#include "pb/envoy/config/core/v3/base.pb-c.h"

#define SERVER "{\"server_uri\": \"s\", \"channel_creds\": [{\"type\": \"insecure\"}]}"

/* Fails the test if the text is refused. Returns a bootstrap with one reference. */
static struct tc_xds_bootstrap *parse(const char *text)
{
    struct tc_status error = {0};
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_parse(tc_slice_str(text), kit_xds_creds_supported, NULL, &error);
    if (!b)
        print_message("%s\n", tc_status_text(&error));
    assert_non_null(b);
    return b;
}

static void assert_refused(const char *text, const char *reason)
{
    struct tc_status error = {0};
    assert_null(tc_xds_bootstrap_parse(tc_slice_str(text), kit_xds_creds_supported, NULL, &error));
    assert_int_equal(error.code, TORC_STATUS_INVALID_ARGUMENT);
    assert_string_equal(tc_status_text(&error), reason);
    tc_status_fini(&error);
}

/* Returns the node's message, unpacked; the caller frees it. */
static Envoy__Config__Core__V3__Node *node_of(const struct tc_xds_bootstrap *b)
{
    Envoy__Config__Core__V3__Node *node =
        envoy__config__core__v3__node__unpack(NULL, b->node->len, (const uint8_t *)b->node->data);
    assert_non_null(node);
    return node;
}

static void node(void **state)
{
    TC_CASE(BS01);
    TC_CASE(ED23);
    (void)state;
    struct tc_xds_bootstrap *b =
        parse("{\"xds_servers\": [" SERVER "], \"node\": {\"id\": \"me\", \"cluster\": \"c\","
              " \"locality\": {\"region\": \"r\", \"zone\": \"z\", \"subZone\": \"s\"},"
              " \"metadata\": {\"k\": [1, true, {\"x\": null}]},"
              " \"build_version\": \"theirs\", \"user_agent_name\": \"theirs\", \"user_agent_version\": \"theirs\","
              " \"client_features\": [\"theirs\"], \"unheard_of\": {}}}");
    Envoy__Config__Core__V3__Node *n = node_of(b);
    assert_string_equal(tc_rstr_cstr(b->node_id), "me");
    assert_string_equal(n->id, "me");
    assert_string_equal(n->cluster, "c");
    assert_string_equal(n->locality->region, "r");
    assert_string_equal(n->locality->zone, "z");
    assert_string_equal(n->locality->sub_zone, "s");
    assert_int_equal(n->metadata->n_fields, 1);
    assert_string_equal(n->metadata->fields[0]->key, "k");
    assert_int_equal(n->metadata->fields[0]->value->list_value->n_values, 3);
    assert_string_equal(n->user_agent_name, "torc");
    assert_string_equal(n->user_agent_version, torc_version());
    assert_int_equal(n->n_client_features, 3);
    assert_string_equal(n->client_features[0], "envoy.lb.does_not_support_overprovisioning");
    assert_string_equal(n->client_features[1], "xds.config.resource-in-sotw");
    assert_string_equal(n->client_features[2], "xds.endpoint.supports_lb_endpoint_collection");
    envoy__config__core__v3__node__free_unpacked(n, NULL);
    tc_xds_bootstrap_unref(b);

    b = parse("{\"xds_servers\": [" SERVER "]}");
    n = node_of(b);
    assert_string_equal(n->id, "");
    assert_string_equal(n->user_agent_name, "torc");
    assert_null(n->metadata);
    envoy__config__core__v3__node__free_unpacked(n, NULL);
    tc_xds_bootstrap_unref(b);
}

static void channel_creds(void **state)
{
    TC_CASE(BS02);
    (void)state;
    struct tc_xds_bootstrap *b =
        parse("{\"xds_servers\": [{\"server_uri\": \"s\", \"channel_creds\": ["
              "{\"type\": \"magic\"}, {\"type\": \"tls\", \"config\": {\"a\": 1}}, {\"type\": \"insecure\"}]}]}");
    assert_string_equal(tc_rstr_cstr(b->servers[0].creds_type), "tls");
    assert_int_equal(json_integer_value(json_object_get(b->servers[0].creds_config, "a")), 1);
    tc_xds_bootstrap_unref(b);

    b = parse("{\"xds_servers\": [{\"server_uri\": \"s\"}]}");
    assert_null(b->servers[0].creds_type);
    assert_null(b->servers[0].creds_config);
    tc_xds_bootstrap_unref(b);

    assert_refused("{\"xds_servers\": [{\"server_uri\": \"s\", \"channel_creds\": [{\"type\": \"magic\"}, {\"type\": "
                   "\"more\"}]}]}",
                   "field xds_servers[0].channel_creds: none of these types is supported: magic, more");
    assert_refused("{\"xds_servers\": [{\"server_uri\": \"s\", \"channel_creds\": []}]}",
                   "field xds_servers[0].channel_creds: must not be empty");
}

/* A97: call credentials of an unknown type are left out; the others are part of the server's key. */
static void call_creds(void **state)
{
    (void)state;
#define WITH(list) "{\"xds_servers\": [{\"server_uri\": \"s\", \"call_creds\": " list "}]}"
    struct tc_xds_bootstrap *b =
        parse(WITH("[{\"type\": \"magic\", \"config\": {\"x\": 1}}, {\"type\": \"jwt_token_file\", "
                   "\"config\": {\"jwt_token_file\": \"/a\"}}, {\"type\": \"jwt_token_file\", "
                   "\"config\": {\"jwt_token_file\": \"/b\"}}]"));
    assert_int_equal(json_array_size(b->servers[0].call_creds), 2);
    struct tc_xds_bootstrap *other = parse(WITH("[{\"type\": \"magic\"}]"));
    assert_null(other->servers[0].call_creds);
    /* Other credentials make another key, and so another xds_channel. */
    assert_false(tc_rstr_eq(b->servers[0].key, other->servers[0].key));
    tc_xds_bootstrap_unref(b);
    tc_xds_bootstrap_unref(other);
    assert_refused(WITH("7"), "field xds_servers[0].call_creds: must be an array, is number");
    assert_refused(WITH("[7, {}, {\"type\": \"jwt_token_file\"}, {\"type\": \"jwt_token_file\", \"config\": 1}, "
                        "{\"type\": \"jwt_token_file\", \"config\": {\"jwt_token_file\": 1}}]"),
                   "field xds_servers[0].call_creds[0]: must be an object; "
                   "field xds_servers[0].call_creds[1].type: missing; "
                   "field xds_servers[0].call_creds[2].config.jwt_token_file: must name a file; "
                   "field xds_servers[0].call_creds[3].config: must be an object, is number; "
                   "field xds_servers[0].call_creds[4].config.jwt_token_file: must be a string, is number");
#undef WITH
}

static void unknown_fields_and_wrong_types(void **state)
{
    TC_CASE(BS03);
    (void)state;
    struct tc_xds_bootstrap *b =
        parse("{\"new\": 1, \"xds_servers\": [{\"new\": [], \"server_uri\": \"s\", \"channel_creds\": [{\"type\": "
              "\"insecure\", \"new\": {}}], \"server_features\": [\"new\"]}], \"authorities\": {\"a\": {\"new\": 0}},"
              " \"node\": {\"new\": \"\", \"locality\": {\"new\": 7}}}");
    tc_xds_bootstrap_unref(b);

    assert_refused("[]", "must be a JSON object");
    assert_refused("{}", "field xds_servers: must have at least one entry");
    assert_refused("{\"xds_servers\": []}", "field xds_servers: must have at least one entry");
    assert_refused("{\"xds_servers\": {}}", "field xds_servers: must be an array, is object");
    assert_refused("{\"xds_servers\": [7, {}, {\"server_uri\": 7}, {\"server_uri\": \"\"}]}",
                   "field xds_servers[0]: must be an object; field xds_servers[1].server_uri: missing; "
                   "field xds_servers[2].server_uri: must be a string, is number; "
                   "field xds_servers[3].server_uri: must not be empty");
    assert_refused("{\"xds_servers\": [{\"server_uri\": \"s\", \"channel_creds\": [1, {}, {\"type\": 2}, {\"type\": "
                   "\"tls\", \"config\": 3}], \"server_features\": [4]}]}",
                   "field xds_servers[0].channel_creds[0]: must be an object; "
                   "field xds_servers[0].channel_creds[1].type: missing; "
                   "field xds_servers[0].channel_creds[2].type: must be a string, is number; "
                   "field xds_servers[0].channel_creds[3].config: must be an object, is number; "
                   "field xds_servers[0].server_features[0]: must be a string");
    assert_refused("{\"xds_servers\": [" SERVER "], \"node\": 1, \"authorities\": {\"a\": 1, \"b\": "
                   "{\"xds_servers\": 2, \"client_listener_resource_name_template\": \"%s\", "
                   "\"fallback_on_reachability_only\": \"yes\"}}, \"client_default_listener_resource_name_template\": "
                   "3, \"server_listener_resource_name_template\": 4, \"certificate_providers\": 5}",
                   "field authorities[\"a\"]: must be an object; "
                   "field authorities[\"b\"].xds_servers: must be an array, is number; "
                   "field authorities[\"b\"].fallback_on_reachability_only: must be a boolean, is string; "
                   "field authorities[\"b\"].client_listener_resource_name_template: must start with \"xdstp://b/\"; "
                   "field node: must be an object, is number; "
                   "field server_listener_resource_name_template: must be a string, is number; "
                   "field client_default_listener_resource_name_template: must be a string, is number; "
                   "field certificate_providers: must be an object, is number");
    struct tc_status error = {0};
    assert_null(tc_xds_bootstrap_parse(tc_slice_str("{\"xds_servers\": [" SERVER "], \"node\": {\"id\": 7}}"),
                                       kit_xds_creds_supported, NULL, &error));
    assert_non_null(strstr(tc_status_text(&error), "node.id"));
    tc_status_fini(&error);
}

/* Reads the bootstrap with these values of GRPC_XDS_BOOTSTRAP and GRPC_XDS_BOOTSTRAP_CONFIG; NULL: the variable is not
 * set. reason NULL: asserts that the bootstrap has the node id "chosen". Otherwise asserts that the error contains
 * `reason`, and the path if one is set. */
static void assert_environment(const char *path, const char *config, const char *reason)
{
    struct tc_status error = {0};
    path ? setenv("GRPC_XDS_BOOTSTRAP", path, 1) : unsetenv("GRPC_XDS_BOOTSTRAP");
    config ? setenv("GRPC_XDS_BOOTSTRAP_CONFIG", config, 1) : unsetenv("GRPC_XDS_BOOTSTRAP_CONFIG");
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_from_environment(kit_xds_creds_supported, NULL, &error);
    if (!reason) {
        assert_non_null(b);
        assert_string_equal(tc_rstr_cstr(b->node_id), "chosen");
    } else {
        assert_null(b);
        assert_non_null(strstr(tc_status_text(&error), reason));
        if (path && *path)
            assert_non_null(strstr(tc_status_text(&error), path));
    }
    tc_xds_bootstrap_unref(b);
    tc_status_fini(&error);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void environment(void **state)
{
    TC_CASE(BS04);
    (void)state;
    static const char chosen[] = "{\"xds_servers\": [" SERVER "], \"node\": {\"id\": \"chosen\"}}";
    char path[] = "/tmp/torc-bootstrap-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_environment(NULL, NULL, "neither GRPC_XDS_BOOTSTRAP (a path) nor GRPC_XDS_BOOTSTRAP_CONFIG (JSON) is set");
    assert_environment("", "", "neither GRPC_XDS_BOOTSTRAP");
    assert_environment(path, NULL, "the file is empty");
    assert_int_equal(truncate(path, (16 << 20) + 1), 0);
    assert_environment(path, NULL, "larger than 16777216 bytes");
    assert_environment("/dev/zero", NULL, "it is a device, not a regular file");
    write_file(path, " \n");
    assert_environment(path, NULL, "the file is empty");
    write_file(path, "{]");
    assert_environment(path, NULL, "not JSON: line 1, column 2");
    write_file(path, "{}");
    assert_environment(path, NULL, "field xds_servers: must have at least one entry");
    write_file(path, chosen);
    assert_environment(path, NULL, NULL);
    assert_environment(path, "{\"xds_servers\": [" SERVER "], \"node\": {\"id\": \"other\"}}", NULL);
    assert_environment("", chosen, NULL);
    assert_environment(NULL, chosen, NULL);
    assert_environment(NULL, "nonsense", "xDS bootstrap in GRPC_XDS_BOOTSTRAP_CONFIG: not JSON: line 1");
    unlink(path);
    assert_environment(path, chosen, "No such file or directory"); /* the path counts, even without a file */
    assert_environment("/", NULL, "directory");
    unsetenv("GRPC_XDS_BOOTSTRAP");
    unsetenv("GRPC_XDS_BOOTSTRAP_CONFIG");
}

static void server_features(void **state)
{
    TC_CASE(BS05);
    (void)state;
    struct tc_xds_bootstrap *b =
        parse("{\"xds_servers\": [" SERVER ", {\"server_uri\": \"s\", \"server_features\": [\"xds_v3\", "
              "\"ignore_resource_deletion\", \"fail_on_data_errors\", \"resource_timer_is_transient_error\", "
              "\"torc.incremental_ads\", \"trusted_xds_server\"]}, {\"server_uri\": \"s\", \"server_features\": "
              "[\"resource_timer_is_transient_failure\"]}]}");
    const struct tc_xds_server *none = &b->servers[0], *all = &b->servers[1];
    assert_int_equal(b->n_servers, 3);
    assert_false(none->ignore_resource_deletion || none->fail_on_data_errors ||
                 none->resource_timer_is_transient_error || none->incremental || none->trusted_xds_server);
    assert_true(all->ignore_resource_deletion && all->fail_on_data_errors && all->resource_timer_is_transient_error &&
                all->incremental && all->trusted_xds_server);
    assert_true(b->servers[2].resource_timer_is_transient_error);
    tc_xds_bootstrap_unref(b);
}

static void keys(void **state)
{
    (void)state;
    struct tc_xds_bootstrap *b =
        parse("{\"xds_servers\": ["
              "{\"server_uri\": \"s\", \"channel_creds\": [{\"type\": \"tls\", \"config\": {\"a\": 1, \"b\": 2}}]},"
              "{\"channel_creds\": [{\"config\": {\"b\": 2, \"a\": 1}, \"type\": \"tls\"}], \"server_uri\": \"s\"},"
              "{\"server_uri\": \"s\", \"channel_creds\": [{\"type\": \"tls\", \"config\": {\"a\": 1, \"b\": 3}}]},"
              "{\"server_uri\": \"s\", \"channel_creds\": [{\"type\": \"tls\", \"config\": {\"a\": 1, \"b\": 2}}],"
              " \"server_features\": [\"fail_on_data_errors\"]}, {\"server_uri\": \"t\"}]}");
    assert_true(tc_rstr_eq(b->servers[0].key, b->servers[1].key));
    for (size_t i = 2; i < b->n_servers; i++)
        assert_false(tc_rstr_eq(b->servers[0].key, b->servers[i].key));
    tc_xds_bootstrap_unref(b);
}

static void authorities(void **state)
{
    (void)state;
    struct tc_xds_bootstrap *b =
        parse("{\"xds_servers\": [" SERVER "], \"certificate_providers\": {\"p\": {}}, \"authorities\": {"
              "\"\": {}, \"a\": {\"client_listener_resource_name_template\": "
              "\"xdstp://a/envoy.config.listener.v3.Listener/%s\","
              " \"xds_servers\": [{\"server_uri\": \"other\"}], \"fallback_on_reachability_only\": true}}}");
    const struct tc_xds_authority *a = tc_xds_bootstrap_authority(b, tc_slice_str("a"));
    assert_int_equal(a->n_servers, 1);
    assert_string_equal(tc_rstr_cstr(a->servers[0].uri), "other");
    assert_true(a->fallback_on_reachability_only);
    assert_int_equal(tc_xds_bootstrap_authority(b, tc_slice_str(""))->n_servers, 0);
    assert_null(tc_xds_bootstrap_authority(b, tc_slice_str("b")));
    assert_string_equal(tc_rstr_cstr(b->client_default_listener_template), "%s");
    assert_null(b->server_listener_template);
    assert_non_null(json_object_get(b->certificate_providers, "p"));
    struct tc_xds_bootstrap *again = tc_xds_bootstrap_ref(b);
    tc_xds_bootstrap_unref(b);
    tc_xds_bootstrap_unref(again);
}

static void limits(void **state)
{
    (void)state;
#define LIMITS(members) "{\"xds_servers\": [" SERVER "], \"torc.limits\": {" members "}}"
    struct tc_xds_bootstrap *b = parse("{\"xds_servers\": [" SERVER "]}");
    const struct tc_xds_limits none = {0};
    assert_memory_equal(&b->limits, &none, sizeof(none));
    tc_xds_bootstrap_unref(b);
    b = parse(LIMITS("\"ads_message_bytes\": 1073741824, \"eds_endpoints\": 1000000, \"eds_priorities\": 3"));
    assert_int_equal(b->limits.ads_message_bytes, 1073741824);
    assert_int_equal(b->limits.eds_endpoints, 1000000);
    assert_int_equal(b->limits.eds_priorities, 3);
    assert_int_equal(b->limits.routes, 0);
    tc_xds_bootstrap_unref(b);
    assert_refused(LIMITS("\"eds_priorities\": 0, \"eds_endpoint\": 1, \"routes\": \"7\", "
                          "\"ads_message_bytes\": 1073741825"),
                   "field torc.limits.eds_priorities: must be an integer in 1..65536; "
                   "field torc.limits[\"eds_endpoint\"]: unknown limit; "
                   "field torc.limits.routes: must be an integer in 1..1048576; "
                   "field torc.limits.ads_message_bytes: must be an integer in 1..1073741824");
    assert_refused("{\"xds_servers\": [" SERVER "], \"torc.limits\": 7}",
                   "field torc.limits: must be an object, is number");
}

static void shared_clients(void **state)
{
    (void)state;
#define SHARE(members) "{\"xds_servers\": [" SERVER members "}"
#define OTHER "{\"server_uri\": \"other\", \"channel_creds\": [{\"type\": \"insecure\"}]}"
#define THIRD "{\"server_uri\": \"third\", \"channel_creds\": [{\"type\": \"insecure\"}]}"
    static const struct {
        const char *text;
        bool top, x; /* whether all targets share one client for the top level, and for authority "x" */
    } cases[] = {
        {SHARE("], \"authorities\": {\"x\": {}}"), true, true},
        {SHARE("," SERVER "], \"authorities\": {\"x\": {}}"), true, true}, /* one server twice */
        {SHARE("," OTHER "], \"authorities\": {\"x\": {}}"), false, false},
        {SHARE("," OTHER "], \"authorities\": {\"x\": {\"xds_servers\": [" THIRD "]}}"), false, true},
        /* The server of x is also in a list with fallbacks. */
        {SHARE("," OTHER "], \"authorities\": {\"x\": {\"xds_servers\": [" OTHER "]}}"), false, false},
        {SHARE("], \"authorities\": {\"x\": {}, \"y\": {\"xds_servers\": [" OTHER "," SERVER "]}}"), false, false},
        {SHARE("], \"authorities\": {\"y\": {\"xds_servers\": [" OTHER "," THIRD "]}, \"x\": {\"xds_servers\": [" THIRD
               "]}}"),
         true, false},
        {SHARE("], \"authorities\": {\"x\": {\"xds_servers\": [" OTHER "," THIRD "]}}"), true, false},
        {SHARE("], \"authorities\": {\"x\": {\"xds_servers\": [" SERVER "," OTHER "]}}"), false, false},
        {SHARE("," OTHER "], \"torc.share_client\": true, \"authorities\": {\"x\": {}}"), true, true},
        {SHARE("], \"torc.share_client\": false, \"authorities\": {\"x\": {}}"), false, false},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        struct tc_xds_bootstrap *b = parse(cases[i].text);
        const struct tc_xds_authority *x = tc_xds_bootstrap_authority(b, tc_slice_str("x"));
        assert_int_equal(tc_xds_bootstrap_shares(b, NULL), cases[i].top);
        assert_int_equal(tc_xds_bootstrap_shares(b, x), cases[i].x);
        assert_int_equal(tc_xds_bootstrap_any(b, true), cases[i].top || cases[i].x);
        assert_int_equal(tc_xds_bootstrap_any(b, false), !cases[i].top || !cases[i].x);
        tc_xds_bootstrap_unref(b);
    }
    assert_refused(SHARE("], \"torc.share_client\": \"yes\""), "field torc.share_client: must be a boolean, is string");
}

static void too_many_servers(void **state)
{
    (void)state;
    struct tc_buf text = {0};
    tc_buf_append_str(&text, "{\"xds_servers\": [" SERVER);
    for (int i = 0; i < 32; i++)
        tc_buf_append_str(&text, "," SERVER);
    tc_buf_append_str(&text, "]}");
    assert_refused(tc_buf_cstr(&text), "field xds_servers: has 33 entries, at most 32 are supported");
    tc_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node),
        cmocka_unit_test(channel_creds),
        cmocka_unit_test(call_creds),
        cmocka_unit_test(unknown_fields_and_wrong_types),
        cmocka_unit_test(environment),
        cmocka_unit_test(server_features),
        cmocka_unit_test(keys),
        cmocka_unit_test(authorities),
        cmocka_unit_test(limits),
        cmocka_unit_test(shared_clients),
        cmocka_unit_test(too_many_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
