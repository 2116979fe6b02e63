/* Decoding of ClusterLoadAssignments and LbEndpointCollections: the values of valid ones, and the errors of refused
 * ones. The resources come from proto3 JSON (kits/resource). Only broken_collections and hostile_bytes_are_refused
 * decode bytes. */
#include "xds/resource/endpoints.h"
#include "xds/resource/registry.h"

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/resource.h"

#include "api/builtin.h"
#include "base/log.h"
#include "base/mem.h"
#include "xds/bootstrap/bootstrap.h"

#define ADDRESS(ip, port) "{'socket_address':{'address':'" ip "','port_value':" #port "}}"
#define ENDPOINT(port, more) "{'endpoint':{'address':" ADDRESS("127.0.0.1", port) "}" more "}"
#define LOCALITY(name, weight, more, endpoints)                                                                        \
    "{'locality':{'region':'r','zone':'z','sub_zone':'" name "'},'load_balancing_weight':" #weight more                \
    ",'lb_endpoints':[" endpoints "]}"
#define EDS(localities) "{'cluster_name':'c','endpoints':[" localities "]}"
#define DROPS(drops) "{'cluster_name':'c','policy':{'drop_overloads':[" drops "]}}"

static unsigned warnings;

static void count_warnings(enum torc_log_level level, const char *module, const char *message, void *arg)
{
    (void)module;
    warnings += level == TORC_LOG_WARN && strstr(message, arg) != NULL;
}

static struct tc_xds_resource *valid(const char *json)
{
    return kit_resource_valid(&tc_eds_type, NULL, json);
}

static void refused(const char *json, const char *fault)
{
    kit_resource_refused(&tc_eds_type, NULL, json, fault);
}

static void assert_addr(const struct tc_addr *a, const char *text)
{
    char *actual = tc_addr_text(a);
    assert_string_equal(actual, text);
    tc_free(actual);
}

static void localities_are_grouped_and_ordered(void **state)
{
    (void)state;
    struct tc_xds_resource *r = valid(EDS(LOCALITY("b", 2, "", ENDPOINT(2, "")) "," LOCALITY(
        "x", 7, ",'priority':1", ENDPOINT(3, "")) "," LOCALITY("a", 1, "", ENDPOINT(1, ",'load_balancing_weight':5"))));
    const struct tc_eds *eds = tc_eds_of(r);
    assert_string_equal(eds->name->data, "c");
    assert_int_equal(eds->n_priorities, 2);
    assert_int_equal(eds->priorities[0].n, 2);
    assert_string_equal(eds->priorities[0].localities[0].sub_zone->data, "a");
    assert_int_equal(eds->priorities[0].localities[0].weight, 1);
    assert_int_equal(eds->priorities[0].localities[0].endpoints[0].weight, 5);
    assert_string_equal(eds->priorities[0].localities[1].sub_zone->data, "b");
    assert_int_equal(eds->priorities[0].localities[1].endpoints[0].weight, 1);
    assert_addr(&eds->priorities[0].localities[1].endpoints[0].addrs[0], "127.0.0.1:2");
    assert_int_equal(eds->priorities[1].localities[0].weight, 7);
    struct tc_buf text = {0};
    tc_eds_locality_format(&eds->priorities[0].localities[0], &text);
    assert_string_equal(tc_buf_cstr(&text), "{region=\"r\", zone=\"z\", sub_zone=\"a\"}");
    tc_buf_fini(&text);
    tc_xds_resource_unref(r);
}

static void priorities_have_no_gaps(void **state)
{
    TC_CASE(ED01);
    (void)state;
    refused(EDS(LOCALITY("a", 1, ",'priority':1", "")), "field endpoints: priority 0 empty");
    refused(EDS(LOCALITY("a", 1, "", "") "," LOCALITY("a", 1, ",'priority':2", "")), "priority 1 empty");
}

static void localities_without_weight_are_left_out(void **state)
{
    TC_CASE(ED02);
    (void)state;
    struct tc_xds_resource *r =
        valid(EDS(LOCALITY("a", 0, "", ENDPOINT(1, "")) "," LOCALITY("b", 1, "", "") ",{'locality':{'region':'r'}}"));
    assert_int_equal(tc_eds_of(r)->n_priorities, 1);
    assert_int_equal(tc_eds_of(r)->priorities[0].n, 1);
    assert_string_equal(tc_eds_of(r)->priorities[0].localities[0].sub_zone->data, "b");
    tc_xds_resource_unref(r);
    refused(EDS(LOCALITY("a", 0, "", "") "," LOCALITY("a", 1, ",'priority':1", "")), "priority 0 empty");
}

static void localities_are_named_once(void **state)
{
    TC_CASE(ED03);
    TC_CASE(ED04);
    (void)state;
    refused(EDS("{'load_balancing_weight':1}"), "field endpoints[0].locality: field not present");
    refused(EDS(LOCALITY("a", 1, "", "") "," LOCALITY("a", 1, "", "")),
            "duplicate locality {region=\"r\", zone=\"z\", sub_zone=\"a\"} found in priority 0");
    tc_xds_resource_unref(valid(EDS(LOCALITY("a", 1, "", "") "," LOCALITY("a", 1, ",'priority':1", ""))));
}

static void weights_are_checked(void **state)
{
    TC_CASE(ED05);
    TC_CASE(ED07);
    TC_CASE(ED08);
    (void)state;
    refused(EDS(LOCALITY("a", 1, "", ENDPOINT(1, "") "," ENDPOINT(2, ",'load_balancing_weight':0"))),
            "field endpoints[0].lb_endpoints[1].load_balancing_weight: must be greater than 0");
    refused(EDS(LOCALITY("a", 4294967295, "", "") "," LOCALITY("b", 1, "", "")),
            "sum of locality weights for priority 0 exceeds uint32 max");
    struct tc_xds_resource *r = valid(EDS(LOCALITY("a", 4294967294, "", "") "," LOCALITY("b", 1, "", "")));
    assert_true(tc_eds_of(r)->priorities[0].localities[0].weight == 4294967294u);
    tc_xds_resource_unref(r);
    /* The sum of endpoint weights has no limit. */
    r = valid(EDS(LOCALITY("a", 1, "", ENDPOINT(1, ",'load_balancing_weight':4294967295") "," ENDPOINT(2, ""))));
    assert_true(tc_eds_of(r)->priorities[0].localities[0].endpoints[0].weight == 4294967295u);
    tc_xds_resource_unref(r);
}

static void addresses_are_unique(void **state)
{
    TC_CASE(ED06);
    (void)state;
    refused(EDS(LOCALITY("a", 1, "", ENDPOINT(1, "") "," ENDPOINT(1, ""))),
            "duplicate endpoint address \"127.0.0.1:1\"");
    refused(EDS(LOCALITY("a", 1, "", ENDPOINT(1, "")) "," LOCALITY("b", 1, "", ENDPOINT(1, ""))),
            "duplicate endpoint address");
    refused(EDS(LOCALITY("a", 1, "",
                         ENDPOINT(1, "") ",{'endpoint':{'address':" ADDRESS(
                             "::1", 1) ",'additional_addresses':[{'address':" ADDRESS("127.0.0.1", 1) "}]}}")),
            "duplicate endpoint address");
}

static void health_decides_who_stays(void **state)
{
    TC_CASE(ED09);
    (void)state;
    static const char *const statuses[] = {"'UNKNOWN'", "'HEALTHY'",  "'UNHEALTHY'", "'DRAINING'",
                                           "'TIMEOUT'", "'DEGRADED'", "99"};
    struct tc_buf endpoints = {0};
    for (size_t i = 0; i < TC_ARRAY_LEN(statuses); i++)
        tc_buf_printf(&endpoints,
                      "%s{'endpoint':{'address':{'socket_address':{'address':'127.0.0.1','port_value':%zu}}},"
                      "'health_status':%s}",
                      i ? "," : "", i + 1, statuses[i]);
    char *json = tc_asprintf(EDS(LOCALITY("a", 1, "", "%s")), tc_buf_cstr(&endpoints));
    struct tc_xds_resource *r = valid(json);
    tc_free(json);
    tc_buf_fini(&endpoints);
    const struct tc_eds_locality *l = &tc_eds_of(r)->priorities[0].localities[0];
    assert_int_equal(l->n, 3);
    assert_int_equal(l->endpoints[0].health, TC_EDS_UNKNOWN);
    assert_int_equal(l->endpoints[1].health, TC_EDS_HEALTHY);
    assert_int_equal(l->endpoints[2].health, TC_EDS_DRAINING);
    assert_addr(&l->endpoints[2].addrs[0], "127.0.0.1:4");
    tc_xds_resource_unref(r);
}

static void drops_are_checked(void **state)
{
    TC_CASE(ED10);
    (void)state;
    refused(DROPS("{'drop_percentage':{'numerator':1}}"),
            "field policy.drop_overloads[0].category: empty drop category name");
    refused(DROPS("{'category':'x'}"), "field policy.drop_overloads[0].drop_percentage: field not present");
    refused(DROPS("{'category':'x','drop_percentage':{'denominator':7}}"), "unknown denominator type");
}

static uint32_t drop(const char *json)
{
    struct tc_xds_resource *r = valid(json);
    assert_int_equal(tc_eds_of(r)->n_drops, 1);
    assert_string_equal(tc_eds_of(r)->drops[0].category->data, "x");
    uint32_t millionths = tc_eds_of(r)->drops[0].millionths;
    assert_int_equal(tc_eds_of(r)->drops_all, millionths == 1000000);
    tc_xds_resource_unref(r);
    return millionths;
}

#define DROP(n, d) DROPS("{'category':'x','drop_percentage':{'numerator':" #n ",'denominator':'" #d "'}}")

static void drops_are_millionths(void **state)
{
    TC_CASE(DP05);
    TC_CASE(ED11);
    (void)state;
    assert_int_equal(drop(DROP(10, HUNDRED)), 100000);
    assert_int_equal(drop(DROP(1000, TEN_THOUSAND)), 100000);
    assert_int_equal(drop(DROP(100000, MILLION)), 100000);
    assert_int_equal(drop(DROP(4295, MILLION)), 4295);
    assert_int_equal(drop(DROP(150, HUNDRED)), 1000000);
    assert_int_equal(drop(DROP(429497, HUNDRED)), 1000000);
    assert_int_equal(drop(DROP(4294967295, TEN_THOUSAND)), 1000000);
}

static void addresses_are_checked(void **state)
{
    TC_CASE(ED12);
    (void)state;
    refused(EDS(LOCALITY("a", 1, "", "{'endpoint':{'address':" ADDRESS("127.0.0.1", 65536) "}}")),
            "field endpoints[0].lb_endpoints[0].endpoint.address.socket_address.port_value: invalid port");
    refused(EDS(LOCALITY("a", 1, "", "{'endpoint':{'address':" ADDRESS("a.example", 1) "}}")),
            "\"a.example\" is not an IP address");
    refused(EDS(LOCALITY("a", 1, "", "{'endpoint':{'address':{}}}")),
            "endpoint.address.socket_address: field not present");
    refused(EDS(LOCALITY("a", 1, "", "{'endpoint':{'address':{'envoy_internal_address':{}}}}")),
            "endpoint.address.socket_address: field not present");
    refused(EDS(LOCALITY("a", 1, "", "{'endpoint':{}}")), "endpoint.address: field not present");
    refused(EDS(LOCALITY("a", 1, "", "{}")), "lb_endpoints[0].endpoint: field not present");
    refused(EDS(LOCALITY("a", 1, "", "{'endpoint':{'address':" ADDRESS("::1", 1) ",'additional_addresses':[{}]}}")),
            "additional_addresses[0].address: field not present");
}

static void endpoints_may_be_unix_sockets(void **state)
{
    (void)state;
#define PIPE(path) "{'endpoint':{'address':{'pipe':{'path':'" path "'}}}}"
    struct tc_xds_resource *r = valid(EDS(LOCALITY("a", 1, "", PIPE("/run/x") "," PIPE("@name") "," ENDPOINT(1, ""))));
    const struct tc_eds_endpoint *e = tc_eds_of(r)->priorities[0].localities[0].endpoints;
    assert_int_equal(tc_eds_of(r)->priorities[0].localities[0].n, 3);
    assert_addr(&e[0].addrs[0], "unix:/run/x");
    assert_addr(&e[1].addrs[0], "unix-abstract:name");
    tc_xds_resource_unref(r);
    refused(EDS(LOCALITY("a", 1, "", PIPE(""))), "endpoint.address.pipe.path: must be non-empty");
    refused(EDS(LOCALITY("a", 1, "", PIPE("@"))), "endpoint.address.pipe.path: must be non-empty");
    refused(EDS(LOCALITY("a", 1, "", PIPE("/x") "," PIPE("/x"))), "duplicate endpoint address \"unix:/x\"");
    char *json = tc_asprintf(EDS(LOCALITY("a", 1, "", PIPE("/%0200d"))), 0);
    refused(json, "endpoint.address.pipe.path: too long for a Unix socket");
    tc_free(json);
}

/* An endpoint is left out, with a warning, if one of its addresses has no port. The endpoints beside it stay. */
static void endpoints_without_port_are_left_out(void **state)
{
    (void)state;
#define PORT(more) "{'endpoint':{'address':{'socket_address':{'address':'127.0.0.1'" more "}}}}"
    warnings = 0;
    torc_log_set_sink(count_warnings, "ClusterLoadAssignment \"c\": 4 endpoints without port_value left out");
    struct tc_xds_resource *r = valid(EDS(LOCALITY(
        "a", 1, "",
        PORT("") "," PORT(",'port_value':0") "," PORT(",'named_port':'http'") "," ENDPOINT(
            1, "") ",{'endpoint':{'address':" ADDRESS("::1", 1) ",'additional_addresses':[{'address':{'socket_address':"
                                                                "{'address':'127.0.0.1'}}}]}}")));
    torc_log_set_sink(NULL, NULL);
    assert_int_equal(warnings, 1);
    assert_int_equal(tc_eds_of(r)->priorities[0].localities[0].n, 1);
    assert_addr(&tc_eds_of(r)->priorities[0].localities[0].endpoints[0].addrs[0], "127.0.0.1:1");
    tc_xds_resource_unref(r);
}

/* --- collections (A95) --- */

#define LEDS(config, name) ",'leds_cluster_locality_config':{" config "'leds_collection_name':'" name "'}"
#define SELF "'leds_config':{'self':{}},"
#define LB_ENDPOINT(more) "{'@type':'type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint'," more "}"
#define ENTRY(more) "{'inline_entry':{'name':'n','version':'1','resource':" LB_ENDPOINT(more) "}}"
#define AT_PORT(port) ENTRY("'endpoint':{'address':" ADDRESS("127.0.0.1", port) "}")
#define ENTRIES(list) "{'entries':[" list "]}"

static void localities_may_name_a_collection(void **state)
{
    TC_CASE(ED25);
    (void)state;
    static const struct {
        const char *json, *fault;
    } bad[] = {
        {EDS(LOCALITY("a", 1, LEDS("", "l"), "")), ".leds_config: must be self"},
        {EDS(LOCALITY("a", 1, LEDS("'leds_config':{'ads':{}},", "l"), "")), ".leds_config: must be self"},
        {EDS(LOCALITY("a", 1, LEDS(SELF, ""), ENDPOINT(1, ""))), ".leds_collection_name: must be non-empty"},
        {EDS(LOCALITY("a", 1, LEDS(SELF, "xdstp://x/y/*"), "")),
         "field endpoints[0].leds_cluster_locality_config.leds_collection_name: glob collection \"xdstp://x/y/*\" "
         "unsupported"},
        {EDS(LOCALITY("a", 1, LEDS(SELF, "xdstp://x/y/*?a=b"), "")),
         "glob collection \"xdstp://x/y/*?a=b\" unsupported"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++)
        refused(bad[i].json, bad[i].fault);
    /* Where a locality names a collection, its lb_endpoints are ignored, even invalid ones. A locality without a weight
     * is left out, collection or not. */
    struct tc_xds_resource *r = valid(EDS(LOCALITY("a", 1, LEDS(SELF, "l/*x"), ENDPOINT(99999, "") ",{}") "," LOCALITY(
        "b", 1, "", ENDPOINT(1, "")) "," LOCALITY("c", 0, LEDS(SELF, "m"), "")));
    const struct tc_eds *eds = tc_eds_of(r);
    assert_int_equal(eds->n_collections, 1);
    assert_int_equal(eds->priorities[0].n, 2);
    assert_string_equal(eds->priorities[0].localities[0].collection->data, "l/*x");
    assert_int_equal(eds->priorities[0].localities[0].n, 0);
    assert_null(eds->priorities[0].localities[1].collection);
    assert_int_equal(eds->room, 262144 - 1);
    tc_xds_resource_unref(r);
}

static void collections_are_checked_as_endpoints(void **state)
{
    TC_CASE(ED26);
    (void)state;
    static const struct {
        const char *json, *fault;
    } bad[] = {
        {ENTRIES("{}"), "field entries[0].inline_entry: field not present"},
        {ENTRIES(AT_PORT(1) ",{'inline_entry':{}}"), "field entries[1].inline_entry.resource: field not present"},
        {ENTRIES("{'inline_entry':{'resource':{'@type':'type.googleapis.com/envoy.config.endpoint.v3.Endpoint'}}}"),
         "field entries[0].inline_entry.resource: unsupported type envoy.config.endpoint.v3.Endpoint"},
        {ENTRIES(ENTRY("'endpoint_name':'x'")), "field entries[0].inline_entry.resource.endpoint: field not present"},
        {ENTRIES(AT_PORT(99999)), ".resource.endpoint.address.socket_address.port_value: invalid port"},
        {ENTRIES(AT_PORT(1) "," AT_PORT(1)), "duplicate endpoint address \"127.0.0.1:1\""},
        {ENTRIES(ENTRY("'load_balancing_weight':0,'endpoint':{'address':" ADDRESS("127.0.0.1", 1) "}")),
         ".load_balancing_weight: must be greater than 0"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++)
        kit_resource_refused(&tc_eds_collection_type, NULL, bad[i].json, bad[i].fault);
    static const struct {
        const char *json;
        size_t n, addrs;
    } good[] = {
        {ENTRIES(""), 0, 0},
        {ENTRIES(AT_PORT(1) "," AT_PORT(2)), 2, 2},
        {ENTRIES(AT_PORT(0) "," AT_PORT(2)), 1, 1}, /* port 0: left out */
        {ENTRIES(ENTRY("'health_status':'UNHEALTHY'")), 0, 0},
        {ENTRIES(ENTRY("'endpoint':{'address':" ADDRESS("::1", 1) ",'additional_addresses':[{'address':" ADDRESS(
             "127.0.0.1", 1) "}]}")),
         1, 2},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(good); i++) {
        struct tc_xds_resource *r = kit_resource_valid(&tc_eds_collection_type, NULL, good[i].json);
        assert_int_equal(tc_eds_collection_of(r)->n, good[i].n);
        assert_int_equal(tc_eds_collection_of(r)->n_addrs, good[i].addrs);
        tc_xds_resource_unref(r);
    }
}

/* The bootstrap's cap of endpoints holds for the entries of a collection, and for their addresses. */
static void collections_have_the_cap_of_assignments(void **state)
{
    TC_CASE(ED26);
    (void)state;
    struct tc_xds_bootstrap bootstrap = {0};
    const struct tc_xds_decode_context ctx = {.bootstrap = &bootstrap, .registries = tc_builtin_validation_context()};
    struct tc_buf b = {0};
    tc_buf_append_str(&b, "{'entries':[");
    for (int i = 0; i < 5000; i++)
        tc_buf_printf(&b,
                      "%s" ENTRY("'endpoint':{'address':{'socket_address':{'address':'127.0.0.1','port_value':%d}}}"),
                      i ? "," : "", i + 1);
    tc_buf_append_str(&b, "]}");
    bootstrap.limits.eds_endpoints = 5000;
    struct tc_xds_resource *r = kit_resource_valid(&tc_eds_collection_type, &ctx, tc_buf_cstr(&b));
    assert_int_equal(tc_eds_collection_of(r)->n, 5000);
    assert_int_equal(ntohs(tc_eds_collection_of(r)->endpoints[4999].addrs[0].sa.in.sin_port), 5000);
    tc_xds_resource_unref(r);
    bootstrap.limits.eds_endpoints = 4999;
    kit_resource_refused(&tc_eds_collection_type, &ctx, tc_buf_cstr(&b),
                         "field entries: 5000 endpoints, more than 4999");
    bootstrap.limits.eds_endpoints = 1;
    kit_resource_refused(&tc_eds_collection_type, &ctx,
                         ENTRIES(ENTRY("'endpoint':{'address':" ADDRESS(
                             "::1", 1) ",'additional_addresses':[{'address':" ADDRESS("127.0.0.1", 1) "}]}")),
                         "field entries: 2 endpoints and additional addresses, more than 1");
    tc_buf_fini(&b);
}

/* Bytes that are not a collection, or end early, are refused. */
static void broken_collections(void **state)
{
    (void)state;
    static const struct tc_slice bad[] = {
        {"\x0a\x02\x12", 3}, {"\x0a\x02\x12\x05", 4}, {"\x0a", 1}, {"\xff\xff", 2}, {"\x0a\x04\x12\x02\x1a\x7f", 6}};
    const struct tc_xds_decode_context ctx = {.registries = tc_builtin_validation_context()};
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        struct tc_validation_errors f = {0};
        struct tc_rstr *name = NULL;
        assert_null(tc_eds_collection_type.decode(&tc_eds_collection_type, &ctx, bad[i], &name, &f));
        assert_true(tc_validation_any(&f));
        assert_null(name);
        tc_validation_fini(&f);
    }
}

static void an_endpoint_may_have_several_addresses(void **state)
{
    TC_CASE(ED13);
    (void)state;
    struct tc_xds_resource *r = valid(EDS(
        LOCALITY("a", 1, "",
                 "{'endpoint':{'hostname':'h','address':" ADDRESS(
                     "2001:0db8::0001", 80) ","
                                            "'additional_addresses':[{'address':" ADDRESS("127.0.0.1", 81) "}]}}")));
    const struct tc_eds_endpoint *e = &tc_eds_of(r)->priorities[0].localities[0].endpoints[0];
    assert_int_equal(e->n_addrs, 2);
    assert_addr(&e->addrs[0], "[2001:db8::1]:80");
    assert_addr(&e->addrs[1], "127.0.0.1:81");
    assert_true(tc_slice_eq_str(e->hostname, "h"));
    tc_xds_resource_unref(r);
}

static void empty_resources_are_valid(void **state)
{
    (void)state;
    struct tc_xds_resource *r = valid("{'cluster_name':'c'}");
    assert_int_equal(tc_eds_of(r)->n_priorities, 0);
    tc_xds_resource_unref(r);
    r = valid(EDS(LOCALITY("a", 1, "", "")));
    assert_int_equal(tc_eds_of(r)->priorities[0].localities[0].n, 0);
    tc_xds_resource_unref(r);
    refused("{}", "field cluster_name: must be non-empty");
}

static void huge_priorities_are_refused(void **state)
{
    TC_CASE(ED16);
    (void)state;
    refused(EDS(LOCALITY("a", 1, ",'priority':4294967295", "")),
            "field endpoints[0].priority: 4294967295 is beyond the limit of 128 priorities");
    refused(EDS(LOCALITY("a", 1, ",'priority':128", "")), "beyond the limit");
}

static void check_hash_key(const char *metadata, const char *key, bool ignored)
{
    struct tc_xds_registries reg;
    tc_xds_registries_init(&reg);
    reg.hash_key_ignored = ignored;
    char *json = tc_asprintf(EDS(LOCALITY("a", 1, "", ENDPOINT(1, ",'metadata':%s"))), metadata);
    struct tc_xds_resource *r =
        kit_resource_valid(&tc_eds_type, &(struct tc_xds_decode_context){.registries = &reg}, json);
    const struct tc_rstr *actual = tc_eds_of(r)->priorities[0].localities[0].endpoints[0].hash_key;
    if (key)
        assert_string_equal(tc_rstr_cstr(actual), key);
    else
        assert_null(actual);
    tc_xds_resource_unref(r);
    tc_free(json);
}

static void hash_keys_come_from_metadata(void **state)
{
    TC_CASE(ED17);
    (void)state;
    check_hash_key("{'filter_metadata':{'envoy.lb':{'hash_key':'k'}}}", "k", false);
    check_hash_key("{'filter_metadata':{'envoy.lb':{'hash_key':'k'}}}", NULL, true);
    check_hash_key("{}", NULL, false);
    check_hash_key("{'filter_metadata':{'envoy.lb':{'hash_key':''}}}", NULL, false);
    check_hash_key("{'filter_metadata':{'envoy.lb':{'hash_key':1}}}", NULL, false);
    check_hash_key("{'filter_metadata':{'envoy.lb':{'hash_key':{'hash_key':'k'}}}}", NULL, false);
    check_hash_key("{'filter_metadata':{'other':{'hash_key':'k'}}}", NULL, false);
}

#define PROXY_KEY "envoy.http11_proxy_transport_socket.proxy_address"
#define TYPED(key, value) "'metadata':{'typed_filter_metadata':{'" key "':" value "}}"
#define ADDRESS_ANY(ip, port)                                                                                          \
    "{'@type':'type.googleapis.com/envoy.config.core.v3.Address','socket_address':{'address':'" ip "'" port "}}"

static void check_proxy(const char *endpoint_more, const char *locality_more, const char *wanted)
{
    char *json = tc_asprintf(
        EDS("{'locality':{'region':'r'},'load_balancing_weight':1%s,'lb_endpoints':[" ENDPOINT(1, "%s") "]}"),
        locality_more, endpoint_more);
    struct tc_xds_resource *r = valid(json);
    const struct tc_addr *proxy = tc_eds_of(r)->priorities[0].localities[0].endpoints[0].proxy;
    assert_int_equal(proxy != NULL, wanted != NULL);
    if (proxy)
        assert_addr(proxy, wanted);
    tc_xds_resource_unref(r);
    tc_free(json);
}

/* A86: the proxy of an endpoint comes from its metadata, or else from the metadata of its locality. */
static void proxies_come_from_metadata(void **state)
{
    (void)state;
    check_proxy("", "", NULL);
    check_proxy("," TYPED(PROXY_KEY, ADDRESS_ANY("10.0.0.9", ",'port_value':3128")), "", "10.0.0.9:3128");
    check_proxy("", "," TYPED(PROXY_KEY, ADDRESS_ANY("fd00::9", ",'port_value':3128")), "[fd00::9]:3128");
    /* The endpoint's own proxy comes first. */
    check_proxy("," TYPED(PROXY_KEY, ADDRESS_ANY("10.0.0.9", ",'port_value':1")),
                "," TYPED(PROXY_KEY, ADDRESS_ANY("10.0.0.8", ",'port_value':2")), "10.0.0.9:1");
    /* Another key, another type, or an entry of filter_metadata: no proxy. */
    check_proxy("," TYPED("other", ADDRESS_ANY("10.0.0.9", ",'port_value':1")), "", NULL);
    check_proxy("," TYPED(PROXY_KEY, "{'@type':'type.googleapis.com/google.protobuf.Duration','value':'1s'}"), "",
                NULL);
    check_proxy(",'metadata':{'filter_metadata':{'" PROXY_KEY "':{'a':1}}}", "", NULL);
    /* An address that no proxy can have is refused, under whatever key. */
    refused(EDS(LOCALITY("a", 1, "", ENDPOINT(1, "," TYPED("k", ADDRESS_ANY("proxy.test", ",'port_value':1"))))),
            "field endpoints[0].lb_endpoints[0].metadata.typed_filter_metadata[\"k\"].socket_address.address: "
            "\"proxy.test\" is not an IP address");
    refused(EDS(LOCALITY("a", 1, "," TYPED("k", ADDRESS_ANY("10.0.0.9", "")), "")),
            "field endpoints[0].metadata.typed_filter_metadata[\"k\"].socket_address.port_value: field not present");
    refused(EDS(LOCALITY("a", 1, "," TYPED("k", "{'@type':'type.googleapis.com/envoy.config.core.v3.Address'}"), "")),
            "typed_filter_metadata[\"k\"].socket_address: field not present");
}

static char *many(size_t localities, size_t endpoints)
{
    struct tc_buf json = {0};
    tc_buf_append_str(&json, "{'cluster_name':'c','endpoints':[");
    for (size_t i = 0; i < localities; i++) {
        tc_buf_printf(&json, "%s{'locality':{'zone':'%zu'},'load_balancing_weight':1,'lb_endpoints':[", i ? "," : "",
                      i);
        for (size_t j = 0; j < endpoints; j++)
            tc_buf_printf(&json, "%s{'endpoint':{'address':" ADDRESS("10.0.%zu.%zu", 80) "}}", j ? "," : "", i, j);
        tc_buf_append_str(&json, "]}");
    }
    tc_buf_append_str(&json, "]}");
    return tc_buf_take(&json);
}

static void many_localities(void **state)
{
    TC_CASE(ED18);
    (void)state;
    char *json = many(50, 2);
    struct tc_xds_resource *r = valid(json), *one = valid(EDS(LOCALITY("a", 1, "", ENDPOINT(1, ""))));
    assert_int_equal(tc_eds_of(r)->priorities[0].n, 50);
    assert_false(tc_eds_type.equal(r, one));
    struct tc_xds_resource *again = valid(json);
    assert_true(tc_eds_type.equal(r, again));
    tc_xds_resource_unref(again);
    tc_xds_resource_unref(one);
    tc_xds_resource_unref(r);
    tc_free(json);
}

/* The bootstrap's limits replace the defaults, whether they are lower or higher. */
static void caps_of_the_bootstrap(void **state)
{
    (void)state;
    struct tc_xds_bootstrap b = {.limits = {.eds_priorities = 200, .eds_localities = 3, .eds_endpoints = 7}};
    struct tc_xds_decode_context ctx = {.bootstrap = &b};
    char *json = many(4, 1);
    kit_resource_refused(&tc_eds_type, &ctx, json, "field endpoints: 4 localities, more than 3");
    tc_free(json);
    /* The scan of the bytes allows 7 endpoints in each locality: the decoder's own limit refuses these 9. */
    json = many(3, 3);
    kit_resource_refused(&tc_eds_type, &ctx, json, "9 endpoints and additional addresses, more than 7");
    tc_free(json);
    kit_resource_refused(&tc_eds_type, &ctx,
                         "{'cluster_name':'c','endpoints':[{'locality':{},'load_balancing_weight':1,"
                         "'priority':200}]}",
                         "200 is beyond the limit of 200 priorities");
    b.limits.eds_priorities = 201;
    kit_resource_refused(&tc_eds_type, &ctx,
                         "{'cluster_name':'c','endpoints':[{'locality':{},'load_balancing_weight':1,"
                         "'priority':200}]}",
                         "priority 0 empty");
}

/* A81: a hostname may become an :authority. A hostname that cannot is ignored, and its endpoint serves. */
static void hostnames_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {"a b", "a\\r\\nx: y", "a\\u0001", "a\\u007f", "\\u00e9"};
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        char *json = tc_asprintf(
            EDS(LOCALITY("a", 1, "", "{'endpoint':{'hostname':'%s','address':" ADDRESS("127.0.0.1", 80) "}}")), bad[i]);
        warnings = 0;
        torc_log_set_sink(count_warnings,
                          "ClusterLoadAssignment \"c\": 1 endpoints with a hostname that no :authority");
        struct tc_xds_resource *r = valid(json);
        torc_log_set_sink(NULL, NULL);
        assert_int_equal(warnings, 1);
        assert_int_equal(tc_eds_of(r)->priorities[0].localities[0].n, 1);
        assert_int_equal(tc_eds_of(r)->priorities[0].localities[0].endpoints[0].hostname.len, 0);
        tc_xds_resource_unref(r);
        tc_free(json);
    }
}

static void caps_hold(void **state)
{
    (void)state;
    struct tc_xds_registries reg;
    tc_xds_registries_init(&reg);
    assert_int_equal(reg.limits.eds_localities, 16384);
    assert_int_equal(reg.limits.eds_endpoints, 262144);
    assert_int_equal(reg.limits.eds_drops, 64);
    reg.limits.eds_localities = 3;
    reg.limits.eds_endpoints = 4;
    reg.limits.eds_drops = 1;
    struct tc_xds_decode_context ctx = {.registries = &reg};
    char *json = many(4, 0);
    kit_resource_refused(&tc_eds_type, &ctx, json, "field endpoints: 4 localities, more than 3");
    tc_free(json);
    json = many(3, 2);
    kit_resource_refused(&tc_eds_type, &ctx, json, "6 endpoints and additional addresses, more than 4");
    tc_free(json);
    json = many(2, 2);
    tc_xds_resource_unref(kit_resource_valid(&tc_eds_type, &ctx, json));
    tc_free(json);
    kit_resource_refused(&tc_eds_type, &ctx, DROPS("{},{}"), "field policy.drop_overloads: 2 categories, more than 1");
}

/* Asserts that the bytes are refused with this fault, and which name is told ("": none). */
static void refused_bytes(const struct tc_buf *bytes, const char *expected_name, const char *fault)
{
    struct tc_validation_errors f = {0};
    struct tc_rstr *name = NULL;
    assert_null(tc_eds_type.decode(&tc_eds_type, &(struct tc_xds_decode_context){0}, tc_buf_slice(bytes), &name, &f));
    if (!strstr(tc_validation_text(&f), fault))
        fail_msg("\"%s\" is not in: %s", fault, tc_validation_text(&f));
    assert_string_equal(tc_rstr_cstr(name), expected_name);
    tc_validation_fini(&f);
    tc_rstr_unref(name);
}

static void hostile_bytes_are_refused(void **state)
{
    (void)state;
    struct tc_buf bytes = {0};
    tc_buf_append(&bytes, "\x12\x7f", 2);
    refused_bytes(&bytes, "", "");
    tc_buf_clear(&bytes);
    for (size_t i = 0; i < 1000000; i++) /* a million empty localities */
        tc_buf_append(&bytes, "\x12\x00", 2);
    /* The name is returned although the message is refused. */
    tc_buf_append(&bytes,
                  "\x0a\x06"
                  "orders",
                  8);
    refused_bytes(&bytes, "orders", "occurs more than 262144 times");
    tc_buf_clear(&bytes);
    tc_buf_append(&bytes, "\x0a\x02\xff\xfe", 4);
    refused_bytes(&bytes, "", "");
    tc_buf_fini(&bytes);
}

int main(void)
{
    if (torc_log_set_levels("resource=warn") != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(localities_are_grouped_and_ordered),
        cmocka_unit_test(priorities_have_no_gaps),
        cmocka_unit_test(localities_without_weight_are_left_out),
        cmocka_unit_test(localities_are_named_once),
        cmocka_unit_test(weights_are_checked),
        cmocka_unit_test(addresses_are_unique),
        cmocka_unit_test(health_decides_who_stays),
        cmocka_unit_test(drops_are_checked),
        cmocka_unit_test(drops_are_millionths),
        cmocka_unit_test(addresses_are_checked),
        cmocka_unit_test(an_endpoint_may_have_several_addresses),
        cmocka_unit_test(empty_resources_are_valid),
        cmocka_unit_test(huge_priorities_are_refused),
        cmocka_unit_test(hash_keys_come_from_metadata),
        cmocka_unit_test(proxies_come_from_metadata),
        cmocka_unit_test(many_localities),
        cmocka_unit_test(caps_of_the_bootstrap),
        cmocka_unit_test(hostnames_are_checked),
        cmocka_unit_test(endpoints_may_be_unix_sockets),
        cmocka_unit_test(endpoints_without_port_are_left_out),
        cmocka_unit_test(localities_may_name_a_collection),
        cmocka_unit_test(collections_are_checked_as_endpoints),
        cmocka_unit_test(collections_have_the_cap_of_assignments),
        cmocka_unit_test(broken_collections),
        cmocka_unit_test(caps_hold),
        cmocka_unit_test(hostile_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
