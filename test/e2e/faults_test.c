/* Faults around a client that a test can make without privileges: no descriptors left (RLIMIT_NOFILE); and, by a TCP
 * proxy that stops (net/wire_proxy.h), a network that stops and goes on, and a control plane out of reach.
 * faults_wire_test.c has the faults beneath TCP.
 *
 * Each test makes its servers, proxy, channels and load, and frees them. The test's thread makes blocking calls. The
 * channels' runtime (the default one, or the mesh's), the servers, the proxy and the load have threads of their own. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/load.h"
#include "support/kits/mesh.h"
#include "support/net/wire_proxy.h"

#include "base/mem.h"

/* Returns a channel on the default runtime, with short backoffs. The test frees the channel. */
static torc_channel *channel_to(const char *address)
{
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .backoff_initial_ms = 50, .backoff_max_ms = 100};
    char *target = tc_asprintf("ipv4:%s", address);
    torc_channel *ch = torc_channel_new(NULL, target, &o, NULL);
    assert_non_null(ch);
    tc_free(target);
    return ch;
}

static rlim_t highest_descriptor(void)
{
    rlim_t highest = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        highest = TC_MAX(highest, (rlim_t)strtoul(e->d_name, NULL, 10));
    closedir(d);
    return highest;
}

/* Open connections are not affected. New connections fail with a clear text, and succeed once descriptors are free. */
static void no_descriptors(void **state)
{
    (void)state;
    struct kit_backends *kit = kit_backends_new(2, NULL);
    torc_channel *old = channel_to(kit_backends_address(kit, 0)), *fresh = channel_to(kit_backends_address(kit, 1));
    struct kit_load_report report;
    struct rlimit all, none;
    assert_int_equal(torc_channel_connect(old, 60000), 0);
    struct kit_load *load = kit_load_new(old, 200, 1);
    kit_load_wait(load, 10);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    none = all;
    none.rlim_cur = 3; /* no number below 3 is free */
    assert_true(highest_descriptor() > 3);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    kit_backends_expect(fresh, false, 60000, TORC_STATUS_UNAVAILABLE, "Too many open files");
    kit_load_wait(load, 100);
    kit_backends_expect(fresh, false, 60000, TORC_STATUS_UNAVAILABLE, "Too many open files");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    kit_backends_expect(fresh, true, 60000, TORC_STATUS_OK, "");
    kit_load_free(load, &report);
    if (report.failed)
        fail_msg("%s", report.first);
    torc_channel_free(old);
    torc_channel_free(fresh);
    kit_backends_free(kit);
}

/* While nothing passes, deadlines hold. When the path works again, RPCs succeed over the same connection. */
static void the_network_stops_and_goes_on(void **state)
{
    (void)state;
    struct kit_backends *kit = kit_backends_new(1, NULL);
    struct wire_proxy *path = wire_proxy_new(kit_backends_address(kit, 0));
    torc_channel *ch = channel_to(wire_proxy_address(path));
    kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "");
    wire_proxy_hold(path, true);
    kit_backends_expect(ch, false, 1000, TORC_STATUS_DEADLINE_EXCEEDED, "waiting for the response of 127.0.0.1");
    wire_proxy_hold(path, false);
    kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "");
    assert_int_equal(kit_backends_counts(kit, 0).connections, 1);
    torc_channel_free(ch);
    wire_proxy_free(path);
    kit_backends_free(kit);
}

/* Without a path to the control plane RPCs go on with the old config. Updates arrive again once the path works, also if
 * the control plane stopped meanwhile and starts again: then over a new connection. */
static void no_way_to_the_control_plane(void **state)
{
    (void)state;
    struct kit_mesh *k = kit_mesh_new(2);
    struct wire_proxy *path = wire_proxy_new(kit_mesh_control_plane(k));
    char *bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": "
                                  "\"insecure\"}]}], \"node\": {\"id\": \"n\"}}",
                                  wire_proxy_address(path));
    struct kit_load_report report;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .xds_bootstrap_json = bootstrap};
    kit_mesh_put_listener(k, "svc", "c", NULL);
    kit_mesh_put_cluster(k, "c", "lb_policy: ROUND_ROBIN");
    kit_mesh_put_endpoints(k, "c", "0/a: 0", NULL);
    torc_channel *ch = kit_mesh_channel(k, "svc", &o);
    kit_mesh_calls(ch, NULL, 1);
    struct kit_load *load = kit_load_new(ch, 200, 1);

    wire_proxy_hold(path, true);
    kit_mesh_put_endpoints(k, "c", "0/a: 1", NULL);
    kit_load_wait(load, 100);
    assert_int_equal(kit_mesh_handled(k, 1), 0); /* the old config is still in use */
    wire_proxy_hold(path, false);
    kit_mesh_wait_backend(k, ch, NULL, 1);
    assert_int_equal(wire_proxy_connections(path), 1); /* the connection was kept */

    wire_proxy_hold(path, true);
    kit_mesh_stop_control_plane(k);
    kit_load_wait(load, 200);
    wire_proxy_hold(path, false);
    kit_mesh_start_control_plane(k);
    kit_mesh_put_endpoints(k, "c", "0/a: 0", NULL);
    kit_mesh_wait_backend(k, ch, NULL, 0);
    wire_proxy_wait_connections(path, 2);

    kit_load_free(load, &report);
    if (report.failed)
        fail_msg("%llu of %llu: %s", (unsigned long long)report.failed, (unsigned long long)report.calls, report.first);
    torc_channel_free(ch);
    wire_proxy_free(path);
    tc_free(bootstrap);
    kit_mesh_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_descriptors),
        cmocka_unit_test(the_network_stops_and_goes_on),
        cmocka_unit_test(no_way_to_the_control_plane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
