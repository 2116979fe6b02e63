/* proto/scan: messages that it accepts and refuses, fields that it strips, and the bound on its memory.
 *
 * Messages are written byte by byte, as the wire has them (BYTES), or are built in memory that the test frees. `accept`
 * asserts that a message is accepted and what is left of it. `refuse` and `refuse_with` assert the whole text of the
 * error. These three make and free output and errors of their own; tests that call tc_scan do so themselves. One
 * thread. test_hostile_sizes_stay_small measures the memory of the process: what earlier tests freed may still be
 * resident, and hides some of the growth. */
#include <string.h>

#include "proto/scan.h"

#include <stdio.h>

#include "base/mem.h"
#include "grpc/testing/messages.pb-c.h"
#include "pb/envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "pb/envoy/config/route/v3/route.pb-c.h"
#include "pb/envoy/service/discovery/v3/discovery.pb-c.h"
#include "pb/google/protobuf/struct.pb-c.h"
#include "support/cmocka.h"
#include "support/footprint.h"

#define NODE &envoy__config__core__v3__node__descriptor
#define LOCALITY &envoy__config__core__v3__locality__descriptor
#define ASSIGNMENT &envoy__config__endpoint__v3__cluster_load_assignment__descriptor
#define VALUE &google__protobuf__value__descriptor

#define BYTES(literal) tc_slice_of(literal, sizeof(literal) - 1)

/* Asserts that the scan accepts the message and gives `want` (NULL: the input itself, uncopied). */
static void accept(const ProtobufCMessageDescriptor *type, struct tc_slice in, const struct tc_slice *want)
{
    struct tc_buf clean = {0};
    struct tc_validation_errors errors = {0};
    struct tc_slice out;
    assert_int_equal(tc_scan(type, in, NULL, &clean, &out, &errors), 0);
    assert_false(tc_validation_any(&errors));
    if (want) {
        assert_int_equal(out.len, want->len);
        assert_memory_equal(out.data, want->data, want->len);
    } else {
        assert_ptr_equal(out.data, in.data);
        assert_int_equal(out.len, in.len);
        assert_null(clean.data);
    }
    tc_validation_fini(&errors);
    tc_buf_fini(&clean);
}

/* Asserts that the scan refuses the message with this error and this text, and leaves the output slice and the path of
 * `errors` as they were. `options` may be NULL: the defaults. */
static void refuse_with(const ProtobufCMessageDescriptor *type, struct tc_slice in,
                        const struct tc_scan_options *options, int error, const char *text)
{
    struct tc_buf clean = {0};
    struct tc_validation_errors errors = {0};
    struct tc_slice out = BYTES("untouched");
    assert_int_equal(tc_scan(type, in, options, &clean, &out, &errors), error);
    assert_string_equal(tc_validation_text(&errors), text);
    assert_true(tc_slice_eq_str(out, "untouched"));
    assert_int_equal(errors.path.len, 0);
    tc_validation_fini(&errors);
    tc_buf_fini(&clean);
}

static void refuse(const ProtobufCMessageDescriptor *type, struct tc_slice in, const char *text)
{
    refuse_with(type, in, NULL, TORC_EPARSE, text);
}

static void test_known_fields_pass_uncopied(void **state)
{
    (void)state;
    accept(NODE, BYTES(""), NULL);
    accept(NODE, tc_slice_of(NULL, 0), NULL);
    accept(NODE,
           BYTES("\x0a\x01n\x12\x01"
                 "c\x22\x05\x0a\x03"
                 "eu1"),
           NULL);
    accept(LOCALITY, BYTES("\x0a\x02\xc3\xa4\x12\x00"), NULL);
}

static void test_unknown_fields_are_stripped(void **state)
{
    (void)state;
    struct tc_slice want = BYTES("\x0a\x01n");
    /* field 99: a varint, a length, 64 and 32 bits; before, after, and on both sides of what stays */
    accept(NODE, BYTES("\x98\x06\x05\x0a\x01n"), &want);
    accept(NODE, BYTES("\x0a\x01n\x9a\x06\x02xx"), &want);
    accept(NODE,
           BYTES("\x99\x06"
                 "12345678\x0a\x01n\x9d\x06"
                 "1234"),
           &want);
    struct tc_slice nothing = BYTES("");
    accept(NODE, BYTES("\x98\x06\x05"), &nothing);
}

static void test_stripped_within_messages(void **state)
{
    (void)state;
    /* node{locality{region "eu" + unknown, zone "z"} id "n"}: the length is rewritten */
    struct tc_slice want = BYTES("\x22\x07\x0a\x02"
                                 "eu\x12\x01z\x0a\x01n");
    accept(NODE,
           BYTES("\x22\x0a\x0a\x02"
                 "eu\x98\x06\x05\x12\x01z\x0a\x01n"),
           &want);
    /* a length of two bytes keeps its width, padded */
    struct tc_buf in = {0};
    tc_buf_append(&in, "\x22\xcc\x01\x0a\x01r\x9a\x06\xc5\x01", 10);
    for (int i = 0; i < 197; i++)
        tc_buf_append_char(&in, 'x');
    struct tc_slice padded = BYTES("\x22\x83\x00\x0a\x01r");
    accept(NODE, tc_buf_slice(&in), &padded);
    tc_buf_fini(&in);
}

static void test_wrong_wire_type_is_unknown(void **state)
{
    (void)state;
    struct tc_slice nothing = BYTES("");
    accept(NODE, BYTES("\x08\x05"), &nothing); /* string as varint */
    accept(&google__protobuf__any__descriptor,
           BYTES("\x0d"
                 "1234"),
           &nothing);                                                                    /* string as 32 bits */
    accept(&envoy__config__core__v3__pipe__descriptor, BYTES("\x12\x01\x05"), &nothing); /* uint32 as bytes */
}

static void test_packed_and_unpacked(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *statuses = &envoy__config__core__v3__health_status_set__descriptor;
    accept(statuses, BYTES("\x0a\x03\x00\x01\x03"), NULL);
    accept(statuses, BYTES("\x08\x01\x08\x03\x0a\x00"), NULL);
    refuse(statuses, BYTES("\x0a\x02\x01\x80"), "field statuses: malformed packed values");
    struct tc_scan_options options = {.max_repeated = 2};
    refuse_with(statuses, BYTES("\x0a\x03\x00\x01\x03"), &options, TORC_ELIMIT,
                "field statuses: occurs more than 2 times");
}

static void test_malformed(void **state)
{
    (void)state;
    refuse(NODE, BYTES("\x80"), "malformed tag at byte 0");
    refuse(NODE, BYTES("\x8a\x80\x80\x80\x80\x00"), "malformed tag at byte 0");
    refuse(NODE, BYTES("\xfa\xff\xff\xff\x7f\x00"), "malformed tag at byte 0");
    refuse(NODE, BYTES("\x02\x00"), "field number 0 at byte 0");
    refuse(NODE, BYTES("\x0a\x01n\x0a"), "field number 1 is cut short at byte 3");
    refuse(NODE, BYTES("\x0a\x05n"), "field number 1 is cut short at byte 0");
    refuse(NODE, BYTES("\x0a\xff\xff\xff\xff\x0fn"), "field number 1 is cut short at byte 0");
    refuse(NODE, BYTES("\x98\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
           "field number 99 has a varint of more than 10 bytes at byte 0");
    refuse(NODE,
           BYTES("\x99\x06"
                 "1234567"),
           "field number 99 is cut short at byte 0");
    refuse(NODE,
           BYTES("\x9d\x06"
                 "123"),
           "field number 99 is cut short at byte 0");
    /* a string of an inner message that claims more bytes than the inner message has */
    refuse(NODE,
           BYTES("\x22\x03\x0a\x05"
                 "abcde"),
           "field locality: field number 1 is cut short at byte 2");
}

static void test_groups_are_refused(void **state)
{
    (void)state;
    refuse(NODE, BYTES("\x9b\x06\x9c\x06"), "field number 99 is a group or has no valid wire type");
    refuse(NODE, BYTES("\x0c"), "field number 1 is a group or has no valid wire type");
    refuse(NODE, BYTES("\x0e"), "field number 1 is a group or has no valid wire type");
}

static void test_strings(void **state)
{
    (void)state;
    refuse(NODE,
           BYTES("\x0a\x03"
                 "a\0b"),
           "field id: has a NUL character");
    refuse(NODE, BYTES("\x0a\x02\xc0\xaf"), "field id: is not valid UTF-8");
    refuse(ASSIGNMENT, BYTES("\x12\x00\x12\x07\x12\x05\x0a\x03\x1a\x01\xff"),
           "field endpoints[1].lb_endpoints[0].endpoint.hostname: is not valid UTF-8");
    struct tc_scan_options options = {.max_string_bytes = 3};
    refuse_with(NODE,
                BYTES("\x0a\x04"
                      "abcd"),
                &options, TORC_ELIMIT, "field id: 4 bytes, more than 3");
    /* bytes may hold anything */
    accept(&google__protobuf__any__descriptor, BYTES("\x12\x03\xff\x00\xc0"), NULL);
}

/* Appends the content of a Value: n lists within each other, of one Value each. So there are 2 * n messages within the
 * outermost Value. The innermost Value is empty. */
static void nested_values(struct tc_buf *out, size_t n)
{
    TC_VEC(size_t) sizes = {0};
    size_t inner = 0;
    for (size_t i = 0; i < n; i++) {
        *tc_vec_push(&sizes) = inner;
        for (int layer = 0; layer < 2; layer++) { /* ListValue.values, Value.list_value */
            size_t prefix = 1;
            for (size_t v = inner; v >= 0x80; v >>= 7)
                prefix++;
            inner += 1 + prefix;
            *tc_vec_push(&sizes) = inner;
        }
        sizes.len--;
    }
    /* sizes[i]: the length of a ListValue.values if i is even, of a Value.list_value if it is odd */
    for (size_t i = sizes.len; i-- > 0;) {
        tc_buf_append_char(out, i % 2 ? 0x32 : 0x0a);
        size_t v = sizes.data[i];
        for (; v >= 0x80; v >>= 7)
            tc_buf_append_char(out, (char)(v | 0x80));
        tc_buf_append_char(out, (char)v);
    }
    tc_vec_fini(&sizes);
}

static void test_depth(void **state)
{
    (void)state;
    struct tc_buf in = {0};
    nested_values(&in, 50); /* two messages each */
    accept(VALUE, tc_buf_slice(&in), NULL);
    tc_buf_clear(&in);
    nested_values(&in, 51);
    struct tc_buf clean = {0};
    struct tc_validation_errors errors = {0};
    struct tc_slice out;
    assert_int_equal(tc_scan(VALUE, tc_buf_slice(&in), NULL, &clean, &out, &errors), TORC_ELIMIT);
    assert_non_null(strstr(tc_validation_text(&errors), "more than 100 messages within each other"));
    tc_validation_fini(&errors);
    struct tc_scan_options options = {.max_depth = 102};
    errors = (struct tc_validation_errors){0};
    assert_int_equal(tc_scan(VALUE, tc_buf_slice(&in), &options, &clean, &out, &errors), 0);
    tc_validation_fini(&errors);
    tc_buf_fini(&in);
}

static void test_counts(void **state)
{
    (void)state;
    struct tc_buf in = {0};
    for (int i = 0; i < 65536; i++)
        tc_buf_append(&in, "\x12\x00", 2);
    accept(ASSIGNMENT, tc_buf_slice(&in), NULL);
    tc_buf_append(&in, "\x12\x00", 2);
    refuse_with(ASSIGNMENT, tc_buf_slice(&in), NULL, TORC_ELIMIT, "field endpoints: occurs more than 65536 times");
    struct tc_scan_options options = {.max_repeated = 100000, .max_elements = 1000};
    refuse_with(ASSIGNMENT, tc_buf_slice(&in), &options, TORC_ELIMIT,
                "field endpoints: the message has more than 1000 values");
    /* repeated occurrences of a singular message count as well */
    tc_buf_clear(&in);
    for (int i = 0; i < 65537; i++)
        tc_buf_append(&in, "\x22\x00", 2);
    refuse_with(NODE, tc_buf_slice(&in), NULL, TORC_ELIMIT, "field locality: occurs more than 65536 times");
    tc_buf_fini(&in);
}

static void test_texts_and_values_in_all(void **state)
{
    (void)state;
    const size_t most = (size_t)1 << 20;
    struct tc_buf in = {0}, locality = {0};
    for (size_t len = most; len <= most + 1; len++) {
        const char head[] = {'\x0a', (char)(len & 0x7f) | (char)0x80, (char)(len >> 7 & 0x7f) | (char)0x80,
                             (char)(len >> 14)};
        tc_buf_clear(&in);
        tc_buf_append(&in, head, sizeof(head));
        memset(tc_buf_reserve(&in, len), 'n', len);
        in.len += len;
        if (len == most)
            accept(NODE, tc_buf_slice(&in), NULL);
        else
            refuse_with(NODE, tc_buf_slice(&in), NULL, TORC_ELIMIT, "field id: 1048577 bytes, more than 1048576");
    }
    /* Each field is within its own limit. But 64 localities of 65,536 endpoints have 64 values more than a message
     * may have. */
    tc_buf_append(&locality, "\x12\x80\x80\x08", 4);
    for (int i = 0; i < 65536; i++)
        tc_buf_append(&locality, "\x12\x00", 2);
    tc_buf_clear(&in);
    for (int i = 0; i < 63; i++)
        tc_buf_append_slice(&in, tc_buf_slice(&locality));
    accept(ASSIGNMENT, tc_buf_slice(&in), NULL);
    tc_buf_append_slice(&in, tc_buf_slice(&locality));
    refuse_with(ASSIGNMENT, tc_buf_slice(&in), NULL, TORC_ELIMIT,
                "field endpoints[63].lb_endpoints: the message has more than 4194304 values");
    tc_buf_fini(&locality);
    tc_buf_fini(&in);
}

/* Each prefix of a message, and the message with each byte set to each value, is either accepted without an error or
 * refused with one. */
static void test_any_byte(void **state)
{
    (void)state;
    char in[] = "\x0a\x04name\x12\x1a\x0a\x04\x0a\x02zz\x12\x12\x0a\x10\x0a\x0e\x0a\x0c\x12\x08"
                "10.0.0.1\x18\x50";
    size_t len = sizeof(in) - 1;
    unsigned accepted = 0, refused = 0;
    accept(ASSIGNMENT, tc_slice_of(in, len), NULL);
    struct tc_buf clean = {0};
    for (size_t i = 0; i < len; i++) {
        char *copy = tc_malloc(i);
        memcpy(copy, in, i);
        for (int byte = 0; byte < 256; byte++) {
            char *changed = tc_malloc(len);
            struct tc_validation_errors errors = {0};
            struct tc_slice out = {0};
            memcpy(changed, in, len);
            changed[i] = (char)byte;
            int rv = tc_scan(ASSIGNMENT, tc_slice_of(changed, len), NULL, &clean, &out, &errors);
            assert_true((rv == 0) == !tc_validation_any(&errors));
            assert_true(out.len <= len);
            accepted += rv == 0;
            refused += rv != 0;
            tc_validation_fini(&errors);
            tc_free(changed);
        }
        struct tc_validation_errors errors = {0};
        struct tc_slice out;
        int rv = tc_scan(ASSIGNMENT, tc_slice_of(copy, i), NULL, &clean, &out, &errors);
        assert_true((rv == 0) == !tc_validation_any(&errors));
        tc_validation_fini(&errors);
        tc_free(copy);
    }
    assert_true(accepted > len && refused > len); /* the message itself is accepted `len` times */
    tc_buf_fini(&clean);
}

/* A message nested 20,000 deep, 8 MiB of unknown fields, and a million empty messages: while they are scanned, the peak
 * of resident memory grows by less than 20 MiB. The messages themselves are in memory before. */
static void test_hostile_sizes_stay_small(void **state)
{
    (void)state;
    struct tc_buf nested = {0}, unknown = {0}, empty = {0}, clean = {0};
    nested_values(&nested, 10000); /* 20,000 messages */
    tc_buf_append(&unknown, "\x0a\x01n", 3);
    while (unknown.len < 8u * 1024 * 1024)
        tc_buf_append(&unknown, "\x98\x06\x05", 3);
    for (int i = 0; i < 1000000; i++)
        tc_buf_append(&empty, "\x12\x00", 2);
    struct footprint before = footprint_begin();
    struct tc_validation_errors errors = {0};
    struct tc_slice out;
    assert_int_equal(tc_scan(VALUE, tc_buf_slice(&nested), NULL, &clean, &out, &errors), TORC_ELIMIT);
    assert_int_equal(tc_scan(NODE, tc_buf_slice(&unknown), NULL, &clean, &out, &errors), TORC_ELIMIT);
    assert_non_null(strstr(tc_validation_text(&errors), "more than 4194304 bytes of unknown fields"));
    struct tc_scan_options generous = {.max_unknown_bytes = 16u << 20};
    assert_int_equal(tc_scan(NODE, tc_buf_slice(&unknown), &generous, &clean, &out, &errors), 0);
    assert_true(tc_slice_eq(out, BYTES("\x0a\x01n")));
    assert_true(clean.cap < 4096);
    assert_int_equal(tc_scan(ASSIGNMENT, tc_buf_slice(&empty), NULL, &clean, &out, &errors), TORC_ELIMIT);
    tc_validation_fini(&errors);
    long grown_kb = footprint_since(&before).kb;
    if (FOOTPRINT_MEASURED)
        assert_true(grown_kb < 20 * 1024);
    tc_buf_fini(&nested);
    tc_buf_fini(&unknown);
    tc_buf_fini(&empty);
    tc_buf_fini(&clean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_fields_pass_uncopied),
        cmocka_unit_test(test_unknown_fields_are_stripped),
        cmocka_unit_test(test_stripped_within_messages),
        cmocka_unit_test(test_wrong_wire_type_is_unknown),
        cmocka_unit_test(test_packed_and_unpacked),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_groups_are_refused),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_texts_and_values_in_all),
        cmocka_unit_test(test_any_byte),
        cmocka_unit_test(test_hostile_sizes_stay_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
