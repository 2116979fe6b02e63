/* Forwarding clients: two targets, each with a client of its own, and a third client, which both share for the
 * authorities that have a single server (A71). An authority whose server also stands in a list with fallbacks is not
 * shared (one_stream_to_a_server_of_two_authorities).
 *
 * All three clients run on the kit's loop, on the test's thread. Each target's own client has a fake of its own, so the
 * same URI is another fake server for each target; k.server and sx are servers of the shared client. In `bootstrap`
 * authority x has one server, and the top level has s1 with the fallback s2. A target's client ends before its fake,
 * and the shared client ends last. */
#include "support/cmocka.h"
#include "support/kits/xds.h"
#include "xds/client/forwarding_client.h"
#include "xds/client/local_client.h"

#define NAME(id) "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/" id
#define UNKNOWN "xdstp://y/envoy.config.endpoint.v3.ClusterLoadAssignment/a"

static const char bootstrap[] = "{\"xds_servers\": [{\"server_uri\": \"s1\"}, {\"server_uri\": \"s2\"}],"
                                " \"authorities\": {\"x\": {\"xds_servers\": [{\"server_uri\": \"sx\"}]}},"
                                " \"node\": {\"id\": \"node1\"}}";

static struct kit_xds k; /* the shared client */
static struct target {
    struct fake_xds *fake;              /* the servers of the own client */
    struct tc_xds_client *client;       /* the forwarding client, a reference; NULL: the target has ended */
    struct kit_xds_watcher top, shared; /* for names of the top level, and of authority x */
} one, two;
static struct fake_xds_server *sx; /* k.fake's; the server of authority x in `bootstrap` */

static void target_init(struct target *t, const char *name)
{
    struct tc_xds_client_opts opts;
    tc_xds_client_opts_init(&opts);
    opts.target = tc_slice_str(name);
    t->fake = fake_xds_new(k.loop);
    t->client = tc_xds_forwarding_client_new(
        tc_xds_local_client_new(k.loop, k.bootstrap, fake_xds_factory(t->fake), &opts), k.client);
    kit_xds_watcher_init(&t->top);
    kit_xds_watcher_init(&t->shared);
}

static void target_fini(struct target *t)
{
    tc_xds_client_unref(t->client);
    tc_loop_drain(k.loop);
    fake_xds_free(t->fake);
    kit_xds_watcher_fini(&t->top);
    kit_xds_watcher_fini(&t->shared);
}

static int set_up(void **state)
{
    (void)state;
    kit_xds_init(&k, bootstrap);
    sx = fake_xds_server(k.fake, "sx");
    target_init(&one, "xds:///one");
    target_init(&two, "xds:///two");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (one.client)
        target_fini(&one);
    target_fini(&two);
    kit_xds_fini(&k);
    return 0;
}

static void watch(struct tc_xds_client *c, const char *name, struct kit_xds_watcher *w)
{
    tc_xds_client_watch(c, &kit_xds_eds, tc_slice_str(name), &w->base);
    tc_loop_drain(k.loop);
}

static struct fake_xds_server *server(const struct target *t, const char *uri)
{
    return fake_xds_server(t->fake, uri);
}

#define assert_told(w, text) assert_string_equal(kit_xds_told(w), text)
#define assert_request(s, text) assert_string_equal(kit_xds_request(&k, s), text)

static void names_go_where_their_authority_is_held(void **state)
{
    (void)state;
    watch(one.client, "a", &one.top);
    watch(two.client, "a", &two.top);
    watch(one.client, NAME("a"), &one.shared);
    watch(two.client, NAME("a"), &two.shared);
    assert_int_equal(server(&one, "s1")->streams, 1);
    assert_int_equal(server(&two, "s1")->streams, 1);
    assert_false(k.server->open); /* the shared client holds nothing of the top level */
    assert_false(server(&one, "sx")->open);
    assert_int_equal(sx->streams, 1);
    assert_request(sx, "ClusterLoadAssignment [" NAME("a") "] \"\" \"\" node");
    assert_request(sx, "");
    kit_xds_respond(&k, sx, &kit_xds_eds, "1", "n1", NAME("a") "|x", NULL);
    assert_told(&one.shared, "value x;");
    assert_told(&two.shared, "value x;");
    assert_told(&one.top, "");
    kit_xds_respond(&k, server(&two, "s1"), &kit_xds_eds, "1", "n1", "a|two", NULL);
    assert_told(&two.top, "value two;");
    assert_told(&one.top, "");
    /* A name of an unknown authority. */
    struct kit_xds_watcher w;
    kit_xds_watcher_init(&w);
    watch(one.client, UNKNOWN, &w);
    assert_told(&w, "error authority \"y\" is not in the xDS bootstrap (node ID:node1);");
    tc_xds_client_unwatch(one.client, &w.base);
    kit_xds_watcher_fini(&w);
}

static void fallback_is_each_targets_own(void **state)
{
    (void)state;
    watch(two.client, "a", &two.top);
    watch(one.client, NAME("a"), &one.shared);
    kit_xds_respond(&k, server(&two, "s1"), &kit_xds_eds, "1", "n1", "a|main", NULL);
    kit_xds_respond(&k, sx, &kit_xds_eds, "1", "n1", NAME("a") "|x", NULL);
    watch(one.client, "a", &one.top);
    fake_xds_fail(server(&one, "s1"), "down");
    fake_xds_fail(server(&two, "s1"), "down");
    tc_loop_drain(k.loop);
    assert_true(server(&one, "s2")->open);
    assert_false(server(&two, "s2")->open);
    assert_told(&one.shared, "value x;");
}

static void watches_end_with_their_target(void **state)
{
    (void)state;
    watch(one.client, NAME("a"), &one.shared);
    watch(two.client, NAME("b"), &two.shared);
    kit_xds_respond(&k, sx, &kit_xds_eds, "1", "n1", NAME("a") "|x", NAME("b") "|y", NULL);
    while (*kit_xds_request(&k, sx)) {
    }
    assert_told(&one.shared, "value x;");
    tc_xds_client_unref(one.client); /* with a watch */
    tc_loop_drain(k.loop);
    assert_request(sx, "ClusterLoadAssignment [" NAME("b") "] \"1\" \"n1\"");
    kit_xds_respond(&k, sx, &kit_xds_eds, "2", "n2", NAME("a") "|z", NAME("b") "|z", NULL);
    assert_told(&one.shared, "");
    assert_told(&two.shared, "value y;value z;");
    one.client = NULL;
    fake_xds_free(one.fake);
    kit_xds_watcher_fini(&one.top);
    kit_xds_watcher_fini(&one.shared);
    /* When the last watch on the server ends, the server's channel closes. */
    tc_xds_client_unwatch(two.client, &two.shared.base);
    tc_loop_drain(k.loop);
    assert_false(sx->open);
}

static void loads_go_to_the_server_that_sent_the_cluster(void **state)
{
    (void)state;
    struct tc_rstr *cluster = tc_rstr_str("c");
    struct tc_load_cluster *loads[] = {
        tc_xds_client_load(one.client, k.bootstrap->authorities[0].servers[0].key, cluster, NULL),
        tc_xds_client_load(two.client, k.bootstrap->authorities[0].servers[0].key, cluster, NULL),
        tc_xds_client_load(one.client, k.bootstrap->servers[0].key, cluster, NULL),
    };
    tc_loop_drain(k.loop);
    assert_ptr_equal(loads[0], loads[1]);
    assert_int_equal(sx->lrs_streams, 1);
    assert_false(server(&one, "sx")->open);
    assert_int_equal(server(&one, "s1")->lrs_streams, 1);
    assert_false(k.server->open);
    for (size_t i = 0; i < TC_ARRAY_LEN(loads); i++) {
        tc_load_cluster_unuse(loads[i]);
        tc_load_cluster_unref(loads[i]);
    }
    tc_rstr_unref(cluster);
}

static void count(void *arg, const struct tc_xds_dump_entry *e)
{
    (void)e;
    ++*(size_t *)arg;
}

static void dumps(void **state)
{
    (void)state;
    size_t own = 0, shared = 0;
    watch(one.client, "a", &one.top);
    watch(one.client, NAME("a"), &one.shared);
    tc_xds_client_dump(one.client, count, &own);
    tc_xds_client_dump(k.client, count, &shared);
    assert_int_equal(own, 1);
    assert_int_equal(shared, 1);
    tc_xds_client_reset_backoff(one.client);
    assert_int_equal(sx->backoff_resets, 1);
    assert_int_equal(server(&one, "s1")->backoff_resets, 1);
}

/* s1 serves the top level, which has a fallback (s2), and authority x, which has none. A47 wants one stream for both
 * from each target. */
static void one_stream_to_a_server_of_two_authorities(void **state)
{
    tear_down(state);
    kit_xds_init(&k, "{\"xds_servers\": [{\"server_uri\": \"s1\"}, {\"server_uri\": \"s2\"}], \"authorities\": {\"x\": "
                     "{\"xds_servers\": [{\"server_uri\": \"s1\"}]}}, \"node\": {\"id\": \"node1\"}}");
    target_init(&one, "xds:///one");
    target_init(&two, "xds:///two");
    watch(one.client, "a", &one.top);
    watch(one.client, NAME("a"), &one.shared);
    assert_int_equal(server(&one, "s1")->streams, 1);
    assert_false(k.server->open);
    assert_request(server(&one, "s1"), "ClusterLoadAssignment [a] \"\" \"\" node");
    assert_request(server(&one, "s1"), "ClusterLoadAssignment [a," NAME("a") "] \"\" \"\"");
    kit_xds_respond(&k, server(&one, "s1"), &kit_xds_eds, "1", "n1", "a|top", NAME("a") "|x", NULL);
    assert_told(&one.top, "value top;");
    assert_told(&one.shared, "value x;");
    /* The loads of both authorities go over one LRS stream. */
    struct tc_rstr *clusters[] = {tc_rstr_str("c"), tc_rstr_str("d")};
    struct tc_load_cluster *loads[] = {
        tc_xds_client_load(one.client, k.bootstrap->servers[0].key, clusters[0], NULL),
        tc_xds_client_load(one.client, k.bootstrap->authorities[0].servers[0].key, clusters[1], NULL),
    };
    tc_loop_drain(k.loop);
    assert_int_equal(server(&one, "s1")->lrs_streams, 1);
    assert_false(k.server->open);
    for (size_t i = 0; i < TC_ARRAY_LEN(loads); i++) {
        tc_load_cluster_unuse(loads[i]);
        tc_load_cluster_unref(loads[i]);
        tc_rstr_unref(clusters[i]);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_go_where_their_authority_is_held),
        TEST(fallback_is_each_targets_own),
        TEST(watches_end_with_their_target),
        TEST(loads_go_to_the_server_that_sent_the_cluster),
        TEST(dumps),
        TEST(one_stream_to_a_server_of_two_authorities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
