/* Incremental ADS, seen from its server. */
#include "support/cmocka.h"
#include "support/xds_kit.h"

static const char bootstrap[] =
    "{\"xds_servers\": [{\"server_uri\": \"s1\", \"channel_creds\": [{\"type\": \"insecure\"}],"
    " \"server_features\": [\"torc.incremental_ads\"%s]}%s], \"node\": {\"id\": \"node1\"}}";

static const char second[] = ", {\"server_uri\": \"s2\", \"channel_creds\": [{\"type\": \"insecure\"}],"
                             " \"server_features\": [\"torc.incremental_ads\"]}";

static struct tc_kit k;
static struct tc_kit_watcher a, b, c;

static void start(const char *features, const char *servers)
{
    char *text = tc_asprintf(bootstrap, features, servers);
    tc_kit_init(&k, text);
    tc_free(text);
    tc_kit_watcher_init(&a);
    tc_kit_watcher_init(&b);
    tc_kit_watcher_init(&c);
}

static void end(void)
{
    tc_kit_fini(&k);
    tc_kit_watcher_fini(&a);
    tc_kit_watcher_fini(&b);
    tc_kit_watcher_fini(&c);
}

static void watch(const struct tc_xds_resource_type *type, const char *name, struct tc_kit_watcher *w)
{
    tc_kit_watch(&k, type, name, w);
    tc_loop_drain(k.loop);
}

static void unwatch(struct tc_kit_watcher *w)
{
    tc_kit_unwatch(&k, w);
    tc_loop_drain(k.loop);
}

#define assert_request(text) assert_string_equal(tc_kit_request(&k, k.server), text)
#define assert_told(w, text) assert_string_equal(tc_kit_told(w), text)
#define respond(...) tc_kit_respond_delta(&k, k.server, __VA_ARGS__, NULL)

static void changes_only(void **state)
{
    (void)state;
    start("", "");
    tc_kit_watch(&k, &tc_kit_cds, "b", &b);
    watch(&tc_kit_cds, "a", &a);
    assert_request("Cluster +[a,b] -[] {} \"\" node");
    respond(&tc_kit_cds, "n1", "a|x@1", "b|y@7");
    assert_told(&a, "value x;");
    assert_told(&b, "value y;");
    assert_request("Cluster +[] -[] {} \"n1\"");
    respond(&tc_kit_cds, "n2", "b|z@8"); /* a is not deleted for being left out */
    assert_told(&a, "");
    assert_told(&b, "value z;");
    assert_request("Cluster +[] -[] {} \"n2\"");
    watch(&tc_kit_cds, "c", &c);
    assert_request("Cluster +[c] -[] {} \"\"");
    unwatch(&b);
    assert_request("Cluster +[] -[b] {} \"\"");
    respond(&tc_kit_cds, "n3", "b|late@9", "c|new@1"); /* b was under way */
    assert_told(&b, "");
    assert_told(&c, "value new;");
    assert_request("Cluster +[] -[] {} \"n3\"");
    assert_request("");
    end();
}

/* What is wanted again before the server heard that it was not is subscribed to once more: the server then sends it. */
static void dropped_and_wanted_again(void **state)
{
    (void)state;
    start("", "");
    tc_kit_watch(&k, &tc_kit_eds, "a", &a);
    watch(&tc_kit_eds, "b", &b);
    assert_request("ClusterLoadAssignment +[a,b] -[] {} \"\" node");
    respond(&tc_kit_eds, "n1", "a|x@1");
    assert_request("ClusterLoadAssignment +[] -[] {} \"n1\"");
    assert_told(&a, "value x;");
    k.server->connected = false;
    watch(&tc_kit_eds, "c", &c);
    assert_request("ClusterLoadAssignment +[c] -[] {} \"\"");
    unwatch(&a);
    watch(&tc_kit_eds, "a", &a);
    assert_told(&a, "");
    unwatch(&b);
    tc_fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_request("ClusterLoadAssignment +[a] -[b] {} \"\"");
    respond(&tc_kit_eds, "n2", "a|x@1");
    assert_told(&a, "value x;");
    end();
}

static void removed(void **state)
{
    (void)state;
    start("", "");
    tc_kit_watch(&k, &tc_kit_eds, "a", &a);
    watch(&tc_kit_eds, "b", &b);
    tc_kit_request(&k, k.server);
    respond(&tc_kit_eds, "n1", "a|x@1", "-b", "-stranger");
    assert_request("ClusterLoadAssignment +[] -[] {} \"n1\"");
    assert_told(&a, "value x;");
    assert_told(&b, "error xDS ClusterLoadAssignment resource does not exist (node ID:node1);"); /* without 15 s */
    assert_int_equal(b.last_code, TORC_STATUS_NOT_FOUND);
    respond(&tc_kit_eds, "n2", "-a"); /* A88: what is cached stays in use */
    assert_told(&a, "ambient xDS ClusterLoadAssignment resource was deleted by server s1 (node ID:node1);");
    respond(&tc_kit_eds, "n3", "a|x@1");
    assert_told(&a, "clear;");
    respond(&tc_kit_eds, "n4", "!a");
    assert_told(&a, "ambient xDS server s1 has no ClusterLoadAssignment resource: NOT_FOUND: gone (node ID:node1);");
    end();
    start(", \"fail_on_data_errors\"", "");
    watch(&tc_kit_cds, "a", &a);
    respond(&tc_kit_cds, "n1", "a|x@1");
    assert_told(&a, "value x;");
    respond(&tc_kit_cds, "n2", "-a");
    assert_told(&a, "error xDS Cluster resource was deleted by server s1 (node ID:node1);");
    end();
}

static void nack_names_the_resource(void **state)
{
    (void)state;
    start("", "");
    tc_kit_watch(&k, &tc_kit_cds, "a", &a);
    watch(&tc_kit_cds, "b", &b);
    tc_kit_request(&k, k.server);
    respond(&tc_kit_cds, "n1", "a|x@1", "b|bad@1");
    assert_request(
        "Cluster +[] -[] {} \"n1\" NACK 3 resource index 1: Cluster \"b\": field value: is bad; field other: "
        "is bad too");
    assert_told(&a, "value x;");
    assert_told(&b,
                "error invalid xDS Cluster resource: field value: is bad; field other: is bad too (node ID:node1);");
    respond(&tc_kit_cds, "n2", "b|y@2");
    assert_request("Cluster +[] -[] {} \"n2\"");
    assert_told(&b, "value y;");
    tc_fake_xds_send(k.server, tc_slice_str("\x22\x33type.googleapis.com/envoy.config.cluster.v3.Cluster"
                                            "\x2a\x02n3\x12\x01"));
    tc_loop_drain(k.loop);
    assert_non_null(strstr(tc_kit_request(&k, k.server), "\"n3\" NACK 3 DiscoveryResponse: "));
    end();
}

/* After a break the server hears what is held, except what is not just the version it has. */
static void reconnect_tells_versions(void **state)
{
    (void)state;
    start("", "");
    tc_kit_watch(&k, &tc_kit_cds, "a", &a);
    tc_kit_watch(&k, &tc_kit_cds, "b", &b);
    watch(&tc_kit_cds, "c", &c);
    tc_kit_request(&k, k.server);
    respond(&tc_kit_cds, "n1", "a|x@v1", "b|y@v2", "c|z@v3");
    respond(&tc_kit_cds, "n2", "b|bad@v4", "-c");
    while (*tc_kit_request(&k, k.server))
        continue;
    tc_kit_told(&a);
    tc_fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "");
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->streams, 2);
    assert_request("Cluster +[a,b,c] -[] {a=v1} \"\" node");
    respond(&tc_kit_cds, "m1", "b|y@v2", "c|z@v3");
    assert_told(&a, "");
    tc_fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "");
    tc_loop_advance(k.loop, 2000);
    assert_request("Cluster +[] -[] {} \"m1\"");
    assert_request("Cluster +[a,b,c] -[] {a=v1,b=v2,c=v3} \"\" node");
    end();
}

/* A server that has nothing to add says nothing: that ends the error all the same, and counts as an answer. */
static void silence_of_an_unchanged_server(void **state)
{
    (void)state;
    start("", "");
    watch(&tc_kit_cds, "a", &a);
    respond(&tc_kit_cds, "n1", "a|x@1");
    assert_told(&a, "value x;");
    tc_fake_xds_end(k.server, TORC_STATUS_OK, "");
    k.server->connected = false;
    tc_loop_drain(k.loop);
    tc_fake_xds_fail(k.server, "refused");
    tc_loop_drain(k.loop);
    assert_told(&a, "ambient xDS channel for server s1: refused (node ID:node1);");
    tc_loop_advance(k.loop, 60000);
    assert_told(&a, "");
    tc_fake_xds_connect(k.server);
    tc_loop_advance(k.loop, 999);
    assert_told(&a, "");
    tc_loop_advance(k.loop, 1);
    assert_told(&a, "clear;");
    tc_fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "restart"); /* A57: it had answered */
    tc_loop_drain(k.loop);
    assert_told(&a, "");
    assert_int_equal(k.server->streams, 3);
    end();
}

static void mute_server_and_a_name_it_does_not_know(void **state)
{
    (void)state;
    start("", "");
    tc_kit_watch(&k, &tc_kit_cds, "a", &a);
    watch(&tc_kit_cds, "b", &b);
    respond(&tc_kit_cds, "n1", "a|x@1");
    assert_told(&a, "value x;");
    tc_loop_advance(k.loop, 15000);
    assert_told(&b, "error xDS Cluster resource does not exist (node ID:node1);");
    tc_fake_xds_end(k.server, TORC_STATUS_OK, "");
    k.server->connected = false;
    tc_loop_drain(k.loop);
    tc_fake_xds_fail(k.server, "refused");
    tc_fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_told(&a, "ambient xDS channel for server s1: refused (node ID:node1);");
    tc_loop_advance(k.loop, 14999);
    assert_told(&a, "");
    tc_loop_advance(k.loop, 1);
    assert_told(&a, "clear;");
    end();
}

/* One answer outstanding at most: a server that floods a client that cannot send is not read. */
static void next_response_waits_for_the_answer(void **state)
{
    (void)state;
    start("", "");
    watch(&tc_kit_cds, "a", &a);
    k.server->connected = false;
    respond(&tc_kit_cds, "n1", "a|1@1");
    respond(&tc_kit_cds, "n2", "a|2@2");
    respond(&tc_kit_cds, "n3", "a|3@3");
    assert_int_equal(k.server->messages_read, 1);
    tc_kit_request(&k, k.server);
    assert_request("Cluster +[] -[] {} \"n1\"");
    assert_request("");
    tc_fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_request("Cluster +[] -[] {} \"n2\"");
    assert_request("Cluster +[] -[] {} \"n3\"");
    assert_told(&a, "value 1;value 2;value 3;");
    a.hold = true;
    respond(&tc_kit_cds, "n4", "a|4@4");
    respond(&tc_kit_cds, "n5", "a|5@5");
    assert_int_equal(k.server->messages_read, 4);
    tc_kit_release(&a);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->messages_read, 5);
    k.server->connected = false; /* the stream goes with an answer under way */
    tc_kit_release(&a);
    respond(&tc_kit_cds, "n6", "a|6@6");
    tc_fake_xds_end(k.server, TORC_STATUS_OK, "");
    tc_loop_drain(k.loop);
    end();
}

/* Versions belong to the server that gave them; a fallback server is told of none of another's (A71). */
static void fallback(void **state)
{
    (void)state;
    start("", second);
    struct tc_fake_xds_server *s2 = tc_fake_xds_server(k.fake, "s2");
    watch(&tc_kit_cds, "a", &a);
    respond(&tc_kit_cds, "n1", "a|x@1");
    assert_told(&a, "value x;");
    tc_fake_xds_end(k.server, TORC_STATUS_OK, "");
    k.server->connected = false;
    tc_loop_drain(k.loop);
    tc_fake_xds_fail(k.server, "refused");
    watch(&tc_kit_cds, "b", &b); /* missing: the second server is asked */
    assert_string_equal(tc_kit_request(&k, s2), "Cluster +[a,b] -[] {} \"\" node");
    tc_kit_respond_delta(&k, s2, &tc_kit_cds, "m1", "a|x@9", "b|y@9", NULL);
    assert_told(&b, "value y;");
    while (*tc_kit_request(&k, k.server))
        continue;
    tc_fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_string_equal(tc_kit_request(&k, s2), "Cluster +[] -[] {} \"m1\"");
    assert_request("Cluster +[b] -[] {} \"\"");
    respond(&tc_kit_cds, "n1", "b|y@1");
    assert_false(s2->open);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_only),
        cmocka_unit_test(dropped_and_wanted_again),
        cmocka_unit_test(removed),
        cmocka_unit_test(nack_names_the_resource),
        cmocka_unit_test(reconnect_tells_versions),
        cmocka_unit_test(silence_of_an_unchanged_server),
        cmocka_unit_test(mute_server_and_a_name_it_does_not_know),
        cmocka_unit_test(next_response_waits_for_the_answer),
        cmocka_unit_test(fallback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
