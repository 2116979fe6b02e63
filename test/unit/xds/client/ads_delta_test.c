/* Incremental ADS, seen from its server: which names and versions a request has, which response a request answers, and
 * what silence, removals, new streams and fallback servers mean.
 *
 * kits/xds gives the client on a fake transport; the test is the server. assert_request takes the oldest request to
 * k.server that was not taken yet, and compares it in the form 'Type +[subscribed] -[unsubscribed] {initial versions}
 * "nonce"', then " node" for a request with the node, and " NACK code text" for a NACK. `respond` sends resources
 * "name|value@version", removed ones "-name", and an error "!name". assert_told compares what a watcher has heard since
 * the last time.
 *
 * A test makes its client by `start`, start_as or connect_again_beside; `end` frees the client with its watches. Some
 * tests have several clients, one after another. Everything runs on the test's thread, on a manual loop: time passes
 * only in tc_loop_advance. */
#include "support/cmocka.h"
#include "support/kits/xds.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "proto/pack.h"

#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

/* A format with three texts: further features of s1, further servers, further members of the node. Each text is empty
 * or begins with a comma. */
static const char bootstrap[] =
    "{\"xds_servers\": [{\"server_uri\": \"s1\", \"channel_creds\": [{\"type\": \"insecure\"}],"
    " \"server_features\": [\"torc.incremental_ads\"%s]}%s], \"node\": {\"id\": \"node1\"%s}}";

/* A text for `servers`: the fallback server s2. */
static const char second[] = ", {\"server_uri\": \"s2\", \"channel_creds\": [{\"type\": \"insecure\"}],"
                             " \"server_features\": [\"torc.incremental_ads\"]}";

static struct kit_xds k;
static struct kit_xds_watcher a, b, c;

static void start_as(const char *features, const char *servers, const char *node)
{
    char *text = tc_asprintf(bootstrap, features, servers, node);
    kit_xds_init(&k, text);
    tc_free(text);
    kit_xds_watcher_init(&a);
    kit_xds_watcher_init(&b);
    kit_xds_watcher_init(&c);
}

static void start(const char *features, const char *servers)
{
    start_as(features, servers, "");
}

static void end(void)
{
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&a);
    kit_xds_watcher_fini(&b);
    kit_xds_watcher_fini(&c);
}

static void watch(const struct tc_xds_resource_type *type, const char *name, struct kit_xds_watcher *w)
{
    kit_xds_watch(&k, type, name, w);
    tc_loop_drain(k.loop);
}

static void unwatch(struct kit_xds_watcher *w)
{
    kit_xds_unwatch(&k, w);
    tc_loop_drain(k.loop);
}

#define assert_request(text) assert_string_equal(kit_xds_request(&k, k.server), text)
#define assert_told(w, text) assert_string_equal(kit_xds_told(w), text)
#define respond(...) kit_xds_respond_delta(&k, k.server, __VA_ARGS__, NULL)

static void changes_only(void **state)
{
    (void)state;
    start("", "");
    kit_xds_watch(&k, &kit_xds_cds, "b", &b);
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster +[a,b] -[] {} \"\" node");
    respond(&kit_xds_cds, "n1", "a|x@1", "b|y@7");
    assert_told(&a, "value x;");
    assert_told(&b, "value y;");
    assert_request("Cluster +[] -[] {} \"n1\"");
    respond(&kit_xds_cds, "n2", "b|z@8"); /* a is not deleted for being left out */
    assert_told(&a, "");
    assert_told(&b, "value z;");
    assert_request("Cluster +[] -[] {} \"n2\"");
    watch(&kit_xds_cds, "c", &c);
    assert_request("Cluster +[c] -[] {} \"\"");
    unwatch(&b);
    assert_request("Cluster +[] -[b] {} \"\"");
    respond(&kit_xds_cds, "n3", "b|late@9", "c|new@1"); /* b was sent before its unsubscription was read */
    assert_told(&b, "");
    assert_told(&c, "value new;");
    assert_request("Cluster +[] -[] {} \"n3\"");
    assert_request("");
    end();
}

/* A name that is wanted again before its unsubscription was sent is subscribed to again: the server then sends it. */
static void dropped_and_wanted_again(void **state)
{
    (void)state;
    start("", "");
    kit_xds_watch(&k, &kit_xds_eds, "a", &a);
    watch(&kit_xds_eds, "b", &b);
    assert_request("ClusterLoadAssignment +[a,b] -[] {} \"\" node");
    respond(&kit_xds_eds, "n1", "a|x@1");
    assert_request("ClusterLoadAssignment +[] -[] {} \"n1\"");
    assert_told(&a, "value x;");
    k.server->connected = false;
    watch(&kit_xds_eds, "c", &c);
    assert_request("ClusterLoadAssignment +[c] -[] {} \"\"");
    unwatch(&a);
    watch(&kit_xds_eds, "a", &a);
    assert_told(&a, "");
    unwatch(&b);
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_request("ClusterLoadAssignment +[a] -[b] {} \"\"");
    respond(&kit_xds_eds, "n2", "a|x@1");
    assert_told(&a, "value x;");
    end();
}

static void removed(void **state)
{
    (void)state;
    start("", "");
    kit_xds_watch(&k, &kit_xds_eds, "a", &a);
    watch(&kit_xds_eds, "b", &b);
    kit_xds_request(&k, k.server);
    respond(&kit_xds_eds, "n1", "a|x@1", "-b", "-stranger");
    assert_request("ClusterLoadAssignment +[] -[] {} \"n1\"");
    assert_told(&a, "value x;");
    assert_told(&b, "error xDS ClusterLoadAssignment resource does not exist (node ID:node1);"); /* at once */
    assert_int_equal(b.last_code, TORC_STATUS_NOT_FOUND);
    respond(&kit_xds_eds, "n2", "-a"); /* A88: the cached value stays in use */
    assert_told(&a, "ambient xDS ClusterLoadAssignment resource was deleted by server s1 (node ID:node1);");
    respond(&kit_xds_eds, "n3", "a|x@1");
    assert_told(&a, "clear;");
    respond(&kit_xds_eds, "n4", "!a");
    assert_told(&a, "ambient xDS server s1 has no ClusterLoadAssignment resource: NOT_FOUND: gone (node ID:node1);");
    end();
    start(", \"fail_on_data_errors\"", "");
    watch(&kit_xds_cds, "a", &a);
    respond(&kit_xds_cds, "n1", "a|x@1");
    assert_told(&a, "value x;");
    respond(&kit_xds_cds, "n2", "-a");
    assert_told(&a, "error xDS Cluster resource was deleted by server s1 (node ID:node1);");
    end();
}

static void nack_names_the_resource(void **state)
{
    (void)state;
    start("", "");
    kit_xds_watch(&k, &kit_xds_cds, "a", &a);
    watch(&kit_xds_cds, "b", &b);
    kit_xds_request(&k, k.server);
    respond(&kit_xds_cds, "n1", "a|x@1", "b|bad@1");
    assert_request(
        "Cluster +[] -[] {} \"n1\" NACK 3 resource index 1: Cluster \"b\": field value: is bad; field other: "
        "is bad too");
    assert_told(&a, "value x;");
    assert_told(&b,
                "error invalid xDS Cluster resource: field value: is bad; field other: is bad too (node ID:node1);");
    respond(&kit_xds_cds, "n2", "b|y@2");
    assert_request("Cluster +[] -[] {} \"n2\"");
    assert_told(&b, "value y;");
    fake_xds_send(k.server, tc_slice_str("\x22\x33type.googleapis.com/envoy.config.cluster.v3.Cluster"
                                         "\x2a\x02n3\x12\x01"));
    tc_loop_drain(k.loop);
    assert_non_null(strstr(kit_xds_request(&k, k.server), "\"n3\" NACK 3 DiscoveryResponse: "));
    end();
}

/* The first request of a new stream has the versions of the values that the server sent and the client ACKed: not of
 * "b", whose last version was rejected, and not of "c", which was removed. */
static void reconnect_tells_versions(void **state)
{
    (void)state;
    start("", "");
    kit_xds_watch(&k, &kit_xds_cds, "a", &a);
    kit_xds_watch(&k, &kit_xds_cds, "b", &b);
    watch(&kit_xds_cds, "c", &c);
    kit_xds_request(&k, k.server);
    respond(&kit_xds_cds, "n1", "a|x@v1", "b|y@v2", "c|z@v3");
    respond(&kit_xds_cds, "n2", "b|bad@v4", "-c");
    while (*kit_xds_request(&k, k.server))
        continue;
    kit_xds_told(&a);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "");
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->streams, 2);
    assert_request("Cluster +[a,b,c] -[] {a=v1} \"\" node");
    respond(&kit_xds_cds, "m1", "b|y@v2", "c|z@v3");
    assert_told(&a, "");
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "");
    tc_loop_advance(k.loop, 2000);
    assert_request("Cluster +[] -[] {} \"m1\"");
    assert_request("Cluster +[a,b,c] -[] {a=v1,b=v2,c=v3} \"\" node");
    end();
}

/* A server that has nothing to add is silent. The watcher's ambient error ends when the request has been sent. A second
 * later the silence counts as an answer. */
static void silence_of_an_unchanged_server(void **state)
{
    (void)state;
    start("", "");
    watch(&kit_xds_cds, "a", &a);
    respond(&kit_xds_cds, "n1", "a|x@1");
    assert_told(&a, "value x;");
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    k.server->connected = false;
    tc_loop_drain(k.loop);
    fake_xds_fail(k.server, "refused");
    tc_loop_drain(k.loop);
    assert_told(&a, "ambient xDS channel for server s1: refused (node ID:node1);");
    tc_loop_advance(k.loop, 60000);
    assert_told(&a, "");
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_told(&a, "clear;");
    tc_loop_advance(k.loop, 1000);
    assert_told(&a, "");
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "restart"); /* A57: the server had answered */
    tc_loop_drain(k.loop);
    assert_told(&a, "");
    assert_int_equal(k.server->streams, 3);
    end();
}

/* If a request has a name without a version, the silence of the server counts as an answer after 15 s. The end of the
 * stream before that counts as a failure, a later end does not. */
static void mute_server_and_a_name_it_does_not_know(void **state)
{
    (void)state;
    for (int answered = 0; answered < 2; answered++) {
        start("", "");
        kit_xds_watch(&k, &kit_xds_cds, "a", &a);
        watch(&kit_xds_cds, "b", &b);
        respond(&kit_xds_cds, "n1", "a|x@1");
        assert_told(&a, "value x;");
        tc_loop_advance(k.loop, 15000);
        assert_told(&b, "error xDS Cluster resource does not exist (node ID:node1);");
        fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
        k.server->connected = false;
        tc_loop_drain(k.loop);
        fake_xds_fail(k.server, "refused");
        tc_loop_drain(k.loop);
        assert_told(&a, "ambient xDS channel for server s1: refused (node ID:node1);");
        fake_xds_connect(k.server);
        tc_loop_drain(k.loop);
        assert_told(&a, "clear;");
        tc_loop_advance(k.loop, answered ? 15000 : 14999);
        fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
        tc_loop_drain(k.loop);
        assert_told(&a, answered ? ""
                                 : "ambient xDS channel for server s1: xDS call failed with no responses received; "
                                   "status: UNAVAILABLE: bye (node ID:node1);");
        end();
    }
}

/* At most one answer is outstanding: a client that cannot send does not read the next response. Nor does a client whose
 * watcher holds the token of the last response. */
static void next_response_waits_for_the_answer(void **state)
{
    (void)state;
    start("", "");
    watch(&kit_xds_cds, "a", &a);
    k.server->connected = false;
    respond(&kit_xds_cds, "n1", "a|1@1");
    respond(&kit_xds_cds, "n2", "a|2@2");
    respond(&kit_xds_cds, "n3", "a|3@3");
    assert_int_equal(k.server->messages_read, 1);
    kit_xds_request(&k, k.server);
    assert_request("Cluster +[] -[] {} \"n1\"");
    assert_request("");
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_request("Cluster +[] -[] {} \"n2\"");
    assert_request("Cluster +[] -[] {} \"n3\"");
    assert_told(&a, "value 1;value 2;value 3;");
    a.hold = true;
    respond(&kit_xds_cds, "n4", "a|4@4");
    respond(&kit_xds_cds, "n5", "a|5@5");
    assert_int_equal(k.server->messages_read, 4);
    kit_xds_release(&a);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->messages_read, 5);
    k.server->connected = false; /* the stream ends with an answer under way */
    kit_xds_release(&a);
    respond(&kit_xds_cds, "n6", "a|6@6");
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_drain(k.loop);
    end();
}

/* Responses that the server sent before it read the unsubscription from the last name of the type. */
static void late_response(void **state)
{
    (void)state;
    start("", "");
    watch(&kit_xds_cds, "a", &a);
    watch(&kit_xds_eds, "b", &b);
    respond(&kit_xds_eds, "n1", "b|x@1");
    while (*kit_xds_request(&k, k.server)) {
    }
    unwatch(&b);
    assert_request("ClusterLoadAssignment +[] -[b] {} \"\"");
    respond(&kit_xds_eds, "n2", "b|y@2");
    assert_request("ClusterLoadAssignment +[] -[] {} \"n2\"");
    respond(&kit_xds_eds, "n3", "b|bad@3");
    assert_request("ClusterLoadAssignment +[] -[] {} \"n3\" NACK 3 resource index 0: ClusterLoadAssignment \"b\": "
                   "field value: is bad; "
                   "field other: is bad too");
    assert_request("");
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_advance(k.loop, 1000);
    while (*kit_xds_request(&k, k.server)) {
    }
    /* The new stream has no request for EDS or LDS. */
    respond(&kit_xds_eds, "n4", "b|y@4");
    respond(&kit_xds_lds, "n5", "l|y@1");
    assert_request("");
    respond(&kit_xds_cds, "n6", "a|y@1");
    assert_request("Cluster +[] -[] {} \"n6\"");
    end();
}

/* istiod keeps only the names of the last request that had any. The client knows istiod by the GENERATOR in the node's
 * metadata. */
static void istiod_forgets(void **state)
{
    (void)state;
    start_as("", "", ", \"metadata\": {\"GENERATOR\": \"grpc\"}");
    watch(&kit_xds_cds, "a", &a);
    watch(&kit_xds_cds, "b", &b);
    assert_request("Cluster +[a] -[] {} \"\" node");
    assert_request("Cluster +[a,b] -[] {} \"\"");
    respond(&kit_xds_cds, "n1", "a|x@1");
    assert_request("Cluster +[] -[] {} \"n1\"");
    respond(&kit_xds_cds, "n2", "b|x@1");
    assert_request("Cluster +[] -[] {} \"n2\"");
    watch(&kit_xds_cds, "c", &c);
    assert_request("Cluster +[a,b,c] -[] {} \"\"");
    unwatch(&a); /* a request that only unsubscribes does not list the other names */
    assert_request("Cluster +[] -[a] {} \"\"");
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster +[a,b,c] -[] {} \"\"");
    /* The next stream repeats names, too. Its first request has all names, with the versions of cached resources. */
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_advance(k.loop, 1000);
    assert_request("Cluster +[a,b,c] -[] {b=1} \"\" node");
    unwatch(&c);
    assert_request("Cluster +[] -[c] {} \"\"");
    watch(&kit_xds_cds, "c", &c);
    assert_request("Cluster +[a,b,c] -[] {} \"\"");
    end();
}

static unsigned warnings;

static void on_line(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)module, (void)arg;
    warnings += level == TORC_LOG_WARN && strstr(message, "Leave torc.incremental_ads out for istiod") != NULL;
}

/* A bootstrap for istiod that asks for incremental ADS makes the client log a warning. */
static void istiod_is_warned_of(void **state)
{
    (void)state;
    torc_log_set_sink(on_line, NULL);
    assert_int_equal(torc_log_set_levels("xds=warn"), 0);
    for (unsigned for_istiod = 0; for_istiod < 2; for_istiod++) {
        start_as("", "", for_istiod ? ", \"metadata\": {\"GENERATOR\": \"grpc\"}" : "");
        watch(&kit_xds_cds, "a", &a);
        assert_int_equal(warnings, for_istiod);
        end();
    }
    torc_log_set_sink(NULL, NULL);
    torc_log_set_levels("none");
}

/* Versions belong to the server that gave them; a fallback server gets no version of another server (A71). */
static void fallback(void **state)
{
    (void)state;
    start("", second);
    struct fake_xds_server *s2 = fake_xds_server(k.fake, "s2");
    watch(&kit_xds_cds, "a", &a);
    respond(&kit_xds_cds, "n1", "a|x@1");
    assert_told(&a, "value x;");
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    k.server->connected = false;
    tc_loop_drain(k.loop);
    fake_xds_fail(k.server, "refused");
    watch(&kit_xds_cds, "b", &b); /* not cached: the second server is asked */
    assert_string_equal(kit_xds_request(&k, s2), "Cluster +[a,b] -[] {} \"\" node");
    while (*kit_xds_request(&k, k.server))
        continue;
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m1", "a|x@9", "b|y@9", NULL);
    assert_told(&b, "value y;");
    /* The client no longer holds the version that its request to the first server named, so the request of a new
     * stream names no version. */
    assert_request("Cluster +[a,b] -[] {} \"\" node");
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_string_equal(kit_xds_request(&k, s2), "Cluster +[] -[] {} \"m1\"");
    respond(&kit_xds_cds, "n1", "b|y@1");
    assert_false(s2->open);
    end();
}

/* Starts a client that gets "a" from the first server, loses that server, asks the second one for "a" and "b", and
 * connects the first one again, which gets the version of its own "a". Returns how many streams the first server has
 * had. Stores the second server in *s2, borrowed until `end`. */
static unsigned connect_again_beside(struct fake_xds_server **s2)
{
    start("", second);
    *s2 = fake_xds_server(k.fake, "s2");
    watch(&kit_xds_cds, "a", &a);
    respond(&kit_xds_cds, "n1", "a|x@1");
    assert_told(&a, "value x;");
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    k.server->connected = false;
    tc_loop_drain(k.loop);
    fake_xds_fail(k.server, "refused");
    watch(&kit_xds_cds, "b", &b);
    assert_string_equal(kit_xds_request(&k, *s2), "Cluster +[a,b] -[] {} \"\" node");
    while (*kit_xds_request(&k, k.server))
        continue;
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    while (*kit_xds_request(&k, k.server))
        continue;
    return k.server->streams;
}

/* The fallback server answers after the first server, connected again, got the version of its own value. The first
 * server would not send that value again, so it is asked on a new stream. */
static void fallback_answers_late(void **state)
{
    (void)state;
    struct fake_xds_server *s2;
    unsigned streams = connect_again_beside(&s2);
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m1", "a|z@9", "b|y@9", NULL);
    assert_told(&a, "value z;");
    assert_told(&b, "value y;");
    assert_int_equal(k.server->streams, streams); /* the new stream opens a second later */
    tc_loop_advance(k.loop, 1000);
    assert_int_equal(k.server->streams, streams + 1);
    assert_request("Cluster +[a,b] -[] {} \"\" node");
    /* Further values of s2 replace values of s2: the first server is not asked once more. */
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m2", "a|w@10", NULL);
    assert_told(&a, "value w;");
    tc_loop_advance(k.loop, 3000);
    assert_int_equal(k.server->streams, streams + 1);
    respond(&kit_xds_cds, "n1", "a|x@1", "b|y@1");
    assert_told(&a, "value x;");
    assert_false(s2->open);
    end();
}

/* The fallback server deletes the resource: the first server is asked on a new stream. The first server's own error for
 * the resource starts no further stream. */
static void fallback_deletes(void **state)
{
    (void)state;
    struct fake_xds_server *s2;
    unsigned streams = connect_again_beside(&s2);
    kit_xds_respond_delta(&k, s2, &kit_xds_cds, "m1", "-a", NULL);
    tc_loop_advance(k.loop, 1000);
    assert_int_equal(k.server->streams, streams + 1);
    respond(&kit_xds_cds, "n1", "!a");
    tc_loop_advance(k.loop, 3000);
    assert_int_equal(k.server->streams, streams + 1);
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
        cmocka_unit_test(late_response),
        cmocka_unit_test(istiod_forgets),
        cmocka_unit_test(istiod_is_warned_of),
        cmocka_unit_test(fallback),
        cmocka_unit_test(fallback_answers_late),
        cmocka_unit_test(fallback_deletes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
