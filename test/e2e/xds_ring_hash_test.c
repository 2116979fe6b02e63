/* ring_hash and maglev end to end: control plane, channel and backends on real sockets. Read kits/mesh.h first.
 *
 * kit_mesh_world_open puts a cluster "c", with ring_hash unless the test gives another policy, and a listener "svc"
 * that routes all RPCs to "c", and makes a channel to "svc". The channel connects to nothing before its first RPC or
 * torc_channel_connect, so what a test puts before counts from the start.
 *
 * - The backend of an RPC: with the hash policy HEADER_HASH an RPC has the hash of its header address_hash. hash_header
 *   returns this header with the text of a backend's first entry on the ring, "ADDRESS_0": the RPC belongs to that
 *   backend. Without a hash policy, or without the header, an RPC has a random hash.
 * - The state of an endpoint: it is IDLE until an RPC, torc_channel_connect or the failure of another endpoint makes
 *   it connect. kit_mesh_stop makes attempts to connect fail, kit_mesh_hold leaves them CONNECTING, and
 *   kit_mesh_connections counts the connections that a backend has accepted.
 *
 * The tests run on one thread. Control plane and backends have their own thread, and so has the channel's runtime. */
#include <stdlib.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"

#include "base/mem.h"

#define HEADER_HASH "[{header: {header_name: address_hash}}]"
/* A sampled share of one half has a standard deviation of 0.0085, a seventh of the tolerance of kit_mesh_expect_shares.
 * Tests with such a sample give their endpoints hash keys, whose shares of the ring are the same in every run and
 * within 0.011 of the weights'. With addresses as keys the ring's own share of one half would have a standard deviation
 * of 0.0078. */
#define SAMPLE 3500
/* Exceeds the channel's cap of 4096, which is then the ring's size. */
#define LARGE_RING "lb_policy: RING_HASH\n  ring_hash_lb_config: {minimum_ring_size: 100000}"

/* A76's field, in the policy's own JSON config, as a TypedStruct. */
#define REQUEST_HASH_HEADER                                                                                            \
    "load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {"                            \
    "\"@type\": type.googleapis.com/xds.type.v3.TypedStruct, "                                                         \
    "type_url: type.googleapis.com/ring_hash_experimental, "                                                           \
    "value: {requestHashHeader: address_hash, minRingSize: 4096}}}}]}"

/* Returns the header whose hash is that of backend i's first entry on the ring. The caller frees it with tc_free. */
static char *hash_header(struct kit_mesh *k, size_t i)
{
    return tc_asprintf("address_hash: %s_0", kit_mesh_address(k, i));
}

/* Takes the requests of the first n backends (kit_mesh_take). Returns the largest of these numbers. */
static uint64_t take_most(struct kit_mesh *k, size_t n)
{
    uint64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t count = kit_mesh_take(k, i);
        most = TC_MAX(most, count);
    }
    return most;
}

static void wait_ready(torc_channel *ch, int64_t timeout_ms)
{
    assert_int_equal(torc_channel_connect(ch, timeout_ms), 0);
}

/* Expects these shares of backends 0 to 3 (kit_mesh_expect_shares); those past the mesh's last backend do not count. */
static void expect(struct kit_mesh_world *w, const char *headers, size_t n, double a, double b, double c, double d)
{
    double shares[] = {a, b, c, d};
    kit_mesh_expect_shares(w->k, w->ch, headers, n, shares, 4);
}

/* Expects that an RPC fails with UNAVAILABLE and a message that contains `text` and names the node. */
static void expect_failure(torc_channel *ch, const char *headers, const char *text)
{
    torc_result *r = kit_mesh_call(ch, headers, false, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    if (!strstr(torc_result_text(r), text))
        fail_msg("\"%s\" does not contain \"%s\"", torc_result_text(r), text);
    if (!strstr(torc_result_text(r), "node ID:test-node"))
        fail_msg("\"%s\" names no node", torc_result_text(r));
    torc_result_free(r);
}

/* Returns the number of connections that the first n backends have had. */
static uint64_t connections(struct kit_mesh_world *w, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += kit_mesh_connections(w->k, i);
    return sum;
}

/* Without an RPC a cluster connects to nothing. */
static void starts_lazily(void **state)
{
    TC_CASE(RH01);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(4, "0/a: 0, 1, 2", NULL, NULL);
    kit_mesh_put_endpoints(w.k, "other", "0/a: 3", NULL);
    kit_mesh_put_cluster(w.k, "other", NULL);
    kit_mesh_put_routes(w.k, "svc",
                        "{match: {path: /a.B/C}, route: {cluster: c}}, "
                        "{match: {prefix: \"\"}, route: {cluster: other}}");
    kit_mesh_wait_backend(w.k, w.ch, NULL, 3);
    kit_mesh_put_endpoints(w.k, "c", "0/newer: 0, 1", NULL);
    kit_mesh_wait_accepted(w.k, "ClusterLoadAssignment", "c", "newer");
    kit_mesh_calls(w.ch, NULL, 50);
    assert_int_equal(connections(&w, 3), 0);
    kit_mesh_world_close(&w);
}

/* An RPC connects to its endpoint and no other; more RPCs of the same hash change nothing. */
static void connects_on_demand(void **state)
{
    TC_CASE(RH02);
    TC_CASE(RH04);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(4, "0/a: 0, 1, 2, 3", NULL, HEADER_HASH);
    char *h = hash_header(w.k, 2);
    kit_mesh_calls(w.ch, h, 1);
    assert_int_equal(connections(&w, 4), 1);
    assert_int_equal(kit_mesh_connections(w.k, 2), 1);
    kit_mesh_calls(w.ch, h, 50);
    assert_int_equal(connections(&w, 4), 1);
    assert_int_equal(kit_mesh_take(w.k, 2), 51);
    tc_free(h);
    kit_mesh_world_close(&w);
}

/* Envoy's maglev with a table of 1,021 slots, and a hash policy of the LB policy, which counts instead of the route's:
 * RPCs with the same x-own go to the same endpoint, whatever the header of the route's policy says. */
#define MAGLEV                                                                                                         \
    "load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {"                            \
    "\"@type\": type.googleapis.com/envoy.extensions.load_balancing_policies.maglev.v3.Maglev, table_size: 1021, "     \
    "consistent_hashing_lb_config: {hash_balance_factor: 150, hash_policy: [{header: {header_name: x-own}}]}}}}]}"

static void maglev_by_the_hash_policy_of_the_cluster(void **state)
{
    TC_CASE(CD23);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(3, "0/a: 0, 1, 2", MAGLEV, HEADER_HASH);
    uint64_t served[3] = {0}, keys = 0;
    for (unsigned i = 0; i < 30; i++) {
        char *one = tc_asprintf("x-own: user-%u\naddress_hash: %u", i, i), *two = NULL;
        kit_mesh_calls(w.ch, one, 1);
        uint64_t first[3];
        for (size_t b = 0; b < 3; b++)
            first[b] = kit_mesh_take(w.k, b);
        two = tc_asprintf("x-own: user-%u\naddress_hash: other-%u", i, i + 1000);
        kit_mesh_calls(w.ch, two, 5);
        for (size_t b = 0; b < 3; b++) {
            uint64_t later = kit_mesh_take(w.k, b);
            assert_int_equal(later, first[b] * 5);
            served[b] += later + first[b];
            keys += first[b];
        }
        tc_free(one);
        tc_free(two);
    }
    assert_int_equal(keys, 30);
    for (size_t b = 0; b < 3; b++)
        assert_true(served[b] > 0); /* one of three gets none of 30 keys with a probability of 1.6e-5 */
    kit_mesh_world_close(&w);
}

static void header_reaches_its_backend(void **state)
{
    TC_CASE(RH23);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(4, "0/a: 0, 1, 2, 3", NULL, HEADER_HASH);
    for (size_t i = 0; i < 4; i++) {
        char *h = hash_header(w.k, i);
        kit_mesh_calls(w.ch, h, 100);
        tc_free(h);
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(kit_mesh_take(w.k, i), 100);
    kit_mesh_world_close(&w);
}

static void channel_id_is_one_backend(void **state)
{
    TC_CASE(RH22);
    (void)state;
    struct kit_mesh_world w =
        kit_mesh_world_open(4, "0/a: 0, 1, 2, 3", NULL, "[{filter_state: {key: io.grpc.channel_id}}]");
    kit_mesh_calls(w.ch, NULL, 100);
    assert_int_equal(take_most(w.k, 4), 100);
    kit_mesh_world_close(&w);
}

/* A42: the id is the channel's, and survives idleness. */
static void channel_id_outlives_idleness(void **state)
{
    TC_CASE(RH22);
    (void)state;
    struct kit_mesh_world w =
        kit_mesh_world_open(4, "0/a: 0, 1, 2, 3", NULL, "[{filter_state: {key: io.grpc.channel_id}}]");
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .idle_timeout_ms = 30};
    torc_channel_free(w.ch);
    w.ch = kit_mesh_channel(w.k, "svc", &o);
    for (int i = 0; i < 8; i++) {
        enum torc_connectivity now;
        kit_mesh_calls(w.ch, NULL, 1);
        assert_int_equal(torc_channel_wait_state(w.ch, TORC_CONNECTIVITY_READY, 60000, &now), 0);
        assert_int_equal(now, TORC_CONNECTIVITY_IDLE);
    }
    assert_int_equal(take_most(w.k, 4), 8);
    kit_mesh_world_close(&w);
}

static void regex_rewrite(void **state)
{
    TC_CASE(RH24);
    (void)state;
    struct kit_mesh_world w =
        kit_mesh_world_open(4, "0/a: 0, 1, 2, 3", NULL,
                            "[{header: {header_name: address_hash, regex_rewrite: {pattern: {regex: \"[0-9]+\"}, "
                            "substitution: foo}}}]");
    for (size_t i = 0; i < 4; i++) {
        char *h = hash_header(w.k, i);
        kit_mesh_calls(w.ch, h, 100);
        tc_free(h);
    }
    assert_int_equal(take_most(w.k, 4), 400);
    kit_mesh_world_close(&w);
}

static void random_without_policy(void **state)
{
    TC_CASE(RH25);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(2, "0/a: 0#x, 1#y", NULL, NULL);
    kit_mesh_put_cluster(w.k, "c", LARGE_RING);
    expect(&w, NULL, SAMPLE, 0.5, 0.5, 0, 0);
    kit_mesh_world_close(&w);
}

static void endpoint_weights(void **state)
{
    TC_CASE(RH26);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(3, "0/a: 0#x, 1*1#y, 2*2#z", NULL, NULL);
    kit_mesh_put_cluster(w.k, "c", LARGE_RING);
    expect(&w, NULL, SAMPLE, 0.25, 0.25, 0.5, 0);
    kit_mesh_world_close(&w);
}

/* A42 multiplies the weights of locality and endpoint: 1 x 1 to 2 x 2, a fifth to four fifths. A113 divides a
 * locality's share among its endpoints: with one endpoint in each locality, a third to two thirds. The environment
 * variable turns A113 off. */
static void locality_times_endpoint_weight(void **state)
{
    TC_CASE(RH31);
    (void)state;
    for (int raw = 0; raw < 2; raw++) {
        if (raw)
            setenv("GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING", "false", 1);
        struct kit_mesh_world w = kit_mesh_world_open(2, "0/a=1: 0*1#x; 0/b=2: 1*2#y", NULL, NULL);
        kit_mesh_put_cluster(w.k, "c", LARGE_RING);
        expect(&w, NULL, SAMPLE, raw ? 0.2 : 1 / 3., raw ? 0.8 : 2 / 3., 0, 0);
        kit_mesh_world_close(&w);
        unsetenv("GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING");
    }
}

/* A113, with the weights that istiod sends: a locality's weight is the sum of its endpoints'. A42's product would count
 * weights twice and give the lone endpoint 1/26 of the keys. */
static void zones_of_five_and_one(void **state)
{
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(6, "0/a=5: 0#a, 1#b, 2#c, 3#d, 4#e; 0/b=1: 5#f", NULL, NULL);
    kit_mesh_put_cluster(w.k, "c", LARGE_RING);
    double shares[] = {1 / 6., 1 / 6., 1 / 6., 1 / 6., 1 / 6., 1 / 6.};
    kit_mesh_expect_shares(w.k, w.ch, NULL, SAMPLE, shares, 6);
    kit_mesh_world_close(&w);
}

static void missing_header_goes_past_terminal(void **state)
{
    TC_CASE(RH27);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(2, "0/a: 0, 1", NULL,
                                                  "[{header: {header_name: nobody_sends_it}, terminal: true}, "
                                                  "{header: {header_name: address_hash}}]");
    char *h = hash_header(w.k, 0);
    expect(&w, h, 100, 1, 0, 0, 0);
    tc_free(h);
    kit_mesh_world_close(&w);
}

static void missing_header_is_random(void **state)
{
    TC_CASE(RH28);
    (void)state;
    struct kit_mesh_world w =
        kit_mesh_world_open(2, "0/a: 0#x, 1#y", NULL, "[{header: {header_name: nobody_sends_it}}]");
    kit_mesh_put_cluster(w.k, "c", LARGE_RING);
    expect(&w, NULL, SAMPLE, 0.5, 0.5, 0, 0);
    kit_mesh_world_close(&w);
}

static void unsupported_policies_are_random(void **state)
{
    TC_CASE(RH29);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(2, "0/a: 0#x, 1#y", NULL,
                                                  "[{cookie: {name: c}}, {connection_properties: {source_ip: true}}, "
                                                  "{query_parameter: {name: q}}]");
    kit_mesh_put_cluster(w.k, "c", LARGE_RING);
    expect(&w, NULL, SAMPLE, 0.5, 0.5, 0, 0);
    char *requests = kit_mesh_requests(w.k);
    assert_null(strstr(requests, "NACK"));
    tc_free(requests);
    kit_mesh_world_close(&w);
}

static void unsupported_until_channel_id(void **state)
{
    TC_CASE(RH30);
    (void)state;
    struct kit_mesh_world w =
        kit_mesh_world_open(2, "0/a: 0, 1", NULL,
                            "[{cookie: {name: c}}, {connection_properties: {source_ip: true}}, "
                            "{query_parameter: {name: q}}, {filter_state: {key: io.grpc.channel_id}}]");
    kit_mesh_calls(w.ch, NULL, 100);
    assert_int_equal(take_most(w.k, 2), 100);
    kit_mesh_world_close(&w);
}

static void terminal_policy_ends_it(void **state)
{
    TC_CASE(RH32);
    (void)state;
    struct kit_mesh_world w =
        kit_mesh_world_open(4, "0/a: 0, 1, 2, 3", NULL,
                            "[{header: {header_name: fixed}, terminal: true}, {header: {header_name: random}}]");
    for (int i = 0; i < 100; i++) {
        char *h = tc_asprintf("fixed: fixed_value\nrandom: %d", i);
        kit_mesh_calls(w.ch, h, 1);
        tc_free(h);
    }
    assert_int_equal(take_most(w.k, 4), 100);
    kit_mesh_world_close(&w);
}

static void dead_endpoint_is_passed_over(void **state)
{
    TC_CASE(RH05);
    TC_CASE(RH07);
    TC_CASE(RH33);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(2, "0/a: 0, 1", NULL, HEADER_HASH);
    kit_mesh_stop(w.k, 0);
    char *h = hash_header(w.k, 0);
    expect(&w, h, 100, 0, 1, 0, 0);
    tc_free(h);
    kit_mesh_world_close(&w);
}

static void all_dead(void **state)
{
    TC_CASE(RH08);
    TC_CASE(RH16);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(2, "0/a: 0, 1", NULL, HEADER_HASH);
    kit_mesh_stop(w.k, 0);
    kit_mesh_stop(w.k, 1);
    char *h = hash_header(w.k, 0);
    expect_failure(w.ch, h, "ring hash cannot find a connected endpoint; first failure: ");
    expect_failure(w.ch, h, kit_mesh_address(w.k, 0));
    tc_free(h);
    kit_mesh_start(w.k, 1);
    wait_ready(w.ch, 60000);
    assert_int_equal(kit_mesh_take(w.k, 1), 0);
    kit_mesh_world_close(&w);
}

static void connects_on_without_picks(void **state)
{
    TC_CASE(RH03);
    TC_CASE(RH13);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(2, "0/a: 0, 1", NULL, HEADER_HASH);
    kit_mesh_hold(w.k, 0);
    char *h = hash_header(w.k, 0);
    torc_result *r = kit_mesh_call(w.ch, h, false, 1000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_free(r);
    assert_int_equal(kit_mesh_connections(w.k, 1), 0);
    kit_mesh_stop(w.k, 0);
    wait_ready(w.ch, 60000);
    assert_int_equal(kit_mesh_take(w.k, 0) + kit_mesh_take(w.k, 1), 0);
    assert_int_equal(kit_mesh_connections(w.k, 1), 1);
    tc_free(h);
    kit_mesh_world_close(&w);
}

static void tries_one_after_the_other(void **state)
{
    TC_CASE(RH14);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(4, "0/a: 0, 1, 2, 3", NULL, HEADER_HASH);
    kit_mesh_hold(w.k, 0);
    kit_mesh_stop(w.k, 1);
    kit_mesh_stop(w.k, 2);
    char *h = hash_header(w.k, 0);
    torc_result *r = kit_mesh_call(w.ch, h, false, 1000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_DEADLINE_EXCEEDED);
    torc_result_free(r);
    assert_int_equal(kit_mesh_connections(w.k, 3), 0);
    kit_mesh_stop(w.k, 0);
    wait_ready(w.ch, 60000);
    assert_int_equal(kit_mesh_connections(w.k, 3), 1);
    tc_free(h);
    kit_mesh_world_close(&w);
}

static void fails_then_recovers_elsewhere(void **state)
{
    TC_CASE(RH17);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(4, "0/a: 0, 1, 2, 3", NULL, HEADER_HASH);
    for (size_t i = 0; i < 4; i++)
        kit_mesh_stop(w.k, i);
    char *h = hash_header(w.k, 0);
    expect_failure(w.ch, h, "ring hash cannot find a connected endpoint");
    kit_mesh_start(w.k, 0);
    kit_mesh_wait_backend(w.k, w.ch, h, 0);
    kit_mesh_stop(w.k, 0);
    kit_mesh_start(w.k, 1);
    kit_mesh_wait_backend(w.k, w.ch, h, 1);
    tc_free(h);
    kit_mesh_world_close(&w);
}

static void empty_locality_then_endpoint(void **state)
{
    TC_CASE(RH18);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(1, "0/locality0:", NULL, HEADER_HASH);
    expect_failure(w.ch, NULL,
                   "empty address list: EDS resource c contains empty localities: "
                   "[{region=\"r\", zone=\"z\", sub_zone=\"locality0\"}]");
    kit_mesh_put_endpoints(w.k, "c", "0/locality0: 0", NULL);
    torc_result *r = kit_mesh_call(w.ch, NULL, true, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    torc_result_free(r);
    assert_int_equal(torc_channel_state(w.ch, false), TORC_CONNECTIVITY_READY);
    kit_mesh_world_close(&w);
}

static void returns_to_the_first_priority(void **state)
{
    TC_CASE(RH15);
    TC_CASE(RH19);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(4, "0/a: 0, 1, 2; 1/b: 3", NULL, HEADER_HASH);
    for (size_t i = 0; i < 3; i++)
        kit_mesh_stop(w.k, i);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 3);
    kit_mesh_start(w.k, 1);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 1);
    kit_mesh_world_close(&w);
}

static void priority_and_back(void **state)
{
    TC_CASE(RH34);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(2, "0/a: 0; 1/b: 1", NULL, HEADER_HASH);
    char *h = hash_header(w.k, 0);
    expect(&w, h, 100, 1, 0, 0, 0);
    kit_mesh_stop(w.k, 0);
    kit_mesh_wait_backend(w.k, w.ch, h, 1);
    expect(&w, h, 100, 0, 1, 0, 0);
    kit_mesh_start(w.k, 0);
    kit_mesh_wait_backend(w.k, w.ch, h, 0);
    expect(&w, h, 100, 1, 0, 0, 0);
    tc_free(h);
    kit_mesh_world_close(&w);
}

static void idle_endpoint_is_dialled_when_the_ready_one_goes(void **state)
{
    TC_CASE(RH20);
    TC_CASE(RH21);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(4, "0/a: 0, 1, 2, 3", NULL, HEADER_HASH);
    kit_mesh_stop(w.k, 0);
    kit_mesh_stop(w.k, 1);
    for (size_t i = 0; i < 3; i++) {
        char *h = hash_header(w.k, i);
        kit_mesh_calls(w.ch, h, 1);
        tc_free(h);
    }
    /* The endpoints are [TF, TF, READY, IDLE]; the last one is READY if an RPC of a failed one went on to it. Now the
     * third one fails. */
    kit_mesh_stop(w.k, 2);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 3);
    /* An update removes the last one, which is READY. */
    kit_mesh_start(w.k, 0);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0, 1, 2", NULL);
    kit_mesh_wait_backend(w.k, w.ch, NULL, 0);
    kit_mesh_world_close(&w);
}

static void falls_back_within_an_endpoint(void **state)
{
    TC_CASE(RH35);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(4, "0/a: 0+1, 2+3", NULL, HEADER_HASH);
    char *h = hash_header(w.k, 0);
    /* The second address is stopped: otherwise it could win while the first one is slow and both are tried (A61). */
    kit_mesh_stop(w.k, 1);
    expect(&w, h, 50, 1, 0, 0, 0);
    kit_mesh_start(w.k, 1);
    kit_mesh_stop(w.k, 0);
    kit_mesh_wait_backend(w.k, w.ch, h, 1);
    expect(&w, h, 50, 0, 1, 0, 0);
    tc_free(h);
    kit_mesh_world_close(&w);
}

static void reordered_addresses(void **state)
{
    TC_CASE(RH36);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(4, "0/a: 0+1+2, 3", NULL, HEADER_HASH);
    char *h0 = hash_header(w.k, 0), *h1 = hash_header(w.k, 1);
    /* The other addresses are stopped: otherwise one could win while the first one is slow and all are tried (A61). */
    kit_mesh_stop(w.k, 1);
    kit_mesh_stop(w.k, 2);
    expect(&w, h0, 50, 1, 0, 0, 0);
    kit_mesh_start(w.k, 1);
    kit_mesh_start(w.k, 2);
    kit_mesh_put_endpoints(w.k, "c", "0/a: 0+2+1, 3", NULL);
    expect(&w, h0, 50, 1, 0, 0, 0);
    /* The first address gives the position on the ring. The connection stays: an endpoint is identified by its set of
     * addresses. */
    kit_mesh_put_endpoints(w.k, "c", "0/a: 1+0+2, 3", NULL);
    kit_mesh_wait_backend(w.k, w.ch, h1, 0);
    expect(&w, h1, 50, 1, 0, 0, 0);
    assert_int_equal(kit_mesh_connections(w.k, 0), 1);
    assert_int_equal(kit_mesh_connections(w.k, 1), 0);
    tc_free(h0);
    tc_free(h1);
    kit_mesh_world_close(&w);
}

static void endpoint_hash_key(void **state)
{
    TC_CASE(RH37);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(3, "0/a: 0#one, 1#two, 2#three", NULL, HEADER_HASH);
    expect(&w, "address_hash: two_0", 50, 0, 1, 0, 0);
    expect(&w, "address_hash: three_0", 50, 0, 0, 1, 0);
    kit_mesh_world_close(&w);
}

static void request_hash_header(void **state)
{
    TC_CASE(RH38);
    TC_CASE(RH39);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(3, "0/a: 0#one, 1#two, 2#three", NULL, NULL);
    kit_mesh_put_cluster(w.k, "c", REQUEST_HASH_HEADER);
    kit_mesh_wait_backend(w.k, w.ch, "address_hash: two_0", 1);
    expect(&w, "address_hash: two_0", 50, 0, 1, 0, 0);
    /* Without the header an RPC goes from a random place on the ring to the first READY endpoint, and connects at most
     * one IDLE endpoint on the way. 200 RPCs are enough to connect all. */
    kit_mesh_calls(w.ch, NULL, 200);
    expect(&w, NULL, SAMPLE, 1.0 / 3, 1.0 / 3, 1.0 / 3, 0);
    kit_mesh_world_close(&w);
}

static void request_hash_header_of_several_values(void **state)
{
    TC_CASE(RH40);
    (void)state;
    /* The values "a" and "b_0" are hashed as "a,b_0": the first entry of the key "a,b". */
    struct kit_mesh_world w = kit_mesh_world_open(3, "0/a: 0#zero, 2#two", NULL, NULL);
    kit_mesh_put(w.k,
                 "resources:\n"
                 "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                 "  cluster_name: c\n"
                 "  endpoints:\n"
                 "  - {load_balancing_weight: 1, locality: {sub_zone: a}, lb_endpoints: [\n"
                 "      {endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}},\n"
                 "      {endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}},\n"
                 "       metadata: {filter_metadata: {envoy.lb: {hash_key: \"a,b\"}}}}]}\n",
                 strchr(kit_mesh_address(w.k, 0), ':') + 1, strchr(kit_mesh_address(w.k, 1), ':') + 1);
    kit_mesh_put_cluster(w.k, "c", REQUEST_HASH_HEADER);
    kit_mesh_wait_backend(w.k, w.ch, "address_hash: a\naddress_hash: b_0", 1);
    expect(&w, "address_hash: a\naddress_hash: b_0", 50, 0, 1, 0, 0);
    kit_mesh_world_close(&w);
}

/* torc_channel_connect also connects policies that otherwise wait for an RPC, in each priority that is tried. */
static void a_connect_goes_on_in_the_next_priority(void **state)
{
    TC_CASE(PR21);
    static const char *const clusters[] = {"lb_policy: RING_HASH", "lb_policy: MAGLEV"};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(clusters); i++) {
        struct kit_mesh_world w = kit_mesh_world_open(3, "0/a: 0; 1/b: 1; 2/c: 2", clusters[i], NULL);
        kit_mesh_stop(w.k, 0);
        kit_mesh_stop(w.k, 1);
        wait_ready(w.ch, 30000);
        assert_int_equal(kit_mesh_connections(w.k, 2), 1);
        kit_mesh_world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_lazily),
        cmocka_unit_test(connects_on_demand),
        cmocka_unit_test(maglev_by_the_hash_policy_of_the_cluster),
        cmocka_unit_test(header_reaches_its_backend),
        cmocka_unit_test(channel_id_is_one_backend),
        cmocka_unit_test(channel_id_outlives_idleness),
        cmocka_unit_test(regex_rewrite),
        cmocka_unit_test(random_without_policy),
        cmocka_unit_test(endpoint_weights),
        cmocka_unit_test(locality_times_endpoint_weight),
        cmocka_unit_test(zones_of_five_and_one),
        cmocka_unit_test(missing_header_goes_past_terminal),
        cmocka_unit_test(missing_header_is_random),
        cmocka_unit_test(unsupported_policies_are_random),
        cmocka_unit_test(unsupported_until_channel_id),
        cmocka_unit_test(terminal_policy_ends_it),
        cmocka_unit_test(dead_endpoint_is_passed_over),
        cmocka_unit_test(all_dead),
        cmocka_unit_test(connects_on_without_picks),
        cmocka_unit_test(tries_one_after_the_other),
        cmocka_unit_test(fails_then_recovers_elsewhere),
        cmocka_unit_test(empty_locality_then_endpoint),
        cmocka_unit_test(returns_to_the_first_priority),
        cmocka_unit_test(priority_and_back),
        cmocka_unit_test(a_connect_goes_on_in_the_next_priority),
        cmocka_unit_test(idle_endpoint_is_dialled_when_the_ready_one_goes),
        cmocka_unit_test(falls_back_within_an_endpoint),
        cmocka_unit_test(reordered_addresses),
        cmocka_unit_test(endpoint_hash_key),
        cmocka_unit_test(request_hash_header),
        cmocka_unit_test(request_hash_header_of_several_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
