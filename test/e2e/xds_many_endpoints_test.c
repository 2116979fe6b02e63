/* Valid assignments of tens of thousands of endpoints, with a policy that connects to all of them. RPCs to another
 * cluster go on, other channels connect, and connection attempts take at most half of the process's descriptors.
 *
 * The tests share one mesh and one client, `torc call` as a process (open_world), whose RPCs go to the cluster "good".
 * The tests assign endpoints to the cluster "victim", which has round_robin. The endpoints are loopback addresses with
 * one port, where connections stay unanswered (struct silence) or are refused (port_hold). The test's process and the
 * client may have DESCRIPTORS descriptors each. others_connect has a runtime and channels of its own in the test's
 * process. send_it runs on the servers' thread (kits/mesh.h), all else on the test's. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/kits/process.h"
#include "support/messages.h"
#include "support/net/port.h"

#include "base/mem.h"

#define EDS "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

enum { SILENT = 50000, REFUSED = 20000, DESCRIPTORS = 1024 };

/* The client's calls were held up if the longest of them and the CPU time both reach this. A long call alone may be due
 * to a machine that stalls. */
#define HELD_MS_MAX 1000

static struct kit_mesh *k;
static struct kit_process *client;

/* A port that is silent on all of 127.0.0.0/8: its listener's backlog is full, and SYNs are dropped. */
struct silence {
    int listener, fillers[4]; /* fillers: connections that fill the backlog */
    uint16_t port;
};

static void silence_begin(struct silence *s)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t len = sizeof(in);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&in, len), 0);
    assert_int_equal(listen(s->listener, 0), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&in, &len), 0);
    s->port = ntohs(in.sin_port);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (size_t i = 0; i < TC_ARRAY_LEN(s->fillers); i++) {
        s->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(s->fillers[i], (struct sockaddr *)&in, len);
    }
}

static void silence_end(struct silence *s)
{
    for (size_t i = 0; i < TC_ARRAY_LEN(s->fillers); i++)
        close(s->fillers[i]);
    close(s->listener);
}

/* Returns a serialised assignment of "victim": one locality of n endpoints with distinct addresses and this port. The
 * caller frees it with tc_buf_fini. */
static struct tc_buf assignment(uint32_t n, uint16_t port)
{
    enum { CLUSTER_NAME = 1, ENDPOINTS = 2 };
    enum { LOCALITY = 1, LB_ENDPOINTS = 2, WEIGHT = 3 };
    struct tc_buf b = {0}, locality = {0}, weight = {0};
    for (uint32_t i = 0; i < n; i++) {
        struct tc_buf socket_address = {0}, address = {0}, endpoint = {0}, lb = {0};
        char text[32];
        snprintf(text, sizeof(text), "127.%u.%u.%u", 1 + (i >> 16), i >> 8 & 255, i & 255);
        message_text(&socket_address, 2, text);
        message_number(&socket_address, 3, port);
        message_within(&address, 1, &socket_address);
        message_within(&endpoint, 1, &address);
        message_within(&lb, 1, &endpoint);
        message_within(&locality, LB_ENDPOINTS, &lb);
    }
    message_text(&locality, LOCALITY, "");
    message_number(&weight, 1, 1);
    message_within(&locality, WEIGHT, &weight);
    message_text(&b, CLUSTER_NAME, "victim");
    message_within(&b, ENDPOINTS, &locality);
    return b;
}

/* A response with one assignment. All that it refers to is borrowed. */
struct sending {
    const char *version;
    struct tc_slice resource;
};

static void send_it(struct tc_control_plane *cp, void *arg)
{
    const struct sending *s = arg;
    tc_control_plane_send(cp, EDS, s->version, &s->resource, 1);
}

/* Assigns n endpoints with this port to "victim", and waits until a client has accepted them. */
static void assign(const char *version, uint32_t n, uint16_t port)
{
    struct tc_buf b = assignment(n, port);
    struct sending s = {version, tc_buf_slice(&b)};
    char *accepted = tc_asprintf("ClusterLoadAssignment %s ", version);
    tc_free(kit_mesh_requests(k));
    kit_mesh_do(k, send_it, &s);
    kit_mesh_wait_request(k, accepted);
    tc_free(accepted);
    tc_buf_fini(&b);
}

/* Assigns n endpoints with this port; `what` is the version. Asserts that the client's calls go on while it
 * connects to the endpoints. */
static void others_go_on(const char *what, uint32_t n, uint16_t port)
{
    long before_kb = kit_process_resident_kb(client);
    double cpu = kit_process_cpu_ms(client);
    kit_process_longest_ms(client);
    assign(what, n, port);
    kit_process_go_on(client, 100);
    double longest_ms = kit_process_longest_ms(client);
    cpu = kit_process_cpu_ms(client) - cpu;
    print_message("%u %s endpoints: %.0f ms of CPU, %ld kB, %zu descriptors, the longest call to others %.0f ms\n", n,
                  what, cpu, kit_process_resident_kb(client) - before_kb, kit_process_descriptors(client), longest_ms);
    if (FOOTPRINT_MEASURED)
        assert_true(TC_MIN(longest_ms, cpu) < HELD_MS_MAX);
}

/* Waits until the client's number of descriptors is in this range: 20 looks, ten of the client's calls (0.1 s)
 * apart. */
static void wait_descriptors(size_t least, size_t most)
{
    size_t n = 0;
    for (int i = 0; i < 20; i++) {
        n = kit_process_descriptors(client);
        if (n >= least && n <= most)
            return;
        kit_process_go_on(client, 10);
    }
    fail_msg("%zu descriptors, not %zu to %zu", n, least, most);
}

static void silent_endpoints(void **state)
{
    (void)state;
    struct silence s;
    silence_begin(&s);
    size_t before = kit_process_descriptors(client);
    others_go_on("silent", SILENT, s.port);
    wait_descriptors(DESCRIPTORS / 2, DESCRIPTORS / 2 + before);
    /* Connection attempts end with their endpoints. */
    assign("one", 1, s.port);
    wait_descriptors(0, before + 1);
    kit_process_go_on(client, 10);
    silence_end(&s);
}

static void refusing_endpoints(void **state)
{
    (void)state;
    size_t before = kit_process_descriptors(client);
    uint16_t port;
    int held = port_hold(&port);
    others_go_on("refusing", REFUSED, port);
    assign("one again", 1, port);
    wait_descriptors(0, before);
    kit_process_go_on(client, 10);
    close(held);
}

/* Silent endpoints use up all connection attempts: a new channel must not wait for them. */
static void others_connect(void **state)
{
    (void)state;
    enum { SOON_MS = 60000, ATTEMPT_MS = 3600000 }; /* no silent attempt ends meanwhile */
    struct silence s;
    struct torc_runtime_options ro = {TORC_SIZE(torc_runtime_options)};
    torc_runtime *rt = torc_runtime_new(&ro, NULL);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .connect_timeout_ms = ATTEMPT_MS, .xds_bootstrap_json = kit_mesh_bootstrap(k)};
    torc_channel *silent = torc_channel_new(rt, "xds:///svc", &o, NULL);
    kit_mesh_calls(silent, NULL, 1);
    silence_begin(&s);
    size_t before = footprint_descriptors();
    assign("silent to this process", SILENT, s.port);
    while (footprint_descriptors() < before + DESCRIPTORS / 2)
        kit_mesh_calls(silent, "to: good", 1);
    char *target = tc_asprintf("ipv4:%s", kit_mesh_address(k, 0));
    torc_channel *fresh = torc_channel_new(rt, target, NULL, NULL);
    assert_int_equal(torc_channel_connect(fresh, SOON_MS), 0);
    tc_free(target);
    torc_channel_free(fresh);
    torc_channel_free(silent);
    torc_runtime_free(rt);
    silence_end(&s);
}

static int open_world(void **state)
{
    (void)state;
    struct rlimit few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &few), 0);
    few.rlim_cur = DESCRIPTORS;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    k = kit_process_mesh("lb_policy: ROUND_ROBIN");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_endpoints),
        cmocka_unit_test(refusing_endpoints),
        cmocka_unit_test(others_connect),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
