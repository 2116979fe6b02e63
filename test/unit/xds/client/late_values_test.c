/* The does-not-exist timer, when responses wait unread because the client pauses after costly ones. Clock and control
 * plane are the test's; "b" is the cluster that is watched. The responses are cheap: the test calls tc_xds_ads_pause
 * with the CPU time of a costly one. */
#include "support/cmocka.h"
#include "support/kits/xds.h"
#include "xds/client/ads.h"
#include "xds/client/local_internal.h"

static struct kit_xds k;
static struct kit_xds_watcher b;
static struct tc_xds_channel *channel; /* to k.server; the client's, valid between start and end */

static void start_with_timeout(uint64_t timeout_ms)
{
    kit_xds_init(&k, NULL);
    struct tc_xds_local_client *client = TC_CONTAINER_OF(k.client, struct tc_xds_local_client, base);
    client->opts.resource_timeout_ms = timeout_ms;
    kit_xds_watcher_init(&b);
    kit_xds_watch(&k, &kit_xds_cds, "b", &b);
    tc_loop_drain(k.loop);
    channel = TC_CONTAINER_OF(client->channels.next, struct tc_xds_channel, link);
}

static void start(void)
{
    start_with_timeout(15000);
}

static void end(void)
{
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&b);
}

/* Responses that are costly to refuse come without end: the does-not-exist timer waits 15 s more, and no longer. */
static void pauses_without_end(void **state)
{
    (void)state;
    start();
    uint64_t began_ms = tc_loop_now_ms(k.loop);
    while (!b.log.len && tc_loop_now_ms(k.loop) < began_ms + 60000) {
        tc_xds_ads_pause(channel, 500 * TC_NS_PER_MS);
        kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n", NULL);
        tc_loop_advance(k.loop, 1000);
    }
    assert_non_null(strstr(kit_xds_told(&b), "does not exist"));
    assert_in_range(tc_loop_now_ms(k.loop) - began_ms, 30000, 33000);
    end();
}

/* The second wait of a timeout that is not whole seconds is not longer than the first. */
static void pauses_for_an_odd_timeout(void **state)
{
    (void)state;
    start_with_timeout(1300);
    uint64_t began_ms = tc_loop_now_ms(k.loop);
    while (!b.log.len && tc_loop_now_ms(k.loop) < began_ms + 10000) {
        tc_xds_ads_pause(channel, 500 * TC_NS_PER_MS);
        kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n", NULL);
        tc_loop_advance(k.loop, 100);
    }
    assert_non_null(strstr(kit_xds_told(&b), "does not exist"));
    assert_in_range(tc_loop_now_ms(k.loop) - began_ms, 2600, 2700);
    end();
}

/* "b" is the last of four responses that have all come when the does-not-exist timer ends. The client pauses after
 * each of the first three, and then learns of the value. */
static void a_value_behind_others(void **state)
{
    (void)state;
    start();
    tc_loop_advance(k.loop, 14500);
    tc_xds_ads_pause(channel, 500 * TC_NS_PER_MS); /* 2 s */
    for (int i = 0; i < 3; i++)
        kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n", NULL);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "b|y", NULL);
    for (int i = 0; i < 2; i++) {
        tc_loop_advance(k.loop, 1900);
        tc_xds_ads_pause(channel, 500 * TC_NS_PER_MS);
        assert_string_equal(kit_xds_told(&b), "");
    }
    tc_loop_advance(k.loop, 4000);
    assert_string_equal(kit_xds_told(&b), "value y;");
    end();
}

/* "b" comes before its does-not-exist timer runs out, and is read only after the client's pause: that is in time. */
static void a_value_that_waits_for_the_pause(void **state)
{
    (void)state;
    start();
    tc_loop_advance(k.loop, 14500);
    tc_xds_ads_pause(channel, 500 * TC_NS_PER_MS);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", NULL);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "b|y", NULL);
    tc_loop_advance(k.loop, 1000);
    assert_string_equal(kit_xds_told(&b), "");
    tc_loop_advance(k.loop, 2000);
    assert_string_equal(kit_xds_told(&b), "value y;");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_that_waits_for_the_pause),
        cmocka_unit_test(a_value_behind_others),
        cmocka_unit_test(pauses_without_end),
        cmocka_unit_test(pauses_for_an_odd_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
