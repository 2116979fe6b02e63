/* Responses whose resources another thread decodes before they are applied (xds/client/decode_thread.h).
 *
 * The fixture makes a client that decodes every new resource on the background thread, watches "a" and "b", and closes
 * the gate `g`, behind which the thread's jobs wait. So a test sends a response, may change something while the
 * response is not decoded, and then opens the gate: `decode` lets the result be applied.
 *
 * Each test opens the gate and ends the client (kit_xds_fini) itself, because the order matters; the teardown frees the
 * watchers a and b. Except for the background thread's jobs everything runs on the test's thread, on a manual loop. */
#include "support/cmocka.h"
#include "support/gate.h"
#include "support/kits/xds.h"

static struct kit_xds k;
static struct kit_xds_watcher a, b;
static struct gate g;

static int set_up(void **state)
{
    (void)state;
    kit_xds_init_decode_thread(&k);
    kit_xds_watcher_init(&a);
    kit_xds_watcher_init(&b);
    kit_xds_watch(&k, &kit_xds_eds, "a", &a);
    kit_xds_watch(&k, &kit_xds_eds, "b", &b);
    tc_loop_drain(k.loop);
    assert_string_equal(kit_xds_request(&k, k.server), "ClusterLoadAssignment [a,b] \"\" \"\" node");
    gate_close(&g);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kit_xds_watcher_fini(&a);
    kit_xds_watcher_fini(&b);
    return 0;
}

/* Lets the background thread decode the response, and the loop apply the result. */
static void decode(void)
{
    gate_open(&g);
    tc_loop_drain(k.loop);
}

#define assert_request(text) assert_string_equal(kit_xds_request(&k, k.server), text)
#define assert_told(w, text) assert_string_equal(kit_xds_told(w), text)

static void applied_when_decoded(void **state)
{
    (void)state;
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", "zzz|y", "b|bad", NULL);
    assert_told(&a, "");
    assert_request("");
    decode();
    assert_told(&a, "value x;");
    assert_told(&b, "error invalid xDS ClusterLoadAssignment resource: field value: is bad; field other: is bad too "
                    "(node ID:node1);");
    assert_request(
        "ClusterLoadAssignment [a,b] \"\" \"n1\" NACK 3 resource index 2: ClusterLoadAssignment \"b\": field "
        "value: is bad; field other: is bad too");
    kit_xds_fini(&k);
}

/* A response that comes while another one is decoded waits. Resources in use are not decoded again. */
static void one_after_another(void **state)
{
    (void)state;
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", "b|y", NULL);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "2", "n2", "a|x", "b|z", NULL);
    unsigned decoded = kit_xds_decoded;
    decode();
    gate_close(&g); /* the second response became a job when the first one was applied */
    decode();
    assert_told(&a, "value x;");
    assert_told(&b, "value y;value z;");
    assert_int_equal(kit_xds_decoded - decoded, 3);
    assert_request("ClusterLoadAssignment [a,b] \"1\" \"n1\"");
    assert_request("ClusterLoadAssignment [a,b] \"2\" \"n2\"");
    gate_close(&g);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "3", "n3", "a|x", "b|z", NULL); /* nothing to decode */
    assert_request("ClusterLoadAssignment [a,b] \"3\" \"n3\"");
    decode();
    assert_told(&a, "");
    kit_xds_fini(&k);
}

/* A response is told to the watches that exist when it is applied, not to the watches that existed when it came. */
static void watches_change_meanwhile(void **state)
{
    (void)state;
    struct kit_xds_watcher late;
    kit_xds_watcher_init(&late);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", "b|y", "c|z", NULL);
    kit_xds_unwatch(&k, &b);
    kit_xds_watch(&k, &kit_xds_eds, "c", &late);
    tc_loop_drain(k.loop);
    decode();
    assert_told(&a, "value x;");
    assert_told(&b, "");
    assert_told(&late, "value z;");
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&late);
}

/* The stream ends before its last response is decoded: the response is applied, then the next stream begins. */
static void stream_ends_meanwhile(void **state)
{
    (void)state;
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", "b|y", NULL);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "gone");
    tc_loop_advance(k.loop, 5000);
    assert_request("");
    decode();
    assert_told(&a, "value x;");
    assert_told(&b, "value y;");
    tc_loop_advance(k.loop, 5000);
    assert_request("ClusterLoadAssignment [a,b] \"1\" \"\" node");
    kit_xds_fini(&k);
}

/* The client ends before its response is decoded. The result finds its mailbox closed, and the job is freed. */
static void client_goes_meanwhile(void **state)
{
    (void)state;
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", "b|y", NULL);
    kit_xds_fini(&k);
    gate_open(&g);
    assert_told(&a, "");
}

/* The last watchers leave, and so the channel closes, before the response is decoded. */
static void watchers_go_meanwhile(void **state)
{
    (void)state;
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", "b|y", NULL);
    kit_xds_unwatch(&k, &a);
    kit_xds_unwatch(&k, &b);
    tc_loop_advance(k.loop, 100000);
    decode();
    assert_told(&a, "");
    kit_xds_fini(&k);
}

/* A response of a type that the client knows, and did not ask for on this stream, is not decoded. */
static void a_type_that_was_not_asked_for(void **state)
{
    (void)state;
    struct kit_xds_watcher cluster;
    kit_xds_watcher_init(&cluster);
    kit_xds_watch(&k, &kit_xds_cds, "c", &cluster);
    kit_xds_unwatch(&k, &a);
    kit_xds_unwatch(&k, &b);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "gone");
    tc_loop_advance(k.loop, 5000);
    while (*kit_xds_request(&k, k.server))
        continue;
    kit_xds_told(&cluster); /* the loss of the stream */
    unsigned decoded = kit_xds_decoded;
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", NULL);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n2", "c|z", NULL);
    decode();
    assert_told(&cluster, "value z;");
    assert_int_equal(kit_xds_decoded, decoded + 1);
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&cluster);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(applied_when_decoded),          TEST(one_after_another),     TEST(watches_change_meanwhile),
        TEST(stream_ends_meanwhile),         TEST(client_goes_meanwhile), TEST(watchers_go_meanwhile),
        TEST(a_type_that_was_not_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
