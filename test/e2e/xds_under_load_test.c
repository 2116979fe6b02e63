/* Changes during ten seconds of 500 calls a second: a route switched, all endpoints replaced, GOAWAY on each backend in
 * turn, a control plane that stops and starts. No call may fail. The cases run at the same time, each in its own
 * process, where the test's thread makes the changes, and a thread of the load calls (kits/load.h). Control plane and
 * backends are those of kits/mesh.h, over real sockets and on a thread of their own. */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/load.h"
#include "support/kits/mesh.h"
#include "support/parallel.h"

#include "base/common.h"

/* The delay keeps about ten calls in flight. */
enum { RPS = 500, SECONDS = 10, KEYS = 97, DELAY_MS = 20 };

#define BY_USER "[{header: {header_name: user}}]"

/* Of the one case of the process: made by begin, freed by finish. */
static struct kit_mesh *k;
static torc_channel *ch;
static struct kit_load *load;

/* Puts clusters "c0" (backends 0, 1) and "c1" (2, 3) with ring_hash, and a listener that routes to "c0". Opens the
 * channel and starts the load. */
static void begin(void)
{
    k = kit_mesh_new_slow(4, DELAY_MS);
    kit_mesh_put_endpoints(k, "c0", "0/a: 0, 1", NULL);
    kit_mesh_put_endpoints(k, "c1", "0/a: 2, 3", NULL);
    kit_mesh_put_cluster(k, "c0", NULL);
    kit_mesh_put_cluster(k, "c1", NULL);
    kit_mesh_put_listener(k, "svc", "c0", BY_USER);
    ch = kit_mesh_channel(k, "svc", NULL);
    kit_mesh_calls(ch, "user: u1", 1);
    load = kit_load_new(ch, RPS, KEYS);
}

/* Increments *n, then waits until *n ticks of `every_ms` have passed since the load began, at most SECONDS. The time is
 * told by the number of calls that the load has started. Returns false once SECONDS have passed: tick has returned true
 * *n - 1 times then. */
static bool tick(uint64_t every_ms, unsigned *n)
{
    uint64_t calls = (uint64_t)++ * n * every_ms * RPS / 1000;
    kit_load_wait(load, TC_MIN(calls, (uint64_t)RPS * SECONDS));
    return calls < (uint64_t)RPS * SECONDS;
}

/* Ends the load and the mesh. Asserts that all calls succeeded, and that each of the first `backends` backends took
 * some. */
static void finish(const char *what, unsigned times, size_t backends)
{
    struct kit_load_report r;
    kit_load_free(load, &r);
    print_message("%s, %u times: %llu calls, %llu failed, the longest took %llu ms; by backend", what, times,
                  (unsigned long long)r.calls, (unsigned long long)r.failed, (unsigned long long)r.longest_ms);
    for (size_t i = 0; i < backends; i++) {
        uint64_t n = kit_mesh_take(k, i);
        print_message(" %llu", (unsigned long long)n);
        assert_true(n > 0);
    }
    print_message("\n");
    assert_string_equal(r.first, "");
    assert_int_equal(r.failed, 0);
    assert_true(r.calls >= (uint64_t)RPS * SECONDS);
    torc_channel_free(ch);
    kit_mesh_free(k);
}

static void route_switch(void **state)
{
    TC_CASE(LR22);
    (void)state;
    unsigned n = 0;
    begin();
    while (tick(100, &n))
        kit_mesh_put_listener(k, "svc", n % 2 ? "c1" : "c0", BY_USER);
    finish("route switched", n - 1, 4);
}

static void endpoints_replaced(void **state)
{
    TC_CASE(ED21);
    (void)state;
    unsigned n = 0;
    begin();
    while (tick(100, &n))
        kit_mesh_put_endpoints(k, "c0", n % 2 ? "0/a: 2, 3" : "0/a: 0, 1", NULL);
    finish("all endpoints replaced", n - 1, 4);
}

static void goaway_on_each(void **state)
{
    (void)state;
    unsigned n = 0;
    begin();
    kit_mesh_put_endpoints(k, "c0", "0/a: 0, 1, 2, 3", NULL);
    while (tick(50, &n))
        kit_mesh_goaway(k, n % 4);
    finish("GOAWAY", n - 1, 4);
}

/* The control plane is down for half a second, then up for half a second. Every second time it comes back with other
 * endpoints. */
static void control_plane_restart(void **state)
{
    (void)state;
    unsigned n = 0;
    begin();
    while (tick(500, &n)) {
        if (n % 2)
            kit_mesh_stop_control_plane(k);
        else
            kit_mesh_start_control_plane(k);
        if (n % 4 == 1)
            kit_mesh_put_endpoints(k, "c0", n % 8 == 1 ? "0/a: 2, 3" : "0/a: 0, 1", NULL);
    }
    finish("control plane stopped or started", n - 1, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(route_switch),
        cmocka_unit_test(endpoints_replaced),
        cmocka_unit_test(goaway_on_each),
        cmocka_unit_test(control_plane_restart),
    };
    return parallel_run(tests, TC_ARRAY_LEN(tests));
}
