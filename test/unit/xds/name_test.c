/* Names of resources and the authorities that they name (A47). */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/xds_kit.h"

#include "base/mem.h"
#include "xds/name.h"

#define CLUSTER "envoy.config.cluster.v3.Cluster"

static void assert_name(const char *text, const char *canonical, const char *authority)
{
    struct tc_xds_name n;
    char *why = NULL;
    assert_true(tc_xds_name_parse(&tc_kit_cds, tc_slice_str(text), &n, &why));
    assert_string_equal(tc_rstr_cstr(n.text), canonical);
    assert_int_equal(n.federated, authority != NULL);
    if (authority)
        assert_string_equal(tc_rstr_cstr(n.authority), authority);
    tc_xds_name_fini(&n);
}

static void assert_refused(const char *text, const char *reason)
{
    struct tc_xds_name n;
    char *why = NULL;
    assert_false(tc_xds_name_parse(&tc_kit_cds, tc_slice_str(text), &n, &why));
    assert_non_null(strstr(why, reason));
    tc_free(why);
}

static void canonical_forms(void **state)
{
    (void)state;
    assert_name("plain/name?b=2&a=1", "plain/name?b=2&a=1", NULL);
    assert_name("", "", NULL);
    assert_name("xdstp://a/" CLUSTER "/x/y", "xdstp://a/" CLUSTER "/x/y", "a");
    assert_name("xdstp://a/" CLUSTER "/x?b=2&a=1#part", "xdstp://a/" CLUSTER "/x?a=1&b=2", "a");
    assert_name("xdstp://a/" CLUSTER "/x?ab=1&a=2&c", "xdstp://a/" CLUSTER "/x?a=2&ab=1&c=", "a");
    assert_name("xdstp://a/" CLUSTER "/%78%20%5B", "xdstp://a/" CLUSTER "/x%20%5B", "a");
    assert_name("xdstp:/" CLUSTER "/x", "xdstp:///" CLUSTER "/x", "");
    assert_name("xdstp:///" CLUSTER "/x", "xdstp:///" CLUSTER "/x", "");
    assert_name("xdstp://%61.b/" CLUSTER "/", "xdstp://a.b/" CLUSTER "/", "a.b");
    assert_refused("xdstp://a/envoy.config.listener.v3.Listener/x", "does not begin with the resource type");
    assert_refused("xdstp://a", "does not begin with the resource type");
    assert_refused("xdstp:", "does not begin with the resource type");
    assert_refused("xdstp://a/" CLUSTER "/%zz", "its path has an invalid escape");
    assert_refused("xdstp://%/" CLUSTER "/x", "its authority has an invalid escape");
    assert_refused("xdstp://a/" CLUSTER "/x?a=%1", "its query has an invalid escape");
}

#define BOOTSTRAP                                                                                                      \
    "{\"xds_servers\": [{\"server_uri\": \"s1\"}], \"node\": {\"id\": \"node1\"}, \"authorities\": {\"a\": {},"        \
    " \"b\": {\"xds_servers\": [{\"server_uri\": \"s2\"}]}}}"

static void order_of_parameters(void **state)
{
    (void)state;
    struct tc_kit k;
    struct tc_kit_watcher w, v;
    tc_kit_init(&k, BOOTSTRAP);
    tc_kit_watcher_init(&w);
    tc_kit_watcher_init(&v);
    tc_kit_watch(&k, &tc_kit_cds, "xdstp://a/" CLUSTER "/x?a=1&b=2", &w);
    tc_kit_watch(&k, &tc_kit_cds, "xdstp://a/" CLUSTER "/x?b=2&a=1", &v);
    tc_loop_drain(k.loop);
    assert_string_equal(tc_kit_request(&k, k.server), "Cluster [xdstp://a/" CLUSTER "/x?a=1&b=2] \"\" \"\" node");
    tc_kit_respond(&k, k.server, &tc_kit_cds, "1", "n1", "xdstp://a/" CLUSTER "/x?b=2&a=1|v", NULL);
    assert_string_equal(tc_kit_told(&w), "value v;");
    assert_string_equal(tc_kit_told(&v), "value v;");
    tc_kit_respond(&k, k.server, &tc_kit_cds, "2", "n2", "xdstp://a/other/x|v", NULL);
    assert_string_equal(tc_kit_request(&k, k.server), "Cluster [xdstp://a/" CLUSTER "/x?a=1&b=2] \"1\" \"n1\"");
    assert_non_null(strstr(tc_kit_request(&k, k.server), "NACK 3 resource index 0: Cluster \"xdstp://a/other/x\""));
    tc_kit_fini(&k);
    tc_kit_watcher_fini(&w);
    tc_kit_watcher_fini(&v);
    TC_CASE(AD10);
}

static void authorities_have_their_servers(void **state)
{
    (void)state;
    struct tc_kit k;
    struct tc_kit_watcher top, a, b, nobody;
    tc_kit_init(&k, BOOTSTRAP);
    tc_kit_watcher_init(&top);
    tc_kit_watcher_init(&a);
    tc_kit_watcher_init(&b);
    tc_kit_watcher_init(&nobody);
    struct tc_fake_xds_server *s2 = tc_fake_xds_server(k.fake, "s2");
    tc_kit_watch(&k, &tc_kit_cds, "plain", &top);
    tc_kit_watch(&k, &tc_kit_cds, "xdstp://a/" CLUSTER "/x", &a);
    tc_kit_watch(&k, &tc_kit_cds, "xdstp://b/" CLUSTER "/x", &b);
    tc_kit_watch(&k, &tc_kit_cds, "xdstp://nobody/" CLUSTER "/x", &nobody);
    tc_loop_drain(k.loop);
    /* Equal servers are one. */
    assert_string_equal(tc_kit_request(&k, k.server), "Cluster [plain,xdstp://a/" CLUSTER "/x] \"\" \"\" node");
    assert_string_equal(tc_kit_request(&k, s2), "Cluster [xdstp://b/" CLUSTER "/x] \"\" \"\" node");
    assert_string_equal(tc_kit_told(&nobody),
                        "error authority \"nobody\" is not in the xDS bootstrap (node ID:node1);");
    assert_int_equal(nobody.last_code, TORC_STATUS_UNAVAILABLE);
    /* A server says nothing about names that are not its own. */
    tc_kit_respond(&k, s2, &tc_kit_cds, "1", "n1", "plain|evil", "xdstp://nobody/" CLUSTER "/x|v",
                   "xdstp://b/" CLUSTER "/x|v", NULL);
    assert_string_equal(tc_kit_told(&b), "value v;");
    assert_string_equal(tc_kit_told(&top), "");
    assert_string_equal(tc_kit_told(&nobody), "");
    /* The last of a server's names closes it. */
    tc_kit_unwatch(&k, &b);
    tc_kit_unwatch(&k, &nobody);
    tc_kit_unwatch(&k, &a);
    tc_loop_drain(k.loop);
    assert_false(s2->open);
    assert_true(k.server->open);
    assert_string_equal(tc_kit_request(&k, k.server), "Cluster [plain] \"\" \"\"");
    tc_kit_fini(&k);
    tc_kit_watcher_fini(&top);
    tc_kit_watcher_fini(&a);
    tc_kit_watcher_fini(&b);
    tc_kit_watcher_fini(&nobody);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(canonical_forms),
        cmocka_unit_test(order_of_parameters),
        cmocka_unit_test(authorities_have_their_servers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
