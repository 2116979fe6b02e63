/* Names of resources and the authorities that they name (A47). canonical_forms tests the parser alone. The other tests
 * watch names with a client of kits/xds, and are its servers s1 and s2. Everything runs on the test's thread. */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/xds.h"

#include "base/mem.h"
#include "xds/client/name.h"

#define CLUSTER "envoy.config.cluster.v3.Cluster"

/* authority: NULL if the name is not an xdstp: name. */
static void assert_name(const char *text, const char *canonical, const char *authority)
{
    struct tc_xds_name n;
    char *why = NULL;
    assert_true(tc_xds_name_parse(&kit_xds_cds, tc_slice_str(text), &n, &why));
    assert_string_equal(tc_rstr_cstr(n.text), canonical);
    assert_int_equal(n.federated, authority != NULL);
    if (authority)
        assert_string_equal(tc_rstr_cstr(n.authority), authority);
    tc_xds_name_fini(&n);
}

/* reason: a part of the expected error text. */
static void assert_refused(const char *text, const char *reason)
{
    struct tc_xds_name n;
    char *why = NULL;
    assert_false(tc_xds_name_parse(&kit_xds_cds, tc_slice_str(text), &n, &why));
    assert_non_null(strstr(why, reason));
    tc_free(why);
}

static void canonical_forms(void **state)
{
    (void)state;
    assert_name("plain/name?b=2&a=1", "plain/name?b=2&a=1", NULL);
    assert_name("", "", NULL);
    assert_name("**", "**", NULL);
    assert_name("xdstp://a/" CLUSTER "/x/y", "xdstp://a/" CLUSTER "/x/y", "a");
    assert_name("xdstp://a/" CLUSTER "/x?b=2&a=1#part", "xdstp://a/" CLUSTER "/x?a=1&b=2", "a");
    assert_name("xdstp://a/" CLUSTER "/x?ab=1&a=2&c", "xdstp://a/" CLUSTER "/x?a=2&ab=1&c=", "a");
    assert_name("xdstp://a/" CLUSTER "/x?b=2&a=3&b=1&a=3", "xdstp://a/" CLUSTER "/x?a=3&b=1", "a");
    assert_name("xdstp://a/" CLUSTER "/%78%20%5B", "xdstp://a/" CLUSTER "/x%20%5B", "a");
    assert_name("xdstp:/" CLUSTER "/x", "xdstp:///" CLUSTER "/x", "");
    assert_name("xdstp:///" CLUSTER "/x", "xdstp:///" CLUSTER "/x", "");
    assert_name("xdstp://%61.b/" CLUSTER "/", "xdstp://a.b/" CLUSTER "/", "a.b");
    assert_refused("xdstp://a/envoy.config.listener.v3.Listener/x", "does not begin with the resource type");
    assert_refused("xdstp://a", "does not begin with the resource type");
    assert_refused("xdstp:", "does not begin with the resource type");
    assert_refused("*", "resource name \"*\": is the wildcard");
    assert_refused("xdstp://a/" CLUSTER "/%zz", "its path has an invalid escape");
    assert_refused("xdstp://%/" CLUSTER "/x", "its authority has an invalid escape");
    assert_refused("xdstp://a/" CLUSTER "/x?a=%1", "its query has an invalid escape");
}

#define BOOTSTRAP                                                                                                      \
    "{\"xds_servers\": [{\"server_uri\": \"s1\"}], \"node\": {\"id\": \"node1\"}, \"authorities\": {\"a\": {},"        \
    " \"b\": {\"xds_servers\": [{\"server_uri\": \"s2\"}]}}}"

static void order_of_parameters(void **state)
{
    TC_CASE(AD10);
    (void)state;
    struct kit_xds k;
    struct kit_xds_watcher w, v;
    kit_xds_init(&k, BOOTSTRAP);
    kit_xds_watcher_init(&w);
    kit_xds_watcher_init(&v);
    kit_xds_watch(&k, &kit_xds_cds, "xdstp://a/" CLUSTER "/x?a=1&b=2", &w);
    kit_xds_watch(&k, &kit_xds_cds, "xdstp://a/" CLUSTER "/x?b=2&a=1", &v);
    tc_loop_drain(k.loop);
    assert_string_equal(kit_xds_request(&k, k.server), "Cluster [xdstp://a/" CLUSTER "/x?a=1&b=2] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "xdstp://a/" CLUSTER "/x?b=2&a=1|v", NULL);
    assert_string_equal(kit_xds_told(&w), "value v;");
    assert_string_equal(kit_xds_told(&v), "value v;");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "xdstp://a/other/x|v", NULL);
    assert_string_equal(kit_xds_request(&k, k.server), "Cluster [xdstp://a/" CLUSTER "/x?a=1&b=2] \"1\" \"n1\"");
    assert_non_null(strstr(kit_xds_request(&k, k.server), "NACK 3 resource index 0: Cluster \"xdstp://a/other/x\""));
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&w);
    kit_xds_watcher_fini(&v);
}

static void authorities_have_their_servers(void **state)
{
    (void)state;
    struct kit_xds k;
    struct kit_xds_watcher top, a, b, nobody;
    kit_xds_init(&k, BOOTSTRAP);
    kit_xds_watcher_init(&top);
    kit_xds_watcher_init(&a);
    kit_xds_watcher_init(&b);
    kit_xds_watcher_init(&nobody);
    struct fake_xds_server *s2 = fake_xds_server(k.fake, "s2");
    kit_xds_watch(&k, &kit_xds_cds, "plain", &top);
    kit_xds_watch(&k, &kit_xds_cds, "xdstp://a/" CLUSTER "/x", &a);
    kit_xds_watch(&k, &kit_xds_cds, "xdstp://b/" CLUSTER "/x", &b);
    kit_xds_watch(&k, &kit_xds_cds, "xdstp://nobody/" CLUSTER "/x", &nobody);
    tc_loop_drain(k.loop);
    /* Authorities with equal servers share one stream. */
    assert_string_equal(kit_xds_request(&k, k.server), "Cluster [plain,xdstp://a/" CLUSTER "/x] \"\" \"\" node");
    assert_string_equal(kit_xds_request(&k, s2), "Cluster [xdstp://b/" CLUSTER "/x] \"\" \"\" node");
    assert_string_equal(kit_xds_told(&nobody),
                        "error authority \"nobody\" is not in the xDS bootstrap (node ID:node1);");
    assert_int_equal(nobody.last_code, TORC_STATUS_UNAVAILABLE);
    /* A resource counts only if it is from a server of its name's authority. */
    kit_xds_respond(&k, s2, &kit_xds_cds, "1", "n1", "plain|evil", "xdstp://nobody/" CLUSTER "/x|v",
                    "xdstp://b/" CLUSTER "/x|v", NULL);
    assert_string_equal(kit_xds_told(&b), "value v;");
    assert_string_equal(kit_xds_told(&top), "");
    assert_string_equal(kit_xds_told(&nobody), "");
    /* When no watched name needs a server, the channel to that server closes. */
    kit_xds_unwatch(&k, &b);
    kit_xds_unwatch(&k, &nobody);
    kit_xds_unwatch(&k, &a);
    tc_loop_drain(k.loop);
    assert_false(s2->open);
    assert_true(k.server->open);
    assert_string_equal(kit_xds_request(&k, k.server), "Cluster [plain] \"\" \"\"");
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&top);
    kit_xds_watcher_fini(&a);
    kit_xds_watcher_fini(&b);
    kit_xds_watcher_fini(&nobody);
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
