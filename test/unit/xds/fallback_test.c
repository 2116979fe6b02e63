/* Fallback between the servers of a list (A71, A95). */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/xds_kit.h"

#include "base/mem.h"

#define TWO "\"xds_servers\": [{\"server_uri\": \"s1\"}, {\"server_uri\": \"s2\"}], \"node\": {\"id\": \"node1\"}"
#define S1_DOWN "xDS channel for server s1: down (node ID:node1)"
#define S2_DOWN "xDS channel for server s2: Another server down (node ID:node1)"

static struct tc_kit k;
static struct tc_fake_xds_server *s1, *s2;
static struct tc_kit_watcher a, b;

static int set_up(void **state)
{
    (void)state;
    tc_kit_init(&k, "{" TWO "}");
    s1 = k.server;
    s2 = tc_fake_xds_server(k.fake, "s2");
    tc_kit_watcher_init(&a);
    tc_kit_watcher_init(&b);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tc_kit_fini(&k);
    tc_kit_watcher_fini(&a);
    tc_kit_watcher_fini(&b);
    return 0;
}

static void watch(const char *name, struct tc_kit_watcher *w)
{
    tc_kit_watch(&k, &tc_kit_eds, name, w);
    tc_loop_drain(k.loop);
}

static void go_down(struct tc_fake_xds_server *s, const char *why)
{
    tc_fake_xds_fail(s, why);
    tc_loop_drain(k.loop);
}

#define assert_told(w, text) assert_string_equal(tc_kit_told(w), text)

static void primary_down_at_start(void **state)
{
    (void)state;
    s1->connected = false;
    watch("a", &a);
    assert_false(s2->open);
    go_down(s1, "down");
    assert_true(s2->open);
    assert_told(&a, "");
    tc_kit_respond(&k, s2, &tc_kit_eds, "1", "n1", "a|fallback", NULL);
    assert_told(&a, "value fallback;");
    TC_CASE(FB01);
}

static void both_down(void **state)
{
    (void)state;
    s1->connected = s2->connected = false;
    watch("a", &a);
    go_down(s1, "down");
    go_down(s2, "Another server down");
    assert_told(&a, "error " S2_DOWN ";");
    watch("b", &b);
    assert_told(&b, "error " S2_DOWN ";");
    TC_CASE(FB02);

    /* The primary comes back, with no help from anybody. */
    tc_fake_xds_connect(s1);
    tc_kit_respond(&k, s1, &tc_kit_eds, "1", "n1", "a|main", "b|main", NULL);
    assert_told(&a, "value main;");
    assert_told(&b, "value main;");
    assert_false(s2->open);
    TC_CASE(FB09);
}

static void all_cached(void **state)
{
    (void)state;
    watch("a", &a);
    tc_kit_respond(&k, s1, &tc_kit_eds, "1", "n1", "a|main", NULL);
    go_down(s1, "down");
    assert_false(s2->open);
    assert_told(&a, "value main;ambient " S1_DOWN ";");
    TC_CASE(FB03);

    /* A name that is not cached needs the fallback, which is asked for everything. */
    watch("b", &b);
    assert_told(&b, "");
    assert_told(&a, "clear;");
    assert_string_equal(tc_kit_request(&k, s2), "ClusterLoadAssignment [a,b] \"\" \"\" node");
    tc_kit_respond(&k, s2, &tc_kit_eds, "1", "n1", "a|fallback", "b|fallback", NULL);
    assert_told(&a, "value fallback;");
    assert_told(&b, "value fallback;");
    TC_CASE(FB04);

    while (*tc_kit_request(&k, s1)) {
    }
    tc_fake_xds_connect(s1);
    tc_kit_respond(&k, s1, &tc_kit_eds, "2", "n2", "a|main", "b|main", NULL);
    assert_told(&a, "value main;");
    assert_told(&b, "value main;");
    assert_false(s2->open);
    assert_string_equal(tc_kit_request(&k, s1), "ClusterLoadAssignment [a,b] \"2\" \"n2\"");
    TC_CASE(FB05);
}

static void one_target_falls_back(void **state)
{
    (void)state;
    struct tc_fake_xds *fake = tc_fake_xds_new(k.loop);
    struct tc_xds_client_opts opts;
    tc_xds_client_opts_init(&opts);
    struct tc_xds_client *other = tc_xds_client_new(k.loop, k.bootstrap, tc_fake_xds_factory(fake), &opts);
    tc_xds_client_watch(other, &tc_kit_eds, tc_slice_str("a"), &b.base);
    tc_loop_drain(k.loop);
    tc_kit_respond(&k, tc_fake_xds_server(fake, "s1"), &tc_kit_eds, "1", "n1", "a|main", NULL);
    watch("a", &a);
    go_down(s1, "down");
    go_down(tc_fake_xds_server(fake, "s1"), "down");
    assert_true(s2->open);
    assert_false(tc_fake_xds_server(fake, "s2")->open);
    assert_told(&b, "value main;ambient " S1_DOWN ";");
    tc_xds_client_unref(other);
    tc_fake_xds_free(fake);
    TC_CASE(FB06);
}

static void primary_drops_after_an_answer(void **state)
{
    (void)state;
    watch("a", &a);
    watch("b", &b);
    tc_kit_respond(&k, s1, &tc_kit_eds, "1", "n1", "a|main", NULL);
    tc_fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "gone");
    tc_loop_drain(k.loop);
    assert_false(s2->open);
    assert_told(&b, "");
    assert_int_equal(s1->streams, 2);
    TC_CASE(FB07);

    /* The next stream gets no answer: now it is one. */
    tc_fake_xds_end(s1, TORC_STATUS_UNAVAILABLE, "gone");
    tc_loop_drain(k.loop);
    assert_true(s2->open);
    assert_told(&b, "");
}

static void known_absent_is_enough(void **state)
{
    (void)state;
    watch("a", &a);
    tc_loop_advance(k.loop, 15000);
    go_down(s1, "down");
    assert_false(s2->open);
}

static void on_dump(void *arg, const struct tc_xds_dump_entry *e)
{
    *(enum tc_xds_state *)arg = e->state;
}

static enum tc_xds_state state_now(void)
{
    enum tc_xds_state state = 0;
    tc_xds_client_dump(k.client, on_dump, &state);
    return state;
}

/* A name's timer runs while a server that is connected was asked, whichever it is. */
static void timer_over_both_servers(void **state)
{
    (void)state;
    s1->connected = false;
    watch("a", &a);
    go_down(s1, "down");
    tc_loop_advance(k.loop, 10000);
    tc_fake_xds_end(s2, TORC_STATUS_UNAVAILABLE, "gone");
    s2->connected = false;
    tc_loop_advance(k.loop, 60000); /* none of the two */
    assert_int_equal(state_now(), TC_XDS_REQUESTED);
    tc_fake_xds_connect(s1);
    tc_loop_advance(k.loop, 10000);
    tc_fake_xds_connect(s2);
    tc_loop_advance(k.loop, 4999);
    assert_int_equal(state_now(), TC_XDS_REQUESTED);
    tc_loop_advance(k.loop, 1);
    assert_int_equal(state_now(), TC_XDS_DOES_NOT_EXIST);
}

static void bad_address_first(void **state)
{
    (void)state;
    watch("a", &a);
    go_down(s1, "cannot parse target"); /* what a transport says of a URI that it does not understand */
    tc_kit_respond(&k, s2, &tc_kit_eds, "1", "n1", "a|good", NULL);
    assert_told(&a, "value good;");
    watch("b", &b);
    go_down(s2, "cannot parse target");
    assert_told(&b, "error xDS channel for server s2: cannot parse target (node ID:node1);");
    TC_CASE(FB08);
}

static void reachability_only(void **state)
{
    (void)state;
    tear_down(NULL);
    tc_kit_init(&k, "{" TWO ", \"authorities\": {\"x\": {\"fallback_on_reachability_only\": true}}}");
    s1 = k.server;
    s2 = tc_fake_xds_server(k.fake, "s2");
    static const char name[] = "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/a";
    watch(name, &a);
    tc_kit_respond(&k, s1, &tc_kit_eds, "1", "n1", "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/a|main",
                   NULL);
    assert_told(&a, "value main;");
    go_down(s1, "down");
    assert_true(s2->open);
    assert_told(&a, "");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(primary_down_at_start),
        TEST(both_down),
        TEST(all_cached),
        TEST(one_target_falls_back),
        TEST(primary_drops_after_an_answer),
        TEST(known_absent_is_enough),
        TEST(timer_over_both_servers),
        TEST(bad_address_first),
        TEST(reachability_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
