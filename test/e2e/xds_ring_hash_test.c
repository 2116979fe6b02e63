/* ring_hash end to end: control plane, channel, backends, on real sockets. */
#include <stdio.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/mesh_kit.h"

#include "base/mem.h"

#define HEADER_HASH "[{header: {header_name: address_hash}}]"
/* p(1-p) * 25 / tol^2 + 1000 for p = 0.5, tol = 0.05 (cases.md 2.7). */
#define SAMPLE 3500

static char *hash_header(struct mesh_kit *k, size_t i)
{
    return tc_asprintf("address_hash: %s_0", mesh_kit_address(k, i));
}

static struct mesh_kit *world(size_t backends, const char *endpoints, const char *hash_policy)
{
    struct mesh_kit *k = mesh_kit_new(backends);
    mesh_kit_put_endpoints(k, "c", endpoints, NULL);
    mesh_kit_put_cluster(k, "c", NULL);
    mesh_kit_put_listener(k, "svc", "c", hash_policy);
    return k;
}

static void header_reaches_its_backend(void **state)
{
    (void)state;
    struct mesh_kit *k = world(4, "0/a: 0, 1, 2, 3", HEADER_HASH);
    torc_channel *ch = mesh_kit_channel(k, "svc", NULL);
    for (size_t i = 0; i < 4; i++) {
        char *h = hash_header(k, i);
        mesh_kit_calls(ch, h, 100);
        tc_free(h);
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(mesh_kit_take(k, i), 100);
    torc_channel_free(ch);
    mesh_kit_free(k);
    TC_CASE(RH23);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_reaches_its_backend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
