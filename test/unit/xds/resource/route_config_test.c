/* RouteConfigurations: domains, matches, actions, overrides, limits, the errors of refused ones, and how a request
 * finds its virtual host, its route and its weighted cluster.
 *
 * Each test decodes resources from proto3 JSON, in which ' stands for " (kits/resource.h). valid() and refused() decode
 * with the registries of the process, and without a bootstrap. Some tests of limits, budgets and trust make a decode
 * context of their own. Virtual hosts and routes are borrowed from the resource, which the test unrefs. */
#include "xds/resource/registry.h"
#include "xds/resource/route_config.h"
#include "xds/resource/route_match.h"

#include <time.h>

#include <torc/status.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/resource.h"

#include "base/mem.h"

#define CONFIG(vhosts) "{'name':'rc','virtual_hosts':[" vhosts "]}"
#define VHOST(routes) CONFIG("{'domains':['*'],'routes':[" routes "]}")
#define ROUTE(match, action) VHOST("{'match':{" match "},'route':{" action "}}")
#define ACTION(action) ROUTE("'prefix':''", action)
#define AT "field virtual_hosts[0].routes[0]"

static struct tc_xds_resource *valid(const char *json)
{
    return kit_resource_valid(&tc_route_config_type, NULL, json);
}

static void refused(const char *json, const char *fault)
{
    kit_resource_refused(&tc_route_config_type, NULL, json, fault);
}

/* Returns the route of the first virtual host, which must have one route. */
static const struct tc_route *route_of(const struct tc_xds_resource *r)
{
    assert_int_equal(tc_route_config_of(r)->table.vhosts[0].n_routes, 1);
    return &tc_route_config_of(r)->table.vhosts[0].routes[0];
}

static void domains_are_checked(void **state)
{
    TC_CASE(LR09);
    (void)state;
    refused("{}", "field name: must be non-empty");
    refused(CONFIG("{}"), "field virtual_hosts[0].domains: must be non-empty");
    refused(CONFIG("{'domains':['a','']}"), "field virtual_hosts[0].domains[1]: invalid domain pattern \"\"");
    refused(CONFIG("{'domains':['a*b']}"), "invalid domain pattern \"a*b\"");
    refused(CONFIG("{'domains':['**']}"), "invalid domain pattern \"**\"");
    refused(CONFIG("{'domains':['*a*']}"), "invalid domain pattern \"*a*\"");
}

static const char *found(const struct tc_xds_resource *r, const char *authority)
{
    const struct tc_virtual_host *v = tc_route_table_find(&tc_route_config_of(r)->table, tc_slice_str(authority));
    return v ? v->name.data : "none";
}

static void domains_match_by_rank(void **state)
{
    TC_CASE(LR10);
    (void)state;
    struct tc_xds_resource *r = valid(CONFIG("{'name':'any','domains':['*']},{'name':'prefix','domains':['a.*']},"
                                             "{'name':'longer prefix','domains':['a.b.*']},"
                                             "{'name':'suffix','domains':['*.Example']},"
                                             "{'name':'longer suffix','domains':['*.c.example']},"
                                             "{'name':'exact','domains':['x','a.b.c.EXAMPLE']}"));
    assert_string_equal(found(r, "a.b.c.example"), "exact");
    assert_string_equal(found(r, "A.B.C.Example"), "exact");
    assert_string_equal(found(r, "a.x.c.example"), "longer suffix");
    assert_string_equal(found(r, "a.b.example"), "suffix");
    assert_string_equal(found(r, "a.b.q"), "longer prefix");
    assert_string_equal(found(r, "A.q"), "prefix");
    assert_string_equal(found(r, "a."), "any");
    assert_string_equal(found(r, "q"), "any");
    tc_xds_resource_unref(r);
    r = valid(CONFIG("{'name':'exact','domains':['x']}"));
    assert_string_equal(found(r, "y"), "none");
    tc_xds_resource_unref(r);
}

/* Asserts that the configuration is valid and its first virtual host has n routes. */
static void assert_routes(const char *json, size_t n)
{
    struct tc_xds_resource *r = valid(json);
    assert_int_equal(tc_route_config_of(r)->table.vhosts[0].n_routes, n);
    tc_xds_resource_unref(r);
}

static void matches_are_checked(void **state)
{
    TC_CASE(LR11);
    TC_CASE(LR12);
    (void)state;
    refused(VHOST("{'route':{'cluster':'c'}}"), AT ".match: field not present");
    refused(ROUTE("", "'cluster':'c'"), AT ".match: invalid path specifier");
    refused(ROUTE("'path_separated_prefix':'/a'", "'cluster':'c'"), "invalid path specifier");
    assert_routes(ROUTE("'prefix':'','query_parameters':[{'name':'q'}]", "'cluster':'c'"), 0);
    assert_routes(ROUTE("'prefix':'grpc'", "'cluster':'c'"), 0);
    assert_routes(ROUTE("'prefix':'//x'", "'cluster':'c'"), 0);
    assert_routes(ROUTE("'prefix':'/a/b/c'", "'cluster':'c'"), 0);
    assert_routes(ROUTE("'prefix':''", "'cluster':'c'"), 1);
    assert_routes(ROUTE("'prefix':'/'", "'cluster':'c'"), 1);
    assert_routes(ROUTE("'prefix':'/a'", "'cluster':'c'"), 1);
    assert_routes(ROUTE("'prefix':'/a/b'", "'cluster':'c'"), 1);
    assert_routes(ROUTE("'path':''", "'cluster':'c'"), 0);
    assert_routes(ROUTE("'path':'/a'", "'cluster':'c'"), 0);
    assert_routes(ROUTE("'path':'//b'", "'cluster':'c'"), 0);
    assert_routes(ROUTE("'path':'/a/'", "'cluster':'c'"), 0);
    assert_routes(ROUTE("'path':'/a/b/c'", "'cluster':'c'"), 0);
    assert_routes(ROUTE("'path':'/a/b'", "'cluster':'c'"), 1);
    refused(ROUTE("'safe_regex':{'regex':'['}", "'cluster':'c'"),
            AT ".match.safe_regex.regex: errors compiling regex:");
    refused(ROUTE("'safe_regex':{}", "'cluster':'c'"), AT ".match.safe_regex.regex: must be non-empty");
    refused(ROUTE("'prefix':'','headers':[{'name':'k','safe_regex_match':{'regex':'['}}]", "'cluster':'c'"),
            AT ".match.headers[0].safe_regex_match.regex: errors compiling regex:");
}

static bool path_matches(const char *match, const char *path)
{
    struct tc_headers none = {0};
    char *json = tc_asprintf(ROUTE("%s", "'cluster':'c'"), match);
    struct tc_xds_resource *r = valid(json);
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    bool matches = tc_route_match(route_of(r), tc_slice_str(path), &none, 0, &steps);
    tc_xds_resource_unref(r);
    tc_free(json);
    return matches;
}

static void paths_match(void **state)
{
    TC_CASE(LR13);
    (void)state;
    assert_true(path_matches("'prefix':'/a'", "/ab/m"));
    assert_false(path_matches("'prefix':'/a'", "/Ab/m"));
    assert_true(path_matches("'prefix':'/a','case_sensitive':false", "/Ab/m"));
    assert_true(path_matches("'path':'/a/m'", "/a/m"));
    assert_false(path_matches("'path':'/a/m'", "/a/mm"));
    assert_true(path_matches("'path':'/a/m','case_sensitive':false", "/A/M"));
    assert_true(path_matches("'safe_regex':{'regex':'/a/.+'}", "/a/m"));
    assert_false(path_matches("'safe_regex':{'regex':'/a'}", "/a/m"));
}

static void retry_policies(void **state)
{
    TC_CASE(LR18);
    (void)state;
#define RETRY(more) ACTION("'cluster':'c','retry_policy':{" more "}")
    refused(RETRY("'num_retries':0"), AT ".route.retry_policy.num_retries: must be greater than 0");
    refused(RETRY("'retry_back_off':{}"), "retry_policy.retry_back_off.base_interval: field not present");
    refused(RETRY("'retry_back_off':{'base_interval':'0s'}"), "base_interval: must be greater than zero");
    refused(RETRY("'retry_back_off':{'base_interval':'2s','max_interval':'1s'}"),
            "max_interval: must not be less than base_interval");
    struct tc_xds_resource *r = valid(RETRY("'retry_on':'unavailable, cancelled,5xx','num_retries':3"));
    const struct tc_route_retry *p = route_of(r)->retry;
    assert_int_equal(p->retry_on, (1u << TORC_STATUS_UNAVAILABLE) | (1u << TORC_STATUS_CANCELLED));
    assert_int_equal(p->num_retries, 3);
    assert_int_equal(p->base_interval_ms, 25);
    assert_int_equal(p->max_interval_ms, 250);
    tc_xds_resource_unref(r);
    r = valid(RETRY("'retry_on':'internal','retry_back_off':{'base_interval':'0.0001s'}"));
    assert_int_equal(route_of(r)->retry->num_retries, 1);
    assert_int_equal(route_of(r)->retry->base_interval_ms, 1);
    assert_int_equal(route_of(r)->retry->max_interval_ms, 10);
    tc_xds_resource_unref(r);
    /* A route's own policy counts before its virtual host's. */
    r = valid(CONFIG("{'domains':['*'],'retry_policy':{'num_retries':9},'routes':["
                     "{'match':{'prefix':''},'route':{'cluster':'c','retry_policy':{'num_retries':2}}},"
                     "{'match':{'prefix':''},'route':{'cluster':'c'}}]}"));
    const struct tc_virtual_host *v = &tc_route_config_of(r)->table.vhosts[0];
    assert_int_equal(v->routes[0].retry->num_retries, 2);
    assert_int_equal(v->routes[1].retry->num_retries, 9);
    tc_xds_resource_unref(r);
    refused(CONFIG("{'domains':['*'],'retry_policy':{'num_retries':0}}"),
            "field virtual_hosts[0].retry_policy.num_retries: must be greater than 0");
}

static void durations_of_streams(void **state)
{
    (void)state;
    struct tc_xds_resource *r = valid(
        ACTION("'cluster':'c','max_stream_duration':{'max_stream_duration':'2s','grpc_timeout_header_max':'1.5s'}"));
    assert_true(route_of(r)->has_max_stream_duration);
    assert_int_equal(route_of(r)->max_stream_duration_ns, 1500000000);
    tc_xds_resource_unref(r);
    r = valid(ACTION("'cluster':'c','max_stream_duration':{'max_stream_duration':'0s'}"));
    assert_true(route_of(r)->has_max_stream_duration);
    assert_int_equal(route_of(r)->max_stream_duration_ns, 0);
    tc_xds_resource_unref(r);
    r = valid(ACTION("'cluster':'c','max_stream_duration':{}"));
    assert_false(route_of(r)->has_max_stream_duration);
    tc_xds_resource_unref(r);
    r = valid(ACTION("'cluster':'c','max_stream_duration':{'max_stream_duration':'315576000000s'}"));
    assert_true(route_of(r)->max_stream_duration_ns == INT64_MAX);
    tc_xds_resource_unref(r);
    refused(ACTION("'cluster':'c','max_stream_duration':{'max_stream_duration':'-1s'}"),
            AT ".route.max_stream_duration.max_stream_duration.seconds: value must be in the range");
}

static void actions_are_checked(void **state)
{
    TC_CASE(LR16);
    (void)state;
    refused(ACTION("'cluster':''"), AT ".route.cluster: must be non-empty");
    assert_routes(ACTION("'cluster_header':'x'"), 0);
    assert_routes(ACTION(""), 0);
    struct tc_xds_resource *r = valid(VHOST("{'match':{'prefix':''},'redirect':{}},{'match':{'prefix':''}},"
                                            "{'match':{'prefix':''},'non_forwarding_action':{}}"));
    const struct tc_virtual_host *v = &tc_route_config_of(r)->table.vhosts[0];
    assert_int_equal(v->n_routes, 3);
    assert_int_equal(v->routes[0].kind, TC_ROUTE_UNSUPPORTED);
    assert_int_equal(v->routes[1].kind, TC_ROUTE_UNSUPPORTED);
    assert_int_equal(v->routes[2].kind, TC_ROUTE_NON_FORWARDING);
    tc_xds_resource_unref(r);
}

/* --- cluster specifier plugins --- */

#define PLUGIN(name, more) "{'extension':{'name':'" name "'" more "}"
#define TYPED ",'typed_config':{'@type':'type.googleapis.com/envoy.config.cluster.v3.Cluster'}}"
#define BY_PLUGIN(name) "{'match':{'prefix':''},'route':{'cluster_specifier_plugin':'" name "'}}"
#define PLUGINS(plugins, routes)                                                                                       \
    "{'name':'rc','cluster_specifier_plugins':[" plugins "],'virtual_hosts':[{'domains':['*'],'routes':[" routes "]}]" \
    "}"
#define PLUGIN_AT(i) "field cluster_specifier_plugins[" i "].extension"

static void plugins_are_refused_unless_optional(void **state)
{
    TC_CASE(LR24);
    (void)state;
    static const struct {
        const char *json, *fault;
    } bad[] = {
        {ACTION("'cluster_specifier_plugin':'x'"),
         AT ".route.cluster_specifier_plugin: unknown cluster specifier plugin name \"x\""},
        {PLUGINS(PLUGIN("rls", TYPED), ""), PLUGIN_AT("0") ".typed_config: unsupported cluster specifier plugin type "
                                                           "envoy.config.cluster.v3.Cluster of plugin \"rls\""},
        {PLUGINS(PLUGIN("b", TYPED ",'is_optional':true") "," PLUGIN("a", TYPED ",'is_optional':false"), ""),
         PLUGIN_AT("1") ".typed_config: unsupported cluster specifier plugin type envoy.config.cluster.v3.Cluster of "
                        "plugin \"a\""},
        {PLUGINS("{'is_optional':true}", ""), PLUGIN_AT("0") ": field not present"},
        {PLUGINS(PLUGIN("x", "},'is_optional':true"), ""), PLUGIN_AT("0") ".typed_config: field not present"},
        {PLUGINS(PLUGIN("", TYPED ",'is_optional':true"), ""), PLUGIN_AT("0") ".name: must be non-empty"},
        {PLUGINS(PLUGIN("x", TYPED ",'is_optional':true"), BY_PLUGIN("y")), "plugin name \"y\""},
        {PLUGINS("", BY_PLUGIN("")), "plugin name \"\""},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++)
        refused(bad[i].json, bad[i].fault);
}

static void routes_of_optional_plugins_are_left_out(void **state)
{
    TC_CASE(LR24);
    (void)state;
    struct tc_xds_resource *r = valid(
        PLUGINS(PLUGIN("z", TYPED ",'is_optional':true") "," PLUGIN("a", TYPED ",'is_optional':true") "," PLUGIN(
                    "z", TYPED ",'is_optional':true"),
                BY_PLUGIN("z") "," BY_PLUGIN("a") ",{'match':{'prefix':''},'route':{'cluster':'c'}}," BY_PLUGIN("z")));
    assert_string_equal(route_of(r)->cluster->data, "c");
    tc_xds_resource_unref(r);
}

/* Each route's plugin name is searched for in the sorted plugins: comparing each name with every plugin's would be 400
 * million comparisons, and take seconds. */
static void many_plugins_and_routes(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "{'name':'rc','cluster_specifier_plugins':[");
    for (int i = 0; i < N; i++)
        tc_buf_printf(&b, "%s" PLUGIN("a common beginning of names %d", TYPED ",'is_optional':true"), i ? "," : "", i);
    tc_buf_append_str(&b, "],'virtual_hosts':[{'domains':['*'],'routes':[");
    for (int i = 0; i < N; i++)
        tc_buf_printf(&b, "%s" BY_PLUGIN("a common beginning of names"), i ? "," : "");
    tc_buf_append_str(&b, "]}]}");
    struct tc_buf bytes = kit_resource_message("envoy.config.route.v3.RouteConfiguration", tc_buf_cstr(&b));
    struct tc_validation_errors f = {.max_text_bytes = 1024};
    struct tc_rstr *name = NULL;
    clock_t before = clock();
    assert_null(tc_route_config_type.decode(&tc_route_config_type, NULL, tc_buf_slice(&bytes), &name, &f));
    assert_true(clock() - before < CLOCKS_PER_SEC);
    assert_int_equal(f.count, N);
    tc_validation_fini(&f);
    tc_rstr_unref(name);
    tc_buf_fini(&bytes);
    tc_buf_fini(&b);
}

#define WEIGHTED(clusters) ACTION("'weighted_clusters':{'clusters':[" clusters "]}")

static void weighted_clusters(void **state)
{
    TC_CASE(LR17);
    (void)state;
    refused(WEIGHTED("{'name':'a','weight':0}"), AT ".route.weighted_clusters: no valid clusters specified");
    refused(WEIGHTED("{'name':'','weight':1}"), "clusters[0].name: must be non-empty");
    refused(WEIGHTED("{'name':'a'}"), "clusters[0].weight: field not present");
    refused(WEIGHTED("{'name':'a','weight':4294967295},{'name':'b','weight':1}"),
            "sum of cluster weights exceeds uint32 max");
    struct tc_xds_resource *r =
        valid(WEIGHTED("{'name':'a','weight':25},{'name':'z','weight':0},{'name':'b','weight':75}"));
    const struct tc_route *route = route_of(r);
    assert_int_equal(route->kind, TC_ROUTE_WEIGHTED);
    assert_int_equal(route->n_weighted, 2);
    size_t a = 0;
    for (uint64_t i = 0; i < 1000; i++)
        a += tc_route_weighted_pick(route, i)->name->data[0] == 'a';
    assert_int_equal(a, 250);
    tc_xds_resource_unref(r);
}

static void hash_policies(void **state)
{
    TC_CASE(HP09);
    TC_CASE(HP10);
    TC_CASE(HP11);
    (void)state;
#define HASH(policies) ACTION("'cluster':'c','hash_policy':[" policies "]")
    refused(HASH("{'header':{}}"), AT ".route.hash_policy[0].header.header_name: must be non-empty");
    refused(HASH("{'header':{'header_name':'k','regex_rewrite':{}}}"),
            "hash_policy[0].header.regex_rewrite.pattern: field not present");
    refused(HASH("{'header':{'header_name':'k','regex_rewrite':{'pattern':{}}}}"), "pattern.regex: must be non-empty");
    refused(HASH("{'header':{'header_name':'k','regex_rewrite':{'pattern':{'regex':'['}}}}"),
            "pattern.regex: errors compiling regex: ");
    refused(HASH("{'header':{'header_name':'k','regex_rewrite':{'pattern':{'regex':'a'},'substitution':'\\\\1'}}}"),
            "regex_rewrite.substitution: ");
    char *config = tc_asprintf(
        HASH("{'header':{'header_name':'k','regex_rewrite':{'pattern':{'regex':'a'},'substitution':'%05000d'}}}"), 0);
    refused(config, "regex_rewrite.substitution: substitution of 5000 bytes is longer than 4096");
    tc_free(config);
    struct tc_buf many = {0};
    for (int i = 0; i < 1025; i++)
        tc_buf_printf(&many, "%s{'filter_state':{'key':'io.grpc.channel_id'}}", i ? "," : "");
    config = tc_asprintf(HASH("%s"), tc_buf_cstr(&many));
    refused(config, "route.hash_policy: 1025 hash policies, more than 1024");
    tc_free(config);
    tc_buf_fini(&many);
    struct tc_xds_resource *r =
        valid(HASH("{'filter_state':{'key':'unknown'}},{'cookie':{'name':'x'}},"
                   "{'connection_properties':{'source_ip':true}},{'query_parameter':{'name':'q'}},"
                   "{'header':{'header_name':'K'},'terminal':true},"
                   "{'filter_state':{'key':'io.grpc.channel_id'}}"));
    const struct tc_route *route = route_of(r);
    assert_int_equal(route->n_hash_policies, 2);
    assert_int_equal(route->hash_policies[0].kind, TC_HASH_HEADER);
    assert_true(tc_slice_eq_str(route->hash_policies[0].header, "k"));
    assert_true(route->hash_policies[0].terminal);
    assert_int_equal(route->hash_policies[1].kind, TC_HASH_CHANNEL_ID);
    tc_xds_resource_unref(r);
    /* A terminal policy of an unsupported kind is kept: it ends the walk if there is a hash by then. */
    static const char *const unsupported[] = {"'cookie':{'name':'x'}", "'connection_properties':{'source_ip':true}",
                                              "'query_parameter':{'name':'q'}", "'filter_state':{'key':'unknown'}"};
    for (size_t i = 0; i < TC_ARRAY_LEN(unsupported); i++) {
        config = tc_asprintf(HASH("{'header':{'header_name':'a'}},{%s,'terminal':true},{'header':{'header_name':'b'}}"),
                             unsupported[i]);
        r = valid(config);
        assert_int_equal(route_of(r)->n_hash_policies, 3);
        assert_int_equal(route_of(r)->hash_policies[1].kind, TC_HASH_NOTHING);
        assert_true(route_of(r)->hash_policies[1].terminal);
        tc_xds_resource_unref(r);
        tc_free(config);
    }
}

static void authority_rewriting_needs_trust(void **state)
{
    (void)state;
    struct tc_xds_server server = {.trusted_xds_server = false};
    struct tc_xds_decode_context ctx = {.server = &server};
    const char *json = ACTION("'cluster':'c','auto_host_rewrite':true");
    struct tc_xds_resource *r = kit_resource_valid(&tc_route_config_type, &ctx, json);
    assert_false(route_of(r)->auto_host_rewrite);
    server.trusted_xds_server = true;
    struct tc_xds_resource *trusted = kit_resource_valid(&tc_route_config_type, &ctx, json);
    assert_true(route_of(trusted)->auto_host_rewrite);
    /* The same bytes are another resource when a server of other trust sends them. */
    assert_false(tc_route_config_type.equal(r, trusted));
    assert_true(tc_route_config_type.equal(trusted, trusted));
    tc_xds_resource_unref(trusted);
    tc_xds_resource_unref(r);
}

static void first_match_counts(void **state)
{
    (void)state;
    uint64_t steps = TC_REGEX_MATCH_STEPS;
    struct tc_headers none = {0};
    struct tc_xds_resource *r = valid(VHOST("{'name':'one','match':{'path':'/s/m'},'route':{'cluster':'a'}},"
                                            "{'name':'two','match':{'prefix':'/s/'},'route':{'cluster':'b'}}"));
    const struct tc_virtual_host *v = &tc_route_config_of(r)->table.vhosts[0];
    assert_string_equal(tc_virtual_host_route(v, tc_slice_str("/s/m"), &none, NULL, &steps)->cluster->data, "a");
    const struct tc_route *two = tc_virtual_host_route(v, tc_slice_str("/s/n"), &none, NULL, &steps);
    assert_string_equal(two->cluster->data, "b");
    assert_true(tc_slice_eq_str(two->name, "two"));
    assert_null(tc_virtual_host_route(v, tc_slice_str("/t/n"), &none, NULL, &steps));
    struct tc_buf text = {0};
    tc_route_format(two, &text);
    assert_string_equal(tc_buf_cstr(&text), "prefix \"/s/\"");
    tc_buf_fini(&text);
    tc_xds_resource_unref(r);
}

static void caps_hold(void **state)
{
    (void)state;
    struct tc_xds_registries reg;
    tc_xds_registries_init(&reg);
    assert_int_equal(reg.limits.vhosts, 65536);
    assert_int_equal(reg.limits.routes, 65536);
    assert_int_equal(reg.limits.regexes_bytes, 16 << 20);
    assert_int_equal(TC_REGEX_MEMORY_MAX_BYTES, 8 << 20);
    reg.limits.vhosts = 2;
    reg.limits.routes = 2;
    reg.limits.regex.pattern_bytes = 3;
    struct tc_xds_decode_context ctx = {.registries = &reg};
#define V(routes) "{'domains':['*'],'routes':[" routes "]}"
#define R "{'match':{'prefix':''}}"
    tc_xds_resource_unref(kit_resource_valid(&tc_route_config_type, &ctx, CONFIG(V(R) "," V(R))));
    kit_resource_refused(&tc_route_config_type, &ctx, CONFIG(V("") "," V("") "," V("")),
                         "field virtual_hosts: 3 virtual hosts, more than 2");
    kit_resource_refused(&tc_route_config_type, &ctx, CONFIG(V(R) "," V(R "," R)),
                         "field virtual_hosts: 3 routes, more than 2");
    kit_resource_refused(&tc_route_config_type, &ctx, ROUTE("'safe_regex':{'regex':'abcd'}", "'cluster':'c'"),
                         "longer than 3");
    reg.limits.regex.pattern_bytes = 0;
    reg.limits.regexes_bytes = 1024;
    kit_resource_refused(
        &tc_route_config_type, &ctx,
        VHOST("{'match':{'safe_regex':{'regex':'a'}}},{'match':{'safe_regex':{'regex':'b'}}}"),
        "routes[1].match.safe_regex: the regexes of the response take more than regexes_total_bytes, 1024");
}

/* 20,000 routes are within the default budget of memory. The bootstrap's decode_bytes can be lower. */
static void decoding_has_a_budget(void **state)
{
    (void)state;
    struct tc_xds_bootstrap b = {0};
    struct tc_xds_decode_context ctx = {.bootstrap = &b};
    struct tc_buf routes = {0};
    for (int i = 0; i < 20000; i++)
        tc_buf_printf(&routes, "%s{'match':{'prefix':'/svc.S%05d/'},'route':{'cluster':'cluster-%05d'}}", i ? "," : "",
                      i, i);
    char *config = tc_asprintf(VHOST("%s"), tc_buf_cstr(&routes));
    tc_xds_resource_unref(kit_resource_valid(&tc_route_config_type, &ctx, config));
    b.limits.decode_bytes = 4 << 20;
    kit_resource_refused(&tc_route_config_type, &ctx, config, "needs more than 4194304 bytes of memory");
    tc_free(config);
    tc_buf_fini(&routes);
}

#define REGEX(text) "{'match':{'safe_regex':{'regex':'" text "'}},'route':{'cluster':'c'}}"

/* A regex that is refused as too large costs as much as the largest valid one: two of them use up the default total. */
static void refused_regexes_are_charged(void **state)
{
    (void)state;
    const char *large = REGEX("(?:\\\\pL{30}){30}N");
    struct tc_buf routes = {0};
    for (int i = 0; i < 3; i++)
        tc_buf_printf(&routes, "%s%s", i ? "," : "", large);
    char *config = tc_asprintf(VHOST("%s"), tc_buf_cstr(&routes));
    refused(config, "routes[1].match.safe_regex.regex: errors compiling regex: pattern too large");
    refused(config,
            "routes[2].match.safe_regex: the regexes of the response take more than regexes_total_bytes, 16777216");
    tc_free(config);
    tc_buf_fini(&routes);
}

/* All resources of a response share one budget for regexes. */
static void regexes_of_a_response_share_a_budget(void **state)
{
    (void)state;
    size_t taken = 0;
    struct tc_xds_decode_context ctx = {.regex_bytes = &taken};
    const char *good = VHOST(REGEX("/a/.+")), *large = VHOST(REGEX("(?:\\\\pL{30}){30}N"));
    tc_xds_resource_unref(kit_resource_valid(&tc_route_config_type, &ctx, good));
    assert_in_range(taken, 1024, 2048);
    kit_resource_refused(&tc_route_config_type, &ctx, large, "pattern too large");
    tc_xds_resource_unref(kit_resource_valid(&tc_route_config_type, &ctx, good));
    kit_resource_refused(&tc_route_config_type, &ctx, large, "pattern too large");
    kit_resource_refused(&tc_route_config_type, &ctx, good,
                         "the regexes of the response take more than regexes_total_bytes");
    taken = 0; /* the next response */
    tc_xds_resource_unref(kit_resource_valid(&tc_route_config_type, &ctx, good));
}

#define OVERRIDE(config)                                                                                               \
    VHOST("{'match':{'prefix':''},'route':{'cluster':'c'},'typed_per_filter_config':{'f':" config "}}")
#define ANY(type, more) "{'@type':'type.googleapis.com/" type "'" more "}"
#define OF(name) AT ".typed_per_filter_config[\"" name "\"]"

/* A39: overrides are read without looking at the listener's filters. */
static void filter_overrides(void **state)
{
    (void)state;
    struct tc_xds_resource *r = valid(OVERRIDE(ANY("envoy.extensions.filters.http.fault.v3.HTTPFault", "")));
    assert_int_equal(route_of(r)->overrides.n, 1);
    tc_xds_resource_unref(r);
    /* An override of a filter for servers is valid; it has no effect on a client. */
    r = valid(OVERRIDE(ANY("envoy.extensions.filters.http.rbac.v3.RBACPerRoute", ",'value':''")));
    tc_xds_resource_unref(r);
    refused(OVERRIDE(ANY("envoy.extensions.filters.http.rbac.v3.RBAC", ",'value':''")),
            OF("f") ": override must be of type envoy.extensions.filters.http.rbac.v3.RBACPerRoute");
    refused(OVERRIDE(ANY("envoy.extensions.filters.http.router.v3.Router", "")),
            OF("f") ": filter envoy.extensions.filters.http.router.v3.Router does not support config overrides");
    refused(OVERRIDE(ANY("no.such.Filter", ",'value':''")), OF("f") ": unsupported filter type no.such.Filter");
    refused(OVERRIDE(ANY("envoy.config.route.v3.FilterConfig", "")), OF("f") ".config: field not present");
    refused(OVERRIDE(ANY("envoy.extensions.filters.http.fault.v3.HTTPFault", ",'abort':{'grpcStatus':99}")),
            OF("f") ".abort.grpc_status: invalid gRPC status code: 99");
    r = valid(OVERRIDE(ANY("envoy.config.route.v3.FilterConfig", ",'disabled':true")));
    assert_true(route_of(r)->overrides.at[0].disabled);
    tc_xds_resource_unref(r);
    r = valid(OVERRIDE(ANY("envoy.config.route.v3.FilterConfig",
                           ",'isOptional':true,'config':" ANY("no.such.Filter", ",'value':''"))));
    assert_int_equal(route_of(r)->overrides.n, 0);
    tc_xds_resource_unref(r);
    refused(OVERRIDE(ANY("xds.type.v3.TypedStruct", ",'typeUrl':'nothing','value':{}")),
            OF("f") ".type_url: invalid value \"nothing\"");
    refused(OVERRIDE(ANY("xds.type.v3.TypedStruct",
                         ",'typeUrl':'x/envoy.extensions.filters.http.fault.v3.HTTPFault','value':{'abort':7}")),
            OF("f") ".value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(domains_are_checked),
        cmocka_unit_test(domains_match_by_rank),
        cmocka_unit_test(matches_are_checked),
        cmocka_unit_test(paths_match),
        cmocka_unit_test(retry_policies),
        cmocka_unit_test(durations_of_streams),
        cmocka_unit_test(actions_are_checked),
        cmocka_unit_test(plugins_are_refused_unless_optional),
        cmocka_unit_test(routes_of_optional_plugins_are_left_out),
        cmocka_unit_test(many_plugins_and_routes),
        cmocka_unit_test(weighted_clusters),
        cmocka_unit_test(filter_overrides),
        cmocka_unit_test(hash_policies),
        cmocka_unit_test(authority_rewriting_needs_trust),
        cmocka_unit_test(first_match_counts),
        cmocka_unit_test(caps_hold),
        cmocka_unit_test(decoding_has_a_budget),
        cmocka_unit_test(refused_regexes_are_charged),
        cmocka_unit_test(regexes_of_a_response_share_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
