/* Outlier detection end to end, over real sockets (kits/mesh.h): a backend that fails RPCs is ejected for a while.
 *
 * Each test has a mesh of its own (struct world) with one ring_hash cluster. ring_hash and a header for each backend,
 * its key, decide where an RPC goes, so a test sees which backend is ejected. The RPCs that fail have the key of
 * backend 0, so only backend 0 is ejected. The test's thread makes all RPCs, one after another. */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"

#include "base/clock.h"
#include "base/mem.h"

/* A host whose success rate is more than a tenth of a standard deviation below the mean is ejected, but only one at a
 * time: max_ejection_percent is 10 by default. The interval is a second. */
#define EJECT_FOR(time)                                                                                                \
    "lb_policy: RING_HASH\n"                                                                                           \
    "  outlier_detection: {interval: 1s, base_ejection_time: " time ", success_rate_stdev_factor: 100, "               \
    "success_rate_minimum_hosts: 1, success_rate_request_volume: 1}"

enum { SOON_MS = 3000 };

struct world {
    struct kit_mesh *k;
    torc_channel *ch;
    size_t n;
    char *keys[4]; /* headers that hash to each backend */
};

static struct world open_world(size_t n, const char *endpoints, const char *cluster)
{
    struct world w = {.k = kit_mesh_new(n), .n = n};
    kit_mesh_put_endpoints(w.k, "c", endpoints, NULL);
    kit_mesh_put_cluster(w.k, "c", cluster);
    kit_mesh_put_listener(w.k, "svc", "c", "[{header: {header_name: address_hash}}]");
    w.ch = kit_mesh_channel(w.k, "svc", NULL);
    for (size_t i = 0; i < n; i++)
        w.keys[i] = tc_asprintf("address_hash: %s_0", kit_mesh_address(w.k, i));
    return w;
}

static void close_world(struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        tc_free(w->keys[i]);
    torc_channel_free(w->ch);
    kit_mesh_free(w->k);
}

/* Stores each backend's number of requests since the last take_all; `counts` has room for all backends. */
static void take_all(struct world *w, uint64_t *counts)
{
    for (size_t i = 0; i < w->n; i++)
        counts[i] = kit_mesh_take(w->k, i);
}

/* Makes an RPC with key i that ends with INTERNAL. */
static void fail_once(struct world *w, size_t i)
{
    torc_result *r;
    struct torc_call_options o = {TORC_SIZE(torc_call_options)};
    torc_metadata *md = torc_metadata_new();
    const char *value = w->keys[i] + strlen("address_hash: ");
    assert_int_equal(torc_metadata_add(md, "address_hash", value, strlen(value)), 0);
    o.metadata = md;
    o.timeout_ms = 60000;
    r = torc_unary(w->ch, "/torc.test.Backend/Fail", "13", 2, &o);
    assert_int_equal(torc_result_code(r), TORC_STATUS_INTERNAL);
    torc_result_free(r);
    torc_metadata_free(md);
}

static uint64_t now_ms(void)
{
    return tc_system_clock.monotonic_ns(tc_system_clock.arg) / TC_NS_PER_MS;
}

/* Makes two calls with each key; the second call with key 0 fails. All of them are usually in one interval. */
static void fail_one_of_all(struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        kit_mesh_calls(w->ch, w->keys[i], 1);
    fail_once(w, 0);
    for (size_t i = 1; i < w->n; i++)
        kit_mesh_calls(w->ch, w->keys[i], 1);
}

/* Makes a call with key 0. Returns whether backend 0 answered. */
static bool goes_home(struct world *w)
{
    torc_result *r = kit_mesh_call(w->ch, w->keys[0], false, 60000);
    assert_int_equal(torc_result_code(r), TORC_STATUS_OK);
    bool home = strcmp(torc_result_peer(r), kit_mesh_address(w->k, 0)) == 0;
    torc_result_free(r);
    return home;
}

/* Repeats fail_one_of_all until backend 0 is ejected, because one round may be in two intervals. Returns how long that
 * took, in ms. Fails the test after 60 s. */
static uint64_t eject(struct world *w)
{
    for (uint64_t began_ms = now_ms(); now_ms() - began_ms < 60000;) {
        uint64_t failed_ms = now_ms();
        fail_one_of_all(w);
        while (now_ms() - failed_ms < SOON_MS)
            if (!goes_home(w))
                return now_ms() - began_ms;
    }
    fail_msg("backend 0 is not ejected");
    return 0;
}

/* The backend is ejected and returns soon, which proves the configured times: by default the interval is 10 s, and the
 * first ejection lasts 30 s. There are up to five tries, because the machine may stall. */
static void leaves_and_returns(void **state)
{
    TC_CASE(OD01);
    (void)state;
    struct world w = open_world(2, "0/a: 0, 1", EJECT_FOR("1s"));
    bool soon = false;
    for (int i = 0; i < 5 && !soon; i++) {
        soon = eject(&w) < SOON_MS;
        uint64_t left_ms = now_ms();
        kit_mesh_wait_backend(w.k, w.ch, w.keys[0], 0);
        soon &= now_ms() - left_ms < (uint64_t)(i + 1) * SOON_MS; /* each ejection may last a second longer */
    }
    assert_true(soon);
    /* The ejection cost no connection. */
    assert_int_equal(kit_mesh_connections(w.k, 0), 1);
    assert_int_equal(kit_mesh_connections(w.k, 1), 1);
    close_world(&w);
}

/* While a backend is ejected, its key goes to one other backend, and every other key stays. When outlier detection is
 * removed, the backend is back. */
static void one_other_backend(void **state)
{
    TC_CASE(RH47);
    (void)state;
    struct world w = open_world(4, "0/a: 0, 1, 2, 3", EJECT_FOR("300s"));
    uint64_t counts[4], moved = 0, others = 0;
    eject(&w);
    take_all(&w, counts);
    kit_mesh_calls(w.ch, w.keys[0], 1);
    take_all(&w, counts);
    size_t to = 0;
    for (size_t i = 1; i < 4; i++)
        to = counts[i] ? i : to;
    assert_int_not_equal(to, 0);
    kit_mesh_calls(w.ch, w.keys[0], 100);
    take_all(&w, counts);
    for (size_t i = 0; i < 4; i++)
        *(i == to ? &moved : &others) += counts[i];
    assert_int_equal(moved, 100);
    assert_int_equal(others, 0);
    for (size_t i = 1; i < 4; i++) {
        kit_mesh_calls(w.ch, w.keys[i], 20);
        assert_int_equal(kit_mesh_take(w.k, i), 20);
    }
    kit_mesh_put_cluster(w.k, "c", "lb_policy: RING_HASH");
    kit_mesh_wait_backend(w.k, w.ch, w.keys[0], 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(kit_mesh_connections(w.k, i), 1);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_and_returns),
        cmocka_unit_test(one_other_backend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
