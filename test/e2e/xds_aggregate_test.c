/* Aggregate and LOGICAL_DNS clusters end to end (A37, A74, A75), over real sockets (kits/mesh.h): which backend gets
 * the RPCs while backends and names come and go, and when RPCs fail.
 *
 * Each test makes its mesh and one channel to the listener "svc". The test's thread puts resources, stops and starts
 * backends, and makes RPCs until they reach the expected backend, or fail as expected. The client runs on the thread of
 * the mesh's runtime. */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"

#define ROUND_ROBIN "lb_policy: ROUND_ROBIN"

/* Puts a LOGICAL_DNS cluster "dns" with that host and the port of backend i. */
static void put_dns(struct kit_mesh *k, const char *host, size_t i)
{
    kit_mesh_put_dns(k, "dns", host, strchr(kit_mesh_address(k, i), ':') + 1, "ROUND_ROBIN");
}

/* Puts an EDS cluster with these endpoints. policy: its lb_policy as a YAML line; NULL: RING_HASH. */
static void put_eds(struct kit_mesh *k, const char *name, const char *endpoints, const char *policy)
{
    kit_mesh_put_endpoints(k, name, endpoints, NULL);
    kit_mesh_put_cluster(k, name, policy);
}

static void fails_over_and_back(void **state)
{
    TC_CASE(AG01);
    TC_CASE(AG19);
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    put_eds(k, "c1", "0/a: 0", ROUND_ROBIN);
    put_eds(k, "c2", "0/a: 1", ROUND_ROBIN);
    kit_mesh_put_aggregate(k, "agg", "c1, c2");
    kit_mesh_put_listener(k, "svc", "agg", NULL);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    kit_mesh_calls(ch, NULL, 50);
    assert_int_equal(kit_mesh_take(k, 0), 50);
    kit_mesh_stop(k, 0);
    kit_mesh_wait_backend(k, ch, NULL, 1);
    kit_mesh_calls(ch, NULL, 50);
    kit_mesh_start(k, 0);
    kit_mesh_wait_backend(k, ch, NULL, 0);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

/* c1 by ring_hash, c2 by round_robin: each leaf cluster uses its own policy. */
static void policy_of_the_leaf(void **state)
{
    TC_CASE(AG02);
    (void)state;
    struct kit_mesh *k = kit_mesh_new(4);
    put_eds(k, "c1", "0/a: 0, 1", NULL);
    put_eds(k, "c2", "0/a: 2, 3", ROUND_ROBIN);
    kit_mesh_put_aggregate(k, "agg", "c1, c2");
    kit_mesh_put_listener(k, "svc", "agg", "[{filter_state: {key: io.grpc.channel_id}}]");
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    kit_mesh_calls(ch, NULL, 100);
    uint64_t a = kit_mesh_take(k, 0), b = kit_mesh_take(k, 1);
    assert_true((a == 100 && b == 0) || (a == 0 && b == 100));
    kit_mesh_stop(k, 0);
    kit_mesh_stop(k, 1);
    kit_mesh_wait_backend(k, ch, NULL, 2);
    kit_mesh_wait_backend(k, ch, NULL, 3);
    double shares[] = {0, 0, 0.5, 0.5};
    kit_mesh_expect_shares(k, ch, NULL, 100, shares, 4);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

static void ring_hash_at_startup(void **state)
{
    TC_CASE(RH49);
    (void)state;
    struct kit_mesh *k = kit_mesh_new(4);
    put_eds(k, "c1", "0/a: 0, 1", NULL);
    put_eds(k, "c2", "0/a: 2, 3", NULL);
    kit_mesh_put_aggregate(k, "agg", "c1, c2");
    kit_mesh_put_listener(k, "svc", "agg", "[{filter_state: {key: io.grpc.channel_id}}]");
    kit_mesh_stop(k, 0);
    kit_mesh_stop(k, 1);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    kit_mesh_calls(ch, NULL, 100);
    uint64_t a = kit_mesh_take(k, 2), b = kit_mesh_take(k, 3);
    assert_true((a == 100 && b == 0) || (a == 0 && b == 100));
    torc_channel_free(ch);
    kit_mesh_free(k);
}

static void from_eds_to_dns(void **state)
{
    TC_CASE(AG04);
    TC_CASE(DN01);
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    put_eds(k, "eds", "0/a: 0", ROUND_ROBIN);
    put_dns(k, "localhost", 1);
    kit_mesh_put_aggregate(k, "agg", "eds, dns");
    kit_mesh_put_listener(k, "svc", "agg", NULL);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    kit_mesh_calls(ch, NULL, 20);
    assert_int_equal(kit_mesh_take(k, 0), 20);
    kit_mesh_stop(k, 0);
    kit_mesh_wait_backend(k, ch, NULL, 1);
    kit_mesh_start(k, 0);
    kit_mesh_wait_backend(k, ch, NULL, 0);
    /* An aggregate whose LOGICAL_DNS leaf stands before its EDS leaf. */
    kit_mesh_put_aggregate(k, "agg", "dns, eds");
    kit_mesh_wait_backend(k, ch, NULL, 1);
    kit_mesh_stop(k, 1);
    kit_mesh_wait_backend(k, ch, NULL, 0);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

static void dns_by_itself(void **state)
{
    TC_CASE(DN01);
    TC_CASE(DN05);
    TC_CASE(DN06);
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    put_dns(k, "localhost", 0);
    kit_mesh_put_listener(k, "svc", "dns", NULL);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    kit_mesh_calls(ch, NULL, 20);
    assert_int_equal(kit_mesh_take(k, 0), 20);
    put_dns(k, "127.0.0.1", 1);
    kit_mesh_wait_backend(k, ch, NULL, 1);
    /* A name that cannot be looked up. */
    put_dns(k, "bad..name", 1);
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "DNS resolution failed for bad..name:");
    put_dns(k, "localhost", 0);
    kit_mesh_wait_backend(k, ch, NULL, 0);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

static void no_leaves(void **state)
{
    TC_CASE(AG12);
    TC_CASE(AG13);
    (void)state;
    struct kit_mesh *k = kit_mesh_new(1);
    kit_mesh_put_aggregate(k, "agg", "agg");
    kit_mesh_put_listener(k, "svc", "agg", NULL);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE,
                          "aggregate cluster dependency graph for agg has no leaf clusters (node ID:test-node)");
    put_eds(k, "c1", "0/a: 0", ROUND_ROBIN);
    kit_mesh_put_aggregate(k, "agg", "agg, c1");
    kit_mesh_wait_backend(k, ch, NULL, 0);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fails_over_and_back),  cmocka_unit_test(policy_of_the_leaf),
        cmocka_unit_test(ring_hash_at_startup), cmocka_unit_test(from_eds_to_dns),
        cmocka_unit_test(dns_by_itself),        cmocka_unit_test(no_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
