/* random_subsetting by xDS, above the localities: connections and RPCs go to the subset. When the subset grows, RPCs
 * reach more backends. The mesh has six backends in two localities (kits/mesh.h). */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"

#define LB "envoy.extensions.load_balancing_policies."
#define POLICIES(of)                                                                                                   \
    "{policies: [{typed_extension_config: {name: x, typed_config: {\"@type\": type.googleapis.com/" LB of "}}}]}"
#define SUBSET(size)                                                                                                   \
    "load_balancing_policy: " POLICIES(                                                                                \
        "random_subsetting.v3.RandomSubsetting, subset_size: " size ", child_policy: " POLICIES(                       \
            "wrr_locality.v3.WrrLocality, endpoint_picking_policy: " POLICIES("least_request.v3.LeastRequest")))

enum { BACKENDS = 6, CALLS = 400 };

/* Makes calls. Returns the backends that served them, bit i for backend i. */
static unsigned served(struct kit_mesh_world *w)
{
    unsigned set = 0;
    kit_mesh_calls(w->ch, NULL, CALLS);
    for (unsigned i = 0; i < BACKENDS; i++)
        set |= (unsigned)(kit_mesh_take(w->k, i) > 0) << i;
    return set;
}

static void rpcs_go_to_the_subset(void **state)
{
    TC_CASE(SB08);
    (void)state;
    struct kit_mesh_world w = kit_mesh_world_open(BACKENDS, "0/a=1: 0, 1, 2; 0/b=1: 3, 4, 5", SUBSET("3"), NULL);
    unsigned first = 0;
    while (__builtin_popcount(first) < 3)
        first |= served(&w);
    assert_int_equal(served(&w), first);
    uint64_t connections = 0;
    for (unsigned i = 0; i < BACKENDS; i++)
        connections += kit_mesh_connections(w.k, i);
    assert_int_equal(connections, 3);
    kit_mesh_put_cluster(w.k, "c", SUBSET("5"));
    unsigned more;
    do
        more = served(&w);
    while (__builtin_popcount(more) != 5);
    assert_int_equal(more & first, first);
    assert_int_equal(served(&w), more);
    kit_mesh_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rpcs_go_to_the_subset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
