/* The ADS stream, state of the world: requests, acknowledgement, watchers and flow control; and the dump of the cache.
 *
 * kits/xds gives the client over a scripted transport; the test is the server s1 (k.server). assert_request takes the
 * oldest request that is left and compares it with a text: 'Type [names] "version" "nonce"', then " node" if the
 * request has a Node, then " NACK code text" if it is a NACK; "" if no request is left. assert_told compares what a
 * watcher has heard since the last time. While k.server->connected is false a request waits for the transport: it is
 * recorded, but counts as under way, and no further one is made.
 *
 * The fixture makes the client and the watchers a, b and c for each test, and frees them with the watches that are
 * left. one_client_for_a_target has a second client, with servers of its own. Everything runs on the test's thread, on
 * a manual loop: its time passes only in tc_loop_advance. */
#include <stdio.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/footprint.h"
#include "support/kits/xds.h"
#include "xds/client/local_client.h"

static struct kit_xds k;
static struct kit_xds_watcher a, b, c;

static int set_up(void **state)
{
    (void)state;
    kit_xds_init(&k, NULL);
    kit_xds_watcher_init(&a);
    kit_xds_watcher_init(&b);
    kit_xds_watcher_init(&c);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&a);
    kit_xds_watcher_fini(&b);
    kit_xds_watcher_fini(&c);
    return 0;
}

static void watch(const struct tc_xds_resource_type *type, const char *name, struct kit_xds_watcher *w)
{
    kit_xds_watch(&k, type, name, w);
    tc_loop_drain(k.loop);
}

#define assert_request(text) assert_string_equal(kit_xds_request(&k, k.server), text)
#define assert_told(w, text) assert_string_equal(kit_xds_told(w), text)

static void first_requests(void **state)
{
    TC_CASE(AD01);
    (void)state;
    kit_xds_watch(&k, &kit_xds_cds, "b", &a);
    kit_xds_watch(&k, &kit_xds_cds, "a", &b);
    watch(&kit_xds_eds, "e", &c);
    struct fake_xds_request *r = fake_xds_take(k.server);
    assert_true(r->has_node);
    assert_string_equal(r->node_id, "node1");
    assert_string_equal(r->type_url, kit_xds_cds.type_url);
    assert_string_equal(r->names, "a,b"); /* one request for the names of a turn, sorted */
    assert_string_equal(r->version, "");
    assert_string_equal(r->nonce, "");
    fake_xds_request_free(r);
    assert_request("ClusterLoadAssignment [e] \"\" \"\"");
    assert_request("");
    assert_int_equal(k.server->streams, 1);
}

static void ack(void **state)
{
    TC_CASE(AD02);
    (void)state;
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", NULL);
    assert_told(&a, "value x;");
    assert_request("Cluster [a] \"1\" \"n1\"");
    watch(&kit_xds_cds, "b", &b);
    assert_request("Cluster [a,b] \"1\" \"n1\"");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "a|x", "b|y", NULL);
    assert_told(&a, "");
    assert_told(&b, "value y;");
    assert_request("Cluster [a,b] \"2\" \"n2\"");
}

static void nack_before_any_ack(void **state)
{
    (void)state;
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|bad", NULL);
    assert_request("Cluster [a] \"\" \"n1\" NACK 3 resource index 0: Cluster \"a\": field value: is bad; field other: "
                   "is bad too");
    assert_told(&a,
                "error invalid xDS Cluster resource: field value: is bad; field other: is bad too (node ID:node1);");
    assert_int_equal(a.last_code, TORC_STATUS_UNAVAILABLE);
}

static void nack_names_all_and_uses_the_rest(void **state)
{
    TC_CASE(AD03);
    TC_CASE(AD04);
    TC_CASE(AD05);
    (void)state;
    kit_xds_watch(&k, &kit_xds_eds, "a", &a);
    kit_xds_watch(&k, &kit_xds_eds, "b", &b);
    watch(&kit_xds_eds, "c", &c);
    assert_request("ClusterLoadAssignment [a,b,c] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|1", "b|1", "c|1", NULL);
    assert_request("ClusterLoadAssignment [a,b,c] \"1\" \"n1\"");
    assert_told(&a, "value 1;");
    assert_told(&b, "value 1;");
    assert_told(&c, "value 1;");

    kit_xds_respond(&k, k.server, &kit_xds_eds, "2", "n2", "a|bad", "b|2", "c|bad", NULL);
    assert_request("ClusterLoadAssignment [a,b,c] \"1\" \"n2\" NACK 3 "
                   "resource index 0: ClusterLoadAssignment \"a\": field value: is bad; field other: is bad too; "
                   "resource index 2: ClusterLoadAssignment \"c\": field value: is bad; field other: is bad too");
    assert_request(""); /* one NACK */
    assert_told(&a, "ambient invalid xDS ClusterLoadAssignment resource: field value: is bad; field other: is bad too "
                    "(node ID:node1);");
    assert_told(&b, "value 2;");

    /* The error ends with a good response, even of the value that is in use. */
    kit_xds_respond(&k, k.server, &kit_xds_eds, "3", "n3", "a|1", "c|3", NULL);
    assert_request("ClusterLoadAssignment [a,b,c] \"3\" \"n3\"");
    assert_told(&a, "clear;");
    assert_told(&b, "");
    tc_buf_consume(&c.log, c.log.len - strlen("value 3;")); /* the error of the second response */
    assert_told(&c, "value 3;");
}

static void identical_nack_is_told_once(void **state)
{
    TC_CASE(AD06);
    (void)state;
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|bad", NULL);
    assert_true(strlen(kit_xds_told(&a)) > 0);
    assert_non_null(strstr(kit_xds_request(&k, k.server), "NACK"));
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n2", "a|bad", NULL);
    assert_told(&a, "");
    assert_non_null(strstr(kit_xds_request(&k, k.server), "\"n2\" NACK"));
}

static void unchanged_resource(void **state)
{
    TC_CASE(AD09);
    (void)state;
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", NULL);
    assert_request("Cluster [a] \"1\" \"n1\"");
    assert_told(&a, "value x;");
    unsigned decoded = kit_xds_decoded;
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "a|x", NULL);
    assert_request("Cluster [a] \"2\" \"n2\"");
    assert_told(&a, "");
    assert_int_equal(kit_xds_decoded, decoded);
    /* An equal value after a refused response is not decoded again either. */
    kit_xds_respond(&k, k.server, &kit_xds_cds, "3", "n3", "a|bad", NULL);
    assert_non_null(strstr(kit_xds_request(&k, k.server), "\"n3\" NACK"));
    assert_int_equal(kit_xds_decoded, decoded + 1);
    assert_told(&a, "ambient invalid xDS Cluster resource: field value: is bad; field other: is bad too "
                    "(node ID:node1);");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "4", "n4", "a|x", NULL);
    assert_request("Cluster [a] \"4\" \"n4\"");
    assert_told(&a, "clear;");
    assert_int_equal(kit_xds_decoded, decoded + 1);
    /* A resource that is twice in one response is an error, even if it is unchanged. */
    kit_xds_respond(&k, k.server, &kit_xds_cds, "5", "n5", "a|x", "a|x", NULL);
    assert_non_null(strstr(kit_xds_request(&k, k.server), "the response has it twice"));
}

static void requests_are_joined_while_one_is_sent(void **state)
{
    (void)state;
    k.server->connected = false;
    watch(&kit_xds_eds, "a", &a);
    assert_request("ClusterLoadAssignment [a] \"\" \"\" node");
    watch(&kit_xds_eds, "b", &b);
    watch(&kit_xds_eds, "c", &c);
    assert_request("");
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_request("ClusterLoadAssignment [a,b,c] \"\" \"\"");
    assert_request("");
}

static void last_watcher_goes(void **state)
{
    TC_CASE(AD27);
    (void)state;
    kit_xds_watch(&k, &kit_xds_cds, "x", &c);
    kit_xds_watch(&k, &kit_xds_eds, "a", &a);
    watch(&kit_xds_eds, "b", &b);
    assert_request("Cluster [x] \"\" \"\" node");
    assert_request("ClusterLoadAssignment [a,b] \"\" \"\"");
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", "b|x", NULL);
    assert_request("ClusterLoadAssignment [a,b] \"1\" \"n1\"");
    kit_xds_unwatch(&k, &a);
    tc_loop_drain(k.loop);
    assert_request("ClusterLoadAssignment [b] \"1\" \"n1\"");
    kit_xds_unwatch(&k, &b);
    tc_loop_drain(k.loop);
    assert_request("ClusterLoadAssignment [] \"1\" \"n1\"");

    /* A subscription after that begins without a version. */
    kit_xds_told(&a);
    watch(&kit_xds_eds, "a", &a);
    assert_told(&a, "");
    assert_request("ClusterLoadAssignment [a] \"\" \"\"");
    assert_int_equal(k.server->streams, 1);

    kit_xds_unwatch(&k, &a);
    kit_xds_unwatch(&k, &c);
    assert_true(k.server->open);
    tc_loop_drain(k.loop);
    assert_false(k.server->open);
}

static void another_takes_over_within_the_turn(void **state)
{
    (void)state;
    watch(&kit_xds_eds, "a", &a);
    assert_request("ClusterLoadAssignment [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", NULL);
    assert_request("ClusterLoadAssignment [a] \"1\" \"n1\"");
    kit_xds_unwatch(&k, &a);
    watch(&kit_xds_eds, "a", &b);
    assert_told(&b, "value x;");
    assert_request("");
    assert_true(k.server->open);
}

/* A name is dropped and wanted again while a request is under way. The server must see the unsubscription, or it would
 * not send the resource again. */
static void dropped_and_wanted_again_between_requests(void **state)
{
    (void)state;
    watch(&kit_xds_eds, "a", &a);
    assert_request("ClusterLoadAssignment [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|x", NULL);
    assert_request("ClusterLoadAssignment [a] \"1\" \"n1\"");
    k.server->connected = false;
    watch(&kit_xds_eds, "b", &b);
    assert_request("ClusterLoadAssignment [a,b] \"1\" \"n1\"");
    kit_xds_unwatch(&k, &a);
    tc_loop_drain(k.loop);
    watch(&kit_xds_eds, "a", &c);
    assert_told(&c, "");
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_request("ClusterLoadAssignment [b] \"1\" \"n1\"");
    assert_request("ClusterLoadAssignment [a,b] \"1\" \"n1\"");
    assert_request("");

    /* The stream ends while a request waits for the transport. */
    k.server->connected = false;
    kit_xds_watch(&k, &kit_xds_eds, "d", &a);
    tc_loop_drain(k.loop);
    assert_request("ClusterLoadAssignment [a,b,d] \"1\" \"n1\"");
    kit_xds_unwatch(&k, &a);
    kit_xds_unwatch(&k, &b);
    tc_loop_drain(k.loop);
    watch(&kit_xds_eds, "b", &b);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_drain(k.loop);
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_request("ClusterLoadAssignment [a,b] \"1\" \"\" node"); /* on a new stream no name is left out */
    assert_request("");
}

/* A response crosses the request that drops a name: the server ignores that request, whose nonce is stale, and counts
 * the name as subscribed until the response is answered. A name that is wanted again before that is left out of the
 * answer, or the server would have nothing to send. */
static void dropped_while_a_response_was_on_its_way(void **state)
{
    (void)state;
    watch(&kit_xds_cds, "a", &a);
    watch(&kit_xds_cds, "b", &b);
    assert_request("Cluster [a] \"\" \"\" node");
    assert_request("Cluster [a,b] \"\" \"\"");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", "b|x", NULL);
    assert_request("Cluster [a,b] \"1\" \"n1\"");
    k.server->connected = false;
    kit_xds_unwatch(&k, &a);
    tc_loop_drain(k.loop);
    assert_request("Cluster [b] \"1\" \"n1\"");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "a|y", "b|y", NULL);
    watch(&kit_xds_cds, "a", &c);
    assert_told(&c, "");
    fake_xds_connect(k.server);
    tc_loop_drain(k.loop);
    assert_request("Cluster [b] \"2\" \"n2\"");
    assert_request("Cluster [a,b] \"2\" \"n2\"");
    assert_request("");
}

/* on: initialises n watchers, and watches a name of its own with each, which begins with `kind`. Otherwise ends the
 * watches and frees the watchers; `kind` does not count. */
static void watch_many(struct kit_xds_watcher *many, size_t n, char kind, bool on)
{
    char name[32];
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%c%zu", kind, i);
        if (on) {
            kit_xds_watcher_init(&many[i]);
            kit_xds_watch(&k, &kit_xds_eds, name, &many[i]);
        } else {
            kit_xds_unwatch(&k, &many[i]);
            kit_xds_watcher_fini(&many[i]);
        }
    }
}

/* The watched names change again and again while the server reads no requests. After the first round the table of
 * dropped names has N names. They are found by hash, so the rounds take little CPU time. */
static void names_for_a_server_that_does_not_read(void **state)
{
    (void)state;
    enum { N = FOOTPRINT_MEASURED ? 30000 : 300, ROUNDS = 6, MAX_CPU_MS = 2000 };
    static struct kit_xds_watcher many[2][N];
    watch(&kit_xds_eds, "kept", &a);
    watch_many(many[0], N, 'e', true);
    tc_loop_drain(k.loop);
    k.server->connected = false;
    watch(&kit_xds_eds, "waits", &b);
    struct footprint begin = footprint_begin();
    for (unsigned i = 0; i < ROUNDS; i++) {
        watch_many(many[(i + 1) % 2], N, i % 2 ? 'e' : 'o', true);
        watch_many(many[i % 2], N, 0, false);
        tc_loop_drain(k.loop);
    }
    if (FOOTPRINT_MEASURED)
        assert_true(footprint_since(&begin).cpu_ms < MAX_CPU_MS);
    watch_many(many[0], N, 0, false);
}

/* For kit_xds_watcher.then, once: watches another type, and gives up its own watch and begins it again. */
static void watch_more(struct kit_xds_watcher *w)
{
    w->then = NULL;
    kit_xds_watch(&k, &kit_xds_eds, "e", &b);
    kit_xds_unwatch(&k, w);
    kit_xds_watch(&k, &kit_xds_cds, "a", w);
}

static void watch_inside_a_callback(void **state)
{
    TC_CASE(AD26);
    (void)state;
    a.then = watch_more;
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", NULL);
    assert_told(&a, "value x;value x;");
    assert_request("Cluster [a] \"1\" \"n1\"");
    assert_request("ClusterLoadAssignment [e] \"\" \"\"");
}

/* For kit_xds_watcher.then, once: ends the watch, and drops the last reference to the client. */
static void end_all(struct kit_xds_watcher *w)
{
    w->then = NULL;
    kit_xds_unwatch(&k, w);
    tc_xds_client_unref(k.client);
    k.client = NULL;
}

static void client_ends_inside_a_callback(void **state)
{
    (void)state;
    a.then = end_all;
    kit_xds_watch(&k, &kit_xds_cds, "b", &b);
    watch(&kit_xds_cds, "a", &a);
    kit_xds_watch(&k, &kit_xds_cds, "xdstp://nobody/x", &c);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", "b|y", NULL);
    assert_told(&a, "value x;");
    assert_false(k.server->open);
}

/* A response that the server sent before it read the unsubscription from the last name of the type. The unsubscription
 * has the nonce of an older response. */
static void late_response(void **state)
{
    (void)state;
    kit_xds_watch(&k, &kit_xds_cds, "a", &a);
    watch(&kit_xds_eds, "b", &b);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "b|x", NULL);
    while (*kit_xds_request(&k, k.server)) {
    }
    kit_xds_unwatch(&k, &b);
    tc_loop_drain(k.loop);
    assert_request("ClusterLoadAssignment [] \"1\" \"n1\"");
    kit_xds_respond(&k, k.server, &kit_xds_eds, "2", "n2", "b|y", NULL);
    assert_request("ClusterLoadAssignment [] \"2\" \"n2\"");
    kit_xds_respond(&k, k.server, &kit_xds_eds, "3", "n3", "b|bad", NULL);
    assert_request("ClusterLoadAssignment [] \"\" \"n3\" NACK 3 resource index 0: ClusterLoadAssignment \"b\": field "
                   "value: is bad; "
                   "field other: is bad too");
    assert_request("");
    /* A later subscription begins without a version. */
    watch(&kit_xds_eds, "b", &b);
    assert_request("ClusterLoadAssignment [b] \"\" \"\"");
    /* The new stream has no request for the type: an ACK without names would subscribe to all resources. */
    kit_xds_unwatch(&k, &b);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_advance(k.loop, 1000);
    while (*kit_xds_request(&k, k.server)) {
    }
    kit_xds_respond(&k, k.server, &kit_xds_eds, "4", "n4", "b|y", NULL);
    assert_request("");
    kit_xds_respond(&k, k.server, &kit_xds_lds, "1", "n5", "l|y", NULL); /* a type that nobody ever asked for */
    assert_request("");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n6", "a|y", NULL);
    assert_request("Cluster [a] \"1\" \"n6\"");
}

static void next_response_waits_for_watchers(void **state)
{
    TC_CASE(AD25);
    (void)state;
    a.hold = b.hold = true;
    kit_xds_watch(&k, &kit_xds_cds, "a", &a);
    watch(&kit_xds_cds, "b", &b);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|1", "b|1", NULL);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "a|bad", NULL); /* an error, and b's absence */
    assert_int_equal(k.server->messages_read, 1);
    kit_xds_release(&a);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->messages_read, 1);
    kit_xds_release(&b);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->messages_read, 2);

    kit_xds_respond(&k, k.server, &kit_xds_cds, "3", "n3", "a|3", "b|3", NULL);
    assert_int_equal(k.server->messages_read, 2);
    kit_xds_release(&b);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->messages_read, 2);
    kit_xds_release(&a);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->messages_read, 3);

    /* Tokens may be released after the end of the watch, and after the end of the stream. */
    kit_xds_unwatch(&k, &a);
    kit_xds_release(&a);
    fake_xds_end(k.server, TORC_STATUS_UNAVAILABLE, "bye");
    tc_loop_drain(k.loop);
    kit_xds_release(&b);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->streams, 2);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "4", "n4", "b|4", NULL);
    assert_int_equal(k.server->messages_read, 4);
}

static void unwatch_b(struct kit_xds_watcher *w)
{
    w->then = NULL;
    kit_xds_unwatch(&k, &b);
}

/* The watch of "b" ends inside a callback of the watcher of "a", before the watcher of "b" is told. The next response
 * does not wait for the watcher of "b". */
static void a_watcher_that_goes_counts_as_finished(void **state)
{
    TC_CASE(AD25);
    (void)state;
    a.then = unwatch_b;
    b.hold = true;
    kit_xds_watch(&k, &kit_xds_cds, "a", &a);
    watch(&kit_xds_cds, "b", &b);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|1", "b|1", NULL);
    assert_told(&a, "value 1;");
    assert_told(&b, "");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "a|2", NULL);
    assert_int_equal(k.server->messages_read, 2);
    assert_told(&a, "value 2;");
}

static void one_client_for_a_target(void **state)
{
    TC_CASE(AD28);
    (void)state;
    struct tc_xds_client_opts opts;
    tc_xds_client_opts_init(&opts);
    opts.target = tc_slice_str("xds:///other");
    struct fake_xds *fake = fake_xds_new(k.loop);
    struct tc_xds_client *other = tc_xds_local_client_new(k.loop, k.bootstrap, fake_xds_factory(fake), &opts);
    struct tc_xds_client *same = tc_xds_client_ref(k.client);
    watch(&kit_xds_cds, "a", &a);
    tc_xds_client_watch(same, &kit_xds_cds, tc_slice_str("a"), &b.base);
    tc_xds_client_watch(other, &kit_xds_cds, tc_slice_str("a"), &c.base);
    tc_loop_drain(k.loop);
    assert_int_equal(k.server->streams, 1);
    assert_int_equal(fake_xds_server(fake, "s1")->streams, 1);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", NULL);
    assert_told(&a, "value x;");
    assert_told(&b, "value x;");
    assert_told(&c, "");
    tc_xds_client_unref(same);
    tc_xds_client_unref(other);
    assert_true(k.server->open);
    fake_xds_free(fake);
}

/* A copy of the last struct tc_xds_dump_entry. */
struct dumped {
    enum tc_xds_state state;
    char version[8], failed_version[8], bytes[16];
    bool has_error;
    int64_t updated_ns, failed_ns;
};

static void copy_text(char out[8], struct tc_slice text)
{
    assert_true(text.len < 8);
    if (text.len)
        memcpy(out, text.data, text.len);
    out[text.len] = '\0';
}

static void on_dump(void *arg, const struct tc_xds_dump_entry *e)
{
    struct dumped *out = arg;
    assert_true(tc_slice_eq_str(e->name, "a"));
    assert_ptr_equal(e->type, &kit_xds_cds);
    *out = (struct dumped){
        .state = e->state, .has_error = e->error, .updated_ns = e->updated_ns, .failed_ns = e->failed_ns};
    copy_text(out->version, e->version);
    copy_text(out->failed_version, e->failed_version);
    if (e->bytes)
        memcpy(out->bytes, e->bytes->data, e->bytes->len);
}

static void dump_shows_the_cache(void **state)
{
    (void)state;
    struct dumped d = {0};
    watch(&kit_xds_cds, "a", &a);
    tc_xds_client_dump(k.client, on_dump, &d);
    assert_int_equal(d.state, TC_XDS_REQUESTED);
    assert_int_equal(d.updated_ns, 0);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", NULL);
    tc_xds_client_dump(k.client, on_dump, &d);
    assert_int_equal(d.state, TC_XDS_ACKED);
    assert_string_equal(d.version, "1");
    assert_string_equal(d.bytes, "a|x");
    assert_false(d.has_error);
    assert_true(d.updated_ns > 0);
    tc_loop_advance(k.loop, 5);
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "a|bad", NULL);
    int64_t accepted_ns = d.updated_ns;
    tc_xds_client_dump(k.client, on_dump, &d);
    assert_int_equal(d.state, TC_XDS_NACKED);
    assert_string_equal(d.version, "1");
    assert_string_equal(d.failed_version, "2");
    assert_string_equal(d.bytes, "a|x");
    assert_true(d.has_error);
    assert_true(d.updated_ns == accepted_ns);
    assert_true(d.failed_ns == accepted_ns + 5000000);
    assert_ptr_equal(tc_xds_client_bootstrap(k.client), k.bootstrap);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_requests),
        TEST(ack),
        TEST(nack_before_any_ack),
        TEST(nack_names_all_and_uses_the_rest),
        TEST(identical_nack_is_told_once),
        TEST(unchanged_resource),
        TEST(requests_are_joined_while_one_is_sent),
        TEST(last_watcher_goes),
        TEST(another_takes_over_within_the_turn),
        TEST(dropped_and_wanted_again_between_requests),
        TEST(dropped_while_a_response_was_on_its_way),
        TEST(names_for_a_server_that_does_not_read),
        TEST(watch_inside_a_callback),
        TEST(client_ends_inside_a_callback),
        TEST(late_response),
        TEST(next_response_waits_for_watchers),
        TEST(a_watcher_that_goes_counts_as_finished),
        TEST(one_client_for_a_target),
        TEST(dump_shows_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
