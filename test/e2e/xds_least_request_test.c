/* least_request as an xDS cluster's policy: below localities with weights, with endpoint weights, and with a full scan
 * while RPCs are under way. Each test has a mesh and a channel of its own (kits/mesh.h). Only on_result runs on the
 * runtime's thread. */
#include <stdatomic.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"

#include "base/clock.h"

#define LEAST(config)                                                                                                  \
    "load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {\"@type\": "                 \
    "type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest, " config "}}}]}"

static void in_localities(void **state)
{
    TC_CASE(LQ10);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(
        3, "0/a=1: 0; 0/b=3: 1, 2", "lb_policy: LEAST_REQUEST\n  least_request_lb_config: {choice_count: 3}", NULL);
    kit_mesh_expect_shares(w.k, w.ch, NULL, 3500, (double[]){.25, .375, .375}, 3);
    kit_mesh_world_close(&w);
}

static void by_weights(void **state)
{
    TC_CASE(LQ10);
    (void)state;
    struct kit_mesh_world w =
        kit_mesh_world_open(2, "0/a: 0*1, 1*3", LEAST("active_request_bias: {default_value: 1}"), NULL);
    kit_mesh_expect_shares(w.k, w.ch, NULL, 1000, (double[]){.25, .75}, 2);
    kit_mesh_world_close(&w);
}

static atomic_uint finished; /* RPCs that succeeded; counted on the runtime's thread */

static void on_result(const torc_result *result, void *arg)
{
    (void)arg;
    if (torc_result_code(result) == TORC_STATUS_OK)
        atomic_fetch_add(&finished, 1);
}

/* Thirty RPCs that begin together and last 500 ms spread evenly over three backends. The test makes a few more calls
 * until they have ended, which count too: each backend gets at least ten. */
static void over_all_endpoints(void **state)
{
    TC_CASE(LQ10);
    (void)state;
    enum { CALLS = 30, BACKENDS = 3 };
    struct kit_mesh *k = kit_mesh_new_slow(BACKENDS, 500);
    kit_mesh_put_cluster(k, "c", LEAST("selection_method: FULL_SCAN"));
    kit_mesh_put_endpoints(k, "c", "0/a: 0, 1, 2", NULL);
    kit_mesh_put_listener(k, "svc", "c", NULL);
    torc_channel *ch = kit_mesh_channel(k, "svc", NULL);
    for (size_t i = 0; i < BACKENDS; i++)
        kit_mesh_wait_backend(k, ch, NULL, i);
    for (size_t i = 0; i < BACKENDS; i++)
        kit_mesh_take(k, i);
    uint64_t end = tc_system_clock.monotonic_ns(NULL) + 60 * TC_NS_PER_S;
    for (unsigned i = 0; i < CALLS; i++)
        assert_int_equal(torc_unary_async(ch, "a.B/C", "", 0, NULL, on_result, NULL, NULL, NULL), 0);
    while (atomic_load(&finished) < CALLS && tc_system_clock.monotonic_ns(NULL) < end)
        torc_result_free(kit_mesh_call(ch, NULL, false, 60000));
    assert_int_equal(atomic_load(&finished), CALLS);
    /* The calls of the loop above went one after another, to any backend. */
    uint64_t waited = 0;
    for (size_t i = 0; i < BACKENDS; i++) {
        uint64_t n = kit_mesh_take(k, i);
        assert_true(n >= CALLS / BACKENDS);
        waited += n - CALLS / BACKENDS;
    }
    assert_true(waited < CALLS);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_localities),
        cmocka_unit_test(by_weights),
        cmocka_unit_test(over_all_endpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
