/* How many connections a channel opens to a server whose MAX_CONCURRENT_STREAMS is reached (A105), on real sockets. The
 * server (torc/server.h) answers with the client's address, which tells connections apart. /a/Hold keeps its stream
 * until the client cancels, /a/Tell ends it.
 *
 * Each test starts the server by serve(), and the teardown stop() ends it. The server and the client run on the thread
 * of the default runtime, except the channel of the_cluster_says_how_many, which is on the runtime of the mesh
 * (kits/mesh.h). The test's thread waits in blocking calls, or for the counts of `crowd`. */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <torc/torc.h>

#include "support/case.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"

#include "base/mem.h"

enum { PEER_MAX = 64, MOST = 1000, WAIT_MS = 60000 };

static torc_server *server;
static char *target; /* "127.0.0.1:PORT" of the server, for torc_free */

static void on_cancel(torc_server_call *call, void *arg)
{
    (void)arg;
    torc_server_call_finish(call, TORC_STATUS_CANCELLED, NULL, NULL);
}

/* Sends the client's address, and holds the RPC until the client cancels. */
static void on_hold(torc_server_call *call, const torc_message *request, void *arg)
{
    static const struct torc_server_call_events events = {TORC_SIZE(torc_server_call_events), .on_cancel = on_cancel};
    const char *peer = torc_server_call_peer(call);
    (void)request, (void)arg;
    CHECK(torc_server_call_set_events(call, &events, NULL) == 0);
    torc_server_call_send(call, peer, strlen(peer), 0, 0);
}

static void on_tell(torc_server_call *call, const torc_message *request, void *arg)
{
    const char *peer = torc_server_call_peer(call);
    (void)request, (void)arg;
    torc_server_call_reply(call, peer, strlen(peer));
}

/* Starts the server, with this MAX_CONCURRENT_STREAMS. */
static void serve(int64_t streams)
{
    struct torc_server_options options = {TORC_SIZE(torc_server_options), .max_concurrent_streams = streams};
    struct torc_handler hold = {TORC_SIZE(torc_handler), .unary = on_hold};
    struct torc_handler tell = {TORC_SIZE(torc_handler), .unary = on_tell};
    server = torc_server_new(&options, NULL);
    assert_int_equal(torc_server_add_method(server, "/a/Hold", &hold, NULL), 0);
    assert_int_equal(torc_server_add_method(server, "/a/Tell", &tell, NULL), 0);
    assert_int_equal(torc_server_listen(server, "127.0.0.1:0", torc_credentials_insecure(), &target, NULL), 0);
    assert_int_equal(torc_server_start(server, NULL), 0);
}

static int stop(void **state)
{
    (void)state;
    torc_server_stop(server, 0);
    torc_server_free(server);
    torc_free(target);
    return 0;
}

/* max_connections: of connectionScaling; 0: the config has none. cap: the channel's option; 0: its default. */
static torc_channel *open_channel(unsigned max_connections, int64_t cap)
{
    char *config = tc_asprintf("{\"connectionScaling\":{\"maxConnectionsPerSubchannel\":%u}}", max_connections);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = max_connections ? config : NULL,
                                     .max_connections_per_subchannel = cap};
    torc_error *error = NULL;
    torc_channel *ch = torc_channel_new(NULL, target, &o, &error);
    if (!ch)
        fail_msg("%s", torc_error_text(error));
    tc_free(config);
    return ch;
}

/* Returns an RPC of /a/Hold that is under way; give_up ends and frees it. */
static torc_stream *hold(torc_channel *ch)
{
    torc_stream *s = torc_stream_open(ch, "a/Hold", NULL, NULL);
    assert_int_equal(torc_stream_send(s, "", 0, TORC_SEND_LAST, WAIT_MS), 0);
    return s;
}

/* Reads the address that the server sends into `peer`, which has PEER_MAX bytes. Returns false if none came within
 * timeout_ms. The end of the RPC fails the test. */
static bool read_peer(torc_stream *s, char *peer, int64_t timeout_ms)
{
    const torc_message *m;
    int rc = torc_stream_receive(s, timeout_ms, &m);
    if (rc == TORC_ETIMEDOUT)
        return false;
    assert_int_equal(rc, 1);
    snprintf(peer, PEER_MAX, "%.*s", (int)torc_message_size(m), (const char *)torc_message_data(m));
    return true;
}

static void give_up(torc_stream *s)
{
    torc_stream_cancel(s);
    torc_result_free(torc_stream_finish(s));
    torc_stream_free(s);
}

/* 2 connections with 2 streams each: the third RPC comes from another address, and the fifth one waits. */
static void the_third_stream_comes_from_another_address(void **state)
{
    TC_CASE(CS01);
    TC_CASE(CS05);
    char peers[4][PEER_MAX];
    torc_stream *s[4];
    (void)state;
    serve(2);
    torc_channel *ch = open_channel(2, 0);
    for (int i = 0; i < 3; i++) {
        s[i] = hold(ch);
        assert_true(read_peer(s[i], peers[i], WAIT_MS));
    }
    assert_string_equal(peers[0], peers[1]);
    assert_string_not_equal(peers[0], peers[2]);
    s[3] = hold(ch);
    assert_true(read_peer(s[3], peers[3], WAIT_MS));
    assert_string_equal(peers[3], peers[2]);
    torc_stream *waits = hold(ch);
    assert_false(read_peer(waits, peers[0], 100));
    give_up(s[0]);
    assert_true(read_peer(waits, peers[0], WAIT_MS));
    assert_string_equal(peers[0], peers[1]);
    give_up(waits);
    for (int i = 1; i < 4; i++)
        give_up(s[i]);
    torc_channel_free(ch);
}

/* A channel opens only one connection if the config has no connectionScaling or a maximum of 1, or if the channel's
 * option caps the maximum at 1. RPCs get the connection's one stream in the order in which they came; one that is
 * cancelled while it waits is left out. */
static void one_connection_is_the_default(void **state)
{
    TC_CASE(CS02);
    static const struct {
        unsigned max_connections; /* 0: not set */
        int64_t cap;
    } rows[] = {{0, 0}, {1, 0}, {10, 1}};
    char peers[3][PEER_MAX];
    (void)state;
    serve(1);
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        torc_channel *ch = open_channel(rows[i].max_connections, rows[i].cap);
        torc_stream *first = hold(ch), *cancelled = hold(ch), *second = hold(ch), *third = hold(ch);
        assert_true(read_peer(first, peers[0], WAIT_MS));
        assert_false(read_peer(second, peers[1], 50));
        give_up(cancelled);
        give_up(first);
        assert_true(read_peer(second, peers[1], WAIT_MS));
        assert_false(read_peer(third, peers[2], 50));
        give_up(second);
        assert_true(read_peer(third, peers[2], WAIT_MS));
        assert_string_equal(peers[0], peers[1]);
        assert_string_equal(peers[0], peers[2]);
        give_up(third);
        torc_channel_free(ch);
    }
}

/* RPCs that run at the same time. on_end counts on the loop's thread. */
struct crowd {
    atomic_size_t ok, others; /* ended with OK, and with another status */
    torc_stream *calls[MOST];
};

static void on_end(const torc_result *r, void *arg)
{
    struct crowd *c = arg;
    atomic_fetch_add(torc_result_code(r) == TORC_STATUS_OK ? &c->ok : &c->others, 1);
}

static struct crowd crowd;

/* Starts n RPCs, and counts from 0. */
static void crowd_start(torc_channel *ch, const char *method, size_t n)
{
    atomic_store(&crowd.ok, 0);
    atomic_store(&crowd.others, 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(torc_unary_async(ch, method, "", 0, NULL, on_end, &crowd, &crowd.calls[i], NULL), 0);
}

/* Waits until the n RPCs have ended, and frees their handles. */
static void crowd_end(size_t n)
{
    while (atomic_load(&crowd.ok) + atomic_load(&crowd.others) < n)
        (void)poll(NULL, 0, 1);
    for (size_t i = 0; i < n; i++)
        torc_stream_free(crowd.calls[i]);
}

/* 1,000 RPCs through 12 streams: all are served; all end when they are cancelled or the channel is freed. */
static void a_crowd_is_served_or_cancelled(void **state)
{
    TC_CASE(CS08);
    (void)state;
    serve(3);
    torc_channel *ch = open_channel(4, 0);
    crowd_start(ch, "a/Tell", MOST);
    crowd_end(MOST);
    assert_int_equal(atomic_load(&crowd.ok), MOST);
    /* Every second RPC is cancelled, then the channel is freed. */
    crowd_start(ch, "a/Hold", MOST);
    for (size_t i = 0; i < MOST; i += 2)
        torc_stream_cancel(crowd.calls[i]);
    torc_channel_free(ch);
    crowd_end(MOST);
    assert_int_equal(atomic_load(&crowd.others), MOST);
}

/* Puts the cluster with this threshold. The threshold's text also stands in lrs_report_endpoint_metrics, where it has
 * no effect: it shows a test which version of the cluster a client has accepted. */
static void put_cluster(struct kit_mesh *k, const char *max_connections)
{
    char *more = tc_asprintf("lb_policy: ROUND_ROBIN\n  circuit_breakers: {per_host_thresholds: [{%s}]}\n"
                             "  lrs_report_endpoint_metrics: [\"%s\"]",
                             max_connections, max_connections);
    kit_mesh_put_cluster(k, "c", more);
    tc_free(more);
}

/* The Cluster resource sets the maximum of connections. When the maximum rises, RPCs that wait get new connections.
 * When the maximum falls, open connections stay. */
static void the_cluster_says_how_many(void **state)
{
    TC_CASE(CS04);
    char peers[3][PEER_MAX];
    torc_stream *s[3];
    (void)state;
    serve(1);
    struct kit_mesh *k = kit_mesh_new(0);
    put_cluster(k, "");
    kit_mesh_put(k,
                 "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                 "  cluster_name: c\n"
                 "  endpoints: [{locality: {}, load_balancing_weight: 1, lb_endpoints: [{endpoint: {address: "
                 "{socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]",
                 strchr(target, ':') + 1);
    kit_mesh_put_listener(k, "svc", "c", NULL);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    for (int i = 0; i < 3; i++)
        s[i] = hold(ch);
    assert_true(read_peer(s[0], peers[0], WAIT_MS));
    assert_false(read_peer(s[1], peers[1], 50));
    put_cluster(k, "max_connections: 3");
    assert_true(read_peer(s[1], peers[1], WAIT_MS));
    assert_true(read_peer(s[2], peers[2], WAIT_MS));
    assert_string_not_equal(peers[0], peers[1]);
    assert_string_not_equal(peers[1], peers[2]);
    put_cluster(k, "max_connections: 1");
    kit_mesh_wait_accepted(k, "Cluster", "c", "max_connections: 1");
    for (int i = 0; i < 3; i++)
        assert_false(read_peer(s[i], peers[i], 50)); /* the streams and their connections go on */
    for (int i = 0; i < 3; i++)
        give_up(s[i]);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_third_stream_comes_from_another_address, stop),
        cmocka_unit_test_teardown(one_connection_is_the_default, stop),
        cmocka_unit_test_teardown(a_crowd_is_served_or_cancelled, stop),
        cmocka_unit_test_teardown(the_cluster_says_how_many, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
