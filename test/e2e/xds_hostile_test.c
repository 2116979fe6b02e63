/* A control plane that sends what no client should accept. `torc call`, as a process, rejects it within a second of CPU
 * time and grows by less than 20,000 KiB, and its RPCs go on. CPU time and memory are asserted only where
 * FOOTPRINT_MEASURED. Wall time is only printed, because other load on the machine counts in it.
 *
 * The tests share one mesh and one client (open_world). The client's RPCs go to the cluster "good", at backend 0 until
 * a_huge_response moves it to backend 1. The hostile assignments are for the cluster "victim", to which no RPC goes.
 * send_it runs on the servers' thread (kits/mesh.h), all else on the test's.
 *
 * The last test differs: a channel in the test's process has a bootstrap whose limit even a good response exceeds. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/kits/mesh.h"
#include "support/kits/process.h"

#include "base/clock.h"
#include "base/mem.h"
#include "proto/wire.h"

#define EDS_URL "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
#define MANY 1000000
#define HUGE_BYTES ((size_t)80 << 20)
#define WAIT_NS INT64_C(60000000000)

static struct kit_mesh *k;
static struct kit_process *client;

static int64_t now_ns(void)
{
    return (int64_t)tc_system_clock.monotonic_ns(NULL);
}

/* --- the hostile resources --- */

/* A response with one assignment. All that it refers to is borrowed. */
struct sending {
    const struct tc_buf *resource;
    const char *version;
};

static void send_it(struct tc_control_plane *cp, void *arg)
{
    const struct sending *s = arg;
    struct tc_slice resource = tc_buf_slice(s->resource);
    tc_control_plane_send(cp, EDS_URL, s->version, &resource, 1);
}

/* Returns the beginning of a serialised ClusterLoadAssignment: the cluster's name, "victim". `refuses` frees it. */
static struct tc_buf assignment(void)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "\x0a\x06victim");
    return b;
}

/* Sends the resource and waits for the client's reaction: a NACK that contains `nack`, or, if nack is NULL, the text
 * `logged` in the client's log. Waits for 20 more calls, asserts the limits of CPU time and memory, and frees the
 * resource. `what` is printed, and is the response's version. */
static void refuses(const char *what, struct tc_buf resource, const char *nack, const char *logged)
{
    struct sending s = {&resource, what};
    tc_free(kit_mesh_requests(k));
    kit_process_reset_peak(client);
    long before_kb = kit_process_resident_kb(client);
    int64_t begin = now_ns();
    double cpu = kit_process_cpu_ms(client);
    kit_mesh_do(k, send_it, &s);
    if (nack)
        kit_mesh_wait_request(k, nack);
    else
        kit_process_wait_log(client, logged);
    double ms = (double)(now_ns() - begin) / 1e6;
    cpu = kit_process_cpu_ms(client) - cpu;
    kit_process_go_on(client, 20);
    long grown_kb = kit_process_peak_kb(client) - before_kb;
    print_message(
        "%s, %zu bytes: refused in %.0f ms (%.0f of the client's processor), %ld kB more resident at the most\n", what,
        resource.len, ms, cpu, grown_kb);
    if (FOOTPRINT_MEASURED) {
        assert_true(cpu < 1000);
        assert_true(grown_kb < 20 * 1000);
    }
    tc_buf_fini(&resource);
}

/* --- tests --- */

static int open_world(void **state)
{
    (void)state;
    k = kit_process_mesh(NULL);
    client = kit_process_new(k, NULL);
    kit_process_go_on(client, 20);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    kit_process_free(client);
    kit_mesh_free(k);
    return 0;
}

static void one_huge_priority(void **state)
{
    TC_CASE(ED16);
    (void)state;
    struct tc_buf b = assignment();
    /* endpoints { locality {region: "r"} load_balancing_weight {value: 1} priority: 4294967295 } */
    tc_buf_append(&b, "\x12\x0f\x0a\x03\x0a\x01r\x1a\x02\x08\x01\x28\xff\xff\xff\xff\x0f", 17);
    refuses("one priority 4294967295", b, "4294967295 is beyond the limit of 128 priorities", NULL);
}

static void a_million_localities(void **state)
{
    (void)state;
    struct tc_buf b = assignment();
    for (size_t i = 0; i < MANY; i++)
        tc_buf_append(&b, "\x12\x00", 2);
    refuses("a million localities with nothing in them", b, "field endpoints", NULL);
    b = assignment();
    for (size_t i = 0; i < MANY; i++) { /* {locality {sub_zone: "00000"} load_balancing_weight {value: 1}} */
        char text[16];
        snprintf(text, sizeof(text), "%05zx", i);
        tc_buf_append(&b, "\x12\x0d\x0a\x07\x1a\x05", 6);
        tc_buf_append(&b, text, 5);
        tc_buf_append(&b, "\x1a\x02\x08\x01", 4);
    }
    refuses("a million localities without endpoints", b, "field endpoints", NULL);
}

static void a_huge_response(void **state)
{
    TC_CASE(AD29);
    (void)state;
    struct tc_buf b = assignment();
    tc_buf_append_char(&b, '\x12'); /* one locality of HUGE_BYTES zeros */
    tc_wire_append_varint(&b, HUGE_BYTES);
    memset(tc_buf_reserve(&b, HUGE_BYTES), 0, HUGE_BYTES);
    b.len += HUGE_BYTES;
    refuses("a response of 80 MB", b, NULL, "larger than max (838");
    kit_process_wait_log(client, "vs. 67108864");
    /* On the next stream the client asks for both assignments, and changes arrive. */
    kit_mesh_wait_request(k, "ClusterLoadAssignment 2 good victim");
    kit_mesh_take(k, 1);
    kit_mesh_put_endpoints(k, "good", "0/a: 1", NULL);
    for (int64_t end = now_ns() + WAIT_NS; kit_mesh_take(k, 1) == 0; (void)poll(NULL, 0, 5))
        if (now_ns() > end)
            fail_msg("a change does not get through");
    kit_process_go_on(client, 20);
}

/* The bootstrap sets the limit: 100 bytes, less than the response with the listener has. */
static void a_limit_of_the_bootstrap(void **state)
{
    (void)state;
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure()};
    char *bootstrap = tc_asprintf("{\"xds_servers\": [{\"server_uri\": \"%s\", \"channel_creds\": [{\"type\": "
                                  "\"insecure\"}]}], \"node\": {\"id\": \"n\"}, "
                                  "\"torc.limits\": {\"ads_message_bytes\": 100}}",
                                  kit_mesh_control_plane(k));
    o.xds_bootstrap_json = bootstrap;
    torc_channel *ch = kit_mesh_channel(k, "svc", &o);
    kit_mesh_wait_failure(ch, TORC_STATUS_UNAVAILABLE, " vs. 100)");
    torc_channel_free(ch);
    tc_free(bootstrap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_huge_priority),
        cmocka_unit_test(a_million_localities),
        cmocka_unit_test(a_huge_response),
        cmocka_unit_test(a_limit_of_the_bootstrap),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
