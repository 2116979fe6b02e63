/* Remote clients, each on a loop of its own, that use the client of another loop, their origin: notifications from the
 * origin's ADS stream, and load reports. The origin is the kit's client, over a scripted transport; the test is its
 * server. All loops are manual, and the test turns them on its one thread. Time passes on the origin's loop alone.
 *
 * set_up makes two remote clients, and tear_down ends those that still exist. tear_down also asserts that each remote
 * client opened and closed its origin once. `load` returns a reference and a use, and `unload` gives up both. `zone`
 * returns a reference. */
#include "xds/client/remote_client.h"

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/xds_lrs.h"

enum { REMOTES = 2 };

struct remote {
    struct tc_loop *loop;
    struct tc_mailbox *box;       /* of `loop`; a reference */
    struct tc_xds_client *client; /* a reference; NULL: it ended */
    struct kit_xds_watcher w;
    unsigned opened, closed; /* calls of tc_xds_remote_opts.open and .close */
};

static struct kit_xds k;
static struct tc_mailbox *there; /* of the origin's loop; a reference */
static struct remote r[REMOTES];
static struct tc_rstr *one;

static struct tc_xds_client *opens(void *arg)
{
    ((struct remote *)arg)->opened++;
    return k.client;
}

static void closes(void *arg)
{
    ((struct remote *)arg)->closed++;
}

static int set_up(void **state)
{
    (void)state;
    kit_xds_init(&k, NULL);
    there = tc_mailbox_new(k.loop);
    one = tc_rstr_str("one");
    for (unsigned i = 0; i < REMOTES; i++) {
        r[i] = (struct remote){.loop = tc_loop_new(&(struct tc_loop_opts){.manual = true})};
        r[i].box = tc_mailbox_new(r[i].loop);
        kit_xds_watcher_init(&r[i].w);
        struct tc_xds_remote_opts opts = {
            .here = r[i].box, .there = there, .open = opens, .close = closes, .arg = &r[i]};
        r[i].client = tc_xds_remote_client_new(r[i].loop, k.bootstrap, &opts);
    }
    return 0;
}

/* Drains the loops of all clients four times in turn: enough for a question and its answer. */
static void settle(void)
{
    for (unsigned n = 0; n < 4; n++) {
        tc_loop_drain(k.loop);
        for (unsigned i = 0; i < REMOTES; i++)
            tc_loop_drain(r[i].loop);
    }
}

static void end(struct remote *at)
{
    tc_xds_client_unref(at->client);
    at->client = NULL;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < REMOTES; i++)
        end(&r[i]);
    settle();
    tc_mailbox_close(there);
    tc_mailbox_unref(there);
    for (unsigned i = 0; i < REMOTES; i++) {
        assert_int_equal(r[i].opened, 1);
        assert_int_equal(r[i].closed, 1);
        tc_mailbox_close(r[i].box);
        tc_mailbox_unref(r[i].box);
        tc_loop_drain(r[i].loop);
        tc_loop_free(r[i].loop);
        kit_xds_watcher_fini(&r[i].w);
    }
    tc_rstr_unref(one);
    kit_xds_fini(&k);
    return 0;
}

/* Begins to watch with at->w. */
static void watch(struct remote *at, const char *name)
{
    tc_xds_client_watch(at->client, &kit_xds_eds, tc_slice_str(name), &at->w.base);
}

static void both_watch_a(void)
{
    watch(&r[0], "a");
    watch(&r[1], "a");
    settle();
    assert_string_equal(kit_xds_request(&k, k.server), "ClusterLoadAssignment [a] \"\" \"\" node");
}

static void one_stream_tells_all(void **state)
{
    (void)state;
    both_watch_a();
    unsigned decoded = kit_xds_decoded;
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|v1", NULL);
    settle();
    assert_int_equal(kit_xds_decoded - decoded, 1);
    for (unsigned i = 0; i < REMOTES; i++)
        assert_string_equal(kit_xds_told(&r[i].w), "value v1;");
    assert_int_equal(k.server->streams, 1);
    /* The end of one watch changes nothing for the other. A watch that begins later gets the origin's value. */
    tc_xds_client_unwatch(r[0].client, &r[0].w.base);
    settle();
    kit_xds_respond(&k, k.server, &kit_xds_eds, "2", "n2", "a|v2", NULL);
    settle();
    assert_string_equal(kit_xds_told(&r[0].w), "");
    assert_string_equal(kit_xds_told(&r[1].w), "value v2;");
    watch(&r[0], "a");
    settle();
    assert_string_equal(kit_xds_told(&r[0].w), "value v2;");
}

/* The subscription ends with the last watch, unless another watch begins in the same turn. */
static void subscriptions_end(void **state)
{
    (void)state;
    struct kit_xds_watcher next;
    kit_xds_watcher_init(&next);
    watch(&r[0], "a");
    settle();
    assert_string_equal(kit_xds_request(&k, k.server), "ClusterLoadAssignment [a] \"\" \"\" node");
    tc_xds_client_unwatch(r[0].client, &r[0].w.base);
    tc_xds_client_watch(r[0].client, &kit_xds_eds, tc_slice_str("a"), &next.base);
    settle();
    assert_string_equal(kit_xds_request(&k, k.server), "");
    tc_xds_client_unwatch(r[0].client, &next.base);
    watch(&r[0], "b");
    settle();
    assert_string_equal(kit_xds_request(&k, k.server), "ClusterLoadAssignment [b] \"\" \"\"");
    kit_xds_watcher_fini(&next);
}

static void errors_come_over(void **state)
{
    (void)state;
    both_watch_a();
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|v1", NULL);
    settle();
    kit_xds_told(&r[0].w);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "2", "n2", "a|bad", NULL);
    settle();
    assert_non_null(strstr(kit_xds_told(&r[0].w), "ambient "));
    kit_xds_respond(&k, k.server, &kit_xds_eds, "3", "n3", "a|v3", NULL);
    settle();
    assert_non_null(strstr(kit_xds_told(&r[0].w), "value v3;"));
    /* A malformed name. */
    struct kit_xds_watcher odd;
    kit_xds_watcher_init(&odd);
    tc_xds_client_watch(r[0].client, &kit_xds_eds, tc_slice_str("xdstp://nowhere/eds/x"), &odd.base);
    settle();
    assert_non_null(strstr(kit_xds_told(&odd), "error "));
    tc_xds_client_unwatch(r[0].client, &odd.base);
    kit_xds_watcher_fini(&odd);
}

/* A loop that does not turn holds up no other loop. When the loop turns, its watcher gets only the newest
 * state. */
static void a_loop_that_does_not_turn(void **state)
{
    (void)state;
    both_watch_a();
    for (unsigned i = 1; i <= 50; i++) {
        char value[16], version[8];
        snprintf(value, sizeof(value), "a|v%u", i);
        snprintf(version, sizeof(version), "%u", i);
        kit_xds_respond(&k, k.server, &kit_xds_eds, version, version, value, NULL);
        tc_loop_drain(k.loop);
        tc_loop_drain(r[0].loop);
    }
    assert_int_equal(k.server->messages_read, 50);
    assert_non_null(strstr(kit_xds_told(&r[0].w), "value v1;value v2;"));
    settle();
    assert_string_equal(kit_xds_told(&r[1].w), "value v50;");
}

static void the_remote_client_ends_with_news_under_way(void **state)
{
    (void)state;
    both_watch_a();
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|v1", NULL);
    tc_loop_drain(k.loop);
    end(&r[0]);
    tc_mailbox_close(r[1].box);
    end(&r[1]);
    settle();
    assert_string_equal(kit_xds_told(&r[0].w), "");
    assert_string_equal(kit_xds_told(&r[1].w), "");
}

static void backoff_is_reset(void **state)
{
    (void)state;
    both_watch_a();
    unsigned before = k.server->backoff_resets;
    tc_xds_client_reset_backoff(r[1].client);
    settle();
    assert_int_equal(k.server->backoff_resets, before + 1);
}

/* --- loads --- */

static struct tc_load_cluster *load(struct remote *at)
{
    struct tc_load_cluster *c = tc_xds_client_load(at->client, k.bootstrap->servers[0].key, one, NULL);
    assert_non_null(c);
    return c;
}

static void unload(struct tc_load_cluster *c)
{
    tc_load_cluster_unuse(c);
    tc_load_cluster_unref(c);
}

static struct tc_load_locality *zone(struct tc_load_cluster *c)
{
    return tc_load_locality_get(c, tc_slice_str(""), tc_slice_str("z"), tc_slice_str(""));
}

/* Counts `good` RPCs that succeeded and `open` RPCs that are still under way. */
static void calls(struct tc_load_cluster *c, unsigned good, unsigned open)
{
    struct tc_load_locality *l = zone(c);
    for (unsigned i = 0; i < good + open; i++) {
        tc_load_locality_started(l);
        if (i < good)
            tc_load_locality_finished(l, true);
    }
    tc_load_locality_unref(l);
}

static void call_ends(struct tc_load_cluster *c, bool good)
{
    struct tc_load_locality *l = zone(c);
    tc_load_locality_finished(l, good);
    tc_load_locality_unref(l);
}

/* Lets a report become due, and the counts of all loops come in. */
static void report_time(void)
{
    tc_loop_advance(k.loop, 10000);
    settle();
}

#define assert_report(expected) assert_string_equal(kit_xds_report(&k), expected)

static void loads_add_up(void **state)
{
    (void)state;
    struct tc_load_cluster *a = load(&r[0]), *b = load(&r[1]);
    settle();
    assert_int_equal(k.server->lrs_streams, 1);
    assert_report("node node1;");
    kit_xds_lrs_answer(&k, 10, NULL);
    calls(a, 3, 1);
    calls(b, 2, 2);
    struct tc_rstr *category = tc_rstr_str("lb");
    tc_load_cluster_drop(a, category, 1);
    tc_load_cluster_drop(b, category, 1);
    tc_load_cluster_drop(b, NULL, 1);
    tc_rstr_unref(category);
    struct tc_load_locality *l = zone(b);
    tc_load_locality_metric(l, TC_LOAD_CPU, tc_slice_of(NULL, 0), 1, 0.5);
    tc_load_locality_unref(l);
    report_time();
    assert_report("one 10.000s z:5+0/8~3 cpu=0.5/1 dropped 3 lb=2;");
    call_ends(a, false);
    report_time();
    assert_report("one 10.000s z:0+1/0~2;");
    /* No RPC began or ended, and two are still under way. */
    report_time();
    assert_report("one 10.000s z:0+0/0~2;");
    call_ends(b, true);
    call_ends(b, true);
    report_time();
    assert_report("one 10.000s z:2+0/0~0;");
    /* The last user goes: the last counts are reported. */
    calls(a, 1, 0);
    unload(a);
    settle();
    assert_report("");
    unload(b);
    settle();
    assert_report("one 0.000s z:1+0/1~0;");
}

/* A report waits at most 50 ms for a loop that does not turn. The counts of that loop come in the next report. */
static void a_report_waits_for_nobody(void **state)
{
    (void)state;
    struct tc_load_cluster *a = load(&r[0]), *b = load(&r[1]);
    settle();
    assert_report("node node1;");
    kit_xds_lrs_answer(&k, 10, NULL);
    calls(a, 1, 0);
    calls(b, 1, 0);
    tc_loop_advance(k.loop, 10000);
    tc_loop_drain(r[0].loop);
    tc_loop_drain(k.loop);
    assert_report("");
    tc_loop_advance(k.loop, 50);
    assert_report("one 10.050s z:1+0/1~0;");
    settle();
    report_time();
    assert_report("one 10.000s z:1+0/1~0;");
    unload(a);
    unload(b);
    settle();
}

/* RPCs that are under way when their remote client ends no longer count as under way. */
static void a_remote_client_ends_while_calls_run(void **state)
{
    (void)state;
    struct tc_load_cluster *a = load(&r[0]), *b = load(&r[1]);
    settle();
    assert_report("node node1;");
    kit_xds_lrs_answer(&k, 10, NULL);
    calls(a, 0, 2);
    calls(b, 0, 1);
    report_time();
    assert_report("one 10.000s z:0+0/3~3;");
    calls(a, 4, 0);
    end(&r[0]);
    settle();
    call_ends(a, true); /* not counted */
    unload(a);
    report_time();
    assert_report("one 10.000s z:4+0/4~1;");
    call_ends(b, true);
    unload(b);
    settle();
    assert_report("one 0.000s z:1+0/0~0;");
}

/* A remote client counts by endpoint once it has heard that the server asks for such counts. Reports then have them. */
static void loads_by_endpoint(void **state)
{
    TC_CASE(LS13);
    (void)state;
    struct tc_load_cluster *a = load(&r[0]);
    settle();
    assert_report("node node1;");
    k.lrs_endpoints = true;
    kit_xds_lrs_answer(&k, 10, NULL);
    settle();
    struct tc_load_cluster *b = load(&r[1]); /* comes later */
    settle();
    assert_true(a->by_endpoint && b->by_endpoint);
    struct tc_load_locality *l = zone(b), *e = tc_load_endpoint_get(b, l, tc_slice_str("1.1.1.1:1"));
    tc_load_locality_started(e);
    tc_load_locality_started(e);
    tc_load_locality_finished(e, true);
    calls(a, 1, 0);
    report_time();
    assert_report("one 10.000s z:2+0/3~1 [1.1.1.1:1 1+0/2~1];");
    report_time();
    assert_report("one 10.000s z:0+0/0~1 [1.1.1.1:1 0+0/0~1];");
    k.lrs_endpoints = false;
    kit_xds_lrs_answer(&k, 10, NULL);
    settle();
    assert_false(a->by_endpoint || b->by_endpoint);
    report_time();
    assert_report("one 10.000s z:0+0/0~1;");
    /* r[1] ends: its RPC under way is no longer counted. */
    k.lrs_endpoints = true;
    kit_xds_lrs_answer(&k, 10, NULL);
    tc_load_locality_started(e);
    tc_load_locality_finished(e, false);
    end(&r[1]);
    settle();
    report_time();
    assert_report("one 10.000s z:0+1/1~0 [1.1.1.1:1 0+1/1~0];");
    tc_load_locality_unref(e);
    tc_load_locality_unref(l);
    unload(b);
    unload(a);
}

/* The scene of a_question_is_sent_once. Both tasks are of the loop of r[0]: `ask` lets a report become due and ends the
 * use of `load`; `again` lets the next report become due, before that loop reads its mail. */
struct unasked {
    struct tc_task ask, again;
    struct tc_load_cluster *load; /* a reference and a use, which `ask` gives up */
};

static void on_ask_again(struct tc_task *task)
{
    (void)task;
    tc_loop_advance(k.loop, 10000);
}

static void on_ask_and_unload(struct tc_task *task)
{
    struct unasked *u = TC_CONTAINER_OF(task, struct unasked, ask);
    tc_loop_advance(k.loop, 10000);
    /* The news of "a" stands in the mailbox behind the question. */
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|v1", NULL);
    unload(u->load);
    tc_loop_at_turn_end(r[0].loop, &u->again); /* behind the counts */
}

/* The origin asks for counts. Before the remote client reads the question, it sends counts because a cluster goes out
 * of use. These counts are not the answer: the question still waits in the mailbox, and must not be sent once more. */
static void a_question_is_sent_once(void **state)
{
    (void)state;
    struct tc_load_cluster *a = load(&r[0]), *b = load(&r[1]);
    struct unasked u = {.load = a};
    both_watch_a();
    assert_report("node node1;");
    kit_xds_lrs_answer(&k, 10, NULL);
    calls(a, 1, 0);
    tc_task_init(&u.ask, on_ask_and_unload);
    tc_task_init(&u.again, on_ask_again);
    tc_loop_defer(r[0].loop, &u.ask);
    settle();
    assert_string_equal(kit_xds_told(&r[0].w), "value v1;");
    report_time();
    uint64_t good = 0;
    for (const char *text; *(text = kit_xds_report(&k));)
        good += strstr(text, "z:1+0/1~0") != NULL;
    assert_int_equal(good, 1);
    a = load(&r[0]);
    calls(a, 1, 0);
    settle();
    report_time();
    assert_report("one 10.000s z:1+0/1~0;");
    unload(a);
    unload(b);
}

/* Counts come over whatever their size: here more values than a message of a peer may have. */
static void many_counts(void **state)
{
    (void)state;
    enum { LOCALITIES = 60000, METRICS = 16 };
    struct tc_load_cluster *a = load(&r[0]);
    struct tc_load_cluster *sum = tc_xds_client_load(k.client, k.bootstrap->servers[0].key, one, NULL);
    settle();
    for (unsigned i = 0; i < LOCALITIES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%u", i);
        struct tc_load_locality *l = tc_load_locality_get(a, tc_slice_str(""), tc_slice_str("z"), tc_slice_str(name));
        tc_load_locality_started(l);
        tc_load_locality_finished(l, true);
        for (unsigned n = 0; n < METRICS; n++) {
            snprintf(name, sizeof(name), "%u", n);
            tc_load_locality_metric(l, TC_LOAD_NAMED, tc_slice_str(name), 1, 1);
        }
        tc_load_locality_unref(l);
    }
    unload(a);
    settle();
    assert_int_equal(HASH_COUNT(sum->localities), LOCALITIES);
    assert_int_equal(sum->localities->metrics.len, METRICS);
    unload(sum);
    settle();
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_stream_tells_all),
        TEST(subscriptions_end),
        TEST(errors_come_over),
        TEST(a_loop_that_does_not_turn),
        TEST(the_remote_client_ends_with_news_under_way),
        TEST(backoff_is_reset),
        TEST(loads_add_up),
        TEST(a_report_waits_for_nobody),
        TEST(a_remote_client_ends_while_calls_run),
        TEST(loads_by_endpoint),
        TEST(a_question_is_sent_once),
        TEST(many_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
