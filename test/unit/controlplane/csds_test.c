/* The control plane's CSDS service: the state of the clients that have ADS streams, state of the world or incremental.
 * Everything runs over a real connection.
 *
 * The server and the client's calls are on one loop, on the test's thread (kits/server.h). The control plane has the
 * cluster "c", and does not have "d". `request` and delta_request return once the control plane has taken the request
 * in, so an answer of CSDS that is asked for afterwards shows it. `words` makes a text of such an answer. The services
 * are freed after the server. */
#include <string.h>

#include "base/mem.h"
#include "controlplane/csds.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"
#include "pb/envoy/service/status/v3/csds.pb-c.h"
#include "proto/pack.h"
#include "support/cmocka.h"
#include "support/kits/server.h"

#define ADS "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
#define CSDS "/envoy.service.status.v3.ClientStatusDiscoveryService/"
#define CLUSTER "type.googleapis.com/envoy.config.cluster.v3.Cluster"

struct fixture {
    struct kit_server kit;
    struct tc_control_plane *cp;
    struct tc_csds *csds;
    unsigned requests;
};

static void on_request(void *arg, const struct tc_ads_request *request)
{
    struct fixture *f = arg;
    (void)request;
    f->requests++;
}

static int setup(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    char *why = NULL;
    kit_server_init(&f->kit);
    f->cp = tc_control_plane_new(f->kit.server);
    f->csds = tc_csds_new(f->kit.server, f->cp);
    tc_control_plane_observe(f->cp, on_request, f);
    assert_int_equal(tc_control_plane_put(f->cp, "{\"@type\": " CLUSTER ", name: c}", &why), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    kit_server_fini(&f->kit);
    tc_csds_free(f->csds);
    tc_control_plane_free(f->cp);
    tc_free(f);
    return 0;
}

/* Subscribes to the clusters "c" and "d". nonce: of the response that the request answers; "": none. error: the text of
 * a NACK; NULL: none. */
static void request(struct fixture *f, struct kit_server_call *c, const char *node_id, const char *nonce,
                    const char *error)
{
    Envoy__Service__Discovery__V3__DiscoveryRequest r = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_REQUEST__INIT;
    Google__Rpc__Status detail = GOOGLE__RPC__STATUS__INIT;
    char *names[] = {(char *)(uintptr_t) "c", (char *)(uintptr_t) "d"};
    struct tc_buf out = {0};
    Envoy__Config__Core__V3__Node node = ENVOY__CONFIG__CORE__V3__NODE__INIT;
    node.id = (char *)(uintptr_t)node_id;
    r.node = &node;
    r.type_url = (char *)(uintptr_t)CLUSTER;
    r.response_nonce = (char *)(uintptr_t)nonce;
    r.n_resource_names = 2;
    r.resource_names = names;
    detail.message = (char *)(uintptr_t)error;
    r.error_detail = error ? &detail : NULL;
    tc_pack(&r.base, &out);
    unsigned before = f->requests;
    kit_server_send(c, tc_buf_slice(&out), false);
    KIT_SERVER_UNTIL(&f->kit, f->requests > before);
    tc_buf_fini(&out);
}

/* Subscribes to the cluster "c" on an incremental stream. */
static void delta_request(struct fixture *f, struct kit_server_call *c, const char *node_id)
{
    Envoy__Service__Discovery__V3__DeltaDiscoveryRequest r =
        ENVOY__SERVICE__DISCOVERY__V3__DELTA_DISCOVERY_REQUEST__INIT;
    char *name = (char *)(uintptr_t) "c";
    struct tc_buf out = {0};
    Envoy__Config__Core__V3__Node node = ENVOY__CONFIG__CORE__V3__NODE__INIT;
    node.id = (char *)(uintptr_t)node_id;
    r.node = &node;
    r.type_url = (char *)(uintptr_t)CLUSTER;
    r.n_resource_names_subscribe = 1;
    r.resource_names_subscribe = &name;
    tc_pack(&r.base, &out);
    unsigned before = f->requests;
    kit_server_send(c, tc_buf_slice(&out), false);
    KIT_SERVER_UNTIL(&f->kit, f->requests > before);
    tc_buf_fini(&out);
}

/* Appends the response as text: "NODE: NAME CONFIG_STATUS/CLIENT_STATUS VERSION BYTES ERROR ...", clients separated by
 * " | ". BYTES is -1 without content, ERROR is "-" without an error. VERSION is "HASH" if it has 16 characters. */
static void words(const struct tc_rstr *bytes, struct tc_buf *out)
{
    Envoy__Service__Status__V3__ClientStatusResponse *r =
        envoy__service__status__v3__client_status_response__unpack(NULL, bytes->len, (const uint8_t *)bytes->data);
    assert_non_null(r);
    for (size_t i = 0; i < r->n_config; i++) {
        tc_buf_printf(out, "%s%s:", i ? " | " : "", r->config[i]->node->id);
        for (size_t k = 0; k < r->config[i]->n_generic_xds_configs; k++) {
            const Envoy__Service__Status__V3__ClientConfig__GenericXdsConfig *g = r->config[i]->generic_xds_configs[k];
            assert_string_equal(g->type_url, CLUSTER);
            tc_buf_printf(out, " %s %d/%d %s %d %s", g->name, (int)g->config_status, (int)g->client_status,
                          strlen(g->version_info) == 16 ? "HASH" : g->version_info,
                          g->xds_config ? (int)g->xds_config->value.len : -1,
                          g->error_state ? g->error_state->details : "-");
        }
    }
    envoy__service__status__v3__client_status_response__free_unpacked(r, NULL);
}

/* Expects that FetchClientStatus answers the serialised request with this text (words). */
static void expect_fetched(struct fixture *f, const char *request_bytes, const char *text)
{
    struct kit_server_call c;
    struct tc_buf b = {0};
    kit_server_open(&f->kit, &c, CSDS "FetchClientStatus");
    kit_server_send(&c, tc_slice_str(request_bytes), true);
    KIT_SERVER_UNTIL(&f->kit, c.done);
    assert_int_equal(c.status.code, TORC_STATUS_OK);
    words(c.messages.data[0], &b);
    assert_string_equal(tc_buf_cstr(&b), text);
    tc_buf_fini(&b);
    kit_server_close(&c);
}

static void test_states(void **state)
{
    struct fixture *f = *state;
    struct kit_server_call sotw, delta;
    expect_fetched(f, "", "");
    kit_server_open(&f->kit, &sotw, ADS "StreamAggregatedResources");
    request(f, &sotw, "n1", "", NULL);
    expect_fetched(f, "", "n1: c 3/1 1 3 - d 2/2  -1 -");
    request(f, &sotw, "n1", "1", NULL);
    expect_fetched(f, "", "n1: c 1/3 1 3 - d 2/2  -1 -");
    request(f, &sotw, "n1", "1", "too odd");
    kit_server_open(&f->kit, &delta, ADS "DeltaAggregatedResources");
    delta_request(f, &delta, "n2");
    /* exclude_resource_contents */
    expect_fetched(f, "\x18\x01", "n1: c 4/4 1 -1 too odd d 2/2  -1 - | n2: c 3/1 HASH -1 -");
    kit_server_close(&sotw);
    kit_server_close(&delta);
    KIT_SERVER_UNTIL(&f->kit, tc_control_plane_streams(f->cp) == 0);
    expect_fetched(f, "", "");
}

static void test_stream(void **state)
{
    struct fixture *f = *state;
    struct kit_server_call status, sotw;
    struct tc_buf b = {0};
    kit_server_open(&f->kit, &status, CSDS "StreamClientStatus");
    kit_server_send(&status, tc_slice_str(""), false);
    KIT_SERVER_UNTIL(&f->kit, status.messages.len == 1);
    kit_server_open(&f->kit, &sotw, ADS "StreamAggregatedResources");
    request(f, &sotw, "n1", "", NULL);
    kit_server_send(&status, tc_slice_str(""), false);
    KIT_SERVER_UNTIL(&f->kit, status.messages.len == 2);
    words(status.messages.data[1], &b);
    assert_string_equal(tc_buf_cstr(&b), "n1: c 3/1 1 3 - d 2/2  -1 -");
    kit_server_send(&status, tc_slice_str("\xff"), false);
    KIT_SERVER_UNTIL(&f->kit, status.done);
    assert_int_equal(status.status.code, TORC_STATUS_INVALID_ARGUMENT);
    tc_buf_fini(&b);
    kit_server_close(&status);
    kit_server_close(&sotw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_states, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stream, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
