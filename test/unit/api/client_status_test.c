/* The status of an xDS client and of its resources as CSDS messages. No client runs: the tests pass a parsed bootstrap,
 * and dump entries that they fill in. */
#include <string.h>

#include "support/cmocka.h"

#include "api/client_status.h"
#include "base/rstr.h"
#include "base/status.h"
#include "xds/bootstrap/bootstrap.h"

typedef Envoy__Service__Status__V3__ClientConfig client_config;
typedef Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig generic_config;

static const struct tc_xds_resource_type type = {.type_url = "type.googleapis.com/a.B"};

static bool creds_supported(void *arg, const char *name, const json_t *config)
{
    (void)arg;
    (void)config;
    return strcmp(name, "insecure") == 0;
}

static void node_and_scope(void **state)
{
    (void)state;
    struct tc_status error = {0};
    struct tc_arena arena;
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_parse(
        tc_slice_str("{\"xds_servers\": [{\"server_uri\": \"a:1\", \"channel_creds\": [{\"type\": \"insecure\"}]}], "
                     "\"node\": {\"id\": \"n\", \"cluster\": \"cl\", \"locality\": {\"zone\": \"z\"}}}"),
        creds_supported, NULL, &error);
    assert_non_null(b);
    tc_arena_init(&arena, 0, 0);
    client_config *c = tc_client_status_new(&arena, b, tc_slice_str("xds:///a"));
    assert_string_equal(c->client_scope, "xds:///a");
    assert_string_equal(c->node->id, "n");
    assert_string_equal(c->node->cluster, "cl");
    assert_string_equal(c->node->locality->zone, "z");
    assert_true(c->node->n_client_features > 0); /* the features that a control plane gets, too */
    assert_int_equal(c->n_generic_xds_configs, 0);
    tc_arena_fini(&arena);
    tc_xds_bootstrap_unref(b);
}

static void states_are_those_of_the_protocol(void **state)
{
    (void)state;
    static const int want[][2] = {
        {TC_XDS_REQUESTED, ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__REQUESTED},
        {TC_XDS_DOES_NOT_EXIST, ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__DOES_NOT_EXIST},
        {TC_XDS_ACKED, ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__ACKED},
        {TC_XDS_NACKED, ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__NACKED},
        {TC_XDS_RECEIVED_ERROR, ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__RECEIVED_ERROR},
        {TC_XDS_TIMEOUT, ENVOY__ADMIN__V3__CLIENT_RESOURCE_STATUS__TIMEOUT},
    };
    struct tc_arena arena;
    tc_arena_init(&arena, 0, 0);
    for (size_t i = 0; i < TC_ARRAY_LEN(want); i++) {
        struct tc_xds_dump_entry e = {.type = &type, .name = tc_slice_str("n"), .state = (enum tc_xds_state)want[i][0]};
        const generic_config *g = tc_client_status_resource(&arena, &e, false);
        assert_int_equal(g->client_status, want[i][1]);
        assert_string_equal(g->type_url, type.type_url);
        assert_string_equal(g->name, "n");
        assert_string_equal(g->version_info, "");
        assert_null(g->xds_config);
        assert_null(g->last_updated);
        assert_null(g->error_state);
    }
    tc_arena_fini(&arena);
}

static void a_value_and_what_is_wrong_with_the_next(void **state)
{
    (void)state;
    struct tc_arena arena;
    struct tc_rstr *bytes = tc_rstr_new("\x0a\x00x", 3);
    struct tc_status error = tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "field x: odd"), ok = {0};
    struct tc_xds_dump_entry e = {.type = &type,
                                  .name = tc_slice_str("name and more"),
                                  .state = TC_XDS_NACKED,
                                  .version = tc_slice_of("7 and more", 1), /* not a C string */
                                  .updated_ns = INT64_C(1700000000123456789),
                                  .bytes = bytes,
                                  .error = &error,
                                  .failed_version = tc_slice_of("8 and more", 1),
                                  .failed_ns = INT64_C(1700000001000000001)};
    tc_arena_init(&arena, 0, 0);
    const generic_config *g = tc_client_status_resource(&arena, &e, false);
    assert_string_equal(g->version_info, "7");
    assert_int_equal(g->last_updated->seconds, 1700000000);
    assert_int_equal(g->last_updated->nanos, 123456789);
    assert_string_equal(g->xds_config->type_url, type.type_url);
    assert_int_equal(g->xds_config->value.len, 3);
    assert_ptr_equal(g->xds_config->value.data, bytes->data); /* borrowed */
    assert_string_equal(g->error_state->details, "field x: odd");
    assert_string_equal(g->error_state->version_info, "8");
    assert_int_equal(g->error_state->last_update_attempt->seconds, 1700000001);
    assert_int_equal(g->error_state->last_update_attempt->nanos, 1);
    g = tc_client_status_resource(&arena, &e, true);
    assert_null(g->xds_config);
    assert_string_equal(g->version_info, "7");
    e.error = &ok;
    assert_null(tc_client_status_resource(&arena, &e, true)->error_state);
    tc_arena_fini(&arena);
    tc_status_fini(&error);
    tc_rstr_unref(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_and_scope),
        cmocka_unit_test(states_are_those_of_the_protocol),
        cmocka_unit_test(a_value_and_what_is_wrong_with_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
