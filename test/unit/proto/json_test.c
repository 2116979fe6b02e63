/* proto3 JSON both ways, and the limits of depth and memory.
 *
 * `round_trip`, `same` and `becomes` are for texts that are accepted: the text becomes a message, and the message
 * becomes the expected JSON, both before and after it goes through the wire form. `refuse` is for texts that have an
 * error. For limits, and for one direction alone, a test calls the functions of proto/json.h itself.
 *
 * Messages are of the generated types of xDS and of the well-known types. A message that is read lies in an arena of
 * the function that reads it. A message that a test fills in itself is on the stack. One thread. */
#include "proto/json.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "pb/envoy/config/cluster/v3/cluster.pb-c.h"
#include "pb/envoy/config/core/v3/health_check.pb-c.h"
#include "pb/envoy/config/route/v3/route.pb-c.h"
#include "pb/envoy/config/route/v3/route_components.pb-c.h"
#include "pb/google/protobuf/any.pb-c.h"
#include "pb/google/protobuf/duration.pb-c.h"
#include "pb/google/protobuf/struct.pb-c.h"
#include "pb/google/protobuf/timestamp.pb-c.h"
#include "pb/google/protobuf/wrappers.pb-c.h"
#include "pb/xds/data/orca/v3/orca_load_report.pb-c.h"
#include "proto/unpack.h"
#include "support/cmocka.h"

#define ANY &google__protobuf__any__descriptor
#define CLUSTER &envoy__config__cluster__v3__cluster__descriptor
#define DURATION &google__protobuf__duration__descriptor
#define NODE &envoy__config__core__v3__node__descriptor
#define ORCA &xds__data__orca__v3__orca_load_report__descriptor
#define ROUTE &envoy__config__route__v3__route__descriptor
#define ROUTE_ACTION &envoy__config__route__v3__route_action__descriptor
#define STRUCT &google__protobuf__struct__descriptor
#define TIMESTAMP &google__protobuf__timestamp__descriptor
#define VALUE &google__protobuf__value__descriptor
#define URL "type.googleapis.com/"

static const struct tc_proto_json_options camel = {.lower_camel = true};
static const struct tc_proto_json_options lenient = {.ignore_unknown = true};

/* Returns the JSON of the text, a new reference. Fails the test if the text is not JSON. */
static json_t *parse(const char *text)
{
    char *why = NULL;
    json_t *json = tc_json_parse(tc_slice_str(text), &why);
    if (!json)
        fail_msg("%s: %s", text, why);
    return json;
}

/* Returns the message as JSON text, for tc_free; NULL if the message has no JSON. NULL options are zeros. */
static char *print(const ProtobufCMessage *m, const struct tc_proto_json_options *options)
{
    json_t *json = tc_proto_to_json(m, options);
    if (!json)
        return NULL;
    char *text = tc_json_text(json, false);
    json_decref(json);
    return text;
}

/* Asserts that the message of the JSON prints as `want`, before and after it goes through the wire form. `want` has the
 * fields of a message in the order of their numbers. */
static void round_trip(const ProtobufCMessageDescriptor *type, const char *text,
                       const struct tc_proto_json_options *options, const char *want)
{
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m = NULL;
    struct tc_buf bytes = {0};
    tc_arena_init(&arena, 0, 0);
    json_t *json = parse(text);
    if (tc_proto_from_json(type, json, options, &arena, &m, &errors) != 0)
        fail_msg("%s: %s", text, tc_validation_text(&errors));
    char *got = print(m, options);
    assert_string_equal(got, want);
    tc_free(got);
    char *to = tc_buf_reserve(&bytes, protobuf_c_message_get_packed_size(m));
    bytes.len = protobuf_c_message_pack(m, (uint8_t *)to);
    if (tc_unpack(type, tc_buf_slice(&bytes), NULL, &arena, &m, &errors) != 0)
        fail_msg("%s: %s", text, tc_validation_text(&errors));
    got = print(m, options);
    assert_string_equal(got, want);
    tc_free(got);
    json_decref(json);
    tc_buf_fini(&bytes);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

static void same(const ProtobufCMessageDescriptor *type, const char *text)
{
    round_trip(type, text, NULL, text);
}

static void becomes(const ProtobufCMessageDescriptor *type, const char *text, const char *want)
{
    round_trip(type, text, NULL, want);
}

/* Asserts that the JSON is refused with exactly this text of errors, and that no message is stored. */
static void refuse(const ProtobufCMessageDescriptor *type, const char *text, const char *want)
{
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m = NULL;
    json_t *json = parse(text);
    tc_arena_init(&arena, 0, 0);
    assert_int_equal(tc_proto_from_json(type, json, NULL, &arena, &m, &errors), TORC_EPARSE);
    assert_string_equal(tc_validation_text(&errors), want);
    assert_null(m);
    assert_int_equal(errors.path.len, 0);
    json_decref(json);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

static void test_names_of_fields(void **state)
{
    (void)state;
    becomes(NODE, "{\"userAgentName\":\"x\"}", "{\"user_agent_name\":\"x\"}");
    becomes(NODE, "{\"user_agent_name\":\"x\",\"clientFeatures\":[\"a\",\"b\"]}",
            "{\"user_agent_name\":\"x\",\"client_features\":[\"a\",\"b\"]}");
    round_trip(NODE, "{\"user_agent_name\":\"x\",\"locality\":{\"sub_zone\":\"z\"}}", &camel,
               "{\"locality\":{\"subZone\":\"z\"},\"userAgentName\":\"x\"}");
    same(NODE, "{}");
    becomes(NODE, "{\"id\":null,\"locality\":null,\"client_features\":null}", "{}");
    becomes(NODE, "{\"id\":\"\",\"client_features\":[]}", "{}");
    refuse(NODE, "{\"userAgentName\":\"x\",\"user_agent_name\":\"y\"}", "field user_agent_name: is given twice");
    refuse(NODE, "[]", "must be an object");
}

static void test_unknown_fields(void **state)
{
    (void)state;
    static const char text[] = "{\"id\":\"n\",\"nope\":1,\"locality\":{\"zome\":{}}}";
    refuse(NODE, text,
           "field nope: unknown field of envoy.config.core.v3.Node; "
           "field locality.zome: unknown field of envoy.config.core.v3.Locality");
    round_trip(NODE, text, &lenient, "{\"id\":\"n\",\"locality\":{}}");
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const ProtobufCMessageDescriptor *type;
        const char *text, *want; /* want NULL: as `text`; "!...": refused, must be ... */
    } cases[] = {
        {&google__protobuf__int64_value__descriptor, "\"-9223372036854775808\"", NULL},
        {&google__protobuf__int64_value__descriptor, "9223372036854775807", "\"9223372036854775807\""},
        {&google__protobuf__int64_value__descriptor, "\"9223372036854775808\"", "!an integer of 64 bits"},
        {&google__protobuf__int64_value__descriptor, "1.5", "!an integer of 64 bits"},
        {&google__protobuf__uint64_value__descriptor, "\"18446744073709551615\"", NULL},
        {&google__protobuf__uint64_value__descriptor, "7", "\"7\""},
        {&google__protobuf__uint64_value__descriptor, "\"18446744073709551616\"", "!an unsigned integer of 64 bits"},
        {&google__protobuf__uint64_value__descriptor, "-1", "!an unsigned integer of 64 bits"},
        {&google__protobuf__int32_value__descriptor, "-2147483648", NULL},
        {&google__protobuf__int32_value__descriptor, "\"12\"", "12"},
        {&google__protobuf__int32_value__descriptor, "1e3", "1000"},
        {&google__protobuf__int32_value__descriptor, "\"1e3\"", "1000"},
        {&google__protobuf__int32_value__descriptor, "3.0", "3"},
        {&google__protobuf__int32_value__descriptor, "2147483648", "!an integer of 32 bits"},
        {&google__protobuf__int32_value__descriptor, "\"\"", "!an integer of 32 bits"},
        {&google__protobuf__int32_value__descriptor, "\" 1\"", "!an integer of 32 bits"},
        {&google__protobuf__int32_value__descriptor, "true", "!an integer of 32 bits"},
        {&google__protobuf__uint32_value__descriptor, "4294967295", NULL},
        {&google__protobuf__uint32_value__descriptor, "4294967296", "!an unsigned integer of 32 bits"},
        {&google__protobuf__uint32_value__descriptor, "-1", "!an unsigned integer of 32 bits"},
        {&google__protobuf__uint32_value__descriptor, "1e300", "!an unsigned integer of 32 bits"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        char *want = NULL;
        if (cases[i].want && cases[i].want[0] == '!') {
            want = tc_asprintf("must be %s", cases[i].want + 1);
            refuse(cases[i].type, cases[i].text, want);
        } else {
            becomes(cases[i].type, cases[i].text, cases[i].want ? cases[i].want : cases[i].text);
        }
        tc_free(want);
    }
}

static void test_floats(void **state)
{
    (void)state;
    same(&google__protobuf__double_value__descriptor, "1.5");
    same(&google__protobuf__double_value__descriptor, "\"NaN\"");
    same(&google__protobuf__double_value__descriptor, "\"Infinity\"");
    same(&google__protobuf__double_value__descriptor, "\"-Infinity\"");
    becomes(&google__protobuf__double_value__descriptor, "\"-2.5e3\"", "-2500.0");
    becomes(&google__protobuf__double_value__descriptor, "3", "3.0");
    refuse(&google__protobuf__double_value__descriptor, "\"inf\"", "must be a number");
    refuse(&google__protobuf__double_value__descriptor, "\"1e999\"", "must be a number");
    refuse(&google__protobuf__double_value__descriptor, "{}", "must be a number");
    same(&google__protobuf__float_value__descriptor, "0.25");
    same(&google__protobuf__float_value__descriptor, "\"NaN\"");
    refuse(&google__protobuf__float_value__descriptor, "1e39", "must be a number in the range of a float");
}

static void test_float_has_the_fewest_digits(void **state)
{
    (void)state;
    static const struct {
        float value;
        double json;
    } rows[] = {
        {0.1f, 0.1},
        {-0.1f, -0.1},
        {5592405.7f, 5592405.5},
        {16777216.0f, 16777216.0},
        {16.000002f, 16.000002},
        {1000.00006f, 1000.00006},
        {3.40282347e38f, 3.4028235e38},
        {1e-45f, 1e-45},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        Google__Protobuf__FloatValue f = GOOGLE__PROTOBUF__FLOAT_VALUE__INIT;
        f.value = rows[i].value;
        json_t *json = tc_proto_to_json(&f.base, NULL);
        assert_true(json_real_value(json) == rows[i].json);
        assert_true((float)json_real_value(json) == f.value);
        json_decref(json);
    }
}

static void test_strings_bools_bytes(void **state)
{
    (void)state;
    same(&google__protobuf__string_value__descriptor, "\"\"");
    same(&google__protobuf__string_value__descriptor, "\"\xc3\xa4\\\"\"");
    refuse(&google__protobuf__string_value__descriptor, "1", "must be a string");
    same(&google__protobuf__bool_value__descriptor, "true");
    same(&google__protobuf__bool_value__descriptor, "false");
    refuse(&google__protobuf__bool_value__descriptor, "\"true\"", "must be true or false");
    refuse(&google__protobuf__bool_value__descriptor, "1", "must be true or false");
    same(&google__protobuf__bytes_value__descriptor, "\"\"");
    same(&google__protobuf__bytes_value__descriptor, "\"+/+/AA==\"");
    becomes(&google__protobuf__bytes_value__descriptor, "\"-_-_AA\"", "\"+/+/AA==\"");
    refuse(&google__protobuf__bytes_value__descriptor, "\"*\"", "must be a base64 string");
    refuse(&google__protobuf__bytes_value__descriptor, "5", "must be a base64 string");
}

static void test_enums(void **state)
{
    (void)state;
    same(CLUSTER, "{\"type\":\"EDS\",\"lb_policy\":\"RING_HASH\"}");
    becomes(CLUSTER, "{\"lbPolicy\":2}", "{\"lb_policy\":\"RING_HASH\"}");
    same(CLUSTER, "{\"lb_policy\":77}");
    becomes(CLUSTER, "{\"lb_policy\":\"ROUND_ROBIN\"}", "{}");
    same(CLUSTER, "{\"type\":\"STATIC\"}"); /* a member of a oneof shows even at its default */
    refuse(CLUSTER, "{\"lb_policy\":\"ring_hash\"}",
           "field lb_policy: unknown value ring_hash of enum envoy.config.cluster.v3.Cluster.LbPolicy");
    refuse(CLUSTER, "{\"lb_policy\":true}", "field lb_policy: must be the name or number of an enum value");
    refuse(CLUSTER, "{\"lb_policy\":\"2\"}",
           "field lb_policy: unknown value 2 of enum envoy.config.cluster.v3.Cluster.LbPolicy");
    round_trip(CLUSTER, "{\"name\":\"c\",\"lb_policy\":\"NEW\",\"type\":\"NEW\"}", &lenient, "{\"name\":\"c\"}");
    const ProtobufCMessageDescriptor *statuses = &envoy__config__core__v3__health_status_set__descriptor;
    becomes(statuses, "{\"statuses\":[\"UNKNOWN\",3,\"HEALTHY\"]}",
            "{\"statuses\":[\"UNKNOWN\",\"DRAINING\",\"HEALTHY\"]}");
    round_trip(statuses, "{\"statuses\":[\"NEW\",\"HEALTHY\"]}", &lenient, "{\"statuses\":[\"HEALTHY\"]}");
    refuse(statuses, "{\"statuses\":[\"HEALTHY\",null]}", "field statuses[1]: must be a value, not null");
    refuse(statuses, "{\"statuses\":{}}", "field statuses: must be a list");
}

static void test_oneofs(void **state)
{
    (void)state;
    same(ROUTE, "{\"match\":{\"prefix\":\"\"},\"route\":{\"cluster\":\"c\"}}");
    becomes(ROUTE, "{\"match\":{\"prefix\":\"/\",\"path\":null}}", "{\"match\":{\"prefix\":\"/\"}}");
    refuse(ROUTE, "{\"match\":{\"prefix\":\"/\",\"path\":\"/\"}}",
           "field match.path: cannot be set together with prefix");
    refuse(ROUTE_ACTION, "{\"cluster\":\"a\",\"weighted_clusters\":{}}",
           "field weighted_clusters: cannot be set together with cluster");
}

static void test_wrappers_in_messages(void **state)
{
    (void)state;
    same(ROUTE, "{\"match\":{\"prefix\":\"/\",\"case_sensitive\":false}}");
    becomes(ROUTE, "{\"match\":{\"caseSensitive\":null}}", "{\"match\":{}}");
    same(CLUSTER, "{\"ring_hash_lb_config\":{\"minimum_ring_size\":\"0\",\"maximum_ring_size\":\"8388608\"}}");
    refuse(CLUSTER, "{\"ring_hash_lb_config\":{\"minimum_ring_size\":{\"value\":1}}}",
           "field ring_hash_lb_config.minimum_ring_size: must be an unsigned integer of 64 bits");
}

static void test_durations(void **state)
{
    (void)state;
    static const char *const good[][2] = {
        {"0s", "0s"},
        {"1s", "1s"},
        {"1.5s", "1.500s"},
        {"-1.5s", "-1.500s"},
        {"-0.5s", "-0.500s"},
        {"0.000001s", "0.000001s"},
        {"3.0s", "3s"},
        {"0.000000001s", "0.000000001s"},
        {"315576000000s", "315576000000s"},
    };
    static const char *const bad[] = {
        "1", "", "s", "1.s", ".5s", "1.0000000000s", "1 s", "+1s", "1.5S", "--1s", "315576000001s", "0x1s", "1m"};
    char text[64], want[64];
    for (size_t i = 0; i < TC_ARRAY_LEN(good); i++) {
        snprintf(text, sizeof(text), "\"%s\"", good[i][0]);
        snprintf(want, sizeof(want), "\"%s\"", good[i][1]);
        becomes(DURATION, text, want);
    }
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        snprintf(text, sizeof(text), "\"%s\"", bad[i]);
        refuse(DURATION, text, "must be a duration such as \"1.5s\"");
    }
    refuse(DURATION, "1", "must be a duration such as \"1.5s\"");
    refuse(CLUSTER, "{\"outlier_detection\":{\"interval\":\"x\"}}",
           "field outlier_detection.interval: must be a duration such as \"1.5s\"");
}

static void test_timestamps(void **state)
{
    (void)state;
    static const char *const good[][2] = {
        {"1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
        {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
        {"9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"},
        {"2024-02-29T12:30:45.5Z", "2024-02-29T12:30:45.500Z"},
        {"1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"},
        {"2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z"},
        {"2026-12-31T23:30:00-01:00", "2027-01-01T00:30:00Z"},
        {"1900-02-28T23:59:59Z", "1900-02-28T23:59:59Z"},
        {"2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"},
    };
    static const char *const bad[] = {"",
                                      "2026-01-01",
                                      "2026-01-01T00:00:00",
                                      "2026-13-01T00:00:00Z",
                                      "2026-00-01T00:00:00Z",
                                      "2023-02-29T00:00:00Z",
                                      "1900-02-29T00:00:00Z",
                                      "2026-01-01T24:00:00Z",
                                      "2026-01-01T00:00:60Z",
                                      "2026-01-01T00:00:00.Z",
                                      "2026-01-01 00:00:00Z",
                                      "2026-01-01T00:00:00Zx",
                                      "2026-01-01T00:00:00+1:00",
                                      "0000-01-01T00:00:00Z",
                                      "0001-01-01T00:00:00+00:01"};
    char text[64], want[64];
    for (size_t i = 0; i < TC_ARRAY_LEN(good); i++) {
        snprintf(text, sizeof(text), "\"%s\"", good[i][0]);
        snprintf(want, sizeof(want), "\"%s\"", good[i][1]);
        becomes(TIMESTAMP, text, want);
    }
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        snprintf(text, sizeof(text), "\"%s\"", bad[i]);
        refuse(TIMESTAMP, text, "must be a time such as \"2026-01-02T03:04:05Z\"");
    }
    Google__Protobuf__Timestamp t = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    t.seconds = 1000000000;
    char *out = print(&t.base, NULL);
    assert_string_equal(out, "\"2001-09-09T01:46:40Z\"");
    tc_free(out);
}

static void test_times_out_of_range_are_shown(void **state)
{
    (void)state;
    Google__Protobuf__Duration d = GOOGLE__PROTOBUF__DURATION__INIT;
    d.seconds = INT64_MIN;
    d.nanos = 5;
    char *out = print(&d.base, NULL);
    assert_string_equal(out, "{\"seconds\":\"-9223372036854775808\",\"nanos\":5}");
    tc_free(out);
    Google__Protobuf__Timestamp t = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    t.nanos = -1;
    out = print(&t.base, NULL);
    assert_string_equal(out, "{\"nanos\":-1}");
    tc_free(out);
}

static void test_struct_and_value(void **state)
{
    (void)state;
    same(STRUCT, "{}");
    same(STRUCT, "{\"n\":null,\"b\":true,\"d\":1.5,\"s\":\"x\",\"l\":[null,[],{}],\"o\":{\"a\":{\"b\":\"c\"}}}");
    same(VALUE, "null");
    same(VALUE, "[1.0,\"a\",false]");
    same(NODE, "{\"metadata\":{\"TRAFFICDIRECTOR_NETWORK\":\"vpc\",\"n\":null}}");
    becomes(VALUE, "7", "7.0");
    refuse(STRUCT, "[]", "must be an object");
    refuse(&google__protobuf__list_value__descriptor, "{}", "must be a list");
    Google__Protobuf__Value unset = GOOGLE__PROTOBUF__VALUE__INIT;
    char *out = print(&unset.base, NULL);
    assert_string_equal(out, "null");
    tc_free(out);
}

static void test_maps(void **state)
{
    (void)state;
    same(ORCA, "{\"request_cost\":{\"a\":1.5,\"b\":0.0}}");
    refuse(ORCA, "{\"request_cost\":{\"a\":\"x\",\"b\":null}}",
           "field request_cost[\"a\"]: must be a number; field request_cost[\"b\"]: must be a value, not null");
    refuse(ORCA, "{\"request_cost\":[]}", "field request_cost: must be an object");
    same(ROUTE, "{\"typed_per_filter_config\":{\"router\":{\"@type\":\"" URL
                "envoy.extensions.filters.http.router.v3.Router\"}}}");
    /* the last entry of a key wins; a missing key or value is the default */
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m;
    static const char bytes[] = "\x42\x0c\x0a\x01"
                                "a\x11\0\0\0\0\0\0\xf0\x3f\x42\x03\x0a\x01"
                                "b\x42\x0c\x0a\x01"
                                "a\x11\0\0\0\0\0\0\x00\x40\x42\x00";
    tc_arena_init(&arena, 0, 0);
    assert_int_equal(tc_unpack(ORCA, tc_slice_of(bytes, sizeof(bytes) - 1), NULL, &arena, &m, &errors), 0);
    char *out = print(m, NULL);
    assert_string_equal(out, "{\"named_metrics\":{\"a\":2.0,\"b\":0.0,\"\":0.0}}");
    tc_free(out);
    /* filter_metadata {"k": no Struct} and fields {"k": no Value} */
    const ProtobufCMessageDescriptor *metadata = &envoy__config__core__v3__metadata__descriptor;
    assert_int_equal(tc_unpack(metadata, tc_slice_str("\x0a\x03\x0a\x01k"), NULL, &arena, &m, &errors), 0);
    out = print(m, NULL);
    assert_string_equal(out, "{\"filter_metadata\":{\"k\":{}}}");
    tc_free(out);
    assert_int_equal(tc_unpack(STRUCT, tc_slice_str("\x0a\x03\x0a\x01k"), NULL, &arena, &m, &errors), 0);
    out = print(m, NULL);
    assert_string_equal(out, "{\"k\":null}");
    tc_free(out);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

/* A map entry without its message has the JSON of an empty message, whichever form the type has. */
static void test_map_entry_without_its_message(void **state)
{
    (void)state;
    static const struct {
        const ProtobufCMessageDescriptor *type;
        const char *json;
    } cases[] = {
        {DURATION, "\"0s\""},
        {TIMESTAMP, "\"1970-01-01T00:00:00Z\""},
        {&google__protobuf__list_value__descriptor, "[]"},
        {&google__protobuf__bool_value__descriptor, "false"},
        {STRUCT, "{}"},
        {ANY, "{}"},
        {NODE, "{}"},
        {VALUE, "null"},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        /* filter_metadata of Metadata, with another type of values */
        ProtobufCMessageDescriptor outer = envoy__config__core__v3__metadata__descriptor;
        ProtobufCMessageDescriptor inner = envoy__config__core__v3__metadata__filter_metadata_entry__descriptor;
        ProtobufCFieldDescriptor map = outer.fields[0], members[] = {inner.fields[0], inner.fields[1]};
        outer.n_fields = 1;
        outer.fields = &map;
        map.descriptor = &inner;
        inner.fields = members;
        members[1].descriptor = cases[i].type;
        char key[] = "k";
        Envoy__Config__Core__V3__Metadata__FilterMetadataEntry entry = {{&inner, 0, NULL}, key, NULL};
        Envoy__Config__Core__V3__Metadata__FilterMetadataEntry *entries = &entry;
        Envoy__Config__Core__V3__Metadata m = {
            .base = {&outer, 0, NULL}, .n_filter_metadata = 1, .filter_metadata = &entries};
        char *out = print(&m.base, NULL), *want = tc_asprintf("{\"filter_metadata\":{\"k\":%s}}", cases[i].json);
        assert_string_equal(out, want);
        tc_free(want);
        tc_free(out);
    }
}

static void test_any(void **state)
{
    (void)state;
    same(ANY, "{}");
    same(ANY, "{\"@type\":\"" URL "envoy.config.cluster.v3.Cluster\",\"name\":\"c\"}");
    same(ANY, "{\"@type\":\"" URL "google.protobuf.Empty\"}");
    same(ANY, "{\"@type\":\"" URL "google.protobuf.Duration\",\"value\":\"1.500s\"}");
    same(ANY, "{\"@type\":\"" URL "google.protobuf.StringValue\",\"value\":\"x\"}");
    same(ANY, "{\"@type\":\"" URL "google.protobuf.Struct\",\"value\":{\"a\":null}}");
    same(ANY, "{\"@type\":\"" URL "google.protobuf.Any\",\"value\":{\"@type\":\"" URL
              "envoy.config.core.v3.Locality\",\"zone\":\"z\"}}");
    becomes(ANY, "{\"zone\":\"z\",\"@type\":\"x/envoy.config.core.v3.Locality\"}",
            "{\"@type\":\"x/envoy.config.core.v3.Locality\",\"zone\":\"z\"}");
    refuse(ANY, "{\"zone\":\"z\"}", "field @type: must be a type URL");
    refuse(ANY, "{\"@type\":5}", "field @type: must be a type URL");
    refuse(ANY, "{\"@type\":\"" URL "a.B\",\"c\":1}", "field @type: unknown type " URL "a.B");
    refuse(ANY, "{\"@type\":\"" URL "envoy.config.cluster.v3.Cluster\",\"nam\":\"c\"}",
           "field nam: unknown field of envoy.config.cluster.v3.Cluster");
    refuse(ANY, "{\"@type\":\"" URL "google.protobuf.Duration\",\"value\":\"1\"}",
           "field value: must be a duration such as \"1.5s\"");
    refuse(ANY, "{\"@type\":\"" URL "google.protobuf.Duration\"}", "must be an object of @type and value");
    refuse(ANY, "3", "must be an object");
}

static void test_any_of_unknown_type(void **state)
{
    (void)state;
    same(ANY, "{\"@type\":\"" URL "a.B\",\"value\":\"CAE=\"}");
    refuse(ANY, "{\"@type\":\"" URL "a.B\",\"value\":\"*\"}", "field value: must be a base64 string");
    /* bytes that are not of the type that the URL names */
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    char url[] = URL "envoy.config.core.v3.Locality";
    uint8_t bytes[] = {0x0a, 0x05, 'x'};
    any.type_url = url;
    any.value.data = bytes;
    any.value.len = sizeof(bytes);
    char *out = print(&any.base, NULL);
    assert_string_equal(out, "{\"@type\":\"" URL "envoy.config.core.v3.Locality\",\"value\":\"CgV4\"}");
    tc_free(out);
    /* type URLs that are not UTF-8, of a known and of an unknown type */
    char broken[] = "\xff/envoy.config.core.v3.Locality", unknown[] = "\xff/a.B";
    any.type_url = broken;
    assert_null(print(&any.base, NULL));
    any.value.len = 0;
    assert_null(print(&any.base, NULL));
    any.type_url = unknown;
    assert_null(print(&any.base, NULL));
    any.value.len = sizeof(bytes);
    /* types whose JSON in an Any has a member `value`: bytes that are not of the type are `@value` */
    static const char *const valued[] = {"google.protobuf.StringValue", "google.protobuf.Any",
                                         "envoy.config.core.v3.HeaderValue"};
    for (size_t i = 0; i < TC_ARRAY_LEN(valued); i++) {
        char *text = tc_asprintf("{\"@type\":\"" URL "%s\",\"@value\":\"CgV4\"}", valued[i]);
        any.type_url = tc_asprintf(URL "%s", valued[i]);
        out = print(&any.base, NULL);
        assert_string_equal(out, text);
        same(ANY, text);
        tc_free(any.type_url);
        tc_free(out);
        tc_free(text);
    }
    same(ANY, "{\"@type\":\"" URL "envoy.config.core.v3.Locality\",\"value\":\"CgV4\"}");
    refuse(ANY, "{\"@type\":\"" URL "envoy.config.core.v3.Locality\",\"value\":\"*\"}",
           "field value: must be a base64 string");
    /* HeaderValue has a field `value`, which is text, not base64. */
    same(ANY, "{\"@type\":\"" URL "envoy.config.core.v3.HeaderValue\",\"value\":\"CgV4\"}");
}

/* Returns `open` n times, then `middle`, then `close` n times, for tc_free. */
static char *nested(size_t n, const char *open, const char *middle, const char *close)
{
    struct tc_buf text = {0};
    for (size_t i = 0; i < n; i++)
        tc_buf_append_str(&text, open);
    tc_buf_append_str(&text, middle);
    for (size_t i = 0; i < n; i++)
        tc_buf_append_str(&text, close);
    return tc_buf_take(&text);
}

static void test_depth(void **state)
{
    (void)state;
    char *deep = nested(50, "[", "null", "]");
    same(VALUE, deep);
    tc_free(deep);
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m = NULL;
    tc_arena_init(&arena, 0, 0);
    deep = nested(51, "[", "null", "]");
    json_t *json = parse(deep);
    assert_int_equal(tc_proto_from_json(VALUE, json, NULL, &arena, &m, &errors), TORC_EPARSE);
    assert_non_null(strstr(tc_validation_text(&errors), "more than 100 messages within each other"));
    json_decref(json);
    tc_free(deep);
    deep = nested(500, "{\"@type\":\"" URL "google.protobuf.Any\",\"value\":", "{}", "}");
    json = parse(deep);
    assert_int_equal(tc_proto_from_json(ANY, json, NULL, &arena, &m, &errors), TORC_EPARSE);
    json_decref(json);
    tc_free(deep);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    /* An Any on the last level, whose message is on that level too. */
    deep = nested(TC_PROTO_JSON_MAX_DEPTH, "{\"@type\":\"" URL "google.protobuf.Any\",\"value\":",
                  "{\"@type\":\"" URL "envoy.config.core.v3.Locality\",\"zone\":\"z\"}", "}");
    same(ANY, deep);
    tc_free(deep);
}

/* A message that is nested deeper than TC_PROTO_JSON_MAX_DEPTH has no JSON. An Any that holds such a message shows the
 * message as bytes. */
static void test_depth_of_output(void **state)
{
    (void)state;
    enum { LEVELS = 60 };
    Google__Protobuf__Value values[LEVELS];
    Google__Protobuf__ListValue lists[LEVELS];
    Google__Protobuf__Value *items[LEVELS];
    for (size_t i = 0; i < LEVELS; i++) {
        google__protobuf__value__init(&values[i]);
        google__protobuf__list_value__init(&lists[i]);
        if (i + 1 == LEVELS)
            break;
        items[i] = &values[i + 1];
        lists[i].n_values = 1;
        lists[i].values = &items[i];
        values[i].kind_case = GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE;
        values[i].list_value = &lists[i];
    }
    assert_null(tc_proto_to_json(&values[0].base, NULL));
    char *out = print(&values[LEVELS - 2].base, NULL);
    assert_string_equal(out, "[null]");
    tc_free(out);
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    char url[] = URL "google.protobuf.Value";
    any.type_url = url;
    any.value.len = protobuf_c_message_get_packed_size(&values[0].base);
    any.value.data = tc_malloc(any.value.len);
    protobuf_c_message_pack(&values[0].base, any.value.data);
    json_t *json = tc_proto_to_json(&any.base, NULL);
    assert_true(json_is_string(json_object_get(json, "@value")));
    json_decref(json);
    tc_free(any.value.data);
}

static void test_budget(void **state)
{
    (void)state;
    json_t *json = parse("{\"name\":\"orders\",\"metadata\":{\"filter_metadata\":{\"a\":{\"b\":[1,2,3]}}},"
                         "\"cluster_type\":{\"name\":\"x\",\"typed_config\":{\"@type\":\"" URL
                         "envoy.extensions.clusters.aggregate.v3.ClusterConfig\",\"clusters\":[\"a\",\"b\"]}}}");
    int rv = TORC_ELIMIT;
    size_t failures = 0;
    for (size_t budget = 16; rv != 0; budget += 16, failures++) {
        struct tc_arena arena;
        struct tc_validation_errors errors = {0};
        ProtobufCMessage *m = NULL;
        tc_arena_init(&arena, 64, budget);
        rv = tc_proto_from_json(CLUSTER, json, NULL, &arena, &m, &errors);
        assert_true(rv == 0 || rv == TORC_ELIMIT);
        assert_int_equal(rv == 0, m != NULL);
        assert_int_equal(rv != 0, tc_validation_any(&errors));
        tc_validation_fini(&errors);
        tc_arena_fini(&arena);
    }
    assert_true(failures > 10);
    json_decref(json);
}

static void test_resource_as_files_have_it(void **state)
{
    (void)state;
    same(&envoy__config__route__v3__route_configuration__descriptor,
         "{\"name\":\"orders\",\"virtual_hosts\":[{\"name\":\"v\",\"domains\":[\"*\"],\"routes\":[{\"match\":{"
         "\"headers\":[{\"name\":\"x\",\"range_match\":{\"start\":\"1\",\"end\":\"5\"}}],\"runtime_fraction\":{"
         "\"default_value\":{\"numerator\":1,\"denominator\":\"MILLION\"}},\"safe_regex\":{\"google_re2\":{},"
         "\"regex\":\"/a.*\"}},\"route\":{\"weighted_clusters\":{\"clusters\":[{\"name\":\"a\",\"weight\":1},{"
         "\"name\":\"b\",\"weight\":0}]},\"hash_policy\":[{\"header\":{\"header_name\":\"k\"},\"terminal\":true},{"
         "\"filter_state\":{\"key\":\"io.grpc.channel_id\"}}],\"max_stream_duration\":{\"max_stream_duration\":"
         "\"0s\"}}}],\"retry_policy\":{\"retry_on\":\"unavailable\",\"num_retries\":2}}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_fields),
        cmocka_unit_test(test_unknown_fields),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_float_has_the_fewest_digits),
        cmocka_unit_test(test_strings_bools_bytes),
        cmocka_unit_test(test_enums),
        cmocka_unit_test(test_oneofs),
        cmocka_unit_test(test_wrappers_in_messages),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_timestamps),
        cmocka_unit_test(test_times_out_of_range_are_shown),
        cmocka_unit_test(test_struct_and_value),
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_map_entry_without_its_message),
        cmocka_unit_test(test_any),
        cmocka_unit_test(test_any_of_unknown_type),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_depth_of_output),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_resource_as_files_have_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
