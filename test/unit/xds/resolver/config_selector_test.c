/* The config selector without a channel: routes, weights, hashes, timeouts, clusters in use, and the budget of regular
 * expressions. kits/config makes the configs. */
#include <string.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/config.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "xds/resolver/config_selector.h"

#define CHANNEL_ID UINT64_C(0x1234)

struct world {
    struct tc_cluster_refs refs;
    struct tc_buf log; /* "+a ": cluster a came into use; "-a ": it went out of use */
    struct tc_config_selector *selector;
    struct tc_arena arena;
    struct tc_headers headers;
    struct tc_rng rng;
    struct tc_call_config call; /* of the last RPC */
    struct tc_status status;
};

static void on_used(struct tc_cluster_refs *refs, struct tc_rstr *name)
{
    tc_buf_printf(&TC_CONTAINER_OF(refs, struct world, refs)->log, "+%s ", name->data);
}

static void on_unused(struct tc_cluster_refs *refs, struct tc_rstr *name)
{
    tc_buf_printf(&TC_CONTAINER_OF(refs, struct world, refs)->log, "-%s ", name->data);
}

/* Replaces the selector by one for these routes. more: further members of the HttpConnectionManager (NULL: none). */
static void use(struct world *w, const char *routes, const char *more)
{
    struct tc_xds_config *config = kit_config_routing("", "", routes, more ? more : "");
    struct tc_config_selector *old = w->selector;
    w->selector = tc_xds_selector_new(config, &w->refs, CHANNEL_ID);
    tc_config_selector_unref(old);
    tc_xds_config_unref(config);
}

static void open_world(struct world *w, const char *routes, const char *more)
{
    *w = (struct world){.refs = {.on_used = on_used, .on_unused = on_unused}};
    tc_arena_init(&w->arena, 0, 0);
    tc_headers_init(&w->headers, &w->arena);
    tc_rng_init_seed(&w->rng, 5);
    use(w, routes, more);
}

static void close_world(struct world *w)
{
    tc_config_selector_unref(w->selector);
    tc_cluster_refs_fini(&w->refs);
    tc_status_fini(&w->status);
    tc_arena_fini(&w->arena);
    tc_buf_fini(&w->log);
}

static void header(struct world *w, const char *name, const char *value)
{
    tc_headers_add(&w->headers, tc_slice_str(name), tc_slice_str(value));
}

/* Returns the cluster of an RPC, or the text that the RPC fails with. w->call holds the cluster until `done`. */
static const char *choose(struct world *w, const char *path)
{
    struct tc_select_args args = {
        .path = tc_slice_str(path), .headers = &w->headers, .arena = &w->arena, .rng = &w->rng, .explain = true};
    w->call = (struct tc_call_config){0};
    tc_status_set(&w->status, w->selector->ops->select(w->selector, &args, &w->call));
    return tc_status_ok(&w->status) ? tc_arena_dup(&w->arena, w->call.cluster) : tc_status_text(&w->status);
}

static void done(struct world *w)
{
    if (w->call.release)
        w->call.release(w->call.hold);
    w->call = (struct tc_call_config){0};
}

static void routes_in_order(void **state)
{
    TC_CASE(LR20);
    TC_CASE(LR21);
    (void)state;
    struct world w;
    open_world(&w,
               "{'name': 'exact', 'match': {'path': '/a/b'}, 'route': {'cluster': 'c1'}}, "
               "{'match': {'prefix': '/a/', 'headers': [{'name': 'k', 'stringMatch': {'exact': 'v'}}]}, 'route': "
               "{'cluster': 'c2'}}, "
               "{'match': {'safeRegex': {'regex': '/x/.+'}}, 'nonForwardingAction': {}}",
               NULL);
    assert_string_equal(tc_buf_cstr(&w.log), "+c1 +c2 ");
    assert_string_equal(choose(&w, "/a/b"), "c1");
    assert_int_equal(w.call.wait_for_ready, -1);
    assert_true(tc_slice_starts(w.call.route, tc_slice_str("exact: ")));
    done(&w);
    assert_string_equal(choose(&w, "/a/c"),
                        "No matching route found in xDS route config for method \"/a/c\" (node ID:n1)");
    assert_int_equal(w.status.code, TORC_STATUS_UNAVAILABLE);
    assert_string_equal(choose(&w, "/x/c"), "Matching route has inappropriate action (node ID:n1)");
    header(&w, "k", "v");
    assert_string_equal(choose(&w, "/a/c"), "c2");
    done(&w);
    close_world(&w);
}

static void weights_and_fractions(void **state)
{
    TC_CASE(LR15);
    TC_CASE(LR17);
    (void)state;
    struct world w;
    open_world(
        &w,
        "{'match': {'prefix': '/f', 'runtimeFraction': {'defaultValue': {'numerator': 10}}}, 'route': {'cluster': "
        "'few'}}, "
        "{'match': {'prefix': ''}, 'route': {'weightedClusters': {'clusters': [{'name': 'a', 'weight': 25}, "
        "{'name': 'none', 'weight': 0}, {'name': 'b', 'weight': 75}]}}}",
        NULL);
    assert_string_equal(tc_buf_cstr(&w.log), "+few +a +b ");
    int few = 0, a = 0;
    for (int i = 0; i < 10000; i++) {
        a += strcmp(choose(&w, "/x"), "a") == 0;
        done(&w);
        few += strcmp(choose(&w, "/f"), "few") == 0;
        done(&w);
    }
    assert_in_range(a, 2300, 2700);
    assert_in_range(few, 850, 1150);
    close_world(&w);
}

#define SHARE(numerator, cluster)                                                                                      \
    "{'match': {'prefix': '', 'runtimeFraction': {'defaultValue': {'numerator': " #numerator "}}}, 'route': "          \
    "{'cluster': '" cluster "'}}, "

/* A28: each route's fraction has a random number of its own, and the cluster's weight has another. */
static void fractions_are_independent(void **state)
{
    TC_CASE(LR15);
    (void)state;
    struct world w;
    open_world(&w,
               SHARE(50, "a") SHARE(50, "b") "{'match': {'prefix': ''}, 'route': {'weightedClusters': {'clusters': "
                                             "[{'name': 'c', 'weight': 1}, {'name': 'd', 'weight': 1}]}}}",
               NULL);
    unsigned got[4] = {0};
    for (int i = 0; i < 10000; i++) {
        const char *cluster = choose(&w, "/x");
        assert_in_range(cluster[0], 'a', 'd');
        got[cluster[0] - 'a']++;
        done(&w);
    }
    assert_in_range(got[0], 4800, 5200);
    assert_in_range(got[1], 2300, 2700);
    assert_in_range(got[2], 1100, 1400);
    assert_in_range(got[3], 1100, 1400);
    close_world(&w);
}

#define HASHED(policies) "{'match': {'prefix': ''}, 'route': {'cluster': 'c', 'hashPolicy': [" policies "]}}"

static void hashes_of_headers_and_channels(void **state)
{
    TC_CASE(HP01);
    TC_CASE(HP02);
    TC_CASE(HP13);
    (void)state;
    struct world w;
    open_world(&w, HASHED("{'header': {'headerName': 'k'}}"), NULL);
    header(&w, "k", "a");
    header(&w, "k", "b");
    choose(&w, "/a/b");
    assert_true(w.call.has_hash);
    assert_true(w.call.hash == tc_xxh64("a,b", 3));
    done(&w);
    use(&w, HASHED("{'filterState': {'key': 'io.grpc.channel_id'}}"), NULL);
    choose(&w, "/a/b");
    assert_true(w.call.has_hash);
    uint64_t hash = w.call.hash;
    done(&w);
    choose(&w, "/c/d");
    assert_true(w.call.has_hash);
    assert_true(w.call.hash == hash);
    done(&w);
    close_world(&w);
}

/* An RPC has one random hash, which all its picks use: the call's config has the hash before the first pick. */
static void random_hash(void **state)
{
    TC_CASE(HP12);
    (void)state;
    struct world w;
    open_world(&w, HASHED("{'header': {'headerName': 'absent'}}"), NULL);
    choose(&w, "/a/b");
    assert_true(w.call.has_hash);
    uint64_t first = w.call.hash;
    done(&w);
    choose(&w, "/a/b");
    assert_true(w.call.has_hash);
    assert_true(w.call.hash != first);
    done(&w);
    close_world(&w);
}

static void timeouts(void **state)
{
    TC_CASE(LR19);
    (void)state;
    static const struct {
        const char *route, *listener;
        uint64_t want_ms;
    } rows[] = {
        {"", NULL, 0},
        {"", ", 'commonHttpProtocolOptions': {'maxStreamDuration': '7s'}", 7000},
        {", 'maxStreamDuration': {'maxStreamDuration': '10s'}",
         ", 'commonHttpProtocolOptions': {'maxStreamDuration': '7s'}", 10000},
        {", 'maxStreamDuration': {'maxStreamDuration': '0s'}",
         ", 'commonHttpProtocolOptions': {'maxStreamDuration': '7s'}", 0},
        {", 'maxStreamDuration': {'maxStreamDuration': '10s', 'grpcTimeoutHeaderMax': '3s'}", NULL, 3000},
        {", 'maxStreamDuration': {'maxStreamDuration': '10s', 'grpcTimeoutHeaderMax': '0s'}", NULL, 0},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct world w;
        char *routes = tc_asprintf("{'match': {'prefix': ''}, 'route': {'cluster': 'c'%s}}", rows[i].route);
        open_world(&w, routes, rows[i].listener);
        choose(&w, "/a/b");
        assert_true(w.call.timeout_ns == (rows[i].want_ms ? rows[i].want_ms * 1000000 : UINT64_MAX));
        done(&w);
        close_world(&w);
        tc_free(routes);
    }
}

#define TO(cluster) "{'match': {'prefix': ''}, 'route': {'cluster': '" cluster "'}}"

/* A31: a cluster goes when neither a selector nor an RPC holds it. */
static void clusters_are_held(void **state)
{
    TC_CASE(CM02);
    (void)state;
    struct world w;
    open_world(&w, TO("a"), NULL);
    choose(&w, "/a/b");
    struct tc_call_config first = w.call;
    use(&w, TO("b"), NULL);
    assert_string_equal(tc_buf_cstr(&w.log), "+a +b ");
    first.release(first.hold);
    assert_string_equal(tc_buf_cstr(&w.log), "+a +b -a ");
    choose(&w, "/a/b");
    use(&w, TO("b"), NULL);
    done(&w);
    assert_string_equal(tc_buf_cstr(&w.log), "+a +b -a ");
    /* An RPC may outlive the resolver. */
    choose(&w, "/a/b");
    tc_cluster_refs_fini(&w.refs);
    tc_config_selector_unref(w.selector);
    w.selector = NULL;
    done(&w);
    assert_string_equal(tc_buf_cstr(&w.log), "+a +b -a ");
    close_world(&w);
}

#define LARGE "(?:[ab]*a[ab]{1000})?"
#define LARGE_5 LARGE LARGE LARGE LARGE LARGE

/* The budget of regular expressions for one RPC: beyond it the RPC fails, and no later route matches. */
static void matching_is_bounded(void **state)
{
    (void)state;
    struct world w;
    char value[8193];
    memset(value, 'a', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    open_world(&w,
               "{'match': {'prefix': '', 'headers': [{'name': 'k', 'safeRegexMatch': {'regex': "
               "'" LARGE_5 LARGE_5 LARGE_5 LARGE_5 "'}, 'invertMatch': true}]}, 'route': {'cluster': 'c1'}}, "
               "{'match': {'prefix': ''}, 'route': {'cluster': 'c2'}}",
               NULL);
    assert_string_equal(choose(&w, "/a/b"), "c2");
    done(&w);
    header(&w, "k", value);
    assert_string_equal(choose(&w, "/a/b"), "Matching the routes' regular expressions takes too long for this path and "
                                            "these headers (node ID:n1)");
    assert_int_equal(w.status.code, TORC_STATUS_UNAVAILABLE);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_in_order),
        cmocka_unit_test(weights_and_fractions),
        cmocka_unit_test(fractions_are_independent),
        cmocka_unit_test(hashes_of_headers_and_channels),
        cmocka_unit_test(random_hash),
        cmocka_unit_test(timeouts),
        cmocka_unit_test(clusters_are_held),
        cmocka_unit_test(matching_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
