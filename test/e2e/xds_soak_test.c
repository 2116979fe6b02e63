/* An aggregate cluster under 500 calls a second. In every round the control plane restarts, or a resource changes, or a
 * resource changes while the control plane is away. The resource is an aggregate, a leaf cluster or its endpoints; it
 * becomes invalid or, unless it is the endpoints, is deleted. Then it is restored; endpoints get one or two priorities
 * by chance. No call may fail.
 *
 * Two processes side by side: one runtime, and two runtimes with an xDS domain. TORC_SOAK_ROUNDS: how many rounds (20
 * by default); there must be enough for a restart, an invalid and a deleted resource.
 *
 * The test's thread makes the changes. Each channel has a thread that calls (kits/load.h). Control plane and backends
 * are those of kits/mesh.h, over real sockets; they have a thread of their own, and so has each runtime. */
#include <stdio.h>
#include <stdlib.h>

#include "support/cmocka.h"
#include "support/kits/load.h"
#include "support/kits/mesh.h"
#include "support/parallel.h"

#include "base/common.h"
#include "base/mem.h"
#include "base/random.h"

enum { RPS = 500, KEYS = 97, ROUNDS = 20, RUNTIMES = 2, PAUSE_CALLS = 50 };

/* "top" is an aggregate of "first" and "inner"; "inner" is an aggregate of "second" and "third". The struct owns what
 * it points to; close_world frees it. */
struct world {
    struct kit_mesh *k;
    struct tc_rng rng;
    size_t n;                   /* channels, each with a load */
    torc_runtime *rt[RUNTIMES]; /* NULL: the kit's */
    torc_channel *ch[RUNTIMES];
    struct kit_load *load[RUNTIMES];
    uint64_t calls;                      /* how many calls of each load pause_calls has awaited */
    unsigned restarts, refused, deleted; /* so far: restarts of the control plane, resources made invalid, deleted */
};

static void put_top(struct world *w)
{
    kit_mesh_put_aggregate(w->k, "top", "first, inner");
}

static void put_inner(struct world *w)
{
    kit_mesh_put_aggregate(w->k, "inner", "second, third");
}

static void put_first(struct world *w)
{
    kit_mesh_put_cluster(w->k, "first", NULL);
}

static void put_endpoints(struct world *w)
{
    kit_mesh_put_endpoints(w->k, "first", tc_rng_below(&w->rng, 2) ? "0/a: 0, 1" : "0/a: 0; 1/b: 1", NULL);
}

static void refuse_top(struct world *w)
{
    kit_mesh_put_aggregate(w->k, "top", "");
}

static void refuse_inner(struct world *w)
{
    kit_mesh_put_aggregate(w->k, "inner", "");
}

static void refuse_first(struct world *w)
{
    kit_mesh_put_cluster(w->k, "first", "lb_policy: RANDOM");
}

static void refuse_endpoints(struct world *w)
{
    kit_mesh_put_endpoints(w->k, "first", "0/a: 0", "policy: {drop_overloads: [{category: \"\"}]}");
}

/* A resource: how it is put, and how it becomes invalid. */
static const struct subject {
    const char *type, *name;
    void (*put)(struct world *w), (*refuse)(struct world *w);
} subjects[] = {
    {"Cluster", "top", put_top, refuse_top},
    {"Cluster", "inner", put_inner, refuse_inner},
    {"Cluster", "first", put_first, refuse_first},
    {"ClusterLoadAssignment", "first", put_endpoints, refuse_endpoints},
};

/* Waits until each load has started PAUSE_CALLS more calls. */
static void pause_calls(struct world *w)
{
    w->calls += PAUSE_CALLS;
    for (size_t i = 0; i < w->n; i++)
        kit_load_wait(w->load[i], w->calls);
}

/* Waits for a request of the subject's type. The space tells Cluster from ClusterLoadAssignment. */
static void wait_for_request_of(struct world *w, const struct subject *s)
{
    char text[32];
    snprintf(text, sizeof(text), "%s ", s->type);
    kit_mesh_wait_request(w->k, text);
}

static void forget_requests(struct world *w)
{
    tc_free(kit_mesh_requests(w->k));
}

/* Deletes the resource or makes it invalid. Waits for a NACK, or after a deletion for a request whose text contains
 * the type; then for calls. away: the control plane is stopped, and starts again after the change. */
static void change(struct world *w, const struct subject *s, bool away)
{
    bool delete = tc_rng_below(&w->rng, 2) && s->put != put_endpoints; /* state-of-the-world EDS has no deletion */
    forget_requests(w);
    if (delete)
        kit_mesh_remove(w->k, s->type, s->name);
    else
        s->refuse(w);
    w->deleted += delete;
    w->refused += !delete;
    if (away)
        kit_mesh_start_control_plane(w->k);
    if (delete)
        wait_for_request_of(w, s);
    else
        kit_mesh_wait_request(w->k, "NACK");
    pause_calls(w);
}

static void one_round(struct world *w)
{
    const struct subject *s = &subjects[tc_rng_below(&w->rng, TC_ARRAY_LEN(subjects))];
    bool restart = tc_rng_below(&w->rng, 2), change_it = !restart || tc_rng_below(&w->rng, 2);
    if (restart) {
        w->restarts++;
        kit_mesh_stop_control_plane(w->k);
        pause_calls(w);
    }
    if (change_it) {
        change(w, s, restart);
    } else {
        forget_requests(w);
        kit_mesh_start_control_plane(w->k);
        kit_mesh_wait_request(w->k, "Cluster ");
    }
    forget_requests(w);
    if (change_it) {
        s->put(w);
        wait_for_request_of(w, s);
    }
    pause_calls(w);
}

static void open_world(struct world *w, bool with_domain)
{
    *w = (struct world){.k = kit_mesh_new(4), .n = with_domain ? RUNTIMES : 1};
    torc_xds_domain *domain = with_domain ? torc_xds_domain_new(NULL) : NULL;
    tc_rng_init_seed(&w->rng, with_domain);
    put_endpoints(w);
    kit_mesh_put_endpoints(w->k, "second", "0/a: 2", NULL);
    kit_mesh_put_endpoints(w->k, "third", "0/a: 3", NULL);
    put_first(w);
    kit_mesh_put_cluster(w->k, "second", NULL);
    kit_mesh_put_cluster(w->k, "third", NULL);
    put_inner(w);
    put_top(w);
    kit_mesh_put_listener(w->k, "svc", "top", "[{header: {header_name: user}}]");
    for (size_t i = 0; i < w->n; i++) {
        struct torc_channel_options co = {TORC_SIZE(torc_channel_options), .credentials = torc_credentials_insecure(),
                                          .xds_bootstrap_json = kit_mesh_bootstrap(w->k), .backoff_initial_ms = 50,
                                          .backoff_max_ms = 200};
        if (with_domain) {
            struct torc_runtime_options o = {TORC_SIZE(torc_runtime_options), .mode = TORC_RUNTIME_THREAD,
                                             .xds_domain = domain};
            w->rt[i] = torc_runtime_new(&o, NULL);
        }
        w->ch[i] = torc_channel_new(w->rt[i] ? w->rt[i] : kit_mesh_runtime(w->k), "xds:///svc", &co, NULL);
        assert_non_null(w->ch[i]);
        kit_mesh_calls(w->ch[i], "user: u1", 1);
        w->load[i] = kit_load_new(w->ch[i], (unsigned)(RPS / w->n), KEYS);
    }
    if (domain)
        assert_int_equal(torc_xds_domain_free(domain), 0);
}

static void close_world(struct world *w, const char *what, unsigned rounds)
{
    struct kit_load_report r[RUNTIMES] = {0};
    for (size_t i = 0; i < w->n; i++) {
        kit_load_free(w->load[i], &r[i]);
        torc_channel_free(w->ch[i]);
        if (w->rt[i])
            assert_int_equal(torc_runtime_free(w->rt[i]), 0);
    }
    kit_mesh_free(w->k);
    print_message("%s, %u rounds: %u restarts, %u refused, %u deleted; %llu calls, %llu failed\n", what, rounds,
                  w->restarts, w->refused, w->deleted, (unsigned long long)(r[0].calls + r[1].calls),
                  (unsigned long long)(r[0].failed + r[1].failed));
    for (size_t i = 0; i < w->n; i++) {
        assert_string_equal(r[i].first, "");
        assert_int_equal(r[i].failed, 0);
    }
}

static void soak(bool with_domain)
{
    struct world w;
    const char *set = getenv("TORC_SOAK_ROUNDS");
    unsigned rounds = set ? (unsigned)strtoul(set, NULL, 10) : ROUNDS;
    assert_true(rounds > 0);
    open_world(&w, with_domain);
    for (unsigned i = 0; i < rounds; i++)
        one_round(&w);
    assert_true(w.restarts && w.refused && w.deleted);
    close_world(&w, with_domain ? "two runtimes of an xDS domain" : "one runtime", rounds);
}

static void alone(void **state)
{
    (void)state;
    soak(false);
}

static void with_domain(void **state)
{
    (void)state;
    soak(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone),
        cmocka_unit_test(with_domain),
    };
    return parallel_run(tests, TC_ARRAY_LEN(tests));
}
