/* Where the attempts of an RPC go when one of two backends always fails. Each attempt draws its own locality, or its
 * own place on the ring. If ring_hash picks by a hash of the RPC, all attempts go to one endpoint.
 *
 * Each test makes a mesh of two backends (kits/mesh.h) and a channel, with xDS or without, that is connected to both.
 * The test's thread makes CALLS calls one after another (retries_on_a_ring: twice), and compares how many failed with
 * how many attempts there were (struct tally). The client runs on the thread of the mesh's runtime. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/kits/mesh.h"

#include "base/mem.h"

enum { CALLS = 2000 };

#define RETRY                                                                                                          \
    "retry_policy: {retry_on: unavailable, num_retries: 4, retry_back_off: {base_interval: 0.001s, max_interval: "     \
    "0.001s}}"

/* Of CALLS calls: those that failed, and the attempts of all. */
struct tally {
    unsigned failed, attempts;
};

/* Makes CALLS calls, each of which must end with OK or UNAVAILABLE. headers: as for kit_mesh_call. */
static struct tally call_all(torc_channel *ch, const char *headers)
{
    struct tally t = {0};
    for (int i = 0; i < CALLS; i++) {
        torc_result *r = kit_mesh_call(ch, headers, false, 60000);
        if (torc_result_code(r) != TORC_STATUS_OK && torc_result_code(r) != TORC_STATUS_UNAVAILABLE)
            fail_msg("call %d: %s: %s", i, torc_status_code_name(torc_result_code(r)), torc_result_text(r));
        t.failed += torc_result_code(r) != TORC_STATUS_OK;
        t.attempts += torc_result_attempts(r);
        torc_result_free(r);
    }
    return t;
}

/* Asserts that each attempt fails with the same probability p, independently of the others: of n calls n p^5 fail after
 * five attempts. p is measured, because on a ring it is the share of the failing backend, which depends on the ports
 * (mean 0.5, standard deviation 0.016). If all attempts of a call went where its first one went, p would be 5/6. */
static void assert_independent(struct tally t)
{
    double p = (double)(t.attempts - (CALLS - t.failed)) / t.attempts;
    double expected = CALLS * pow(p, 5), margin = 9 * sqrt(expected);
    printf("%u of %d calls failed after five attempts, %u attempts: p %.3f, %.1f expected\n", t.failed, CALLS,
           t.attempts, p, expected);
    assert_in_range((uintmax_t)(p * 1000), 375, 625);
    assert_in_range(t.failed, (uintmax_t)fmax(0, expected - margin), (uintmax_t)(expected + margin));
}

/* Makes backend 0 fail. Returns a channel that is connected to both backends. policy: the `more` of
 * kit_mesh_put_cluster; hash: the hash_policy field of the route, which also has RETRY. */
static torc_channel *open_mesh(struct kit_mesh *k, const char *localities, const char *policy, const char *hash)
{
    kit_mesh_fail(k, 0, TORC_STATUS_UNAVAILABLE);
    kit_mesh_put_endpoints(k, "c", localities, NULL);
    kit_mesh_put_cluster(k, "c", policy);
    char *route = tc_asprintf("{match: {prefix: \"\"}, route: {cluster: c, %s, " RETRY "}}", hash);
    kit_mesh_put_routes(k, "svc", route);
    tc_free(route);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    while (!kit_mesh_open_connections(k, 0) || !kit_mesh_open_connections(k, 1)) {
        torc_result *r = kit_mesh_call(ch, NULL, true, 5000);
        torc_result_free(r);
    }
    return ch;
}

/* weighted_target chooses a locality for each attempt. */
static void retries_among_localities(void **state)
{
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    torc_channel *ch = open_mesh(k, "0/a: 0; 0/b: 1", "lb_policy: ROUND_ROBIN", "hash_policy: []");
    assert_independent(call_all(ch, NULL));
    torc_channel_free(ch);
    kit_mesh_free(k);
}

/* A42: without the header of the hash policy an RPC draws a random hash, which all its attempts have. If the endpoint
 * of the hash fails RPCs, all five attempts fail. */
static void retries_keep_the_hash(void **state)
{
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    torc_channel *ch = open_mesh(k, "0/a: 0, 1", NULL, "hash_policy: [{header: {header_name: absent}}]");
    struct tally t = call_all(ch, NULL);
    printf("%u of %d calls failed with a hash of their own, %u attempts\n", t.failed, CALLS, t.attempts);
    assert_in_range(t.failed, CALLS * 3 / 8, CALLS * 5 / 8);
    assert_int_equal(t.attempts, CALLS + 4 * t.failed);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

/* Makes backend 0 fail. Returns a channel without xDS that is connected to both backends, by ring_hash with the request
 * header "k". policy: the retryPolicy or hedgingPolicy of a methodConfig, with its name. */
static torc_channel *open_ring(struct kit_mesh *k, const char *policy)
{
    torc_error *error = NULL;
    kit_mesh_fail(k, 0, TORC_STATUS_UNAVAILABLE);
    char *target = tc_asprintf("ipv4:%s,%s", kit_mesh_address(k, 0), kit_mesh_address(k, 1));
    char *config = tc_asprintf("{\"loadBalancingConfig\":[{\"ring_hash_experimental\":{\"requestHashHeader\":\"k\"}}],"
                               "\"methodConfig\":[{\"name\":[{}],%s}]}",
                               policy);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .service_config_json = config};
    torc_channel *ch = torc_channel_new(kit_mesh_runtime(k), target, &o, &error);
    if (!ch)
        fail_msg("%s", torc_error_text(error));
    while (!kit_mesh_open_connections(k, 0) || !kit_mesh_open_connections(k, 1)) {
        torc_result *r = kit_mesh_call(ch, NULL, true, 5000);
        torc_result_free(r);
    }
    tc_free(config);
    tc_free(target);
    return ch;
}

/* A76: without the header each attempt draws a random hash. With the header all attempts have the header's hash. */
static void retries_on_a_ring(void **state)
{
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    torc_channel *ch =
        open_ring(k, "\"retryPolicy\":{\"maxAttempts\":5,\"initialBackoff\":\"0.001s\",\"maxBackoff\":\"0.001s\","
                     "\"backoffMultiplier\":1,\"retryableStatusCodes\":[\"UNAVAILABLE\"]}");
    assert_independent(call_all(ch, NULL));
    struct tally t = call_all(ch, "k: v");
    assert_true(t.failed == 0 || t.failed == CALLS);
    assert_int_equal(t.attempts, t.failed ? 5 * CALLS : CALLS);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

/* Each hedged attempt draws its own random hash. A failed attempt starts the next one at once. */
static void hedges_on_a_ring(void **state)
{
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    torc_channel *ch = open_ring(k, "\"hedgingPolicy\":{\"maxAttempts\":5,\"hedgingDelay\":\"10s\","
                                    "\"nonFatalStatusCodes\":[\"UNAVAILABLE\"]}");
    assert_independent(call_all(ch, NULL));
    torc_channel_free(ch);
    kit_mesh_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retries_among_localities),
        cmocka_unit_test(retries_keep_the_hash),
        cmocka_unit_test(retries_on_a_ring),
        cmocka_unit_test(hedges_on_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
