/* proto/unpack: messages in an arena, the arena's budget, hostile messages, maps. proto/types: the index of types.
 *
 * Messages are written byte by byte, as the wire has them (BYTES), or as JSON that `wire` packs. A test that unpacks
 * makes arenas of its own; an arena owns the unpacked message until tc_arena_fini. An arena with the budget 0 has no
 * limit. One thread. test_hostile_sizes_stay_small measures the memory of the process: what earlier tests freed may
 * still be resident, and hides some of the growth. */
#include "proto/unpack.h"

#include <stdlib.h>

#include "base/mem.h"
#include "pb/envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"
#include "pb/google/protobuf/struct.pb-c.h"
#include "pb/xds/data/orca/v3/orca_load_report.pb-c.h"
#include "proto/json.h"
#include "support/cmocka.h"
#include "support/footprint.h"

#define BYTES(literal) tc_slice_of(literal, sizeof(literal) - 1)
#define ASSIGNMENT &envoy__config__endpoint__v3__cluster_load_assignment__descriptor

typedef Envoy__Config__Endpoint__V3__ClusterLoadAssignment Assignment;
typedef Envoy__Config__Core__V3__Node Node;

/* Appends the packed message to `out`. Returns all of `out`, borrowed until it changes. */
static struct tc_slice packed(struct tc_buf *out, const ProtobufCMessage *m)
{
    char *to = tc_buf_reserve(out, protobuf_c_message_get_packed_size(m));
    out->len += protobuf_c_message_pack(m, (uint8_t *)to);
    return tc_buf_slice(out);
}

/* Appends the message that the JSON `text` describes, packed, to `out`. Returns all of `out`, borrowed until it
 * changes. */
static struct tc_slice wire(struct tc_buf *out, const ProtobufCMessageDescriptor *type, const char *text)
{
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m = NULL;
    char *why = NULL;
    json_t *json = tc_json_parse(tc_slice_str(text), &why);
    assert_non_null(json);
    tc_arena_init(&arena, 0, 0);
    if (tc_proto_from_json(type, json, NULL, &arena, &m, &errors) != 0)
        fail_msg("%s", tc_validation_text(&errors));
    packed(out, m);
    json_decref(json);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    return tc_buf_slice(out);
}

static const char assignment_text[] =
    "{\"cluster_name\": \"orders\", \"endpoints\": [{\"locality\": {\"zone\": \"a\"}, \"priority\": 1,"
    " \"load_balancing_weight\": 3, \"lb_endpoints\": [{\"endpoint\": {\"address\": {\"socket_address\":"
    " {\"address\": \"10.0.0.1\", \"port_value\": 80}}, \"additional_addresses\": [{\"address\": {\"pipe\":"
    " {\"path\": \"/p\"}}}]}, \"metadata\": {\"filter_metadata\": {\"envoy.lb\": {\"hash_key\": \"k\", \"list\":"
    " [1, true, null, {\"a\": \"b\"}]}}}}]}], \"policy\": {\"drop_overloads\": [{\"category\": \"c\"}]}}";

static void test_message_in_arena(void **state)
{
    (void)state;
    struct tc_buf bytes = {0};
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m;
    tc_arena_init(&arena, 0, 0);
    wire(&bytes, ASSIGNMENT, assignment_text);
    assert_int_equal(tc_unpack(ASSIGNMENT, tc_buf_slice(&bytes), NULL, &arena, &m, &errors), 0);
    tc_buf_fini(&bytes); /* the message does not point into its bytes */
    Assignment *a = (Assignment *)m;
    assert_string_equal(a->cluster_name, "orders");
    assert_int_equal(a->n_endpoints, 1);
    assert_int_equal(a->endpoints[0]->priority, 1);
    assert_int_equal(a->endpoints[0]->load_balancing_weight->value, 3);
    Envoy__Config__Core__V3__Address *address = a->endpoints[0]->lb_endpoints[0]->endpoint->address;
    assert_int_equal(address->address_case, ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS);
    assert_string_equal(address->socket_address->address, "10.0.0.1");
    assert_int_equal(address->socket_address->port_value, 80);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

static void test_unknown_fields_leave_no_trace(void **state)
{
    (void)state;
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m;
    tc_arena_init(&arena, 0, 0);
    struct tc_slice in = BYTES("\x22\x0a\x0a\x02"
                               "eu\x98\x06\x05\x12\x01z\x0a\x01n\x9a\x06\x01x\x08\x07");
    assert_int_equal(tc_unpack(&envoy__config__core__v3__node__descriptor, in, NULL, &arena, &m, &errors), 0);
    Node *node = (Node *)m;
    assert_string_equal(node->id, "n");
    assert_string_equal(node->locality->region, "eu");
    assert_string_equal(node->locality->zone, "z");
    assert_int_equal(m->n_unknown_fields, 0);
    assert_int_equal(node->locality->base.n_unknown_fields, 0);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

/* Where tc_scan strips fields, the length of the message around them keeps its width: here the length 3 has two
 * bytes. */
static void test_padded_lengths_unpack(void **state)
{
    (void)state;
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    struct tc_buf in = {0};
    ProtobufCMessage *m;
    tc_arena_init(&arena, 0, 0);
    tc_buf_append(&in, "\x22\xcc\x01\x0a\x01r\x9a\x06\xc5\x01", 10);
    for (int i = 0; i < 197; i++)
        tc_buf_append_char(&in, 'x');
    tc_buf_append(&in, "\x0a\x01n", 3);
    assert_int_equal(
        tc_unpack(&envoy__config__core__v3__node__descriptor, tc_buf_slice(&in), NULL, &arena, &m, &errors), 0);
    assert_string_equal(((Node *)m)->locality->region, "r");
    assert_string_equal(((Node *)m)->id, "n");
    tc_buf_fini(&in);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

static void test_repeated_singular_fields(void **state)
{
    (void)state;
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m;
    tc_arena_init(&arena, 0, 0);
    /* Of a scalar the last value counts, messages are merged, of a oneof the last member stays. */
    struct tc_slice in = BYTES("\x0a\x01"
                               "a\x0a\x01"
                               "b\x22\x03\x0a\x01r\x22\x03\x12\x01z");
    assert_int_equal(tc_unpack(&envoy__config__core__v3__node__descriptor, in, NULL, &arena, &m, &errors), 0);
    assert_string_equal(((Node *)m)->id, "b");
    assert_string_equal(((Node *)m)->locality->region, "r");
    assert_string_equal(((Node *)m)->locality->zone, "z");
    struct tc_slice oneof = BYTES("\x1a\x01s\x32\x00\x20\x01");
    assert_int_equal(tc_unpack(&google__protobuf__value__descriptor, oneof, NULL, &arena, &m, &errors), 0);
    assert_int_equal(((Google__Protobuf__Value *)m)->kind_case, GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE);
    assert_true(((Google__Protobuf__Value *)m)->bool_value);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

static void test_packed_and_unpacked(void **state)
{
    (void)state;
    static const struct tc_slice forms[] = {
        {"\x0a\x03\x00\x01\x03", 5}, {"\x08\x00\x08\x01\x08\x03", 6}, {"\x08\x00\x0a\x02\x01\x03", 6}};
    for (size_t i = 0; i < TC_ARRAY_LEN(forms); i++) {
        struct tc_arena arena;
        struct tc_validation_errors errors = {0};
        ProtobufCMessage *m;
        tc_arena_init(&arena, 0, 0);
        assert_int_equal(
            tc_unpack(&envoy__config__core__v3__health_status_set__descriptor, forms[i], NULL, &arena, &m, &errors), 0);
        Envoy__Config__Core__V3__HealthStatusSet *set = (Envoy__Config__Core__V3__HealthStatusSet *)m;
        assert_int_equal(set->n_statuses, 3);
        assert_int_equal(set->statuses[0], 0);
        assert_int_equal(set->statuses[1], 1);
        assert_int_equal(set->statuses[2], 3);
        tc_validation_fini(&errors);
        tc_arena_fini(&arena);
    }
}

static void test_faults_of_scan_come_through(void **state)
{
    (void)state;
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m = NULL;
    tc_arena_init(&arena, 0, 0);
    assert_int_equal(tc_unpack(ASSIGNMENT, BYTES("\x0a\x01\xff"), NULL, &arena, &m, &errors), TORC_EPARSE);
    assert_string_equal(tc_validation_text(&errors), "field cluster_name: is not valid UTF-8");
    assert_null(m);
    assert_int_equal(arena.used, 0);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

/* Tries budgets of 16, 32, 48 bytes and so on until one suffices. A budget that is too small gives TORC_ELIMIT and no
 * message, whichever allocation fails. */
static void test_every_budget(void **state)
{
    (void)state;
    static const struct {
        const ProtobufCMessageDescriptor *type;
        const char *text;
        struct tc_slice bytes;
    } cases[] = {
        {ASSIGNMENT, assignment_text, {0}},
        {&envoy__config__core__v3__health_status_set__descriptor, NULL, {"\x0a\x03\x00\x01\x03\x08\x00", 7}},
        {&envoy__config__core__v3__node__descriptor,
         NULL,
         {"\x22\x03\x0a\x01r\x22\x06\x12\x01z\x0a\x01q\x0a\x01n", 16}},
        {&google__protobuf__value__descriptor, NULL, {"\x1a\x01s\x32\x00\x2a\x00\x1a\x01t", 10}},
        {&google__protobuf__any__descriptor, NULL, {"\x12\x03xyz\x12\x01q\x0a\x01t", 11}},
    };
    for (size_t i = 0; i < TC_ARRAY_LEN(cases); i++) {
        struct tc_buf bytes = {0};
        struct tc_slice in = cases[i].text ? wire(&bytes, cases[i].type, cases[i].text) : cases[i].bytes;
        struct tc_buf repeated = {0};
        for (int n = 0; n < 40; n++) /* so many fields that protobuf-c allocates tables, too */
            tc_buf_append_slice(&repeated, in);
        int rv = TORC_ELIMIT;
        size_t failures = 0;
        for (size_t budget = 16; rv != 0; budget += 16, failures++) {
            struct tc_arena arena;
            struct tc_validation_errors errors = {0};
            ProtobufCMessage *m = NULL;
            tc_arena_init(&arena, 64, budget);
            rv = tc_unpack(cases[i].type, tc_buf_slice(&repeated), NULL, &arena, &m, &errors);
            assert_true(rv == 0 || rv == TORC_ELIMIT);
            assert_int_equal(rv == 0, m != NULL);
            if (rv)
                assert_non_null(strstr(tc_validation_text(&errors), "bytes of memory"));
            assert_true(arena.used <= budget);
            tc_validation_fini(&errors);
            tc_arena_fini(&arena);
        }
        assert_true(failures > 3);
        tc_buf_fini(&bytes);
        tc_buf_fini(&repeated);
    }
}

/* A message with one byte changed is either refused or can be converted to JSON. */
static void test_any_byte(void **state)
{
    (void)state;
    struct tc_buf bytes = {0};
    wire(&bytes, ASSIGNMENT, assignment_text);
    for (size_t i = 0; i < bytes.len; i++) {
        char original = bytes.data[i];
        for (int byte = 0; byte < 256; byte++) {
            struct tc_arena arena;
            struct tc_validation_errors errors = {0};
            ProtobufCMessage *m = NULL;
            tc_arena_init(&arena, 0, tc_unpack_budget(bytes.len));
            bytes.data[i] = (char)byte;
            if (tc_unpack(ASSIGNMENT, tc_buf_slice(&bytes), NULL, &arena, &m, &errors) == 0) {
                json_t *json = tc_proto_to_json(m, NULL);
                assert_non_null(json);
                json_decref(json);
            } else {
                assert_true(tc_validation_any(&errors));
            }
            tc_validation_fini(&errors);
            tc_arena_fini(&arena);
        }
        bytes.data[i] = original;
    }
    tc_buf_fini(&bytes);
}

/* The limits of tc_scan refuse hostile messages; the budget refuses hostile messages that are within the limits. The
 * peak of resident memory grows by less than 20 MiB. */
static void test_hostile_sizes_stay_small(void **state)
{
    (void)state;
    struct tc_buf wide = {0}, unknown = {0}, many = {0};
    for (int i = 0; i < 200; i++) { /* 200 localities of 50,000 empty endpoints */
        tc_buf_append(&wide, "\x12\xa0\x8d\x06", 4);
        for (int j = 0; j < 50000; j++)
            tc_buf_append(&wide, "\x12\x00", 2);
    }
    tc_buf_append(&unknown, "\x0a\x01n", 3);
    while (unknown.len < 8u * 1024 * 1024)
        tc_buf_append(&unknown, "\x98\x06\x05", 3);
    for (int i = 0; i < 1000000; i++)
        tc_buf_append(&many, "\x12\x00", 2);
    struct footprint before = footprint_begin();
    static const size_t budget = 16u * 1024 * 1024;
    struct tc_slice inputs[] = {tc_buf_slice(&wide), tc_buf_slice(&many)};
    static const char *const texts[] = {"field endpoints[83].lb_endpoints: the message has more than 4194304 values",
                                        "field endpoints: occurs more than 65536 times"};
    for (size_t i = 0; i < 2; i++) {
        struct tc_arena arena;
        struct tc_validation_errors errors = {0};
        ProtobufCMessage *m;
        tc_arena_init(&arena, 0, budget);
        assert_int_equal(tc_unpack(ASSIGNMENT, inputs[i], NULL, &arena, &m, &errors), TORC_ELIMIT);
        assert_string_equal(tc_validation_text(&errors), texts[i]);
        tc_validation_fini(&errors);
        tc_arena_fini(&arena);
    }
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m;
    tc_arena_init(&arena, 0, budget);
    /* 20 localities of 50,000 endpoints are within the limits, but exceed the budget */
    struct tc_slice some = tc_slice_of(wide.data, wide.len / 10);
    assert_int_equal(tc_unpack(ASSIGNMENT, some, NULL, &arena, &m, &errors), TORC_ELIMIT);
    assert_non_null(strstr(tc_validation_text(&errors), "needs more than 16777216 bytes of memory"));
    tc_arena_fini(&arena);
    tc_arena_init(&arena, 0, budget);
    const ProtobufCMessageDescriptor *node = &envoy__config__core__v3__node__descriptor;
    assert_int_equal(tc_unpack(node, tc_buf_slice(&unknown), NULL, &arena, &m, &errors), TORC_ELIMIT);
    unknown.len = 3 + 3 * 1024 * 1024; /* 3 MiB of unknown fields, below the limit: stripped */
    assert_int_equal(tc_unpack(node, tc_buf_slice(&unknown), NULL, &arena, &m, &errors), 0);
    assert_true(arena.used < 1024);
    long grown_kb = footprint_since(&before).kb;
    if (FOOTPRINT_MEASURED)
        assert_true(grown_kb < 20 * 1024);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
    tc_buf_fini(&wide);
    tc_buf_fini(&unknown);
    tc_buf_fini(&many);
}

static void test_budget_follows_size(void **state)
{
    (void)state;
    assert_int_equal(tc_unpack_budget(0), 1024 * 1024);
    assert_int_equal(tc_unpack_budget(1024 * 1024), 32 * 1024 * 1024);
    assert_int_equal(tc_unpack_budget(SIZE_MAX), 512 * 1024 * 1024);
}

static void test_maps(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *s = &google__protobuf__struct__descriptor;
    const ProtobufCMessageDescriptor *orca = &xds__data__orca__v3__orca_load_report__descriptor;
    assert_true(tc_proto_is_map(s, protobuf_c_message_descriptor_get_field_by_name(s, "fields")));
    assert_true(tc_proto_is_map(orca, protobuf_c_message_descriptor_get_field_by_name(orca, "request_cost")));
    assert_false(tc_proto_is_map(orca, protobuf_c_message_descriptor_get_field_by_name(orca, "eps")));
    const ProtobufCMessageDescriptor *a = ASSIGNMENT;
    assert_false(tc_proto_is_map(a, protobuf_c_message_descriptor_get_field_by_name(a, "endpoints")));
    struct tc_arena arena;
    struct tc_validation_errors errors = {0};
    ProtobufCMessage *m;
    tc_arena_init(&arena, 0, 0);
    /* named_metrics {"a": 1.0}, {"b": 0}, {"a": 2.0}: the last wins */
    struct tc_slice in = BYTES("\x42\x0c\x0a\x01"
                               "a\x11\0\0\0\0\0\0\xf0\x3f\x42\x03\x0a\x01"
                               "b\x42\x0c\x0a\x01"
                               "a\x11\0\0\0\0\0\0\x00\x40");
    assert_int_equal(tc_unpack(orca, in, NULL, &arena, &m, &errors), 0);
    Xds__Data__Orca__V3__OrcaLoadReport *r = (Xds__Data__Orca__V3__OrcaLoadReport *)m;
    assert_int_equal(r->n_named_metrics, 3);
    Xds__Data__Orca__V3__OrcaLoadReport__NamedMetricsEntry *e =
        tc_proto_map_get((void *const *)r->named_metrics, r->n_named_metrics, "a");
    assert_true(e->value == 2.0);
    assert_null(tc_proto_map_get((void *const *)r->named_metrics, r->n_named_metrics, "c"));
    r->n_named_metrics = tc_proto_map_dedupe((void **)r->named_metrics, r->n_named_metrics);
    assert_int_equal(r->n_named_metrics, 2);
    assert_string_equal(r->named_metrics[0]->key, "b");
    assert_string_equal(r->named_metrics[1]->key, "a");
    assert_true(r->named_metrics[1]->value == 2.0);
    assert_int_equal(tc_proto_map_dedupe(NULL, 0), 0);
    tc_validation_fini(&errors);
    tc_arena_fini(&arena);
}

static void test_types(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *type;
    size_t n = 0;
    for (; (type = tc_proto_type_at(n)); n++) {
        assert_ptr_equal(tc_proto_type(tc_slice_str(type->name)), type);
        if (n)
            assert_true(strcmp(tc_proto_type_at(n - 1)->name, type->name) < 0);
    }
    assert_true(n > 100);
    assert_null(tc_proto_type(BYTES("")));
    assert_null(tc_proto_type(BYTES("envoy.config.cluster.v3.Cluste")));
    assert_null(tc_proto_type(BYTES("envoy.config.cluster.v3.Clusters")));
    assert_null(tc_proto_type(BYTES("a")));
    assert_null(tc_proto_type(BYTES("zzz")));
    assert_non_null(tc_proto_type_of_url(BYTES("type.googleapis.com/envoy.config.cluster.v3.Cluster")));
    assert_non_null(tc_proto_type_of_url(BYTES("a/b/envoy.config.cluster.v3.Cluster")));
    assert_null(tc_proto_type_of_url(BYTES("envoy.config.cluster.v3.Cluster")));
    assert_null(tc_proto_type_of_url(BYTES("type.googleapis.com/")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message_in_arena),
        cmocka_unit_test(test_unknown_fields_leave_no_trace),
        cmocka_unit_test(test_padded_lengths_unpack),
        cmocka_unit_test(test_repeated_singular_fields),
        cmocka_unit_test(test_packed_and_unpacked),
        cmocka_unit_test(test_faults_of_scan_come_through),
        cmocka_unit_test(test_every_budget),
        cmocka_unit_test(test_any_byte),
        cmocka_unit_test(test_hostile_sizes_stay_small),
        cmocka_unit_test(test_budget_follows_size),
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
