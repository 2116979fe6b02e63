/* State-of-the-world responses that are invalid, unusual, or have their resources wrapped. kits/xds gives the client
 * over a scripted transport; the test is the server. Everything runs on the test's thread.
 *
 * set_up makes a client of one server and the watcher `a`; tear_down ends both. all_together_have_a_limit replaces the
 * client by one with another bootstrap. `watch` and kit_xds_respond run the loop, so the requests and the events that
 * follow are there when they return. A resource's bytes are "name|value", and "bad" is a value that its decoder
 * rejects. Each assert_told reads what the watcher was told since the last one. */
#include "support/case.h"
#include "support/cmocka.h"
#include "support/kits/xds.h"

#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"

#define WRAPPER "type.googleapis.com/envoy.service.discovery.v3.Resource"

static struct kit_xds k;
static struct kit_xds_watcher a;

static int set_up(void **state)
{
    (void)state;
    kit_xds_init(&k, NULL);
    kit_xds_watcher_init(&a);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&a);
    return 0;
}

static void watch(const struct tc_xds_resource_type *type, const char *name, struct kit_xds_watcher *w)
{
    kit_xds_watch(&k, type, name, w);
    tc_loop_drain(k.loop);
}

#define assert_request(text) assert_string_equal(kit_xds_request(&k, k.server), text)
#define assert_told(w, text) assert_string_equal(kit_xds_told(w), text)

static void unknown_type(void **state)
{
    TC_CASE(AD07);
    (void)state;
    static const struct tc_xds_resource_type other = {.type_url = "type.googleapis.com/other", .short_name = "Other"};
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &other, "1", "n1", "a|x", NULL);
    assert_request("");
    assert_told(&a, "");
    /* The next response is still read. */
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n2", "a|x", NULL);
    assert_told(&a, "value x;");
}

static void unsubscribed_resource(void **state)
{
    TC_CASE(AD08);
    (void)state;
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", "zzz|y", NULL);
    assert_told(&a, "value x;");
    assert_request("Cluster [a] \"1\" \"n1\"");
}

static void twice_in_one_response(void **state)
{
    (void)state;
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", "a|y", NULL);
    assert_told(&a, "value x;");
    assert_request("Cluster [a] \"\" \"n1\" NACK 3 resource index 1: Cluster \"a\": the response has it twice");
}

/* held_bytes limits all resources together: a value beyond it is rejected, and the last value stays. There is room
 * again once another resource has become smaller. */
static void all_together_have_a_limit(void **state)
{
    (void)state;
    struct kit_xds_watcher b;
    kit_xds_fini(&k);
    kit_xds_init(&k, "{\"xds_servers\": [{\"server_uri\": \"s1\", \"channel_creds\": [{\"type\": \"insecure\"}]}],"
                     " \"node\": {\"id\": \"node1\"}, \"torc.limits\": {\"held_bytes\": 12}}");
    kit_xds_watcher_init(&b);
    watch(&kit_xds_eds, "a", &a);
    kit_xds_watch(&k, &kit_xds_eds, "b", &b);
    tc_loop_drain(k.loop);
    (void)kit_xds_request(&k, k.server);
    (void)kit_xds_request(&k, k.server);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", "a|1234", "b|12", NULL); /* 6 and 4 bytes */
    assert_told(&a, "value 1234;");
    assert_told(&b, "value 12;");
    (void)kit_xds_request(&k, k.server);
    kit_xds_respond(&k, k.server, &kit_xds_eds, "2", "n2", "a|123456", "b|123", NULL);
    assert_told(&a, "value 123456;");
    assert_told(&b, "ambient invalid xDS ClusterLoadAssignment resource: with its 5 bytes all resources have more than "
                    "held_bytes, 12 "
                    "(node ID:node1);");
    kit_xds_respond(&k, k.server, &kit_xds_eds, "3", "n3", "a|123", "b|12345", NULL);
    assert_told(&a, "value 123;");
    assert_told(&b, "value 12345;");
    assert_int_equal(TC_XDS_HELD_BYTES, 256 << 20);
    kit_xds_fini(&k);
    kit_xds_watcher_fini(&b);
    kit_xds_init(&k, NULL);
}

/* A bad resource without a name might be any absent one, so no resource counts as deleted. */
static void nameless_resource(void **state)
{
    (void)state;
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", NULL);
    assert_told(&a, "value x;");
    assert_request("Cluster [a] \"1\" \"n1\"");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "2", "n2", "|bad", NULL);
    assert_told(&a, "");
    assert_request(
        "Cluster [a] \"1\" \"n2\" NACK 3 resource index 0: Cluster: field value: is bad; field other: is bad "
        "too");
}

static void send_packed(const ProtobufCMessage *m)
{
    struct tc_buf bytes = {0};
    size_t len = protobuf_c_message_get_packed_size(m);
    bytes.len = protobuf_c_message_pack(m, (uint8_t *)tc_buf_reserve(&bytes, len));
    fake_xds_send(k.server, tc_buf_slice(&bytes));
    tc_buf_fini(&bytes);
    tc_loop_drain(k.loop);
}

static void send_any(const char *type_url, const char *version, Google__Protobuf__Any *any)
{
    Envoy__Service__Discovery__V3__DiscoveryResponse m = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_RESPONSE__INIT;
    m.type_url = (char *)type_url;
    m.version_info = m.nonce = (char *)version;
    m.resources = &any;
    m.n_resources = 1;
    send_packed(&m.base);
}

static void wrapped_resource(void **state)
{
    TC_CASE(AD11);
    (void)state;
    Envoy__Service__Discovery__V3__Resource wrapper = ENVOY__SERVICE__DISCOVERY__V3__RESOURCE__INIT;
    Google__Protobuf__Any inner = GOOGLE__PROTOBUF__ANY__INIT, outer = GOOGLE__PROTOBUF__ANY__INIT;
    uint8_t bytes[256];
    watch(&kit_xds_eds, "a", &a);
    assert_request("ClusterLoadAssignment [a] \"\" \"\" node");
    inner.type_url = (char *)kit_xds_eds.type_url;
    inner.value = (ProtobufCBinaryData){strlen("inner|x"), (uint8_t *)"inner|x"};
    wrapper.name = "a"; /* wins over the resource's own */
    wrapper.resource = &inner;
    outer.type_url = WRAPPER;
    outer.value.len = envoy__service__discovery__v3__resource__pack(&wrapper, bytes);
    outer.value.data = bytes;
    send_any(kit_xds_eds.type_url, "1", &outer);
    assert_told(&a, "value x;");
    assert_request("ClusterLoadAssignment [a] \"1\" \"1\"");

    wrapper.resource = NULL;
    outer.value.len = envoy__service__discovery__v3__resource__pack(&wrapper, bytes);
    send_any(kit_xds_eds.type_url, "2", &outer);
    assert_request("ClusterLoadAssignment [a] \"1\" \"2\" NACK 3 resource index 0: ClusterLoadAssignment \"a\": field "
                   "resource: missing");

    outer.value = (ProtobufCBinaryData){3, (uint8_t *)"\x0a\x7f\x41"}; /* cut short */
    send_any(kit_xds_eds.type_url, "3", &outer);
    assert_non_null(strstr(kit_xds_request(&k, k.server), "\"3\" NACK 3 resource index 0: ClusterLoadAssignment: "));
}

/* A wrapper that names a Cluster and holds no Cluster does not mean that the Cluster is gone. */
static void empty_wrapper_of_what_is_held(void **state)
{
    (void)state;
    Envoy__Service__Discovery__V3__Resource wrapper = ENVOY__SERVICE__DISCOVERY__V3__RESOURCE__INIT;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    uint8_t bytes[64];
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_cds, "1", "n1", "a|x", NULL);
    assert_request("Cluster [a] \"1\" \"n1\"");
    wrapper.name = "a";
    any.type_url = WRAPPER;
    any.value.len = envoy__service__discovery__v3__resource__pack(&wrapper, bytes);
    any.value.data = bytes;
    send_any(kit_xds_cds.type_url, "2", &any);
    assert_request("Cluster [a] \"1\" \"2\" NACK 3 resource index 0: Cluster \"a\": field resource: missing");
    assert_told(&a, "value x;");
}

static void resource_of_another_type(void **state)
{
    (void)state;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    watch(&kit_xds_eds, "a", &a);
    assert_request("ClusterLoadAssignment [a] \"\" \"\" node");
    any.type_url = "type.googleapis.com/other";
    send_any(kit_xds_eds.type_url, "1", &any);
    assert_request("ClusterLoadAssignment [a] \"\" \"1\" NACK 3 resource index 0: ClusterLoadAssignment: is of type "
                   "\"type.googleapis.com/other\", not type.googleapis.com/envoy.config.endpoint.v3."
                   "ClusterLoadAssignment");
}

/* Each bad resource is named by its index, and good ones beside it are used. */
static void good_among_bad(void **state)
{
    TC_CASE(CD20);
    (void)state;
    struct kit_xds_watcher b;
    kit_xds_watcher_init(&b);
    watch(&kit_xds_cds, "a", &a);
    watch(&kit_xds_cds, "b", &b);
    while (*kit_xds_request(&k, k.server))
        continue;
    static const struct {
        const char *type, *bytes;
    } sent[] = {
        {"type.googleapis.com/envoy.config.cluster.v3.Cluster", "a|x"},
        {"type.googleapis.com/envoy.config.cluster.v3.Cluster", "a|y"},     /* again */
        {"type.googleapis.com/other", "c|z"},                               /* of another type */
        {"type.googleapis.com/envoy.config.cluster.v3.Cluster", "garbage"}, /* cannot be decoded */
        {WRAPPER, "\x0a\x7f"},                                              /* cut off */
        {"type.googleapis.com/envoy.config.cluster.v3.Cluster", "b|v"},
    };
    Envoy__Service__Discovery__V3__DiscoveryResponse m = ENVOY__SERVICE__DISCOVERY__V3__DISCOVERY_RESPONSE__INIT;
    Google__Protobuf__Any any[TC_ARRAY_LEN(sent)], *list[TC_ARRAY_LEN(sent)];
    for (size_t i = 0; i < TC_ARRAY_LEN(sent); i++) {
        google__protobuf__any__init(&any[i]);
        any[i].type_url = (char *)sent[i].type;
        any[i].value = (ProtobufCBinaryData){strlen(sent[i].bytes), (uint8_t *)(uintptr_t)sent[i].bytes};
        list[i] = &any[i];
    }
    m.type_url = (char *)kit_xds_cds.type_url;
    m.version_info = m.nonce = "1";
    m.resources = list;
    m.n_resources = TC_ARRAY_LEN(sent);
    send_packed(&m.base);
    assert_told(&a, "value x;");
    assert_told(&b, "value v;");
    const char *nack = kit_xds_request(&k, k.server);
    assert_non_null(strstr(nack, "resource index 1: Cluster \"a\": the response has it twice; "));
    assert_non_null(strstr(nack, "resource index 2: Cluster: is of type \"type.googleapis.com/other\", not "));
    assert_non_null(strstr(nack, "resource index 3: Cluster \"garbage\": field value: is bad; "));
    assert_non_null(strstr(nack, "resource index 4: Cluster: "));
    assert_null(strstr(nack, "resource index 0"));
    assert_null(strstr(nack, "resource index 5"));
    kit_xds_unwatch(&k, &b);
    kit_xds_watcher_fini(&b);
}

/* Unusual forms that protobuf allows: a field that occurs twice, of which the last counts, and a field that is
 * absent. */
static void unusual_forms(void **state)
{
    (void)state;
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    struct tc_buf bytes = {0}, any = {0};
    const size_t url_len = strlen(kit_xds_cds.type_url);
    tc_buf_append(&any,
                  "\x12\x03"
                  "a|y"
                  "\x0a",
                  6);
    tc_buf_append_char(&any, (char)url_len);
    tc_buf_append_str(&any, kit_xds_cds.type_url);
    tc_buf_append(&any,
                  "\x12\x03"
                  "a|x",
                  5);
    tc_buf_append_char(&bytes, '\x12');
    tc_buf_append_char(&bytes, (char)any.len);
    tc_buf_append_slice(&bytes, tc_buf_slice(&any));
    tc_buf_append_char(&bytes, '\x22');
    tc_buf_append_char(&bytes, (char)url_len);
    tc_buf_append_str(&bytes, kit_xds_cds.type_url);
    tc_buf_append_str(&bytes, "\x0a\x01"
                              "1"
                              "\x2a\x02n1");
    fake_xds_send(k.server, tc_buf_slice(&bytes));
    tc_loop_drain(k.loop);
    assert_told(&a, "value x;");
    assert_request("Cluster [a] \"1\" \"n1\"");
    tc_buf_fini(&any);
    tc_buf_fini(&bytes);
    Google__Protobuf__Any empty = GOOGLE__PROTOBUF__ANY__INIT;
    empty.type_url = (char *)kit_xds_cds.type_url;
    send_any(kit_xds_cds.type_url, "2", &empty);
    assert_non_null(strstr(kit_xds_request(&k, k.server), "\"2\" NACK 3 resource index 0: Cluster: "));
}

static void unreadable_responses(void **state)
{
    (void)state;
    watch(&kit_xds_cds, "a", &a);
    assert_request("Cluster [a] \"\" \"\" node");
    fake_xds_send(k.server, tc_slice_str("\x07garbage"));
    tc_loop_drain(k.loop);
    assert_request(""); /* no type, no nonce: the response cannot be answered */

    /* More resources than a response may have: rejected as a whole, with its nonce. */
    struct tc_buf bytes = {0};
    tc_buf_append_char(&bytes, '\x22');
    tc_buf_append_char(&bytes, (char)strlen(kit_xds_cds.type_url));
    tc_buf_append_str(&bytes, kit_xds_cds.type_url);
    tc_buf_append_str(&bytes, "\x2a\x02n7");
    for (int i = 0; i < 65537; i++)
        tc_buf_append(&bytes, "\x12\x00", 2);
    fake_xds_send(k.server, tc_buf_slice(&bytes));
    tc_buf_fini(&bytes);
    tc_loop_drain(k.loop);
    const char *request = kit_xds_request(&k, k.server);
    assert_non_null(strstr(request, "Cluster [a] \"\" \"n7\" NACK 3 DiscoveryResponse: "));
    assert_non_null(strstr(request, "resources"));
    assert_told(&a, "");
    assert_int_equal(k.server->messages_read, 2);
}

static void nack_text_is_bounded(void **state)
{
    (void)state;
    char name[700];
    memset(name, 'n', sizeof(name));
    memcpy(name + sizeof(name) - 5, "|bad", 5);
    watch(&kit_xds_eds, "a", &a);
    assert_request("ClusterLoadAssignment [a] \"\" \"\" node");
    kit_xds_respond(&k, k.server, &kit_xds_eds, "1", "n1", name, name, name, name, name, name, name, name, name, name,
                    name, name, name, NULL);
    struct fake_xds_request *r = fake_xds_take(k.server);
    assert_int_equal(strlen(r->error_text), 8192);
    assert_string_equal(r->error_text + 8192 - 3, "...");
    fake_xds_request_free(r);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unknown_type),
        TEST(unsubscribed_resource),
        TEST(twice_in_one_response),
        TEST(all_together_have_a_limit),
        TEST(nameless_resource),
        TEST(wrapped_resource),
        TEST(empty_wrapper_of_what_is_held),
        TEST(resource_of_another_type),
        TEST(good_among_bad),
        TEST(unusual_forms),
        TEST(unreadable_responses),
        TEST(nack_text_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
