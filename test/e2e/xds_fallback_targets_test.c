/* Each target has its own fallback (A71): when the first server is lost, one of two targets of a process has all its
 * resources, and the other has not. */
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"

#include "base/clock.h"
#include "base/mem.h"

static struct kit_mesh *first, *second;
static char bootstrap[512];

static void put_target(struct kit_mesh *k, const char *name, const char *endpoints)
{
    kit_mesh_put_listener(k, name, name, NULL);
    kit_mesh_put_cluster(k, name, NULL);
    kit_mesh_put_endpoints(k, name, endpoints, NULL);
}

static int setup(void **state)
{
    (void)state;
    first = kit_mesh_new(2);
    second = kit_mesh_new(2);
    snprintf(bootstrap, sizeof(bootstrap),
             "{\"xds_servers\":[{\"server_uri\":\"%s\",\"channel_creds\":[{\"type\":\"insecure\"}]},"
             "{\"server_uri\":\"%s\",\"channel_creds\":[{\"type\":\"insecure\"}]}],\"node\":{\"id\":\"n\"}}",
             kit_mesh_control_plane(first), kit_mesh_control_plane(second));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_mesh_free(second);
    kit_mesh_free(first);
    return 0;
}

static void assert_never_asked_for(struct kit_mesh *k, const char *name)
{
    char *requests = kit_mesh_requests(k);
    assert_null(strstr(requests, name));
    tc_free(requests);
}

/* A71: the connection is not kept for later use; a pool of connections would keep it for 30 s. */
static void wait_closed(struct kit_mesh *k)
{
    uint64_t until = tc_system_clock.monotonic_ns(NULL) + 60 * TC_NS_PER_S;
    while (kit_mesh_open_control_connections(k))
        assert_true(tc_system_clock.monotonic_ns(NULL) < until);
}

static void test_one_of_two_targets(void **state)
{
    TC_CASE(FB06);
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = bootstrap};
    put_target(first, "cached", "0/a: 0");
    put_target(first, "new", "0/a: 1");
    put_target(second, "cached", "0/a: 0");
    put_target(second, "new", "0/a: 1");
    torc_channel *cached = kit_mesh_channel(first, "cached", &o);
    kit_mesh_calls(cached, NULL, 2);
    assert_int_equal(kit_mesh_take(first, 0), 2);

    kit_mesh_stop_control_plane(first);
    torc_channel *other = kit_mesh_channel(first, "new", &o);
    kit_mesh_wait_backend(second, other, NULL, 1);
    kit_mesh_calls(cached, NULL, 20);
    assert_int_equal(kit_mesh_take(first, 0), 20);
    assert_int_equal(kit_mesh_handled(first, 1), 0);
    assert_int_equal(kit_mesh_handled(second, 0), 0);
    assert_int_equal(kit_mesh_handled(second, 1), 1);
    assert_never_asked_for(second, "cached");

    /* After the restart the first server has both. */
    kit_mesh_start_control_plane(first);
    kit_mesh_wait_backend(first, other, NULL, 1);
    wait_closed(second);
    kit_mesh_calls(cached, NULL, 2);
    assert_int_equal(kit_mesh_take(first, 0), 2);
    torc_channel_free(cached);
    torc_channel_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_of_two_targets)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
