/* Runtimes that share an xDS domain come and go while the control plane pushes updates and threads call. When a runtime
 * ends, tasks may be queued between its loop and the domain's: none may be lost, or run after the end.
 * TORC_DOMAIN_ROUNDS is the number of runtimes (200 by default, 60 under the thread sanitizer). Round i uses the seed
 * TORC_DOMAIN_SEED + i (1 + i by default).
 *
 * A member is a runtime with a channel and at most CALLERS callers. Each caller is a thread that calls until the
 * runtime ends: then it must get TORC_ECLOSED. There are RUNTIMES places for members; a round ends the member in one
 * place, if there is one, and starts another there. The test's thread performs the rounds; one more thread pushes until
 * the test is over. Control plane and backends are those of kits/mesh.h, over real sockets and on a thread of their
 * own. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/cmocka.h"
#include "support/kits/mesh.h"
#include "support/number.h"
#include "support/sanitizer.h"

#include "base/clock.h"
#include "base/random.h"

#if SANITIZER_THREAD
#define ROUNDS 60
#else
#define ROUNDS 200
#endif

enum {
    CLUSTERS = 60,
    CALLERS = 2,
    RUNTIMES = 2,     /* alive at the same time */
    DOMAIN_LIFE = 25, /* rounds from one new domain to the next */
    GUARD_S = 300,    /* the longest wait for a first successful RPC */
};

static struct kit_mesh *kit;
static atomic_bool over;           /* ends the thread that pushes */
static atomic_ulong n_calls, n_ok; /* of all callers */

/* --- the control plane pushes, as fast as it can --- */

/* Puts the endpoints of all clusters, with one backend or `two`. */
static void put_endpoints(bool two)
{
    struct tc_buf yaml = {0};
    tc_buf_append_str(&yaml, "resources:\n");
    for (unsigned i = 0; i < CLUSTERS; i++) {
        tc_buf_printf(&yaml,
                      "- \"@type\": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment\n"
                      "  cluster_name: c%u\n  endpoints:\n  - locality: {region: a}\n"
                      "    load_balancing_weight: 1\n    lb_endpoints:\n",
                      i);
        for (size_t k = 0; k < (two ? 2 : 1); k++) {
            const char *address = kit_mesh_address(kit, k), *colon = strrchr(address, ':');
            tc_buf_printf(&yaml, "    - endpoint: {address: {socket_address: {address: %.*s, port_value: %s}}}\n",
                          (int)(colon - address), address, colon + 1);
        }
    }
    kit_mesh_put(kit, "%s", tc_buf_cstr(&yaml));
    tc_buf_fini(&yaml);
}

static void *push(void *arg)
{
    (void)arg;
    for (unsigned i = 0; !atomic_load(&over); i++)
        put_endpoints(i % 2);
    return NULL;
}

/* Puts the clusters with their endpoints, and a listener "svc" with a route to each cluster: the header x-to has the
 * cluster's number. */
static void put_resources(void)
{
    struct tc_buf routes = {0};
    char name[16];
    put_endpoints(false);
    for (unsigned i = 0; i < CLUSTERS; i++) {
        snprintf(name, sizeof(name), "c%u", i);
        kit_mesh_put_cluster(kit, name, "lb_policy: ROUND_ROBIN");
        tc_buf_printf(&routes,
                      "%s{match: {prefix: \"\", headers: [{name: x-to, string_match: {exact: \"%u\"}}]}, "
                      "route: {cluster: c%u}}",
                      i ? ", " : "", i, i);
    }
    kit_mesh_put_routes(kit, "svc", tc_buf_cstr(&routes));
    tc_buf_fini(&routes);
}

/* --- threads that call --- */

struct caller {
    pthread_t thread;
    struct tc_rng rng;
    torc_channel *ch; /* borrowed from the member */
    atomic_uint ok;   /* RPCs that succeeded */
    int rc;           /* the local error that ended the calls; 0: none yet. The thread's own until it is joined. */
};

static void *call(void *arg)
{
    struct caller *c = arg;
    char header[32];
    while (c->rc == 0) {
        struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 60000, .wait_for_ready = TORC_ON};
        snprintf(header, sizeof(header), "%u", (unsigned)tc_rng_below(&c->rng, CLUSTERS));
        torc_metadata *md = torc_metadata_new();
        torc_metadata_add_string(md, "x-to", header);
        o.metadata = md;
        torc_result *r = torc_unary(c->ch, "test.Service/Echo", "x", 1, &o);
        torc_metadata_free(md);
        int rc = torc_error_code(torc_result_error(r));
        c->rc = rc == TORC_ESTATUS ? 0 : rc;
        if (c->rc != 0) {
            torc_result_free(r);
            break;
        }
        atomic_fetch_add(&n_calls, 1);
        atomic_fetch_add(&n_ok, torc_result_code(r) == TORC_STATUS_OK);
        atomic_fetch_add(&c->ok, torc_result_code(r) == TORC_STATUS_OK);
        torc_result_free(r);
    }
    return NULL;
}

/* --- one round --- */

/* member_end frees the runtime and the channel. */
struct member {
    torc_runtime *rt; /* NULL: not started yet */
    torc_channel *ch;
    bool own_loop; /* TORC_RUNTIME_CALLER: the callers and pass_time drive the runtime; else it has a thread */
    struct caller callers[CALLERS];
    unsigned n;    /* callers */
    uint64_t seed; /* of the round that started the member */
};

/* Sets up a member that is all zero but for its seed. */
static void member_start(struct member *m, torc_xds_domain *domain, struct tc_rng *rng)
{
    struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options)};
    m->own_loop = tc_rng_below(rng, 2);
    o.mode = m->own_loop ? TORC_RUNTIME_CALLER : TORC_RUNTIME_THREAD;
    o.xds_domain = domain;
    m->rt = torc_runtime_new(&o, NULL);
    CHECK(m->rt);
    struct torc_channel_options co = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                      .xds_bootstrap_json = kit_mesh_bootstrap(kit), .backoff_initial_ms = 50};
    m->ch = torc_channel_new(m->rt, "xds:///svc", &co, NULL);
    CHECK(m->ch);
    m->n = (unsigned)tc_rng_below(rng, CALLERS + 1);
    for (unsigned i = 0; i < m->n; i++) {
        m->callers[i].ch = m->ch;
        tc_rng_init_seed(&m->callers[i].rng, tc_rng_below(rng, UINT32_MAX));
        CHECK(pthread_create(&m->callers[i].thread, NULL, call, &m->callers[i]) == 0);
    }
    torc_channel_state(m->ch, true);
}

/* Prints why the member's RPCs wait, and aborts: after a failed assertion close_world would free the kit, which other
 * threads use. */
static void fail_stalled(const struct member *m)
{
    struct torc_call_options o = {TORC_SIZE(torc_call_options), .timeout_ms = 1000, .wait_for_ready = TORC_ON};
    torc_metadata *md = torc_metadata_new();
    torc_metadata_add_string(md, "x-to", "0");
    o.metadata = md;
    torc_result *r = torc_explain(m->ch, "test.Service/Echo", &o);
    const char *why = torc_result_explain(r);
    fprintf(stderr, "seed %llu, own loop %d: no RPC succeeded in %d s: %s: %s\n", (unsigned long long)m->seed,
            m->own_loop, GUARD_S, torc_error_text(torc_result_error(r)), why ? why : "not explained");
    abort();
}

/* In three of four rounds with callers, waits until an RPC of the first caller has succeeded. Then spends a random
 * time, and may at last sleep for 2 or 3 ms: meanwhile updates pile up for a runtime with neither a thread nor
 * callers. */
static void pass_time(const struct member *m, struct tc_rng *rng)
{
    unsigned idle_ms = (unsigned)tc_rng_below(rng, 4);
    if (tc_rng_below(rng, 4) && m->n) {
        uint64_t began_ns = tc_system_clock.monotonic_ns(NULL);
        while (atomic_load(&m->callers[0].ok) == 0) {
            (void)poll(NULL, 0, 1);
            if (tc_system_clock.monotonic_ns(NULL) - began_ns > GUARD_S * TC_NS_PER_S)
                fail_stalled(m);
        }
    }
    for (uint64_t turns = tc_rng_below(rng, 20); turns > 0; turns--) {
        if (m->own_loop)
            torc_runtime_poll(m->rt, 1);
        else
            sched_yield();
    }
    if (idle_ms > 1)
        (void)poll(NULL, 0, (int)idle_ms);
}

/* Aborts on a failure, as fail_stalled does. */
static void member_end(struct member *m)
{
    CHECK(torc_runtime_free(m->rt) == 0);
    for (unsigned i = 0; i < m->n; i++) {
        pthread_join(m->callers[i].thread, NULL);
        if (m->callers[i].rc != TORC_ECLOSED) {
            fprintf(stderr, "seed %llu: %s\n", (unsigned long long)m->seed, torc_strerror(m->callers[i].rc));
            abort();
        }
    }
    torc_channel_free(m->ch);
}

static void test_runtimes_come_and_go(void **state)
{
    (void)state;
    uint64_t n = tc_env_number("TORC_DOMAIN_ROUNDS", ROUNDS), seed = tc_env_number("TORC_DOMAIN_SEED", 1);
    pthread_t pusher;
    struct member members[RUNTIMES] = {0};
    torc_xds_domain *domain = torc_xds_domain_new(NULL);
    struct tc_rng rng;
    assert_int_equal(pthread_create(&pusher, NULL, push, NULL), 0);
    for (uint64_t i = 0; i < n; i++) {
        struct member *m = &members[i % RUNTIMES];
        tc_rng_init_seed(&rng, seed + i);
        if (m->rt)
            member_end(m);
        if (i % DOMAIN_LIFE == DOMAIN_LIFE - 1) {
            /* The other member's runtime holds the domain until it ends. */
            CHECK(torc_xds_domain_free(domain) == 0);
            domain = torc_xds_domain_new(NULL);
        }
        *m = (struct member){.seed = seed + i};
        member_start(m, domain, &rng);
        pass_time(m, &rng);
    }
    for (unsigned i = 0; i < RUNTIMES; i++)
        if (members[i].rt)
            member_end(&members[i]);
    CHECK(torc_xds_domain_free(domain) == 0);
    atomic_store(&over, true);
    pthread_join(pusher, NULL);
    print_message("%llu runtimes, %lu calls, %lu of them ended OK\n", (unsigned long long)n, atomic_load(&n_calls),
                  atomic_load(&n_ok));
    assert_true(n < 100 || atomic_load(&n_ok) > n / 4); /* runtimes lived long enough for calls */
}

static int open_world(void **state)
{
    (void)state;
    kit = kit_mesh_new(2);
    put_resources();
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    kit_mesh_free(kit);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_runtimes_come_and_go)};
    return cmocka_run_group_tests(tests, open_world, close_world);
}
