/* Bootstrap texts. An accepted bootstrap has at least one server, credentials of supported types only, a Node that a
 * server can parse, and authorities that are found by name. A rejected one gives a reason in UTF-8. */
#include "base/parse.h"
#include "fuzz.h"
#include "pb/envoy/config/core/v3/base.pb-c.h"
#include "proto/unpack.h"
#include "xds/bootstrap/bootstrap.h"

static bool supported(void *arg, const char *type, const json_t *config)
{
    (void)arg;
    (void)config;
    return strcmp(type, "insecure") == 0 || strcmp(type, "tls") == 0;
}

static void check_servers(const struct tc_xds_server *servers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        TC_FUZZ_CHECK(servers[i].uri && servers[i].key);
        TC_FUZZ_CHECK(!servers[i].creds_type || supported(NULL, servers[i].creds_type->data, NULL));
    }
}

/* Checks that a server can parse the Node that the client sends, and finds the bootstrap's id and Torc's name in it. */
static void check_node(const struct tc_xds_bootstrap *b)
{
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m = NULL;
    tc_arena_init(&arena, 0, 0);
    TC_FUZZ_CHECK(
        tc_unpack(&envoy__config__core__v3__node__descriptor, tc_rstr_slice(b->node), NULL, &arena, &m, &errors) == 0);
    const Envoy__Config__Core__V3__Node *node = (const Envoy__Config__Core__V3__Node *)m;
    TC_FUZZ_CHECK(tc_slice_eq_str(tc_rstr_slice(b->node_id), node->id));
    TC_FUZZ_CHECK(strcmp(node->user_agent_name, "torc") == 0);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_status error = {0};
    struct tc_xds_bootstrap *b = tc_xds_bootstrap_parse(tc_slice_of(data, size), supported, NULL, &error);
    if (!b) {
        TC_FUZZ_CHECK(error.code == TORC_STATUS_INVALID_ARGUMENT);
        TC_FUZZ_CHECK(tc_utf8_valid(tc_rstr_slice(error.text)) && tc_rstr_slice(error.text).len > 0);
        tc_status_fini(&error);
        return 0;
    }
    TC_FUZZ_CHECK(tc_status_ok(&error) && b->n_servers >= 1);
    check_servers(b->servers, b->n_servers);
    for (size_t i = 0; i < b->n_authorities; i++) {
        const struct tc_xds_authority *a = &b->authorities[i];
        check_servers(a->servers, a->n_servers);
        TC_FUZZ_CHECK(tc_xds_bootstrap_authority(b, tc_rstr_slice(a->name)) == a);
    }
    check_node(b);
    tc_xds_bootstrap_unref(b);
    return 0;
}
