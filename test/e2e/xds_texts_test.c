/* The texts of failed RPCs: which Cluster of several they name, and what they say when the channel ignores a Cluster's
 * TLS or the server has none. Over real sockets (kits/mesh.h, kits/tls_mesh.h). The tests run on one thread; the
 * servers have their own thread, and so has the channels' runtime. */
#include <string.h>

#include "support/cmocka.h"
#include "support/kits/tls_mesh.h"

#include "base/mem.h"

#define ROUND_ROBIN "lb_policy: ROUND_ROBIN"
#define IGNORED "the Cluster has a transport_socket, which the channel's credentials ignore: they are not xds"

/* Expects this code, and a message that contains `text`. */
static void expect_text(const torc_result *r, int code, const char *text)
{
    if (torc_result_code(r) != code || !strstr(torc_result_text(r), text))
        fail_msg("%s: \"%s\" does not contain \"%s\"", torc_status_code_name(torc_result_code(r)), torc_result_text(r),
                 text);
}

/* c0 is READY, and so is the channel. The backend of c1 first accepts connections in silence, then refuses them. */
static void the_deadline_tells_of_its_own_cluster(const char *policy)
{
    struct kit_mesh *k = kit_mesh_new(2);
    kit_mesh_put_endpoints(k, "c0", "0/a: 0", NULL);
    kit_mesh_put_endpoints(k, "c1", "0/a: 1", NULL);
    kit_mesh_put_cluster(k, "c0", policy);
    kit_mesh_put_cluster(k, "c1", policy);
    kit_mesh_put_routes(k, "svc",
                        "{match: {prefix: \"\", headers: [{name: to, string_match: {exact: c1}}]}, route: {cluster: "
                        "c1}}, {match: {prefix: \"\"}, route: {cluster: c0}}");
    kit_mesh_hold(k, 1);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    kit_mesh_calls(ch, NULL, 1);
    assert_int_equal(torc_channel_state(ch, false), TORC_CONNECTIVITY_READY);
    torc_result *r = kit_mesh_call(ch, "to: c1", false, 2000);
    char *text = tc_asprintf("while waiting for a connected endpoint of cluster \"c1\" of xds:///svc, which is "
                             "CONNECTING (the connection to %s waits for the server's HTTP/2 settings)",
                             kit_mesh_address(k, 1));
    expect_text(r, TORC_STATUS_DEADLINE_EXCEEDED, text);
    tc_free(text);
    torc_result_free(r);
    kit_mesh_stop(k, 1);
    /* The text names the backend, whether the RPC fails because it does not wait for ready, or waits until its
     * deadline. */
    while (torc_result_code(r = kit_mesh_call(ch, "to: c1", false, 5000)) == TORC_STATUS_DEADLINE_EXCEEDED)
        torc_result_free(r);
    expect_text(r, TORC_STATUS_UNAVAILABLE, kit_mesh_address(k, 1));
    torc_result_free(r);
    r = kit_mesh_call(ch, "to: c1", true, 1000);
    expect_text(r, TORC_STATUS_DEADLINE_EXCEEDED,
                "while waiting for a connected endpoint of cluster \"c1\" of xds:///svc, which is TRANSIENT_FAILURE (");
    expect_text(r, TORC_STATUS_DEADLINE_EXCEEDED, kit_mesh_address(k, 1));
    torc_result_free(r);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

static void deadline_in_a_ring(void **state)
{
    (void)state;
    the_deadline_tells_of_its_own_cluster(NULL);
}

static void deadline_in_localities(void **state)
{
    (void)state;
    the_deadline_tells_of_its_own_cluster(ROUND_ROBIN);
}

/* Insecure credentials where the Cluster asks for TLS: the server closes the connection, and the text names the ignored
 * TLS as a possible reason. */
static void transport_socket_is_ignored(void **state)
{
    (void)state;
    struct kit_tls_mesh w;
    kit_tls_mesh_init(&w, 2, "1s");
    kit_tls_mesh_secure(&w, 0, &w.server, NULL, NULL);
    char *context = kit_tls_mesh_context("mesh", "[{exact: b.mesh.test}]", "");
    kit_tls_mesh_put_cluster(&w, "c", kit_mesh_address(w.k, 0), context);
    kit_tls_mesh_put_cluster(&w, "good", kit_mesh_address(w.k, 1), NULL);
    kit_tls_mesh_put_listener(&w);
    struct torc_channel_options insecure = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                            .xds_bootstrap_json = w.bootstrap};
    torc_channel *ch = kit_mesh_channel(w.k, "svc", &insecure);
    torc_result *r = kit_mesh_call(ch, NULL, false, 60000);
    expect_text(r, TORC_STATUS_UNAVAILABLE, IGNORED);
    torc_result_free(r);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 60000};
    r = torc_explain(ch, "/a.B/C", &o);
    assert_non_null(strstr(torc_result_explain(r), "\"security\":\"" IGNORED "\""));
    torc_result_free(r);
    /* A cluster without a transport_socket has nothing to ignore. */
    kit_mesh_stop(w.k, 1);
    r = kit_mesh_call(ch, "to: good", false, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    assert_null(strstr(torc_result_text(r), "transport_socket"));
    torc_result_free(r);
    torc_channel_free(ch);
    /* xds credentials ignore nothing. */
    kit_tls_mesh_open(&w);
    kit_mesh_calls(w.ch, NULL, 1);
    kit_mesh_stop(w.k, 0);
    kit_mesh_wait_failure(w.ch, TORC_STATUS_UNAVAILABLE, kit_mesh_address(w.k, 0));
    r = kit_mesh_call(w.ch, NULL, false, 60000);
    assert_null(strstr(torc_result_text(r), "transport_socket"));
    torc_result_free(r);
    tc_free(context);
    kit_tls_mesh_fini(&w);
}

/* TLS to a plaintext server. */
static void what_came_is_not_tls(void **state)
{
    (void)state;
    struct kit_tls_mesh w;
    kit_tls_mesh_init(&w, 1, "1s");
    char *context = kit_tls_mesh_context("mesh", "[{exact: b.mesh.test}]", "");
    kit_tls_mesh_put_cluster(&w, "c", kit_mesh_address(w.k, 0), context);
    kit_tls_mesh_put_cluster(&w, "good", kit_mesh_address(w.k, 0), context);
    kit_tls_mesh_open(&w);
    torc_result *r = kit_mesh_call(w.ch, NULL, false, 60000);
    expect_text(r, TORC_STATUS_UNAVAILABLE, "what came is not TLS");
    torc_result_free(r);
    tc_free(context);
    kit_tls_mesh_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deadline_in_a_ring),
        cmocka_unit_test(deadline_in_localities),
        cmocka_unit_test(transport_socket_is_ignored),
        cmocka_unit_test(what_came_is_not_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
