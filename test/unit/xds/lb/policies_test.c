/* cds, xds_cluster_impl, xds_wrr_locality and xds_cluster_manager over fake subchannels.
 *
 * A test makes a fake channel (fakes/lb) with cds or xds_cluster_manager, and frees it. The policies below are the real
 * ones, which cds makes as the cluster asks. There is no xDS client: a test makes an XdsConfig (kits/config.h) and
 * passes it to kit_config_update, which takes ownership. A test that needs a snapshot of a cluster longer holds a
 * reference. Some snapshots are made or changed by hand: aggregates, clusters in error, a DNS cluster. `configs` only
 * parses.
 *
 * A pick that returns an address starts an RPC; the test ends it with `finish` or finish_with. Draws have fixed seeds.
 * Time is virtual, and everything runs on the test's thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/config.h"
#include "support/kits/resource.h"

#include "base/mem.h"
#include "base/random.h"
#include "xds/lb/policies.h"

#define RING_HASH ", 'lbPolicy': 'RING_HASH'"

static struct tc_lb_config *cds_of(const char *cluster)
{
    struct tc_rstr *name = tc_rstr_str(cluster);
    struct tc_lb_config *config = tc_child_config_single(&tc_cds_factory, name, NULL);
    tc_rstr_unref(name);
    return config;
}

/* Returns a config of xds_cluster_manager with a cds for cluster a and one for cluster b (NULL: none), a reference. */
static struct tc_lb_config *manager_of(const char *a, const char *b)
{
    struct tc_child_config children[2] = {{.name = tc_rstr_str(a), .config = cds_of(a)}};
    size_t n = b ? 2 : 1;
    if (b)
        children[1] = (struct tc_child_config){.name = tc_rstr_str(b), .config = cds_of(b)};
    struct tc_lb_config *config = tc_child_configs_new(&tc_cluster_manager_factory, children, n);
    for (size_t i = 0; i < n; i++) {
        tc_rstr_unref(children[i].name);
        tc_lb_config_unref(children[i].config);
    }
    return config;
}

static struct tc_xds_config *one_cluster(const char *more, const char *localities, const char *eds_more)
{
    return kit_config_config(kit_config_cluster("c", more, kit_config_eds(localities, eds_more)), NULL);
}

/* Ends the RPC of the last pick with this status code. */
static void finish_with(struct fake_lb *f, enum torc_status_code code)
{
    struct tc_status status = {.code = code};
    for (struct tc_call_tracker *t = f->pick.trackers, *next; t; t = next) {
        next = t->next;
        t->on_done(t, &status, NULL);
    }
    f->pick.trackers = NULL;
}

static void finish(struct fake_lb *f)
{
    finish_with(f, TORC_STATUS_OK);
}

static void ready(struct fake_lb *f, const char *addr)
{
    if (fake_lb_state(f, addr) == TORC_CONNECTIVITY_IDLE)
        fake_lb_set(f, addr, TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set(f, addr, TORC_CONNECTIVITY_READY);
}

/* --- cds --- */

static void leaf_by_priorities(void **state)
{
    TC_CASE(PR01);
    TC_CASE(PR13);
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH, "0/a: 1.1.1.1:1; 1/b: 2.2.2.2:2", NULL));
    assert_int_equal(f->state, TORC_CONNECTIVITY_IDLE);
    assert_int_equal(fake_lb_count(f, NULL), 0);
    assert_string_equal(fake_lb_pick_hash(f, 7), "QUEUE");
    assert_connects(f, "1.1.1.1:1 ");
    ready(f, "1.1.1.1:1");
    assert_string_equal(fake_lb_pick_hash(f, 7), "1.1.1.1:1");
    finish(f);
    assert_int_equal(fake_lb_count(f, "2.2.2.2:2"), 0);
    /* The locality moves to a lower priority and keeps its connection. */
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH, "0/b: 2.2.2.2:2; 1/a: 1.1.1.1:1", NULL));
    assert_int_equal(fake_lb_count(f, "1.1.1.1:1"), 1);
    assert_int_equal(fake_lb_state(f, "1.1.1.1:1"), TORC_CONNECTIVITY_READY);
    kit_config_lb_free(f);
}

static void unchanged_cluster_changes_nothing(void **state)
{
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    struct tc_cluster_config *c = kit_config_cluster("c", RING_HASH, kit_config_eds("0/a: 1.1.1.1:1", NULL));
    kit_config_update(f, cds_of("c"), kit_config_config(tc_cluster_config_ref(c), NULL));
    unsigned reports = f->reports;
    kit_config_update(f, cds_of("c"), kit_config_config(c, NULL));
    assert_int_equal(f->reports, reports);
    kit_config_lb_free(f);
}

/* The cluster is missing in one config, and back in the next as it was. */
static void missing_cluster_comes_back(void **state)
{
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    struct tc_cluster_config *c = kit_config_cluster("c", RING_HASH, kit_config_eds("0/a: 1.1.1.1:1", NULL));
    kit_config_update(f, cds_of("c"), kit_config_config(tc_cluster_config_ref(c), NULL));
    struct tc_cluster_config *other = kit_config_cluster("d", RING_HASH, kit_config_eds("0/a: 1.1.1.1:1", NULL));
    kit_config_update(f, cds_of("c"), kit_config_config(other, NULL));
    assert_string_equal(fake_lb_pick_hash(f, 7), "FAIL");
    kit_config_update(f, cds_of("c"), kit_config_config(c, NULL));
    assert_string_equal(fake_lb_pick_hash(f, 7), "QUEUE");
    assert_connects(f, "1.1.1.1:1 ");
    kit_config_lb_free(f);
}

static void assert_last_reference(const struct tc_cluster_config *c)
{
    assert_int_equal(atomic_load(&c->ref.n), 1);
}

/* When a cluster has a new snapshot, no policy holds the old one: neither the policies of that cluster nor the policies
 * of a cluster that did not change. */
static void old_snapshots_go(void **state)
{
    (void)state;
    struct fake_lb *f = kit_config_lb("xds_cluster_manager_experimental");
    struct tc_lb_config *config = manager_of("a", "b");
    struct tc_cluster_config *a = kit_config_cluster("a", "", kit_config_eds("0/l: 1.1.1.1:1; 1/m: 1.1.1.1:2", NULL));
    struct tc_cluster_config *b[2];
    for (size_t i = 0; i < 2; i++) {
        b[i] = kit_config_cluster("b", RING_HASH, kit_config_eds(i ? "0/l: 2.2.2.2:2" : "0/l: 2.2.2.2:1", NULL));
        kit_config_update(f, tc_lb_config_ref(config),
                          kit_config_config(tc_cluster_config_ref(a), tc_cluster_config_ref(b[i]), NULL));
    }
    assert_last_reference(b[0]);
    tc_cluster_config_unref(a);
    tc_cluster_config_unref(b[0]);
    tc_cluster_config_unref(b[1]);
    tc_lb_config_unref(config);
    kit_config_lb_free(f);
}

/* A DNS cluster asks for re-resolution when its endpoint fails and when its connection is lost; the resolver limits how
 * often names are resolved (unit/resolver/dns_test.c). */
static void dns_is_asked_again(void **state)
{
    TC_CASE(DN04);
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    struct tc_cluster_config *c = TC_NEW(struct tc_cluster_config);
    tc_ref_init(&c->ref);
    c->name = tc_rstr_str("c");
    c->cluster =
        tc_cluster_of(kit_resource_valid(&tc_cluster_type, NULL,
                                         "{'name': 'c', 'type': 'LOGICAL_DNS', 'loadAssignment': {'endpoints': "
                                         "[{'lbEndpoints': [{'endpoint': {'address': {'socketAddress': {'address': "
                                         "'host', 'portValue': 1}}}}]}]}}"));
    c->dns = fake_lb_endpoints("1.1.1.1:1");
    c->resolution_note = tc_rstr_str("xDS node ID:n1");
    kit_config_update(f, cds_of("c"), kit_config_config(c, NULL));
    assert_int_equal(f->reresolutions, 0);
    fake_lb_set(f, "1.1.1.1:1", TORC_CONNECTIVITY_CONNECTING);
    fake_lb_set_failed(f, "1.1.1.1:1", "refused");
    assert_int_equal(f->reresolutions, 1);
    fake_lb_set(f, "1.1.1.1:1", TORC_CONNECTIVITY_IDLE);
    ready(f, "1.1.1.1:1");
    fake_lb_set(f, "1.1.1.1:1", TORC_CONNECTIVITY_IDLE); /* the connection is lost */
    assert_int_equal(f->reresolutions, 2);
    kit_config_lb_free(f);
}

/* Makes n RPCs, which must go to 1.1.1.1:1. The first `failing` RPCs fail. */
static void serve(struct fake_lb *f, unsigned n, unsigned failing)
{
    for (unsigned i = 0; i < n; i++) {
        assert_string_equal(fake_lb_pick_hash(f, 7), "1.1.1.1:1");
        finish_with(f, i < failing ? TORC_STATUS_INTERNAL : TORC_STATUS_OK);
    }
}

#define OUTLIERS                                                                                                       \
    ", 'outlierDetection': {'interval': '5s', 'baseEjectionTime': '7s', 'maxEjectionTime': '8s', "                     \
    "'enforcingSuccessRate': 0, 'enforcingFailurePercentage': 100, 'failurePercentageThreshold': 40, "                 \
    "'failurePercentageMinimumHosts': 1, 'failurePercentageRequestVolume': 2}"

/* A75: outlier_detection stands above xds_cluster_impl, for all priorities; drops do not count as failures. */
static void outlier_detection(void **state)
{
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    const char *localities = "0/a: 1.1.1.1:1; 1/b: 2.2.2.2:2";
    const char *drops = ", 'policy': {'dropOverloads': [{'category': 'd', 'dropPercentage': {'numerator': 100}}]}";
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH OUTLIERS, localities, NULL));
    fake_lb_pick_hash(f, 7);
    ready(f, "1.1.1.1:1");
    serve(f, 3, 1);
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH OUTLIERS, localities, drops));
    for (unsigned i = 0; i < 10; i++)
        assert_string_equal(fake_lb_pick_hash(f, 7), "DROP");
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH OUTLIERS, localities, NULL));
    tc_loop_advance(f->loop, 5000);
    serve(f, 2, 1); /* one failure of three is at most 40 %, one of two is more */
    tc_loop_advance(f->loop, 5000);
    /* The first priority's endpoint is ejected: the second priority serves until the ejection ends. */
    assert_string_equal(fake_lb_pick_hash(f, 7), "QUEUE");
    ready(f, "2.2.2.2:2");
    assert_string_equal(fake_lb_pick_hash(f, 7), "2.2.2.2:2");
    finish(f);
    assert_int_equal(fake_lb_state(f, "1.1.1.1:1"), TORC_CONNECTIVITY_READY);
    tc_loop_advance(f->loop, 5000);
    assert_string_equal(fake_lb_pick_hash(f, 7), "2.2.2.2:2");
    finish(f);
    tc_loop_advance(f->loop, 5000);
    serve(f, 2, 2);
    tc_loop_advance(f->loop, 5000);
    assert_string_equal(fake_lb_pick_hash(f, 7), "2.2.2.2:2");
    finish(f);
    /* An update removes the outlier detection. */
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH, localities, NULL));
    serve(f, 2, 2);
    tc_loop_advance(f->loop, 5000);
    serve(f, 1, 0);
    kit_config_lb_free(f);
}

static void cluster_in_error(void **state)
{
    TC_CASE(CD21);
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH, "0/a: 1.1.1.1:1", NULL));
    assert_string_equal(fake_lb_pick_hash(f, 7), "QUEUE");
    ready(f, "1.1.1.1:1");
    struct tc_cluster_config *bad = TC_NEW(struct tc_cluster_config);
    tc_ref_init(&bad->ref);
    bad->name = tc_rstr_str("c");
    bad->status =
        tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "CDS resource \"c\" does not exist (node ID:n1)");
    kit_config_update(f, cds_of("c"), kit_config_config(bad, NULL));
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_int_equal(fake_lb_count(f, NULL), 0);
    assert_string_equal(fake_lb_pick_hash(f, 7), "FAIL");
    assert_string_equal(fake_lb_pick_error(f), "CDS resource \"c\" does not exist (node ID:n1)");
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH, "0/a: 1.1.1.1:1", NULL));
    assert_string_equal(fake_lb_pick_hash(f, 7), "QUEUE");
    kit_config_lb_free(f);
}

static void policy_of_the_cluster_changes(void **state)
{
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH, "0/a: 1.1.1.1:1 1.1.1.1:2", NULL));
    assert_string_equal(fake_lb_pick_hash(f, 7), "QUEUE");
    assert_int_equal(fake_lb_count(f, NULL), 1);
    kit_config_update(f, cds_of("c"), one_cluster("", "0/a: 1.1.1.1:1 1.1.1.1:2", NULL));
    /* round_robin connects to all. */
    ready(f, "1.1.1.1:1");
    ready(f, "1.1.1.1:2");
    const char *first = fake_lb_pick(f);
    finish(f);
    const char *second = fake_lb_pick(f);
    finish(f);
    assert_string_not_equal(first, second);
    kit_config_lb_free(f);
}

/* Returns a snapshot of the aggregate "agg" over these two leaf clusters, a reference. */
static struct tc_cluster_config *aggregate_of(const char *a, const char *b, bool own_policy)
{
    struct tc_cluster_config *c = kit_config_cluster("agg", "", NULL);
    struct tc_cluster *data = (struct tc_cluster *)(uintptr_t)c->cluster;
    data->kind = TC_CLUSTER_AGGREGATE;
    data->lb_config = own_policy ? data->lb_config : NULL; /* NULL: as the decoder leaves it */
    c->leaf_clusters = tc_calloc(2, sizeof(*c->leaf_clusters));
    c->n_leaf_clusters = 2;
    c->leaf_clusters[0] = tc_rstr_str(a);
    c->leaf_clusters[1] = tc_rstr_str(b);
    return c;
}

static struct tc_cluster_config *aggregate(const char *a, const char *b)
{
    return aggregate_of(a, b, false);
}

/* A75: priority over a cds for each leaf cluster; the leaf cluster's own policy counts. */
static void aggregate_of_leaves(void **state)
{
    TC_CASE(AG01);
    TC_CASE(AG02);
    TC_CASE(AG19);
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    struct tc_xds_config *config = kit_config_config(
        aggregate("c1", "c2"), kit_config_cluster("c1", RING_HASH, kit_config_eds("0/a: 1.1.1.1:1", NULL)),
        kit_config_cluster("c2", "", kit_config_eds("0/a: 2.2.2.2:2", NULL)), NULL);
    kit_config_update(f, cds_of("agg"), config);
    assert_connects(f, ""); /* the ring_hash of c1 waits for an RPC */
    assert_string_equal(fake_lb_pick_hash(f, 7), "QUEUE");
    assert_connects(f, "1.1.1.1:1 ");
    fake_lb_set(f, "1.1.1.1:1", TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_connects(f, "2.2.2.2:2 "); /* the round_robin of c2 does not wait */
    ready(f, "2.2.2.2:2");
    assert_string_equal(fake_lb_pick_hash(f, 7), "2.2.2.2:2");
    finish(f);
    fake_lb_set(f, "1.1.1.1:1", TORC_CONNECTIVITY_IDLE);
    ready(f, "1.1.1.1:1");
    assert_string_equal(fake_lb_pick_hash(f, 7), "1.1.1.1:1");
    finish(f);
    kit_config_lb_free(f);
}

/* An aggregate keeps its lb_config only with GRPC_XDS_AGGREGATE_CLUSTER_BACKWARD_COMPAT (A75). The leaf clusters then
 * use the aggregate's policy. */
static void aggregate_with_its_own_policy(void **state)
{
    TC_CASE(AG03);
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    struct tc_cluster_config *c1 =
        kit_config_cluster("c1", RING_HASH, kit_config_eds("0/a: 1.1.1.1:1 1.1.1.1:2", NULL));
    struct tc_cluster_config *c2 = kit_config_cluster("c2", RING_HASH, kit_config_eds("0/a: 2.2.2.2:2", NULL));
    kit_config_update(f, cds_of("agg"), kit_config_config(aggregate_of("c1", "c2", true), c1, c2, NULL));
    /* round_robin, the aggregate's, connects to all of c1 without an RPC. */
    assert_int_equal(fake_lb_count(f, NULL), 2);
    ready(f, "1.1.1.1:1");
    ready(f, "1.1.1.1:2");
    const char *first = fake_lb_pick_hash(f, 7);
    finish(f);
    assert_string_not_equal(fake_lb_pick_hash(f, 7), first);
    finish(f);
    kit_config_lb_free(f);
}

/* --- xds_cluster_impl --- */

#define DROPS(list) ", 'policy': {'dropOverloads': [" list "]}"
#define DROP(category, n, of)                                                                                          \
    "{'category': '" category "', 'dropPercentage': {'numerator': " #n ", 'denominator': '" of "'}}"

/* Picks for n RPCs, with another random number each. Returns the share of RPCs that are dropped; their errors must
 * contain the text. */
static double drop_share(struct fake_lb *f, const char *text, size_t n)
{
    struct tc_rng rng;
    size_t drops = 0;
    tc_rng_init_seed(&rng, 42);
    for (size_t i = 0; i < n; i++) {
        f->args.random = tc_rng_u64(&rng);
        bool dropped = strcmp(fake_lb_pick_hash(f, 7), "DROP") == 0;
        drops += dropped;
        if (dropped) {
            assert_int_equal(f->pick.status.code, TORC_STATUS_UNAVAILABLE);
            assert_non_null(strstr(fake_lb_pick_error(f), text));
            /* A second pick for the same RPC drops the RPC again. */
            assert_string_equal(fake_lb_pick_hash(f, 7), "DROP");
        }
        finish(f);
    }
    return (double)drops / (double)n;
}

/* Asserts that the share of dropped RPCs is within 5 standard deviations of `want`. drops: members of the EDS
 * resource. */
static void drop_case(const char *drops, double want)
{
    enum { PICKS = 20000 };
    struct fake_lb *f = kit_config_lb("cds_experimental");
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH, "0/a: 1.1.1.1:1", drops));
    fake_lb_pick_hash(f, 7);
    if (fake_lb_count(f, NULL))
        ready(f, "1.1.1.1:1");
    double got = drop_share(f, "EDS-configured drop: d", PICKS);
    if ((got - want) * (got - want) > 25 * want * (1 - want) / PICKS)
        fail_msg("%.4f, not %.4f", got, want);
    kit_config_lb_free(f);
}

static void drops(void **state)
{
    TC_CASE(DP01);
    TC_CASE(DP02);
    TC_CASE(DP05);
    TC_CASE(ED11);
    (void)state;
    drop_case(DROPS(DROP("d1", 10, "HUNDRED")), 0.1);
    drop_case(DROPS(DROP("d1", 1000, "TEN_THOUSAND")), 0.1);
    drop_case(DROPS(DROP("d1", 100000, "MILLION")), 0.1);
    drop_case(DROPS(DROP("d1", 10, "HUNDRED") ", " DROP("d2", 20, "HUNDRED")), 0.28);
    drop_case(DROPS(DROP("d1", 4295, "MILLION")), 0.004295);
    drop_case(DROPS(DROP("d1", 150, "HUNDRED")), 1);
    drop_case(DROPS(DROP("d1", 429497, "HUNDRED")), 1);
    drop_case("", 0);
}

static void drops_everything_without_endpoints(void **state)
{
    TC_CASE(DP03);
    TC_CASE(DP04);
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH, "", DROPS(DROP("all", 100, "HUNDRED"))));
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    assert_string_equal(fake_lb_pick_hash(f, 7), "DROP");
    assert_string_equal(fake_lb_pick_error(f), "EDS-configured drop: all (node ID:n1)");
    /* The text of a long category is cut. */
    char text[2000], long_name[1000] = {0};
    memset(long_name, 'x', sizeof(long_name) - 1);
    snprintf(text, sizeof(text), DROPS(DROP("%s", 100, "HUNDRED")), long_name);
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH, "", text));
    assert_string_equal(fake_lb_pick_hash(f, 7), "DROP");
    assert_true(strlen(fake_lb_pick_error(f)) < 400);
    /* Without the drops, the next pick fails, since there are no endpoints. */
    kit_config_update(f, cds_of("c"), one_cluster(RING_HASH, "", NULL));
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(fake_lb_pick_hash(f, 7), "FAIL");
    kit_config_lb_free(f);
}

static void circuit_breaker(void **state)
{
    TC_CASE(CB01);
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    kit_config_update(
        f, cds_of("c"),
        one_cluster(RING_HASH ", 'circuitBreakers': {'thresholds': [{'maxRequests': 2}]}", "0/a: 1.1.1.1:1", NULL));
    assert_string_equal(fake_lb_pick_hash(f, 7), "QUEUE");
    ready(f, "1.1.1.1:1");
    struct tc_call_tracker *held[2];
    for (int i = 0; i < 2; i++) {
        assert_string_equal(fake_lb_pick_hash(f, 7), "1.1.1.1:1");
        held[i] = f->pick.trackers;
    }
    assert_string_equal(fake_lb_pick_hash(f, 7), "DROP");
    assert_string_equal(fake_lb_pick_error(f),
                        "circuit breaker drop: cluster \"c\" is at its limit of 2 concurrent requests (node ID:n1)");
    f->pick.trackers = held[0];
    finish(f);
    assert_string_equal(fake_lb_pick_hash(f, 7), "1.1.1.1:1");
    finish(f);
    f->pick.trackers = held[1];
    finish(f);
    kit_config_lb_free(f);
}

/* --- maglev --- */

#define LOCALITY_WEIGHTED                                                                                              \
    ", 'lbPolicy': 'MAGLEV', 'maglevLbConfig': {'tableSize': 17}, 'commonLbConfig': {'localityWeightedLbConfig': {}}"

/* Asserts that the slots of a table of 17 go to the endpoints whose ports end in these digits. */
static void assert_slots(const char *localities, const char *slots)
{
    struct fake_lb *f = kit_config_lb("cds_experimental");
    kit_config_update(f, cds_of("c"), one_cluster(LOCALITY_WEIGHTED, localities, NULL));
    for (unsigned i = 0; i < 17; i++) {
        char addr[] = "127.0.0.1:9?";
        addr[sizeof(addr) - 2] = slots[i];
        if (strcmp(fake_lb_pick_hash(f, i), "QUEUE") == 0)
            ready(f, addr);
        finish(f);
        assert_string_equal(fake_lb_pick_hash(f, i), addr);
        finish(f);
    }
    kit_config_lb_free(f);
}

/* The weights of the resource make the table; a locality of weight 0 has no slot. */
static void maglev_of_localities(void **state)
{
    TC_CASE(MG04);
    TC_CASE(MG05);
    (void)state;
    assert_slots("0/a=1: 127.0.0.1:90; 0/b=1: 127.0.0.1:91*2", "10010110010100101");
    assert_slots("0/a=8: 127.0.0.1:90; 0/b=0: 127.0.0.1:92*3; 0/c=2: 127.0.0.1:91*2", "10000010010100000");
}

/* --- xds_wrr_locality --- */

static void localities_by_weight(void **state)
{
    TC_CASE(WT01);
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    struct tc_rng rng;
    kit_config_update(f, cds_of("c"), one_cluster("", "0/a=1: 1.1.1.1:1*9; 0/b=3: 2.2.2.2:2; 0/empty=9: ", NULL));
    ready(f, "1.1.1.1:1");
    ready(f, "2.2.2.2:2");
    tc_rng_init_seed(&rng, 7);
    int second = 0;
    for (int i = 0; i < 4000; i++) {
        f->args.random = tc_rng_u64(&rng);
        second += strcmp(fake_lb_pick(f), "2.2.2.2:2") == 0;
        finish(f);
    }
    assert_in_range(second, 2800, 3200);
    kit_config_lb_free(f);
}

/* --- xds_cluster_manager --- */

static void pick_by_cluster(void **state)
{
    TC_CASE(CM01);
    TC_CASE(CM03);
    (void)state;
    struct fake_lb *f = kit_config_lb("xds_cluster_manager_experimental");
    struct tc_cluster_config *a = kit_config_cluster("a", "", kit_config_eds("0/x: 1.1.1.1:1", NULL));
    struct tc_cluster_config *b = kit_config_cluster("b", "", kit_config_eds("0/x: 2.2.2.2:2", NULL));
    kit_config_update(f, manager_of("a", "b"),
                      kit_config_config(tc_cluster_config_ref(a), tc_cluster_config_ref(b), NULL));
    assert_int_equal(f->state, TORC_CONNECTIVITY_CONNECTING);
    ready(f, "2.2.2.2:2");
    assert_int_equal(f->state, TORC_CONNECTIVITY_READY);
    f->args.cluster = tc_slice_str("a");
    assert_string_equal(fake_lb_pick(f), "QUEUE");
    f->args.cluster = tc_slice_str("b");
    assert_string_equal(fake_lb_pick(f), "2.2.2.2:2");
    finish(f);
    ready(f, "1.1.1.1:1");
    f->args.cluster = tc_slice_str("a");
    assert_string_equal(fake_lb_pick(f), "1.1.1.1:1");
    finish(f);
    f->args.cluster = tc_slice_str("nobody");
    assert_string_equal(fake_lb_pick(f), "DROP");
    assert_int_equal(f->pick.status.code, TORC_STATUS_INTERNAL);
    /* "a" leaves the config: its endpoints go, "b" serves on. */
    kit_config_update(f, manager_of("b", NULL), kit_config_config(tc_cluster_config_ref(b), NULL));
    assert_int_equal(fake_lb_count(f, "1.1.1.1:1"), 0);
    f->args.cluster = tc_slice_str("b");
    assert_string_equal(fake_lb_pick(f), "2.2.2.2:2");
    finish(f);
    tc_cluster_config_unref(a);
    tc_cluster_config_unref(b);
    kit_config_lb_free(f);
}

static struct tc_cluster_config *missing_cluster(const char *name, bool dropped)
{
    struct tc_cluster_config *c = TC_NEW(struct tc_cluster_config);
    tc_ref_init(&c->ref);
    c->name = tc_rstr_str(name);
    c->status =
        tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "CDS resource \"%s\" does not exist (node ID:n1)", name);
    c->dropped = dropped;
    return c;
}

/* A31: not even a wait-for-ready RPC waits for a deleted cluster that no route has: the pick says DROP instead of
 * FAIL. */
static void deleted_cluster(void **state)
{
    (void)state;
    struct fake_lb *f = kit_config_lb("xds_cluster_manager_experimental");
    for (int dropped = 0; dropped < 2; dropped++) {
        kit_config_update(f, manager_of("a", "b"),
                          kit_config_config(missing_cluster("a", dropped), missing_cluster("b", false), NULL));
        f->args.cluster = tc_slice_str("a");
        assert_string_equal(fake_lb_pick(f), dropped ? "DROP" : "FAIL");
        assert_string_equal(fake_lb_pick_error(f), "CDS resource \"a\" does not exist (node ID:n1)");
        f->args.cluster = tc_slice_str("b");
        assert_string_equal(fake_lb_pick(f), "FAIL");
    }
    struct tc_cluster_config *a = kit_config_cluster("a", "", kit_config_eds("0/x: 1.1.1.1:1", NULL));
    kit_config_update(f, manager_of("a", NULL), kit_config_config(a, NULL));
    ready(f, "1.1.1.1:1");
    f->args.cluster = tc_slice_str("a");
    assert_string_equal(fake_lb_pick(f), "1.1.1.1:1");
    finish(f);
    kit_config_lb_free(f);
}

/* The resolver has lost its listener: clusters of the policy's config serve on, other RPCs fail. */
static void error_of_the_resolver(void **state)
{
    TC_CASE(CM02);
    (void)state;
    struct fake_lb *f = kit_config_lb("xds_cluster_manager_experimental");
    struct tc_cluster_config *a = kit_config_cluster("a", "", kit_config_eds("0/x: 1.1.1.1:1", NULL));
    kit_config_update(f, manager_of("a", NULL), kit_config_config(a, NULL));
    ready(f, "1.1.1.1:1");
    struct tc_status error =
        tc_status_make(TORC_STATUS_UNAVAILABLE, TORC_LAYER_LB, "LDS resource \"l\" does not exist");
    fake_lb_update_error(f, &error, manager_of("a", NULL));
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    f->args.cluster = tc_slice_str("a");
    assert_string_equal(fake_lb_pick(f), "1.1.1.1:1");
    finish(f);
    f->args.cluster = tc_slice_str("");
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_string_equal(fake_lb_pick_error(f), "LDS resource \"l\" does not exist");
    fake_lb_update_error(f, &error, tc_child_configs_new(&tc_cluster_manager_factory, NULL, 0));
    assert_int_equal(fake_lb_count(f, NULL), 0);
    tc_status_fini(&error);
    kit_config_lb_free(f);
}

static void no_children(void **state)
{
    (void)state;
    struct fake_lb *f = kit_config_lb("xds_cluster_manager_experimental");
    kit_config_update(f, tc_child_configs_new(&tc_cluster_manager_factory, NULL, 0), kit_config_config(NULL, NULL));
    assert_int_equal(f->state, TORC_CONNECTIVITY_TRANSIENT_FAILURE);
    assert_string_equal(fake_lb_pick(f), "FAIL");
    assert_string_equal(fake_lb_pick_error(f), "no children in xds_cluster_manager policy");
    kit_config_lb_free(f);
}

/* --- configs as JSON --- */

static void configs(void **state)
{
    (void)state;
    struct fake_lb *f = kit_config_lb("cds_experimental");
    static const struct {
        const char *policy, *json, *fault; /* `fault` NULL: the config is valid */
    } rows[] = {
        {"cds_experimental", "{'cluster': 'c'}", NULL},
        {"cds_experimental", "{}", "cluster: field not present"},
        {"cds_experimental", "{'cluster': 3}", "cluster"},
        {"xds_cluster_impl_experimental", "{'cluster': 'c', 'childPolicy': [{'round_robin': {}}]}", NULL},
        {"xds_cluster_impl_experimental", "{'cluster': 'c'}", "childPolicy: field not present"},
        {"xds_cluster_impl_experimental", "{'childPolicy': [{'round_robin': {}}]}", "cluster: field not present"},
        {"xds_wrr_locality_experimental", "{'childPolicy': [{'round_robin': {}}]}", NULL},
        {"xds_wrr_locality_experimental", "{}", "childPolicy: field not present"},
        {"xds_wrr_locality_experimental", "{'childPolicy': [{'none_such': {}}]}", "no supported LB policy"},
        {"xds_cluster_manager_experimental",
         "{'children': {'a': {'childPolicy': [{'cds_experimental': {'cluster': "
         "'a'}}]}}}",
         NULL},
        {"xds_cluster_manager_experimental", "{'children': {'a': {}}}", "[\"a\"].childPolicy: field not present"},
        {"xds_cluster_manager_experimental", "{'children': {'a': 7}}", "children[\"a\"]: must be an object"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        char *why = NULL;
        struct tc_lb_config *a = fake_lb_config(f, rows[i].policy, rows[i].json, &why);
        struct tc_lb_config *b = fake_lb_config(f, rows[i].policy, rows[i].json, NULL);
        assert_true((a == NULL) == (rows[i].fault != NULL));
        if (rows[i].fault)
            assert_non_null(strstr(why, rows[i].fault));
        else
            assert_true(tc_lb_config_eq(a, b));
        tc_lb_config_unref(a);
        tc_lb_config_unref(b);
        tc_free(why);
    }
    kit_config_lb_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaf_by_priorities),
        cmocka_unit_test(unchanged_cluster_changes_nothing),
        cmocka_unit_test(missing_cluster_comes_back),
        cmocka_unit_test(old_snapshots_go),
        cmocka_unit_test(outlier_detection),
        cmocka_unit_test(cluster_in_error),
        cmocka_unit_test(policy_of_the_cluster_changes),
        cmocka_unit_test(aggregate_of_leaves),
        cmocka_unit_test(aggregate_with_its_own_policy),
        cmocka_unit_test(drops),
        cmocka_unit_test(drops_everything_without_endpoints),
        cmocka_unit_test(dns_is_asked_again),
        cmocka_unit_test(circuit_breaker),
        cmocka_unit_test(maglev_of_localities),
        cmocka_unit_test(localities_by_weight),
        cmocka_unit_test(pick_by_cluster),
        cmocka_unit_test(deleted_cluster),
        cmocka_unit_test(error_of_the_resolver),
        cmocka_unit_test(no_children),
        cmocka_unit_test(configs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
