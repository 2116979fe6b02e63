/* Aggregate and LOGICAL_DNS clusters end to end (A37, A74, A75). */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/mesh_kit.h"

#define ROUND_ROBIN "lb_policy: ROUND_ROBIN"

/* A LOGICAL_DNS cluster "dns" of that host, on the port of backend i. */
static void put_dns(struct mesh_kit *k, const char *host, size_t i)
{
    mesh_kit_put_dns(k, "dns", host, strchr(mesh_kit_address(k, i), ':') + 1, "ROUND_ROBIN");
}

static void put_eds(struct mesh_kit *k, const char *name, const char *endpoints, const char *policy)
{
    mesh_kit_put_endpoints(k, name, endpoints, NULL);
    mesh_kit_put_cluster(k, name, policy);
}

static void fails_over_and_back(void **state)
{
    (void)state;
    struct mesh_kit *k = mesh_kit_new(2);
    put_eds(k, "c1", "0/a: 0", ROUND_ROBIN);
    put_eds(k, "c2", "0/a: 1", ROUND_ROBIN);
    mesh_kit_put_aggregate(k, "agg", "c1, c2");
    mesh_kit_put_listener(k, "svc", "agg", NULL);
    torc_channel *ch = mesh_kit_channel(k, "svc", NULL);
    mesh_kit_calls(ch, NULL, 50);
    assert_int_equal(mesh_kit_take(k, 0), 50);
    mesh_kit_stop(k, 0);
    mesh_kit_wait_backend(k, ch, NULL, 1);
    mesh_kit_calls(ch, NULL, 50);
    mesh_kit_start(k, 0);
    mesh_kit_wait_backend(k, ch, NULL, 0);
    torc_channel_free(ch);
    mesh_kit_free(k);
    TC_CASE(AG01);
    TC_CASE(AG19);
}

/* c1 by ring_hash, c2 by round_robin: each leaf's own policy. */
static void policy_of_the_leaf(void **state)
{
    (void)state;
    struct mesh_kit *k = mesh_kit_new(4);
    put_eds(k, "c1", "0/a: 0, 1", NULL);
    put_eds(k, "c2", "0/a: 2, 3", ROUND_ROBIN);
    mesh_kit_put_aggregate(k, "agg", "c1, c2");
    mesh_kit_put_listener(k, "svc", "agg", "[{filter_state: {key: io.grpc.channel_id}}]");
    torc_channel *ch = mesh_kit_channel(k, "svc", NULL);
    mesh_kit_calls(ch, NULL, 100);
    uint64_t a = mesh_kit_take(k, 0), b = mesh_kit_take(k, 1);
    assert_true((a == 100 && b == 0) || (a == 0 && b == 100));
    mesh_kit_stop(k, 0);
    mesh_kit_stop(k, 1);
    mesh_kit_wait_backend(k, ch, NULL, 2);
    mesh_kit_wait_backend(k, ch, NULL, 3);
    double shares[] = {0, 0, 0.5, 0.5};
    mesh_kit_expect_shares(k, ch, NULL, 100, shares, 4);
    torc_channel_free(ch);
    mesh_kit_free(k);
    TC_CASE(AG02);
}

static void ring_hash_at_startup(void **state)
{
    (void)state;
    struct mesh_kit *k = mesh_kit_new(4);
    put_eds(k, "c1", "0/a: 0, 1", NULL);
    put_eds(k, "c2", "0/a: 2, 3", NULL);
    mesh_kit_put_aggregate(k, "agg", "c1, c2");
    mesh_kit_put_listener(k, "svc", "agg", "[{filter_state: {key: io.grpc.channel_id}}]");
    mesh_kit_stop(k, 0);
    mesh_kit_stop(k, 1);
    torc_channel *ch = mesh_kit_channel(k, "svc", NULL);
    mesh_kit_calls(ch, NULL, 100);
    uint64_t a = mesh_kit_take(k, 2), b = mesh_kit_take(k, 3);
    assert_true((a == 100 && b == 0) || (a == 0 && b == 100));
    torc_channel_free(ch);
    mesh_kit_free(k);
    TC_CASE(RH49);
}

static void from_eds_to_dns(void **state)
{
    (void)state;
    struct mesh_kit *k = mesh_kit_new(2);
    put_eds(k, "eds", "0/a: 0", ROUND_ROBIN);
    put_dns(k, "localhost", 1);
    mesh_kit_put_aggregate(k, "agg", "eds, dns");
    mesh_kit_put_listener(k, "svc", "agg", NULL);
    torc_channel *ch = mesh_kit_channel(k, "svc", NULL);
    mesh_kit_calls(ch, NULL, 20);
    assert_int_equal(mesh_kit_take(k, 0), 20);
    mesh_kit_stop(k, 0);
    mesh_kit_wait_backend(k, ch, NULL, 1);
    mesh_kit_start(k, 0);
    mesh_kit_wait_backend(k, ch, NULL, 0);
    /* And the other way round. */
    mesh_kit_put_aggregate(k, "agg", "dns, eds");
    mesh_kit_wait_backend(k, ch, NULL, 1);
    mesh_kit_stop(k, 1);
    mesh_kit_wait_backend(k, ch, NULL, 0);
    torc_channel_free(ch);
    mesh_kit_free(k);
    TC_CASE(AG04);
    TC_CASE(DN01);
}

static void dns_by_itself(void **state)
{
    (void)state;
    struct mesh_kit *k = mesh_kit_new(2);
    put_dns(k, "localhost", 0);
    mesh_kit_put_listener(k, "svc", "dns", NULL);
    torc_channel *ch = mesh_kit_channel(k, "svc", NULL);
    mesh_kit_calls(ch, NULL, 20);
    assert_int_equal(mesh_kit_take(k, 0), 20);
    put_dns(k, "127.0.0.1", 1);
    mesh_kit_wait_backend(k, ch, NULL, 1);
    /* No name that anyone could be asked for. */
    put_dns(k, "bad..name", 1);
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE, "DNS resolution failed for bad..name:");
    put_dns(k, "localhost", 0);
    mesh_kit_wait_backend(k, ch, NULL, 0);
    torc_channel_free(ch);
    mesh_kit_free(k);
    TC_CASE(DN05);
    TC_CASE(DN06);
}

static void no_leaves(void **state)
{
    (void)state;
    struct mesh_kit *k = mesh_kit_new(1);
    mesh_kit_put_aggregate(k, "agg", "agg");
    mesh_kit_put_listener(k, "svc", "agg", NULL);
    torc_channel *ch = mesh_kit_channel(k, "svc", NULL);
    mesh_kit_wait_failure(ch, TORC_STATUS_UNAVAILABLE,
                          "aggregate cluster dependency graph for agg has no leaf clusters (node ID:test-node)");
    put_eds(k, "c1", "0/a: 0", ROUND_ROBIN);
    mesh_kit_put_aggregate(k, "agg", "agg, c1");
    mesh_kit_wait_backend(k, ch, NULL, 0);
    torc_channel_free(ch);
    mesh_kit_free(k);
    TC_CASE(AG12);
    TC_CASE(AG13);
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
