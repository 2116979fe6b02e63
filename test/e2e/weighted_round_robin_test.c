/* weighted_round_robin against Torc's own servers, which report their load (torc/orca.h) at the end of RPCs and out of
 * band, and against servers that do not.
 *
 * Each test has two new servers, on the thread of `rt`, and a channel on the thread of client_rt (by_xds: of the mesh's
 * runtime). The test's thread makes the RPCs. Each report says 10 requests a second, so a server's weight is inverse to
 * its CPU load: loads of 0.1 and 1 split RPCs 10:1. */
#include <stdio.h>
#include <string.h>

#include <torc/torc.h>

#include "base/clock.h"
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/mesh.h"

enum { SERVERS = 2, BATCH = 110 };

struct server {
    torc_server *server;
    torc_orca *orca;
    int index;           /* 0 or 1; the response of each RPC */
    const char *port;    /* in `target`, up to the comma or the end */
    _Atomic double load; /* the CPU load that each RPC reports, a share; 0: RPCs report nothing */
};

static torc_runtime *rt, *client_rt;
static struct server servers[SERVERS];
static char target[128]; /* "ipv4:A,B" with both servers */

static void on_call(torc_server_call *call, const torc_message *request, void *arg)
{
    struct server *s = arg;
    char text[2] = {(char)('0' + s->index), '\0'};
    (void)request;
    if (s->load > 0) {
        torc_orca_record(call, TORC_ORCA_CPU, NULL, s->load);
        torc_orca_record(call, TORC_ORCA_RPS, NULL, 10);
    }
    torc_server_call_reply(call, text, 1);
}

/* Starts the servers. min_interval_ms: the shortest interval of out-of-band reports; -1: the servers do not have the
 * service of these reports. */
static void start(int64_t min_interval_ms)
{
    size_t len = (size_t)snprintf(target, sizeof(target), "ipv4:");
    rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    client_rt = kit_backends_runtime(TORC_RUNTIME_THREAD);
    for (int i = 0; i < SERVERS; i++) {
        struct torc_server_options o = {TORC_SIZE(torc_server_options), .runtime = rt};
        struct torc_handler h = {TORC_SIZE(torc_handler), .unary = on_call, .arg = &servers[i]};
        char *bound = NULL;
        servers[i].index = i;
        servers[i].load = 0;
        servers[i].server = torc_server_new(&o, NULL);
        assert_int_equal(torc_server_add_method(servers[i].server, "a.B/C", &h, NULL), 0);
        servers[i].orca = torc_orca_new(servers[i].server, min_interval_ms, NULL);
        assert_int_equal(
            torc_server_listen(servers[i].server, "127.0.0.1:0", torc_credentials_insecure(), &bound, NULL), 0);
        assert_int_equal(torc_server_start(servers[i].server, NULL), 0);
        len += (size_t)snprintf(target + len, sizeof(target) - len, "%s%s", i ? "," : "", bound);
        servers[i].port = target + len - strlen(strrchr(bound, ':') + 1);
        torc_free(bound);
    }
}

static int setup(void **state)
{
    (void)state;
    start(10);
    return 0;
}

static int setup_without_service(void **state)
{
    (void)state;
    start(-1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++) {
        torc_server_free(servers[i].server);
        torc_orca_free(servers[i].orca);
    }
    assert_int_equal(torc_runtime_free(client_rt), 0);
    return torc_runtime_free(rt);
}

/* Makes a channel to both servers. more: further fields of the policy's config, each after a comma; or "". */
static torc_channel *open_channel(const char *more)
{
    char config[512];
    snprintf(config, sizeof(config),
             "{\"loadBalancingConfig\": [{\"weighted_round_robin\": {\"blackoutPeriod\": \"0s\","
             " \"weightUpdatePeriod\": \"0.1s\"%s}}]}",
             more);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = config};
    torc_error *error = NULL;
    torc_channel *ch = torc_channel_new(client_rt, target, &o, &error);
    assert_string_equal(torc_error_text(error), "");
    return ch;
}

/* Makes BATCH RPCs, which must succeed, and returns how many of them the first server had. */
static int batch(torc_channel *ch)
{
    int first = 0;
    for (int i = 0; i < BATCH; i++) {
        torc_result *r = torc_unary(ch, "a.B/C", "", 0, NULL);
        assert_string_equal(torc_result_text(r), "");
        first += *(const char *)torc_message_data(torc_result_response(r)) == '0';
        torc_result_free(r);
    }
    return first;
}

/* Makes batches for at most 20 s until the first server gets `least` to `most` RPCs of a batch. */
static void assert_first_gets(torc_channel *ch, int least, int most)
{
    uint64_t end = tc_system_clock.monotonic_ns(NULL) + 20 * TC_NS_PER_S;
    int first = 0;
    do
        first = batch(ch);
    while ((first < least || first > most) && tc_system_clock.monotonic_ns(NULL) < end);
    assert_in_range(first, least, most);
}

static void reports_with_rpcs(void **state)
{
    TC_CASE(WR20);
    (void)state;
    torc_channel *ch = open_channel("");
    assert_first_gets(ch, 54, 56);
    servers[0].load = 0.1;
    servers[1].load = 1;
    assert_first_gets(ch, 98, 102); /* 10:1 */
    servers[0].load = 1;
    servers[1].load = 0.1;
    assert_first_gets(ch, 8, 12);
    torc_channel_free(ch);
}

/* Sets what server i reports out of band. */
static void set_load(int i, double load)
{
    assert_int_equal(torc_orca_set(servers[i].orca, TORC_ORCA_CPU, NULL, load), 0);
    assert_int_equal(torc_orca_set(servers[i].orca, TORC_ORCA_RPS, NULL, 10), 0);
}

static void reports_out_of_band(void **state)
{
    TC_CASE(WR20);
    (void)state;
    set_load(0, 1);
    set_load(1, 0.1);
    /* The RPCs report the opposite, which does not count. */
    servers[0].load = 0.1;
    servers[1].load = 1;
    torc_channel *ch = open_channel(", \"enableOobLoadReport\": true, \"oobReportingPeriod\": \"0.05s\"");
    assert_first_gets(ch, 8, 12);
    set_load(0, 0.1);
    set_load(1, 1);
    assert_first_gets(ch, 98, 102);
    torc_channel_free(ch);
}

/* The servers do not have the service, and their RPCs report nothing: the policy falls back to round robin. */
static void no_reports(void **state)
{
    (void)state;
    torc_channel *ch = open_channel(", \"enableOobLoadReport\": true");
    for (int i = 0; i < 5; i++)
        assert_first_gets(ch, 54, 56);
    torc_channel_free(ch);
}

#define LB "envoy.extensions.load_balancing_policies."
#define POLICIES(of)                                                                                                   \
    "{policies: [{typed_extension_config: {name: x, typed_config: {\"@type\": type.googleapis.com/" LB of "}}}]}"

/* Puts the EDS cluster "c". more: further fields of the weighted_round_robin config, each after a comma; or "". */
static void put_cluster(struct kit_mesh *k, const char *more)
{
    kit_mesh_put(k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n"
                 "  name: c\n"
                 "  type: EDS\n"
                 "  eds_cluster_config: {eds_config: {ads: {}}}\n"
                 "  outlier_detection: {}\n"
                 "  load_balancing_policy: " POLICIES("wrr_locality.v3.WrrLocality, endpoint_picking_policy: " POLICIES(
                     "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin, blackout_period: 0s, "
                     "weight_update_period: 0.1s%s")) "\n",
                 more);
}

/* weighted_round_robin balances within a locality of xds_wrr_locality, below outlier_detection, which wraps the
 * subchannels. At first the reports of RPCs count, then those out of band, which say the opposite. */
static void by_xds(void **state)
{
    TC_CASE(WR20);
    (void)state;
    struct kit_mesh *k = kit_mesh_new(1);
    set_load(0, 1);
    set_load(1, 0.1);
    servers[0].load = 0.1;
    servers[1].load = 1;
    put_cluster(k, "");
    kit_mesh_put(k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                 "  cluster_name: c\n"
                 "  endpoints:\n"
                 "  - load_balancing_weight: 1\n"
                 "    locality: {sub_zone: a}\n"
                 "    lb_endpoints:\n"
                 "    - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %.*s}}}\n"
                 "    - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}\n",
                 (int)strcspn(servers[0].port, ","), servers[0].port, servers[1].port);
    kit_mesh_put_listener(k, "svc", "c", NULL);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    assert_first_gets(ch, 98, 102);
    put_cluster(k, ", enable_oob_load_report: true, oob_reporting_period: 0.05s");
    assert_first_gets(ch, 8, 12);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reports_with_rpcs, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_out_of_band, setup, teardown),
        cmocka_unit_test_setup_teardown(by_xds, setup, teardown),
        cmocka_unit_test_setup_teardown(no_reports, setup_without_service, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
