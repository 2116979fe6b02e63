/* Fallback is each target's own (A71): two targets of one process, of which one has all that it wants when the first
 * server is lost, and the other has not. */
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/mesh_kit.h"

#include "base/mem.h"

static struct mesh_kit *first, *second;
static char bootstrap[512];

static void put_target(struct mesh_kit *k, const char *name, const char *endpoints)
{
    mesh_kit_put_listener(k, name, name, NULL);
    mesh_kit_put_cluster(k, name, NULL);
    mesh_kit_put_endpoints(k, name, endpoints, NULL);
}

static int setup(void **state)
{
    (void)state;
    first = mesh_kit_new(2);
    second = mesh_kit_new(2);
    snprintf(bootstrap, sizeof(bootstrap),
             "{\"xds_servers\":[{\"server_uri\":\"%s\",\"channel_creds\":[{\"type\":\"insecure\"}]},"
             "{\"server_uri\":\"%s\",\"channel_creds\":[{\"type\":\"insecure\"}]}],\"node\":{\"id\":\"n\"}}",
             mesh_kit_control_plane(first), mesh_kit_control_plane(second));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mesh_kit_free(second);
    mesh_kit_free(first);
    return 0;
}

static void assert_never_asked_for(struct mesh_kit *k, const char *name)
{
    char *requests = mesh_kit_requests(k);
    assert_null(strstr(requests, name));
    tc_free(requests);
}

static void test_one_of_two_targets(void **state)
{
    (void)state;
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    o.xds_bootstrap_json = bootstrap;
    put_target(first, "cached", "0/a: 0");
    put_target(first, "new", "0/a: 1");
    put_target(second, "cached", "0/a: 0");
    put_target(second, "new", "0/a: 1");
    torc_channel *cached = mesh_kit_channel(first, "cached", &o);
    mesh_kit_calls(cached, NULL, 2);
    assert_int_equal(mesh_kit_take(first, 0), 2);

    mesh_kit_stop_control_plane(first);
    torc_channel *other = mesh_kit_channel(first, "new", &o);
    mesh_kit_wait_backend(second, other, NULL, 1);
    mesh_kit_calls(cached, NULL, 20);
    assert_int_equal(mesh_kit_take(first, 0), 20);
    assert_int_equal(mesh_kit_handled(first, 1), 0);
    assert_int_equal(mesh_kit_handled(second, 0), 0);
    assert_int_equal(mesh_kit_handled(second, 1), 1);
    assert_never_asked_for(second, "cached");
    TC_CASE(FB06);

    /* Back at work, the first has both. */
    mesh_kit_start_control_plane(first);
    mesh_kit_wait_backend(first, other, NULL, 1);
    mesh_kit_calls(cached, NULL, 2);
    assert_int_equal(mesh_kit_take(first, 0), 2);
    torc_channel_free(cached);
    torc_channel_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_of_two_targets)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
