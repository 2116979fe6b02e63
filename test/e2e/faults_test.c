/* What goes wrong around a client, shown by what works everywhere, the system's limits and a proxy: no descriptors are
 * left, the network stops and goes on, the control plane is out of reach. What only a device beneath TCP can do:
 * e2e/faults_wire. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <torc/torc.h>

#include "support/backend_kit.h"
#include "support/cmocka.h"
#include "support/load_kit.h"
#include "support/mesh_kit.h"
#include "support/wire_proxy.h"

#include "base/mem.h"

static torc_channel *channel_to(const char *address)
{
    struct torc_channel_options o;
    torc_channel_options_init(&o);
    o.backoff_initial_ms = 50;
    o.backoff_max_ms = 100;
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

/* Connections that stand are not touched, new ones fail by name, and come when there are descriptors again. */
static void no_descriptors(void **state)
{
    (void)state;
    struct tc_kit *kit = tc_kit_new(2, NULL);
    torc_channel *old = channel_to(tc_kit_address(kit, 0)), *fresh = channel_to(tc_kit_address(kit, 1));
    struct load_report report;
    struct rlimit all, none;
    assert_int_equal(torc_channel_connect(old, 20000), 0);
    struct load_kit *load = load_kit_new(old, 200, 1);
    load_kit_wait(load, 10);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    none = all;
    none.rlim_cur = 3; /* all that are free have larger numbers */
    assert_true(highest_descriptor() > 3);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    tc_kit_expect(fresh, false, 20000, TORC_STATUS_UNAVAILABLE, "Too many open files");
    load_kit_wait(load, 100);
    tc_kit_expect(fresh, false, 20000, TORC_STATUS_UNAVAILABLE, "Too many open files");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    tc_kit_expect(fresh, true, 20000, TORC_STATUS_OK, "");
    load_kit_free(load, &report);
    if (report.failed)
        fail_msg("%s", report.first);
    torc_channel_free(old);
    torc_channel_free(fresh);
    tc_kit_free(kit);
}

/* A path that swallows everything: deadlines hold, and when it goes on so do RPCs, over the same connection. */
static void the_network_stops_and_goes_on(void **state)
{
    (void)state;
    struct tc_kit *kit = tc_kit_new(1, NULL);
    struct wire_proxy *path = wire_proxy_new(tc_kit_address(kit, 0));
    torc_channel *ch = channel_to(wire_proxy_address(path));
    tc_kit_expect(ch, false, 20000, TORC_STATUS_OK, "");
    wire_proxy_hold(path, true);
    tc_kit_expect(ch, false, 200, TORC_STATUS_DEADLINE_EXCEEDED, "waiting for the response of 127.0.0.1");
    wire_proxy_hold(path, false);
    tc_kit_expect(ch, false, 20000, TORC_STATUS_OK, "");
    assert_int_equal(tc_kit_counts(kit, 0).connections, 1);
    torc_channel_free(ch);
    wire_proxy_free(path);
    tc_kit_free(kit);
}

/* Behind a path that swallows everything the control plane is not missed, and is heard again when the path is back,
 * over the same stream; when the path ended meanwhile, over the next one. */
static void no_way_to_the_control_plane(void **state)
{
    (void)state;
    struct mesh_kit *k = mesh_kit_new(2);
    struct wire_proxy *path = wire_proxy_new(mesh_kit_control_plane(k));
    char *bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": "
                                  "\"insecure\"}]}], \"node\": {\"id\": \"n\"}}",
                                  wire_proxy_address(path));
    struct torc_channel_options o;
    struct load_report report;
    torc_channel_options_init(&o);
    o.xds_bootstrap_json = bootstrap;
    mesh_kit_put_listener(k, "svc", "c", NULL);
    mesh_kit_put_cluster(k, "c", "lb_policy: ROUND_ROBIN");
    mesh_kit_put_endpoints(k, "c", "0/a: 0", NULL);
    torc_channel *ch = mesh_kit_channel(k, "svc", &o);
    mesh_kit_calls(ch, NULL, 1);
    struct load_kit *load = load_kit_new(ch, 200, 1);

    wire_proxy_hold(path, true);
    mesh_kit_put_endpoints(k, "c", "0/a: 1", NULL);
    load_kit_wait(load, 100);
    assert_int_equal(mesh_kit_handled(k, 1), 0); /* what was had is in use */
    wire_proxy_hold(path, false);
    mesh_kit_wait_backend(k, ch, NULL, 1);
    wire_proxy_wait_connections(path, 1);

    wire_proxy_hold(path, true);
    mesh_kit_stop_control_plane(k);
    load_kit_wait(load, 200);
    wire_proxy_hold(path, false);
    mesh_kit_start_control_plane(k);
    mesh_kit_put_endpoints(k, "c", "0/a: 0", NULL);
    mesh_kit_wait_backend(k, ch, NULL, 0);
    wire_proxy_wait_connections(path, 2);

    load_kit_free(load, &report);
    if (report.failed)
        fail_msg("%llu of %llu: %s", (unsigned long long)report.failed, (unsigned long long)report.calls, report.first);
    torc_channel_free(ch);
    wire_proxy_free(path);
    tc_free(bootstrap);
    mesh_kit_free(k);
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
