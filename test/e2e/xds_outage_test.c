/* A ring of a hundred endpoints whose servers are all gone for a while: how many connections remain afterwards.
 *
 * The gRFCs demand: before the outage, endpoints that calls reached are connected, all others IDLE (A42). A lost
 * connection leaves its endpoint IDLE. From then on an attempt starts only for an endpoint
 *   - that a call's walk around the ring finds IDLE (A61's picker), or
 *   - that the proactive rule (A61) chooses: while the ring is CONNECTING or in TRANSIENT_FAILURE, its policy may get
 *     no picks, so an IDLE endpoint is tried whenever no endpoint is CONNECTING, or
 *   - that failed: it is tried until it is READY (A61, A62).
 *
 * So the remaining connections are at most one for each endpoint with an attempt since the outage began; check_bound
 * computes a bound on the number of these endpoints. If servers refuse connections, each failure lets the rule start
 * the next IDLE endpoint, and a long outage reaches all hundred: the bound is 100. If servers are silent, the calls'
 * attempts stay CONNECTING and the rule starts none: the bound is the number of endpoints that calls reached, plus one
 * for each attempt that failed when the servers came back.
 *
 * Each test has a mesh (setup). Its one backend, which can be reached on all loopback addresses, stands for the hundred
 * servers. The header "user", which has KEYS values, decides which endpoint a call reaches. The runtime's thread stores
 * the events of connections in `seen`, under its lock. In all_silent a thread of kits/load.h starts calls, too. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/case.h"
#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/load.h"
#include "support/kits/mesh.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/parse.h"
#include "ring/ring.h"

enum { ENDPOINTS = 100, KEYS = 8 };

static struct kit_mesh *k;
static torc_channel *ch;

/* Events of connections since forget(), by endpoint, 1 to ENDPOINTS. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned attempts[ENDPOINTS + 1], connected[ENDPOINTS + 1], failed[ENDPOINTS + 1];
    unsigned total; /* attempts */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Returns N of "127.0.0.N:PORT"; an N above ENDPOINTS fails the test. */
static size_t endpoint_of(const char *address)
{
    uint64_t n = 0;
    struct tc_slice text = tc_slice_str(address + strlen("127.0.0."));
    ptrdiff_t colon = tc_slice_find(text, tc_slice_str(":"));
    CHECK(colon > 0);
    CHECK(tc_parse_u64(tc_slice_of(text.data, (size_t)colon), ENDPOINTS, &n) == 0);
    return (size_t)n;
}

/* The channel's observer, on the runtime's thread. */
static void on_event(const char *kind, const char *detail, const char *reason, void *arg)
{
    (void)reason, (void)arg;
    if (strcmp(kind, "state") == 0 || strcmp(kind, "closed") == 0)
        return;
    size_t e = endpoint_of(detail);
    pthread_mutex_lock(&seen.lock);
    if (strcmp(kind, "connect") == 0) {
        seen.attempts[e]++;
        seen.total++;
    } else if (strcmp(kind, "connected") == 0) {
        seen.connected[e]++;
    } else {
        seen.failed[e]++;
    }
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
}

/* Returns the number of endpoints with an event in the array, one of `seen`. Called under the lock. */
static size_t count(const unsigned *by_endpoint)
{
    size_t n = 0;
    for (size_t e = 1; e <= ENDPOINTS; e++)
        n += by_endpoint[e] > 0;
    return n;
}

static void forget(void)
{
    pthread_mutex_lock(&seen.lock);
    memset(seen.attempts, 0, sizeof(seen.attempts));
    memset(seen.connected, 0, sizeof(seen.connected));
    memset(seen.failed, 0, sizeof(seen.failed));
    seen.total = 0;
    pthread_mutex_unlock(&seen.lock);
}

/* Waits until that many endpoints have an event in the array, one of `seen`: at most 60 s. Called without the lock. */
static void wait_count(const unsigned *by_endpoint, size_t n)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&seen.lock);
    int rc = 0;
    while (count(by_endpoint) < n && rc == 0)
        rc = pthread_cond_timedwait(&seen.changed, &seen.lock, &until);
    size_t there = count(by_endpoint);
    pthread_mutex_unlock(&seen.lock);
    assert_true(there >= n);
}

/* Asserts that n endpoints had an attempt, each exactly one. */
static void expect_attempts(size_t n)
{
    pthread_mutex_lock(&seen.lock);
    size_t endpoints = count(seen.attempts);
    unsigned total = seen.total;
    pthread_mutex_unlock(&seen.lock);
    assert_int_equal(endpoints, n);
    assert_int_equal(total, n);
}

static void put_endpoints(void)
{
    struct tc_buf b = {0};
    const char *port = strchr(kit_mesh_address(k, 0), ':') + 1;
    for (int i = 1; i <= ENDPOINTS; i++)
        tc_buf_printf(&b, "    - {endpoint: {address: {socket_address: {address: 127.0.0.%d, port_value: %s}}}}\n", i,
                      port);
    kit_mesh_put(k,
                 "resources:\n- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                 "  cluster_name: c\n  endpoints:\n  - locality: {region: r}\n    load_balancing_weight: 1\n"
                 "    lb_endpoints:\n%s",
                 tc_buf_cstr(&b));
    tc_buf_fini(&b);
}

static int setup(void **state)
{
    (void)state;
    k = kit_mesh_new(1);
    kit_mesh_spread(k, 0);
    put_endpoints();
    kit_mesh_put_cluster(k, "c", NULL);
    kit_mesh_put_listener(k, "svc", "c", "[{header: {header_name: user}}]");
    ch = kit_mesh_channel(k, "svc", NULL);
    torc_channel_observe(ch, on_event, NULL);
    forget();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    torc_channel_free(ch);
    kit_mesh_free(k);
    return 0;
}

/* Calls with each key, waiting for ready. Stores the endpoint that each key goes to. */
static void call_keys(size_t where[KEYS])
{
    for (int i = 0; i < KEYS; i++) {
        char header[32];
        snprintf(header, sizeof(header), "user: u%d", i);
        torc_result *r = kit_mesh_call(ch, header, true, 60000);
        assert_string_equal(torc_result_text(r), "");
        assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
        where[i] = endpoint_of(torc_result_peer(r));
        torc_result_free(r);
    }
}

/* Returns the number of different endpoints in the array. */
static size_t different(const size_t where[KEYS])
{
    size_t n = 0;
    for (int i = 0; i < KEYS; i++) {
        bool before = false;
        for (int j = 0; j < i; j++)
            before |= where[j] == where[i];
        n += !before;
    }
    return n;
}

/* Calls until each key goes to its endpoint in `home` again, at most 60 s. */
static void wait_home(const size_t home[KEYS])
{
    uint64_t until = tc_system_clock.monotonic_ns(NULL) + 60 * TC_NS_PER_S;
    size_t where[KEYS];
    do {
        assert_true(tc_system_clock.monotonic_ns(NULL) < until);
        call_keys(where);
    } while (memcmp(where, home, sizeof(where)) != 0);
}

/* Returns the number of endpoints that calls can have reached on the ring. A call walks from its key's entry past
 * endpoints that have failed since forget(), to the first endpoint that has not. Called under the lock. */
static size_t called(void)
{
    struct tc_ring_item items[ENDPOINTS];
    char keys[ENDPOINTS][32];
    bool met[ENDPOINTS] = {false};
    size_t n = 0;
    const char *port = strchr(kit_mesh_address(k, 0), ':') + 1;
    for (int i = 0; i < ENDPOINTS; i++) {
        snprintf(keys[i], sizeof(keys[i]), "127.0.0.%d:%s", i + 1, port);
        items[i] = (struct tc_ring_item){tc_slice_str(keys[i]), 1};
    }
    struct tc_ring *ring = tc_ring_new(items, ENDPOINTS, TC_RING_DEFAULT_MIN, TC_RING_SIZE_MAX, TC_RING_DEFAULT_CAP);
    for (int key = 0; key < KEYS; key++) {
        char user[16];
        snprintf(user, sizeof(user), "u%d", key);
        uint32_t size = tc_ring_size(ring), entry = tc_ring_find(ring, tc_xxh64_slice(tc_slice_str(user)));
        for (uint32_t step = 0; step < size; step++, entry = (entry + 1) % size) {
            uint32_t i = tc_ring_item_at(ring, entry);
            n += !met[i];
            met[i] = true;
            if (seen.failed[i + 1] == 0)
                break;
        }
    }
    tc_ring_unref(ring);
    return n;
}

/* Asserts that there are not more connections than endpoints with an attempt, and not more such endpoints than the
 * bound: the endpoints that calls reached, plus one for each failure, after which the rule tries one more (A61). */
static void check_bound(const char *what)
{
    pthread_mutex_lock(&seen.lock);
    size_t connected = count(seen.connected), attempted = count(seen.attempts), bound = called();
    for (size_t e = 1; e <= ENDPOINTS; e++)
        bound += seen.failed[e];
    unsigned total = seen.total;
    pthread_mutex_unlock(&seen.lock);
    bound = TC_MIN(bound, ENDPOINTS);
    uint64_t open = kit_mesh_open_connections(k, 0);
    print_message("%s: %llu connections stay, of %zu endpoints with an attempt (%u attempts); the bound is %zu\n", what,
                  (unsigned long long)open, attempted, total, bound);
    assert_true(attempted <= bound);
    assert_true(connected <= attempted);
    assert_true(open <= attempted);
}

static void all_refuse(void **state)
{
    TC_CASE(RH12);
    (void)state;
    size_t home[KEYS];
    call_keys(home);
    assert_int_equal(kit_mesh_open_connections(k, 0), different(home));
    expect_attempts(different(home));
    forget();
    kit_mesh_stop(k, 0);
    torc_result *r = kit_mesh_call(ch, "user: u0", false, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_UNAVAILABLE);
    torc_result_free(r);
    /* Without another call the rule reaches all endpoints. */
    wait_count(seen.failed, ENDPOINTS);
    kit_mesh_start(k, 0);
    wait_count(seen.connected, ENDPOINTS);
    wait_home(home);
    check_bound("all refused");
}

static void all_silent(void **state)
{
    (void)state;
    size_t home[KEYS];
    call_keys(home);
    size_t wanted = different(home);
    forget();
    kit_mesh_hold(k, 0);
    /* Waiting calls of all keys: one attempt for each endpoint that they hash to. */
    struct kit_load *load = kit_load_new(ch, 200, KEYS);
    wait_count(seen.attempts, wanted);
    expect_attempts(wanted);
    kit_mesh_start(k, 0);
    struct kit_load_report report;
    kit_load_free(load, &report);
    wait_home(home);
    /* When the silent port closed, it reset its connections: these attempts have failed, and count in the bound. */
    check_bound("all silent");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_refuse, setup, teardown),
        cmocka_unit_test_setup_teardown(all_silent, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
