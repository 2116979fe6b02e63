/* Each target has its own fallback (A71). When the first server is lost, a target whose resources are cached asks no
 * other server, while a target without resources falls back. Also an ADS stream that a GOAWAY refuses.
 *
 * Both tests share two meshes (kits/mesh.h): the control plane of `first` is the first xDS server, and that of `second`
 * is the fallback. test_a_stream_that_is_given_back has a hostile server as the first xDS server instead. The hostile
 * server is in another process (support/hostile/server.h), which `setup` forks before the meshes start threads. The
 * test's thread makes the RPCs. A channel runs on the thread of the runtime of the mesh that it was made with. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/hostile/server.h"
#include "support/kits/mesh.h"

#include "base/clock.h"
#include "base/mem.h"

static struct hostile *hostile;
static struct kit_mesh *first, *second;
static char bootstrap[512]; /* the control plane of `first`, then that of `second` as its fallback */

/* Puts a listener, a cluster by ring_hash and its endpoints, all called `name`. */
static void put_target(struct kit_mesh *k, const char *name, const char *endpoints)
{
    kit_mesh_put_listener(k, name, name, NULL);
    kit_mesh_put_cluster(k, name, NULL);
    kit_mesh_put_endpoints(k, name, endpoints, NULL);
}

/* Refuses the first connection's stream by a GOAWAY with last stream id 0. Later connections get no answer, and are
 * closed after 10 s of silence. Runs in the process of the hostile servers. */
static void lose_the_stream(struct hostile_peer *p)
{
    static atomic_flag lost = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&lost) && hostile_begin(p))
        fake_h2_goaway(hostile_frames(p), 0, 0, "elsewhere");
    hostile_await_close(p);
}

static int setup(void **state)
{
    static hostile_play_fn *const plays[] = {lose_the_stream};
    (void)state;
    hostile = hostile_new(plays, TC_ARRAY_LEN(plays), NULL);
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
    hostile_free(hostile);
    return 0;
}

/* Takes the requests that the control plane has got, and asserts that none names the resource. */
static void assert_never_asked_for(struct kit_mesh *k, const char *name)
{
    char *requests = kit_mesh_requests(k);
    assert_null(strstr(requests, name));
    tc_free(requests);
}

/* Waits at most 20 s until the control plane has no connection. The client closes a fallback server's connection when
 * the first server serves again (A71). A connection that is only idle would stay for 30 s. */
static void wait_closed(struct kit_mesh *k)
{
    uint64_t until = tc_system_clock.monotonic_ns(NULL) + 20 * TC_NS_PER_S;
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

    /* After the restart the first server has the resources of both targets. */
    kit_mesh_start_control_plane(first);
    kit_mesh_wait_backend(first, other, NULL, 1);
    wait_closed(second);
    kit_mesh_calls(cached, NULL, 2);
    assert_int_equal(kit_mesh_take(first, 0), 2);
    torc_channel_free(cached);
    torc_channel_free(other);
}

/* A71: a stream that ends before its first response makes the client ask the fallback server. So does a stream that a
 * GOAWAY refused, although other RPCs are then retried transparently. A retried stream would stay without an answer for
 * 10 s (lose_the_stream), which is longer than the RPC waits. */
static void test_a_stream_that_is_given_back(void **state)
{
    (void)state;
    char servers[512];
    snprintf(servers, sizeof(servers),
             "{\"xds_servers\":[{\"server_uri\":\"%s\",\"channel_creds\":[{\"type\":\"insecure\"}]},"
             "{\"server_uri\":\"%s\",\"channel_creds\":[{\"type\":\"insecure\"}]}],\"node\":{\"id\":\"n\"}}",
             hostile_address(hostile, 0), kit_mesh_control_plane(second));
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = servers};
    struct torc_call_options call = {TORC_SIZE(torc_call_options), .timeout_ms = 8000};
    put_target(second, "given-back", "0/a: 0");
    torc_channel *ch = kit_mesh_channel(second, "given-back", &o);
    torc_result *result = torc_unary(ch, "/a.B/C", "", 0, &call);
    assert_int_equal(torc_result_code(result), TORC_STATUS_OK);
    torc_result_free(result);
    torc_channel_free(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_of_two_targets),
                                       cmocka_unit_test(test_a_stream_that_is_given_back)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
