/* torc_protobuf_c_pack and torc_protobuf_c_unpack: messages there and back, malformed bytes, limits on depth and on
 * memory, and the arena's own limit.
 *
 * Each test makes an arena, or has `refuse` make one, and frees it; unpacked messages and packed bytes live as long as
 * their arena. Errors belong to the test. hostile_test.c has more malformed bytes, check_test.c messages that are not
 * packed. */
#include <torc/protobuf_c.h>

#include <stdio.h>

#include "base/buf.h"
#include "grpc/testing/messages.pb-c.h"
#include "pb/google/protobuf/struct.pb-c.h"
#include "proto/wire.h"
#include "support/cmocka.h"

#define VALUE &google__protobuf__value__descriptor
#define REQUEST &grpc__testing__simple_request__descriptor

/* Asserts that the bytes are refused with `code`, and with a text that has `part` in it. */
static void refuse(const ProtobufCMessageDescriptor *type, struct tc_slice bytes, int code, const char *part)
{
    torc_arena *arena = torc_arena_new(0);
    torc_error *error = NULL;
    assert_null(torc_protobuf_c_unpack(type, bytes.data, bytes.len, arena, &error));
    assert_int_equal(torc_error_code(error), code);
    assert_int_equal(torc_error_layer(error), TORC_LAYER_CODEC);
    if (!strstr(torc_error_text(error), part))
        fail_msg("\"%s\" does not say \"%s\"", torc_error_text(error), part);
    torc_error_free(error);
    torc_arena_free(arena);
}

static void test_there_and_back(void **state)
{
    (void)state;
    torc_arena *arena = torc_arena_new(0);
    torc_error *error = NULL;
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;
    payload.body = (ProtobufCBinaryData){3, (uint8_t *)"abc"};
    request.response_size = 7;
    request.payload = &payload;
    size_t n = 0;
    const void *bytes = torc_protobuf_c_pack(&request.base, arena, &n, &error);
    assert_non_null(bytes);
    const Grpc__Testing__SimpleRequest *back =
        (const Grpc__Testing__SimpleRequest *)torc_protobuf_c_unpack(REQUEST, bytes, n, arena, &error);
    assert_non_null(back);
    assert_int_equal(back->response_size, 7);
    assert_int_equal(back->payload->body.len, 3);
    assert_memory_equal(back->payload->body.data, "abc", 3);
    assert_null(error);
    torc_arena_free(arena);
}

static void test_empty_message(void **state)
{
    (void)state;
    torc_arena *arena = torc_arena_new(0);
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    size_t n = 9;
    assert_non_null(torc_protobuf_c_pack(&request.base, arena, &n, NULL));
    assert_int_equal(n, 0);
    assert_non_null(torc_protobuf_c_unpack(REQUEST, NULL, 0, arena, NULL));
    torc_arena_free(arena);
}

/* Wraps the bytes of a Value `levels` times, by turns in a ListValue and in a Value. `levels` is even. */
static void nest(struct tc_buf *out, size_t levels)
{
    for (size_t i = 0; i < levels; i++) {
        struct tc_buf outer = {0};
        tc_wire_append(&outer, i % 2 ? 6 : 1, tc_buf_slice(out));
        tc_buf_fini(out);
        *out = outer;
    }
}

static void test_depth(void **state)
{
    (void)state;
    struct tc_buf bytes = {0};
    nest(&bytes, 100);
    torc_arena *arena = torc_arena_new(0);
    assert_non_null(torc_protobuf_c_unpack(VALUE, bytes.data, bytes.len, arena, NULL));
    torc_arena_free(arena);
    nest(&bytes, 2);
    refuse(VALUE, tc_buf_slice(&bytes), TORC_ELIMIT, "more than 100 messages within each other");
    nest(&bytes, 19898);
    refuse(VALUE, tc_buf_slice(&bytes), TORC_ELIMIT, "more than 100 messages within each other");
    tc_buf_fini(&bytes);
}

static void test_malformed(void **state)
{
    (void)state;
    refuse(VALUE, tc_slice_of("\x1a\x02\xc3\x28", 4), TORC_EPARSE, "google.protobuf.Value: field string_value: is not");
    refuse(VALUE, tc_slice_of("\x1a\x01\x00", 3), TORC_EPARSE, "has a NUL character");
    refuse(VALUE, tc_slice_of("\x1a\x7f", 2), TORC_EPARSE, "cut short");
    refuse(VALUE, tc_slice_of("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10), TORC_EPARSE, "cut short");
    refuse(VALUE, tc_slice_of("\x0b\x0c", 2), TORC_EPARSE, "is a group");
    refuse(VALUE, tc_slice_of("\x80", 1), TORC_EPARSE, "malformed tag");
}

/* An application may send a string of 2 MiB and a field of 100,000 values. A control plane may not (proto/scan.h). */
static void test_large_is_allowed(void **state)
{
    (void)state;
    enum { TEXT = 2 * 1024 * 1024, VALUES = 100000 };
    struct tc_buf text = {0}, bytes = {0};
    memset(tc_buf_reserve(&text, TEXT), 'x', TEXT);
    text.len = TEXT;
    tc_wire_append(&bytes, 3, tc_buf_slice(&text));
    torc_arena *arena = torc_arena_new(0);
    const Google__Protobuf__Value *value =
        (const Google__Protobuf__Value *)torc_protobuf_c_unpack(VALUE, bytes.data, bytes.len, arena, NULL);
    assert_non_null(value);
    assert_int_equal(strlen(value->string_value), TEXT);
    tc_buf_clear(&bytes);
    for (size_t i = 0; i < VALUES; i++)
        tc_wire_append(&bytes, 1, tc_slice_of("\x20\x01", 2));
    const Google__Protobuf__ListValue *list = (const Google__Protobuf__ListValue *)torc_protobuf_c_unpack(
        &google__protobuf__list_value__descriptor, bytes.data, bytes.len, arena, NULL);
    assert_non_null(list);
    assert_int_equal(list->n_values, VALUES);
    torc_arena_free(arena);
    tc_buf_fini(&text);
    tc_buf_fini(&bytes);
}

/* An empty Value takes 2 bytes on the wire. In memory it takes a struct of 40 bytes, which the arena rounds to 48, a
 * pointer, and protobuf-c's record of the field. A million Values exceed the budget, which is 32 times the bytes. With
 * pointers of 32 bits the budget is enough. */
static void test_budget(void **state)
{
    (void)state;
    struct tc_buf bytes = {0};
    for (size_t i = 0; i < 1000000; i++)
        tc_buf_append(&bytes, "\x0a\x00", 2);
    if (sizeof(void *) == 8)
        refuse(&google__protobuf__list_value__descriptor, tc_buf_slice(&bytes), TORC_ELIMIT, "bytes of memory");
    tc_buf_clear(&bytes);
    for (size_t i = 0; i < 1000000; i++)
        tc_buf_append(&bytes, "\x98\x06\x01\x98\x06\x01", 6); /* field 99 */
    refuse(VALUE, tc_buf_slice(&bytes), TORC_ELIMIT, "more than 4194304 bytes of unknown fields");
    tc_buf_fini(&bytes);
}

static void test_limit_of_the_arena(void **state)
{
    (void)state;
    torc_arena *arena = torc_arena_new(sizeof(Google__Protobuf__Value) + 16);
    torc_error *error = NULL;
    Google__Protobuf__Value value = GOOGLE__PROTOBUF__VALUE__INIT;
    char text[200] = {0};
    size_t n;
    memset(text, 'x', sizeof(text) - 1);
    value.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE;
    value.string_value = text;
    assert_null(torc_protobuf_c_pack(&value.base, arena, &n, &error));
    assert_int_equal(torc_error_code(error), TORC_ELIMIT);
    assert_null(torc_protobuf_c_unpack(VALUE, "\x20\x01", 2, arena, &error)); /* `error` is set: does nothing */
    torc_error_clear(&error);
    assert_non_null(torc_protobuf_c_unpack(VALUE, "\x20\x01", 2, arena, &error));
    assert_null(torc_protobuf_c_unpack(VALUE, "\x20\x01", 2, arena, &error));
    assert_int_equal(torc_error_code(error), TORC_ELIMIT);
    torc_error_clear(&error);
    torc_arena_reset(arena);
    assert_non_null(torc_protobuf_c_unpack(VALUE, "\x20\x01", 2, arena, &error));
    torc_arena_free(arena);
}

static void test_arguments(void **state)
{
    (void)state;
    torc_arena *arena = torc_arena_new(0);
    torc_error *error = NULL;
    size_t n;
    assert_null(torc_protobuf_c_unpack(NULL, "", 0, arena, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    torc_error_clear(&error);
    assert_null(torc_protobuf_c_unpack(VALUE, NULL, 1, arena, &error));
    assert_int_equal(torc_error_code(error), TORC_EINVAL);
    torc_error_clear(&error);
    assert_null(torc_protobuf_c_unpack(VALUE, "", 0, NULL, NULL));
    assert_null(torc_protobuf_c_pack(NULL, arena, &n, NULL));
    assert_null(torc_arena_alloc(NULL, 1));
    torc_arena_reset(NULL);
    torc_arena_free(NULL);
    torc_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_empty_message),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_large_is_allowed),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_limit_of_the_arena),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
