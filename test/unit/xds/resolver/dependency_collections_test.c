/* EDS resources whose endpoints are in collections (LEDS, A95): what the dependency manager makes of both. The manager
 * and the xDS client are real, and run on a manual loop in one thread (kits/dependency). The test plays the control
 * plane. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/dependency.h"

#include "base/mem.h"

#define OUT_OF(name, region, more)                                                                                     \
    "{'loadBalancingWeight': 1, 'locality': {'region': '" region "'}, 'ledsClusterLocalityConfig': {'ledsConfig': "    \
    "{'self': {}}, 'ledsCollectionName': '" name "'}" more "}"
#define WITH(name, localities) "{'@type': '" KIT_EDS "', 'clusterName': '" name "', 'endpoints': [" localities "]}"
#define AT(ip, port) "{'socketAddress': {'address': '" ip "', 'portValue': " port "}}"
#define PROXY                                                                                                          \
    "'metadata': {'typedFilterMetadata': {'envoy.http11_proxy_transport_socket.proxy_address': {'@type': "             \
    "'type.googleapis.com/envoy.config.core.v3.Address', "
#define ENTRY(ip, port, more)                                                                                          \
    "{'inlineEntry': {'resource': {'@type': 'type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint', 'endpoint': "   \
    "{'address': " AT(ip, port) "}" more "}}}"
#define COLLECTION(name, entries)                                                                                      \
    "{'@type': 'type.googleapis.com/envoy.service.discovery.v3.Resource', 'name': '" name "', 'resource': {'@type': "  \
    "'" KIT_LEDS "', 'entries': [" entries "]}}"

static const struct tc_eds_locality *locality(const struct kit_dependency *w, const char *name, size_t i)
{
    const struct tc_eds *eds = kit_dependency_cluster(w, name)->eds;
    assert_non_null(eds);
    assert_true(eds->n_priorities > 0 && i < eds->priorities[0].n);
    return &eds->priorities[0].localities[i];
}

static void assert_ports(const struct kit_dependency *w, const char *name, size_t i, const char *ports)
{
    struct tc_buf b = {0};
    const struct tc_eds_locality *l = locality(w, name, i);
    for (size_t k = 0; k < l->n; k++)
        tc_buf_printf(&b, "%d ", ntohs(l->endpoints[k].addrs[0].sa.in.sin_port));
    assert_string_equal(tc_buf_cstr(&b), ports);
    tc_buf_fini(&b);
}

static void open_with_collections(struct kit_dependency *w, const char *endpoints)
{
    kit_dependency_open(w, NULL, NULL);
    kit_dependency_answer(w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_answer(w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("c")));
    kit_dependency_answer(w, KIT_CDS, KIT_CLUSTER("c"));
    kit_dependency_answer(w, KIT_EDS, endpoints);
}

/* The config waits for all collections. A change, a refusal or the absence of a collection affects only the locality
 * that names it. */
static void collections(void **state)
{
    TC_CASE(ED27);
    (void)state;
    struct kit_dependency w;
    open_with_collections(&w, WITH("c", OUT_OF("l", "a", "") ", " OUT_OF("m", "b", "")));
    assert_string_equal(kit_dependency_asked(&w, KIT_LEDS), "l,m");
    kit_dependency_assert_pending(&w, "LEDS resource \"l\", LEDS resource \"m\"");
    kit_dependency_answer(&w, KIT_LEDS, COLLECTION("l", ENTRY("1.1.1.1", "1", "")));
    assert_int_equal(w.configs, 0);
    kit_dependency_assert_pending(&w, "LEDS resource \"m\"");
    kit_dependency_answer(&w, KIT_LEDS, COLLECTION("m", ENTRY("1.1.1.1", "2", "") ", " ENTRY("1.1.1.1", "3", "")));
    assert_int_equal(w.configs, 1);
    assert_ports(&w, "c", 0, "1 ");
    assert_ports(&w, "c", 1, "2 3 ");
    assert_string_equal(kit_dependency_cluster(&w, "c")->resolution_note->data, "xDS node ID:n1");
    /* An update of one collection leaves the other locality's endpoints the same objects. An equal resource changes
     * nothing. */
    const struct tc_eds_endpoint *before = locality(&w, "c", 1)->endpoints;
    const struct tc_eds *eds = kit_dependency_cluster(&w, "c")->eds;
    kit_dependency_answer(&w, KIT_LEDS, COLLECTION("l", ENTRY("1.1.1.1", "4", "")));
    assert_ports(&w, "c", 0, "4 ");
    assert_ptr_equal(locality(&w, "c", 1)->endpoints, before);
    assert_ptr_not_equal(kit_dependency_cluster(&w, "c")->eds, eds);
    assert_int_equal(w.configs, 2);
    kit_dependency_answer(&w, KIT_LEDS, COLLECTION("l", ENTRY("1.1.1.1", "4", "")));
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c"));
    assert_int_equal(w.configs, 2);
    /* A refused collection: its last good value stays, with a note. */
    kit_dependency_answer(&w, KIT_LEDS, COLLECTION("l", "{}"));
    assert_ports(&w, "c", 0, "4 ");
    const char *note = kit_dependency_cluster(&w, "c")->resolution_note->data;
    assert_non_null(strstr(note, "LEDS resource \"l\": "));
    assert_non_null(strstr(note, "field entries[0].inline_entry: field not present"));
    /* An empty collection: the locality has no endpoints. */
    kit_dependency_answer(&w, KIT_LEDS, COLLECTION("l", ""));
    assert_ports(&w, "c", 0, "");
    assert_string_equal(kit_dependency_cluster(&w, "c")->resolution_note->data,
                        "EDS resource c contains empty localities: [{region=\"a\", zone=\"\", sub_zone=\"\"}] "
                        "(node ID:n1)");
    /* The locality names a collection that never comes: the old config stays for 15 s, then the locality has no
     * endpoints. */
    unsigned configs = w.configs;
    kit_dependency_answer(&w, KIT_EDS, WITH("c", OUT_OF("none", "a", "") ", " OUT_OF("m", "b", "")));
    assert_string_equal(kit_dependency_asked(&w, KIT_LEDS), "l,m,none");
    assert_int_equal(w.configs, configs);
    tc_loop_advance(w.loop, 15000);
    assert_int_equal(w.configs, configs + 1);
    assert_ports(&w, "c", 0, "");
    assert_ptr_equal(locality(&w, "c", 1)->endpoints, before);
    assert_non_null(
        strstr(kit_dependency_cluster(&w, "c")->resolution_note->data, "; LEDS resource \"none\" does not exist"));
    /* The EDS resource has its own endpoints now: the client no longer asks for collections. */
    kit_dependency_answer(&w, KIT_EDS, KIT_ENDPOINTS("c", "9"));
    assert_ports(&w, "c", 0, "9 ");
    assert_string_equal(kit_dependency_asked(&w, KIT_LEDS), "");
    assert_string_equal(kit_dependency_cluster(&w, "c")->resolution_note->data, "xDS node ID:n1");
    kit_dependency_close(&w);
}

/* Two localities of the cluster "c" and one of "d" share a collection: all three get its endpoints and its changes. */
static void shared_collections(void **state)
{
    TC_CASE(ED27);
    (void)state;
    struct kit_dependency w;
    kit_dependency_open(&w, NULL, NULL);
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("c") ", " KIT_TO("d")));
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c") ", " KIT_CLUSTER("d"));
    kit_dependency_answer(
        &w, KIT_EDS, WITH("c", OUT_OF("l", "a", "") ", " OUT_OF("l", "b", "")) ", " WITH("d", OUT_OF("l", "a", "")));
    static const char *const collections[] = {COLLECTION("l", ENTRY("1.1.1.1", "1", "")),
                                              COLLECTION("l", ENTRY("1.1.1.1", "2", ""))};
    static const char *const ports[] = {"1 ", "2 "};
    for (size_t i = 0; i < TC_ARRAY_LEN(ports); i++) {
        kit_dependency_answer(&w, KIT_LEDS, collections[i]);
        assert_ports(&w, "c", 0, ports[i]);
        assert_ports(&w, "c", 1, ports[i]);
        assert_ports(&w, "d", 0, ports[i]);
    }
    kit_dependency_close(&w);
}

/* A86: endpoints of a collection have their own proxy, or their locality's; Unix sockets have none. */
static void proxies_of_collections(void **state)
{
    TC_CASE(ED28);
    (void)state;
    struct kit_dependency w;
    open_with_collections(&w, WITH("c", OUT_OF("l", "a",
                                               ", " PROXY "'socketAddress': {'address': '9.9.9.9', "
                                               "'portValue': 9}}}}") ", " OUT_OF("l", "b", "")));
    kit_dependency_answer(&w, KIT_LEDS,
                          COLLECTION("l", ENTRY("1.1.1.1", "1", "") ", " ENTRY(
                                              "1.1.1.1", "2",
                                              ", " PROXY "'socketAddress': {'address': '8.8.8.8', 'portValue': "
                                              "8}}}}") ", {'inlineEntry': {'resource': {'@type': "
                                                       "'type.googleapis.com/"
                                                       "envoy.config.endpoint.v3.LbEndpoint', "
                                                       "'endpoint': {'address': "
                                                       "{'pipe': {'path': '/x'}}}}}}"));
    const struct tc_eds_endpoint *a = locality(&w, "c", 0)->endpoints, *b = locality(&w, "c", 1)->endpoints;
    assert_int_equal(locality(&w, "c", 0)->n, 3);
    assert_int_equal(ntohs(a[0].proxy->sa.in.sin_port), 9);
    assert_int_equal(ntohs(a[1].proxy->sa.in.sin_port), 8);
    assert_null(a[2].proxy);
    assert_null(b[0].proxy);
    assert_int_equal(ntohs(b[1].proxy->sa.in.sin_port), 8);
    kit_dependency_close(&w);
}

/* 5,000 localities that name the same collection have together no more endpoints than the cap of a resource. */
static void collections_are_bounded(void **state)
{
    TC_CASE(ED28);
    (void)state;
    enum { N = 5000, EACH = 100, CAP = 1000 };
    struct kit_dependency w;
    struct tc_buf eds = {0}, leds = {0};
    kit_dependency_open(&w,
                        "{\"xds_servers\": [{\"server_uri\": \"s1\", \"channel_creds\": [{\"type\": \"insecure\"}]}], "
                        "\"node\": {\"id\": \"n1\"}, \"torc.limits\": {\"eds_endpoints\": 1000}}",
                        NULL);
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("c")));
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c"));
    tc_buf_append_str(&eds, "{'@type': '" KIT_EDS "', 'clusterName': 'c', 'endpoints': [");
    for (int i = 0; i < N; i++)
        tc_buf_printf(&eds, "%s" OUT_OF("l", "r%d", ""), i ? ", " : "", i);
    tc_buf_append_str(&eds, "]}");
    kit_dependency_answer(&w, KIT_EDS, tc_buf_cstr(&eds));
    for (int i = 0; i < EACH; i++)
        tc_buf_printf(&leds, "%s" ENTRY("1.1.1.1", "%d", ""), i ? ", " : "", i + 1);
    char *collection = tc_asprintf(COLLECTION("l", "%s"), tc_buf_cstr(&leds));
    kit_dependency_answer(&w, KIT_LEDS, collection);
    size_t full = 0;
    for (size_t i = 0; i < N; i++)
        full += locality(&w, "c", i)->n == EACH;
    assert_int_equal(full, CAP / EACH);
    assert_non_null(strstr(kit_dependency_cluster(&w, "c")->resolution_note->data,
                           "LEDS resource \"l\" is beyond the limit of endpoints or of collections"));
    tc_free(collection);
    tc_buf_fini(&eds);
    tc_buf_fini(&leds);
    kit_dependency_close(&w);
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Sends n collections, each with one endpoint at this port. Returns the CPU time in ns that the response took. */
static uint64_t cost_of_all(struct kit_dependency *w, int n, int port)
{
    struct tc_buf leds = {0};
    for (int i = 0; i < n; i++)
        tc_buf_printf(&leds, "%s" COLLECTION("l%d", ENTRY("1.1.1.1", "%d", "")), i ? ", " : "", i, port);
    uint64_t start = cpu_ns();
    kit_dependency_answer(w, KIT_LEDS, tc_buf_cstr(&leds));
    tc_buf_fini(&leds);
    return cpu_ns() - start;
}

/* Thousands of collections of one cluster that change at once are one change of the cluster. */
static void all_collections_change_at_once(void **state)
{
    (void)state;
    enum { N = 6000 };
    struct kit_dependency w;
    struct tc_buf eds = {0};
    kit_dependency_open(&w, NULL, NULL);
    kit_dependency_answer(&w, KIT_LDS, KIT_BY_RDS("r"));
    kit_dependency_answer(&w, KIT_RDS, KIT_ROUTES("r", "*", KIT_TO("c")));
    kit_dependency_answer(&w, KIT_CDS, KIT_CLUSTER("c"));
    tc_buf_append_str(&eds, "{'@type': '" KIT_EDS "', 'clusterName': 'c', 'endpoints': [");
    for (int i = 0; i < N; i++)
        tc_buf_printf(&eds, "%s" OUT_OF("l%d", "r%d", ""), i ? ", " : "", i, i);
    tc_buf_append_str(&eds, "]}");
    kit_dependency_answer(&w, KIT_EDS, tc_buf_cstr(&eds));
    uint64_t first = cost_of_all(&w, N, 1), second = cost_of_all(&w, N, 2);
    assert_int_equal(w.configs, 2);
    assert_int_equal(ntohs(locality(&w, "c", N - 1)->endpoints[0].addrs[0].sa.in.sin_port), 2);
    assert_true(second < 5 * first); /* `second` was 20 times `first` when each collection rebuilt the cluster */
    tc_buf_fini(&eds);
    kit_dependency_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collections),
        cmocka_unit_test(shared_collections),
        cmocka_unit_test(proxies_of_collections),
        cmocka_unit_test(collections_are_bounded),
        cmocka_unit_test(all_collections_change_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
