/* What may not cost a single call, each under 500 calls a second for ten seconds: a route that is switched, all
 * endpoints replaced, GOAWAY on each backend in turn, a control plane that restarts. Side by side, a process each. */
#include <sys/wait.h>
#include <unistd.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/load_kit.h"
#include "support/mesh_kit.h"

#include "base/common.h"

/* With the delay some ten calls are under way at any time. */
enum { RPS = 500, SECONDS = 10, KEYS = 97, DELAY_MS = 20 };

#define BY_USER "[{header: {header_name: user}}]"

static struct mesh_kit *k;
static torc_channel *ch;
static struct load_kit *load;

/* Clusters "c0" (backends 0, 1) and "c1" (2, 3) under ring_hash. */
static void begin(void)
{
    k = mesh_kit_new_slow(4, DELAY_MS);
    mesh_kit_put_endpoints(k, "c0", "0/a: 0, 1", NULL);
    mesh_kit_put_endpoints(k, "c1", "0/a: 2, 3", NULL);
    mesh_kit_put_cluster(k, "c0", NULL);
    mesh_kit_put_cluster(k, "c1", NULL);
    mesh_kit_put_listener(k, "svc", "c0", BY_USER);
    ch = mesh_kit_channel(k, "svc", NULL);
    mesh_kit_calls(ch, "user: u1", 1);
    load = load_kit_new(ch, RPS, KEYS);
}

/* Each time that so many ms of calls were started, until the load's time is over: true, and how often so far. */
static bool tick(uint64_t every_ms, unsigned *n)
{
    uint64_t calls = (uint64_t)++ * n * every_ms * RPS / 1000;
    load_kit_wait(load, TC_MIN(calls, (uint64_t)RPS * SECONDS));
    return calls < (uint64_t)RPS * SECONDS;
}

/* All calls went well, and each of these backends took some of them. */
static void finish(const char *what, unsigned times, size_t backends)
{
    struct load_report r;
    load_kit_free(load, &r);
    print_message("%s, %u times: %llu calls, %llu failed, the longest took %llu ms; by backend", what, times,
                  (unsigned long long)r.calls, (unsigned long long)r.failed, (unsigned long long)r.longest_ms);
    for (size_t i = 0; i < backends; i++) {
        uint64_t n = mesh_kit_take(k, i);
        print_message(" %llu", (unsigned long long)n);
        assert_true(n > 0);
    }
    print_message("\n");
    assert_string_equal(r.first, "");
    assert_int_equal(r.failed, 0);
    assert_true(r.calls >= (uint64_t)RPS * SECONDS);
    torc_channel_free(ch);
    mesh_kit_free(k);
}

static void route_switch(void **state)
{
    (void)state;
    unsigned n = 0;
    begin();
    while (tick(100, &n))
        mesh_kit_put_listener(k, "svc", n % 2 ? "c1" : "c0", BY_USER);
    finish("route switched", n, 4);
    TC_CASE(LR22);
}

static void endpoints_replaced(void **state)
{
    (void)state;
    unsigned n = 0;
    begin();
    while (tick(100, &n))
        mesh_kit_put_endpoints(k, "c0", n % 2 ? "0/a: 2, 3" : "0/a: 0, 1", NULL);
    finish("all endpoints replaced", n, 4);
    TC_CASE(ED21);
}

static void goaway_on_each(void **state)
{
    (void)state;
    unsigned n = 0;
    begin();
    mesh_kit_put_endpoints(k, "c0", "0/a: 0, 1, 2, 3", NULL);
    while (tick(50, &n))
        mesh_kit_goaway(k, n % 4);
    finish("GOAWAY", n, 4);
}

/* Away for half a second, back with other endpoints. */
static void control_plane_restart(void **state)
{
    (void)state;
    unsigned n = 0;
    begin();
    while (tick(500, &n)) {
        if (n % 2)
            mesh_kit_stop_control_plane(k);
        else
            mesh_kit_start_control_plane(k);
        if (n % 4 == 1)
            mesh_kit_put_endpoints(k, "c0", n % 8 == 1 ? "0/a: 2, 3" : "0/a: 0, 1", NULL);
    }
    finish("control plane stopped or started", n, 4);
}

static int run(const struct CMUnitTest *test)
{
    const struct CMUnitTest tests[] = {*test};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(route_switch),
        cmocka_unit_test(endpoints_replaced),
        cmocka_unit_test(goaway_on_each),
        cmocka_unit_test(control_plane_restart),
    };
    int failed = 0;
    for (size_t i = 0; i < TC_ARRAY_LEN(tests); i++) {
        pid_t child = fork();
        if (child == 0) {
            int rc = run(&tests[i]);
            fflush(NULL);
            _exit(rc != 0);
        }
        failed += child < 0;
    }
    int status;
    while (wait(&status) > 0)
        failed += status != 0;
    return failed;
}
