/* A network with faults beneath TCP: latency, loss, partitions, half-open connections. Skipped (exit code 77) where the
 * system permits no namespaces or no tun device; faults_test.c has the faults that a proxy can make.
 *
 * main moves the process to a network namespace of its own. setup makes one wire (net/wire.h) for all tests, and the
 * client's runtime `rt`; teardown frees both. Each test makes its own backends and leads paths of the wire to them;
 * wire_path resets a path. The test's thread drives `rt`, so the callbacks of struct batch run there; backends and wire
 * have threads of their own. Two channels are not on `rt`: the channel of ring_moves is on the runtime of its mesh, the
 * channel of half_open's load on the default runtime. Both runtimes have threads of their own, and so has the load.
 * Each test frees its channels and backends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/torc.h>

#include "support/cmocka.h"
#include "support/kits/backends.h"
#include "support/kits/load.h"
#include "support/kits/mesh.h"
#include "support/net/wire.h"

#include "base/clock.h"
#include "base/mem.h"

/* The upper bound of durations, for busy machines. half_open adds it to the times of the keepalive. */
enum { SLOW_MS = 60000 };

static torc_runtime *rt; /* driven by the test's thread */

static uint64_t now_ms(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg) / TC_NS_PER_MS;
}

static void quick_backoff(struct torc_channel_options *o)
{
    *o = (struct torc_channel_options){TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                       .backoff_initial_ms = 50, .backoff_max_ms = 100};
}

/* Returns a channel; the test frees it. runtime: NULL is the default runtime. options: NULL is quick_backoff's. */
static torc_channel *channel_on(torc_runtime *runtime, const char *address, const struct torc_channel_options *options)
{
    struct torc_channel_options o;
    quick_backoff(&o);
    char *target = tc_asprintf("ipv4:%s", address);
    torc_channel *ch = torc_channel_new(runtime, target, options ? options : &o, NULL);
    assert_non_null(ch);
    tc_free(target);
    return ch;
}

static torc_channel *channel_to(const char *address, const struct torc_channel_options *options)
{
    return channel_on(rt, address, options);
}

struct batch {
    int begun, ok, failed;
    int code;          /* of the last failed call */
    char text[256];    /* of the last failed call */
    uint64_t ended_ms; /* when the last call ended */
};

static void on_result(const torc_result *r, void *arg)
{
    struct batch *b = arg;
    b->ended_ms = now_ms();
    if (torc_result_code(r) == TORC_STATUS_OK) {
        b->ok++;
        return;
    }
    b->code = torc_result_code(r);
    snprintf(b->text, sizeof(b->text), "%s", torc_result_text(r));
    b->failed++;
}

/* Starts a call of the batch on a channel of `rt`. wait: wait for ready. The batch must outlive the call. */
static void start(struct batch *b, torc_channel *ch, const char *method, bool wait, int64_t timeout_ms)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .wait_for_ready = wait, .timeout_ms = timeout_ms};
    b->begun++;
    assert_int_equal(torc_unary_async(ch, method, "x", 1, &o, on_result, b, NULL, NULL), 0);
}

/* Drives the runtime until at most `running` calls are left. */
static void await(struct batch *b, int running)
{
    while (b->begun - b->ok - b->failed > running)
        torc_runtime_poll(rt, 1000);
}

/* --- latency --- */

enum { ONE_WAY_MS = 25, FAR_MS = 100, LARGE = 8 << 20, WINDOW = 65536 };

/* Makes n backends that take messages of LARGE bytes and 1000 calls at a time on a connection. */
static struct kit_backends *large_kit(size_t n)
{
    struct tc_server_opts o;
    tc_server_opts_init(&o);
    o.http2.limits.max_receive_message_bytes = LARGE;
    o.http2.limits.max_concurrent_streams = 1000;
    return kit_backends_new(n, &o);
}

static void latency(void **state)
{
    struct wire *w = *state;
    struct kit_backends *kit = large_kit(1);
    const char *address = wire_path(w, 0, kit_backends_listen_everywhere(kit, 0));
    wire_delay(w, 0, ONE_WAY_MS);
    torc_channel *ch = channel_to(address, NULL);
    assert_int_equal(torc_channel_connect(ch, 60000), 0);
    assert_true(kit_backends_expect(ch, false, 60000, TORC_STATUS_OK, "") >= 2 * ONE_WAY_MS);
    /* RPCs do not wait for one another: a thousand take at most 500 round trips. */
    struct batch b = {0};
    uint64_t begun = now_ms();
    for (int i = 0; i < 1000; i++)
        start(&b, ch, "/a.B/C", false, 60000);
    await(&b, 0);
    uint64_t took = now_ms() - begun;
    assert_int_equal(b.ok, 1000);
    assert_in_range(took, 2 * ONE_WAY_MS, 1000 * 2 * ONE_WAY_MS / 2);

    /* A deadline of 1 s ends the RPC: the round trip takes 3 s. */
    wire_delay(w, 0, 1500);
    took = kit_backends_expect(ch, false, 1000, TORC_STATUS_DEADLINE_EXCEEDED, "waiting for the response of 10.9.0.2");
    assert_true(took >= 1000);
    torc_channel_free(ch);
    kit_backends_free(kit);
}

/* Sends a message of 128 initial windows and receives its echo. Returns the duration in ms. */
static uint64_t send_large(torc_channel *ch)
{
    torc_result *r;
    char *large = tc_calloc(1, LARGE);
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 60000,
                                  .max_receive_message_bytes = LARGE};
    uint64_t begun = now_ms();
    r = torc_unary(ch, "/a.B/C", large, LARGE, &o);
    uint64_t took = now_ms() - begun;
    if (torc_result_code(r) != TORC_STATUS_OK)
        fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    assert_int_equal(torc_message_size(torc_result_response(r)), LARGE);
    torc_result_free(r);
    tc_free(large);
    return took;
}

/* Windows grow with the path's bandwidth-delay product: one of the first five messages (on a fast machine the first)
 * takes at most half of the time that it would need with the initial windows. */
static void windows_grow(void **state)
{
    const uint64_t fixed_ms = 2 * (LARGE / WINDOW) * 2 * FAR_MS;
    struct wire *w = *state;
    struct kit_backends *kit = large_kit(1);
    torc_channel *ch = channel_to(wire_path(w, 0, kit_backends_listen_everywhere(kit, 0)), NULL);
    wire_delay(w, 0, FAR_MS);
    assert_int_equal(torc_channel_connect(ch, 60000), 0);
    uint64_t took = fixed_ms;
    for (int i = 0; i < 5 && took >= fixed_ms / 2; i++) {
        took = send_large(ch);
        print_message("two times %d bytes, %d ms there and back: %llu ms; with fixed windows %llu\n", LARGE, 2 * FAR_MS,
                      (unsigned long long)took, (unsigned long long)fixed_ms);
    }
    assert_in_range(took, 2 * FAR_MS, fixed_ms / 2);
    torc_channel_free(ch);
    kit_backends_free(kit);
}

/* --- loss --- */

/* One packet in twenty is lost. No RPC fails, and all use one connection. */
static void loss(void **state)
{
    struct wire *w = *state;
    struct kit_backends *kit = large_kit(1);
    struct batch b = {0};
    torc_channel *ch = channel_to(wire_path(w, 0, kit_backends_listen_everywhere(kit, 0)), NULL);
    assert_int_equal(torc_channel_connect(ch, 60000), 0);
    wire_delay(w, 0, 1);
    wire_loss(w, 0, 0.05);
    for (int i = 0; i < 500; i++) {
        await(&b, 7);
        start(&b, ch, "/a.B/C", false, 60000);
    }
    await(&b, 0);
    if (b.failed)
        fail_msg("%d failed, one with %s: %s", b.failed, torc_status_code_name(b.code), b.text);
    assert_int_equal(b.ok, 500);
    assert_true(wire_lost(w, 0) > 0);
    assert_int_equal(kit_backends_counts(kit, 0).connections, 1);
    print_message("500 RPCs; %llu packets passed, %llu were lost\n", (unsigned long long)wire_passed(w, 0),
                  (unsigned long long)wire_lost(w, 0));
    torc_channel_free(ch);
    kit_backends_free(kit);
}

/* --- partitions --- */

/* A channel that is connected before the partition goes on afterwards over the same connection. A channel that is not
 * connected cannot connect during the partition, and connects after it. */
static void partition(void **state)
{
    struct wire *w = *state;
    struct kit_backends *kit = large_kit(2);
    struct torc_channel_options o;
    quick_backoff(&o);
    o.connect_timeout_ms = 300;
    torc_channel *old = channel_to(wire_path(w, 0, kit_backends_listen_everywhere(kit, 0)), NULL);
    torc_channel *fresh = channel_to(wire_path(w, 1, kit_backends_listen_everywhere(kit, 1)), &o);
    struct batch b = {0};
    assert_int_equal(torc_channel_connect(old, 60000), 0);
    wire_cut(w, 0, true, true);
    wire_cut(w, 1, true, true);
    start(&b, old, "/a.B/C", true, 60000);
    start(&b, fresh, "/a.B/C", true, 60000);
    uint64_t took =
        kit_backends_expect(old, false, 1000, TORC_STATUS_DEADLINE_EXCEEDED, "waiting for the response of 10.9.0.2");
    assert_in_range(took, 1000, SLOW_MS);
    took = kit_backends_expect(fresh, false, 60000, TORC_STATUS_UNAVAILABLE, "failed to connect to 10.9.0.3");
    assert_in_range(took, 0, SLOW_MS);
    kit_backends_expect(fresh, false, 60000, TORC_STATUS_UNAVAILABLE,
                        "timed out after 300 ms, waiting for the connection");
    assert_int_equal(b.ok + b.failed, 0); /* both calls of the batch still wait */
    wire_cut(w, 0, false, false);
    wire_cut(w, 1, false, false);
    await(&b, 0);
    if (b.ok != 2)
        fail_msg("%s: %s", torc_status_code_name(b.code), b.text);
    kit_backends_expect(old, false, 60000, TORC_STATUS_OK, "");
    kit_backends_expect(fresh, false, 60000, TORC_STATUS_OK, "");
    assert_int_equal(kit_backends_counts(kit, 0).connections, 1);
    torc_channel_free(old);
    torc_channel_free(fresh);
    kit_backends_free(kit);
}

/* Leads paths 0 to 2 to backends 0 to 2, and puts the listener "svc" and a RING_HASH cluster of these paths' addresses.
 * The header "user" is the key. */
static void put_ring(struct kit_mesh *k, struct wire *w)
{
    struct tc_buf b = {0};
    tc_buf_append_str(&b,
                      "resources:\n- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                      "  cluster_name: c\n  endpoints:\n  - locality: {sub_zone: z}\n    load_balancing_weight: 1\n"
                      "    lb_endpoints:\n");
    for (unsigned i = 0; i < 3; i++) {
        kit_mesh_spread(k, i);
        uint16_t port = (uint16_t)strtoul(strrchr(kit_mesh_address(k, i), ':') + 1, NULL, 10);
        wire_path(w, i, port);
        tc_buf_printf(&b,
                      "    - endpoint: {address: {socket_address: {address: 10.9.0.%u, port_value: %u}}}\n"
                      "      load_balancing_weight: 1\n",
                      2 + i, port);
    }
    kit_mesh_put_listener(k, "svc", "c", "[{header: {header_name: user}}]");
    kit_mesh_put_cluster(k, "c", NULL);
    kit_mesh_put(k, "%s", tc_buf_cstr(&b));
    tc_buf_fini(&b);
}

/* Makes an RPC of the user. Returns its path, or WIRE_PATHS if it failed, which must be with UNAVAILABLE. */
static unsigned path_of(torc_channel *ch, unsigned user)
{
    char header[32];
    snprintf(header, sizeof(header), "user: u%u", user);
    torc_result *r = kit_mesh_call(ch, header, false, 60000);
    unsigned path = WIRE_PATHS;
    bool served = torc_result_code(r) == TORC_STATUS_OK;
    if (served)
        assert_int_equal(sscanf(torc_result_peer(r), "10.9.0.%u:", &path), 1);
    else
        assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    torc_result_free(r);
    return served ? path - 2 : WIRE_PATHS;
}

/* The network cuts off a backend: an RPC to it fails once sent data was not acknowledged for the keepalive timeout
 * (A18). The backend's keys move to the other backends, whose own keys stay. When the path works again, the keys that
 * moved return to the backend. */
static void ring_moves(void **state)
{
    enum { USERS = 12, UNHEARD_MS = 2000 };
    struct wire *w = *state;
    struct kit_mesh *k = kit_mesh_new(3);
    unsigned home[USERS], moved = 0;
    put_ring(k, w);
    struct torc_channel_options o = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                     .connect_timeout_ms = 3000, .keepalive_time_ms = 10000,
                                     .keepalive_timeout_ms = UNHEARD_MS};
    torc_channel *ch = kit_mesh_channel(k, "svc", &o);
    for (unsigned u = 0; u < USERS; u++)
        assert_in_range(home[u] = path_of(ch, u), 0, 2);
    wire_cut(w, home[0], true, true);
    uint64_t begun = now_ms();
    torc_result *r = kit_mesh_call(ch, "user: u0", false, 60000);
    if (torc_result_code(r) != TORC_STATUS_UNAVAILABLE ||
        !strstr(torc_result_text(r), "nothing was acknowledged for 2000 ms, the keepalive timeout"))
        fail_msg("%s: %s", torc_status_code_name(torc_result_code(r)), torc_result_text(r));
    torc_result_free(r);
    assert_in_range(now_ms() - begun, UNHEARD_MS, SLOW_MS);
    for (unsigned u = 0; u < USERS; u++) {
        unsigned path = path_of(ch, u);
        assert_in_range(path, 0, 2);
        assert_int_not_equal(path, home[0]);
        if (home[u] != home[0])
            assert_int_equal(path, home[u]);
        else
            moved++;
    }
    assert_true(moved > 0);
    wire_cut(w, home[0], false, false);
    uint64_t until = now_ms() + SLOW_MS;
    while (path_of(ch, 0) != home[0] && now_ms() < until)
        ;
    for (unsigned u = 0; u < USERS; u++)
        assert_int_equal(path_of(ch, u), home[u]);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

/* --- half-open connections --- */

/* Packets from the backend are dropped, packets to it arrive. With keepalive the connection is closed when a PING was
 * not answered in time. Without keepalive RPCs end by their deadlines, and the connection is used again when packets
 * pass. RPCs to another backend are not affected. */
static void half_open(void **state)
{
    enum { TIME_MS = 10000, TIMEOUT_MS = 2000 };
    struct wire *w = *state;
    struct kit_backends *kit = large_kit(3);
    struct torc_channel_options o;
    struct kit_load_report report;
    quick_backoff(&o);
    o.keepalive_time_ms = TIME_MS;
    o.keepalive_timeout_ms = TIMEOUT_MS;
    torc_channel *kept = channel_to(wire_path(w, 0, kit_backends_listen_everywhere(kit, 0)), &o);
    torc_channel *bare = channel_to(wire_path(w, 1, kit_backends_listen_everywhere(kit, 1)), NULL);
    torc_channel *other =
        channel_on(NULL, wire_path(w, 2, kit_backends_listen_everywhere(kit, 2)), NULL); /* on the default runtime */
    struct batch b = {0}, c = {0};
    kit_backends_expect(kept, false, 60000, TORC_STATUS_OK, "");
    kit_backends_expect(bare, false, 60000, TORC_STATUS_OK, "");
    kit_backends_expect(other, false, 60000, TORC_STATUS_OK, "");
    struct kit_load *load = kit_load_new(other, 50, 1);
    uint64_t heard = now_ms();
    start(&b, kept, "torc.test.Backend/Hang", false, 0);
    start(&c, bare, "torc.test.Backend/Hang", false, 8000);
    while (kit_backends_counts(kit, 0).open_calls < 1 || kit_backends_counts(kit, 1).open_calls < 1)
        torc_runtime_poll(rt, 10);
    /* No acknowledgement may be in flight when the path is cut: unacknowledged data would end the connection sooner. */
    wire_wait_quiet(w, 0, 300);
    uint64_t begun = now_ms();
    wire_cut(w, 0, false, true);
    wire_cut(w, 1, false, true);
    await(&c, 0);
    assert_int_equal(c.code, TORC_STATUS_DEADLINE_EXCEEDED);
    assert_non_null(strstr(c.text, "waiting for the response of 10.9.0.3"));
    wire_cut(w, 1, false, false);
    kit_backends_expect(bare, false, 60000, TORC_STATUS_OK, "");
    assert_int_equal(kit_backends_counts(kit, 1).connections, 1);

    await(&b, 0);
    uint64_t took = b.ended_ms - begun;
    print_message("given up after %llu ms: %s\n", (unsigned long long)took, b.text);
    assert_int_equal(b.code, TORC_STATUS_UNAVAILABLE);
    assert_non_null(strstr(b.text, "keepalive"));
    assert_in_range(took, 0, TIME_MS + TIMEOUT_MS + SLOW_MS);
    /* The PING leaves TIME_MS after the last byte, and has TIMEOUT_MS for its answer. 1 s of slack. */
    assert_true(b.ended_ms - heard >= TIME_MS + TIMEOUT_MS - 1000);
    wire_cut(w, 0, false, false);
    kit_backends_expect(kept, true, 60000, TORC_STATUS_OK, "");
    assert_int_equal(kit_backends_counts(kit, 0).connections, 2);
    kit_load_free(load, &report);
    if (report.failed)
        fail_msg("another backend's: %s", report.first);
    torc_channel_free(kept);
    torc_channel_free(bare);
    torc_channel_free(other);
    kit_backends_free(kit);
}

static int setup(void **state)
{
    rt = kit_backends_runtime(TORC_RUNTIME_CALLER);
    *state = wire_new(42);
    return 0;
}

static int teardown(void **state)
{
    wire_free(*state);
    torc_runtime_free(rt);
    return 0;
}

int main(void)
{
    const char *why = wire_enter();
    if (why) {
        print_message("skipped: %s\n", why);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency),   cmocka_unit_test(windows_grow), cmocka_unit_test(loss),
        cmocka_unit_test(partition), cmocka_unit_test(ring_moves),   cmocka_unit_test(half_open),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
