/* torc_protobuf_c_unpack on hostile bytes, which are refused with a text that says where and why, or read as protobuf
 * demands.
 *
 * Each message is unpacked on a thread with a stack of 256 KiB, while the test's thread waits. The allocator of this
 * program counts the bytes that Torc holds. While a message is unpacked, the count may grow by twice the budget of the
 * message (tc_unpack_budget), the message's own length, and SLACK. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <torc/memory.h>
#include <torc/protobuf_c.h>

#include "base/buf.h"
#include "base/mem.h"
#include "kinds.pb-c.h"
#include "other.pb-c.h"
#include "proto/wire.h"
#include "support/cmocka.h"

enum { STACK = 256 * 1024, SLACK = 128 * 1024, NESTED = 20000 };

typedef Torc__Test__Kinds__Kinds Kinds;
#define KINDS &torc__test__kinds__kinds__descriptor

/* --- memory that is held, and its peak --- */

static atomic_size_t held, peak;

/* Adds a new block to `held`, raises `peak` if need be, and returns the block. NULL counts as 0 bytes. */
static void *counted(void *p)
{
    size_t now = atomic_fetch_add(&held, malloc_usable_size(p)) + malloc_usable_size(p);
    if (now > atomic_load(&peak))
        atomic_store(&peak, now);
    return p;
}

static void *count_malloc(size_t size)
{
    return counted(malloc(size));
}

static void *count_calloc(size_t n, size_t size)
{
    return counted(calloc(n, size));
}

static void *count_realloc(void *p, size_t size)
{
    atomic_fetch_sub(&held, malloc_usable_size(p));
    return counted(realloc(p, size));
}

static void count_free(void *p)
{
    atomic_fetch_sub(&held, malloc_usable_size(p));
    free(p);
}

/* --- unpacking on a small stack --- */

struct attempt {
    const ProtobufCMessageDescriptor *type;
    struct tc_slice bytes;           /* borrowed */
    torc_arena *arena;               /* owned */
    torc_error *error;               /* owned; NULL: the message was taken */
    const ProtobufCMessage *message; /* in the arena; NULL: it was refused */
};

static void *attempt_run(void *arg)
{
    struct attempt *a = arg;
    a->message = torc_protobuf_c_unpack(a->type, a->bytes.data, a->bytes.len, a->arena, &a->error);
    return NULL;
}

/* Unpacks on a thread with a small stack, into a new arena. Fails the test if that takes too much memory. The caller
 * calls attempt_fini. */
static struct attempt unpack(const ProtobufCMessageDescriptor *type, struct tc_slice bytes)
{
    struct attempt a = {.type = type, .bytes = bytes, .arena = torc_arena_new(0)};
    pthread_attr_t small;
    pthread_t thread;
    size_t before = atomic_load(&held);
    atomic_store(&peak, before);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, STACK), 0);
    assert_int_equal(pthread_create(&thread, &small, attempt_run, &a), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&small);
    /* Twice the budget: a block of the arena may be half full. */
    size_t limit = TC_MAX(bytes.len * 32, (size_t)1024 * 1024) * 2 + bytes.len + SLACK;
    size_t used = atomic_load(&peak) - before;
    if (used > limit)
        fail_msg("%zu bytes of memory for %zu bytes", used, bytes.len);
    return a;
}

static void attempt_fini(struct attempt *a)
{
    torc_error_free(a->error);
    torc_arena_free(a->arena);
}

/* Asserts that the bytes are refused as a Kinds, with `code` and with a text that has `part` in it. */
static void refused(struct tc_slice bytes, int code, const char *part)
{
    struct attempt a = unpack(KINDS, bytes);
    assert_null(a.message);
    assert_int_equal(torc_error_code(a.error), code);
    if (!strstr(torc_error_text(a.error), part))
        fail_msg("\"%s\" does not say \"%s\"", torc_error_text(a.error), part);
    attempt_fini(&a);
}

static void refused_text(const char *bytes, size_t n, const char *part)
{
    refused(tc_slice_of(bytes, n), TORC_EPARSE, part);
}
#define REFUSED(bytes, part) refused_text(bytes, sizeof(bytes) - 1, part)

/* Asserts that the bytes are a valid Kinds. The caller calls attempt_fini. */
static struct attempt taken(const char *bytes, size_t n)
{
    struct attempt a = unpack(KINDS, tc_slice_of(bytes, n));
    if (!a.message)
        fail_msg("refused: %s", torc_error_text(a.error));
    return a;
}
#define TAKEN(bytes) taken(bytes, sizeof(bytes) - 1)

/* --- the bytes --- */

/* Wraps the bytes `levels` times in a field of a message: the first time in field `even`, then in `odd`, by turns. */
static void nest(struct tc_buf *out, size_t levels, unsigned odd, unsigned even)
{
    size_t size = out->len;
    struct tc_buf heads = {0};
    size_t *at = tc_calloc(levels + 1, sizeof(*at));
    for (size_t i = 0; i < levels; i++) { /* from the inside: the lengths are known */
        tc_wire_append_head(&heads, i % 2 ? odd : even, size);
        size += heads.len - at[i];
        at[i + 1] = heads.len;
    }
    struct tc_buf all = {0};
    for (size_t i = levels; i-- > 0;)
        tc_buf_append(&all, heads.data + at[i], at[i + 1] - at[i]);
    tc_buf_append_slice(&all, tc_buf_slice(out));
    tc_buf_fini(out);
    tc_buf_fini(&heads);
    tc_free(at);
    *out = all;
}

static void test_nested(void **state)
{
    (void)state;
    enum { NEXT = 93, MESSAGE = 17, BACK = 2, MAP = 73, VALUE = 2, LIST = 6, VALUES = 1, W_VALUES = 87 };
    struct tc_buf bytes = {0};
    nest(&bytes, 100, NEXT, NEXT);
    struct attempt a = unpack(KINDS, tc_buf_slice(&bytes));
    assert_non_null(a.message);
    attempt_fini(&a);
    nest(&bytes, NESTED - 100, NEXT, NEXT);
    refused(tc_buf_slice(&bytes), TORC_ELIMIT, "field next.next.next");
    refused(tc_buf_slice(&bytes), TORC_ELIMIT, "more than 100 messages within each other");
    tc_buf_clear(&bytes);
    nest(&bytes, NESTED, MESSAGE, BACK); /* Kinds and Inner by turns */
    refused(tc_buf_slice(&bytes), TORC_ELIMIT, "f_message.back[0].f_message.back[0]");
    tc_buf_clear(&bytes);
    nest(&bytes, NESTED, LIST, VALUES); /* google.protobuf.Value and its ListValue */
    nest(&bytes, 1, W_VALUES, W_VALUES);
    refused(tc_buf_slice(&bytes), TORC_ELIMIT, "w_values[0].list_value.values[0]");
    tc_buf_clear(&bytes);
    nest(&bytes, 2, VALUE, BACK); /* a map's entry, whose Inner has a Kinds */
    nest(&bytes, 1, MAP, MAP);
    a = unpack(KINDS, tc_buf_slice(&bytes));
    assert_non_null(a.message);
    attempt_fini(&a);
    tc_buf_fini(&bytes);
}

/* Lengths of 2 GiB and more, for fields of every kind that has a length and for an unknown field. The length is at the
 * end of the bytes, or 8 bytes follow. Then a length that reaches beyond the nested message that it is in. */
static void test_lengths(void **state)
{
    (void)state;
    static const unsigned fields[] = {14, 15, 17, 34, 41, 43, 49, 53, 54, 55, 57, 62, 71, 73, 81, 84, 93, 2000};
    static const uint64_t lengths[] = {1u << 31,         UINT32_MAX, 1ull << 35,     1ull << 62,
                                       (1ull << 63) - 1, 1ull << 63, UINT64_MAX - 1, UINT64_MAX};
    for (size_t i = 0; i < TC_ARRAY_LEN(fields); i++)
        for (size_t k = 0; k < TC_ARRAY_LEN(lengths); k++) {
            struct tc_buf bytes = {0};
            char part[64];
            tc_wire_append_varint(&bytes, (uint64_t)fields[i] << 3 | TC_WIRE_LENGTH);
            tc_wire_append_varint(&bytes, lengths[k]);
            snprintf(part, sizeof(part), "field number %u is cut short at byte 0", fields[i]);
            refused(tc_buf_slice(&bytes), TORC_EPARSE, part);
            tc_buf_append(&bytes, "\x18\x01\x18\x01\x18\x01\x18\x01", 8);
            refused(tc_buf_slice(&bytes), TORC_EPARSE, part);
            tc_buf_fini(&bytes);
        }
    REFUSED("\x8a\x01\x02\x72\x01", "field number 14 is cut short at byte 3");
    REFUSED("\x8a\x01\x02\x72\x01\x18\x01", "field number 14 is cut short at byte 3"); /* a field follows the message */
}

static void test_groups(void **state)
{
    (void)state;
    REFUSED("\x0b", "field number 1 is a group");
    REFUSED("\x0c", "field number 1 is a group");
    REFUSED("\x0b\x18\x01\x0c", "field number 1 is a group");
    REFUSED("\x18\x01\x0b\x18\x01", "field number 1 is a group");
    REFUSED("\x83\x7d\x08\x01", "field number 2000 is a group"); /* an unknown field */
    REFUSED("\x8a\x01\x02\x13\x14", "field f_message: field number 2 is a group");
    REFUSED("\x0e", "has no valid wire type");
    REFUSED("\x0f", "has no valid wire type");
    REFUSED("\x05\x01\x02\x03\x04", "field number 0");
    struct tc_buf bytes = {0};
    memset(tc_buf_reserve(&bytes, NESTED), 0x0b, NESTED);
    bytes.len = NESTED;
    refused(tc_buf_slice(&bytes), TORC_EPARSE, "field number 1 is a group");
    tc_buf_fini(&bytes);
}

static void test_varints(void **state)
{
    (void)state;
    REFUSED("\x18\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
            "field number 3 has a varint of more than 10 bytes at byte 0");
    REFUSED("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            "field number 3 has a varint of more than 10 bytes at byte 0");
    REFUSED("\x18\x80\x80\x80\x80\x80\x80\x80\x80\x80", "field number 3 is cut short at byte 0");
    REFUSED("\x72\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
            "field number 14 has a varint of more than 10 bytes at byte 0");
    REFUSED("\x18\x80", "field number 3 is cut short at byte 0");
    REFUSED("\x98\x80\x80\x80\x80\x00\x01", "malformed tag at byte 0"); /* a tag of 6 bytes */
    REFUSED("\xff\xff\xff\xff\x7f\x01", "malformed tag at byte 0");
    REFUSED("\xff\xff\xff\xff", "malformed tag at byte 0");
    REFUSED("\x72\x81\x80\x80\x80\x80\x00x", "field number 14 has a length of more than 5 bytes at byte 0");
    struct attempt a = TAKEN("\x18\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00"); /* padded, as protobuf allows */
    assert_int_equal(((const Kinds *)a.message)->f_int32, 5);
    attempt_fini(&a);
    a = TAKEN("\x98\x80\x80\x80\x00\x07\x72\x81\x80\x80\x80\x00x");
    assert_int_equal(((const Kinds *)a.message)->f_int32, 7);
    assert_string_equal(((const Kinds *)a.message)->f_string, "x");
    attempt_fini(&a);
}

static void test_packed(void **state)
{
    (void)state;
    REFUSED("\x8a\x03\x03\x01\x02\x03", "field r_fixed32: malformed packed values");
    REFUSED("\x8a\x03\x07\x01\x02\x03\x04\x05\x06\x07", "field r_fixed32: malformed packed values");
    REFUSED("\xca\x02\x09\x01\x02\x03\x04\x05\x06\x07\x08\x09", "field r_double: malformed packed values");
    REFUSED("\xda\x02\x02\x01\x80", "field r_int32: malformed packed values");
    REFUSED("\xda\x02\x0b\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "field r_int32: malformed packed values");
    REFUSED("\xc2\x03\x01\xff", "field r_enum: malformed packed values");
    REFUSED("\xd2\x03\x01\x80", "field r_unpacked: malformed packed values");
    /* r_int32: no value, two packed values, one unpacked value. r_fixed32: no value. */
    struct attempt a = TAKEN("\xda\x02\x00\x8a\x03\x00\xda\x02\x02\x01\x02\xd8\x02\x03");
    assert_int_equal(((const Kinds *)a.message)->n_r_int32, 3);
    assert_int_equal(((const Kinds *)a.message)->r_int32[2], 3);
    assert_int_equal(((const Kinds *)a.message)->n_r_fixed32, 0);
    attempt_fini(&a);
}

static void test_maps(void **state)
{
    (void)state;
    struct attempt a = TAKEN("\xba\x04\x00"                 /* neither key nor value */
                             "\xba\x04\x02\x10\x07"         /* no key */
                             "\xba\x04\x03\x0a\x01k"        /* no value */
                             "\xba\x04\x04\x0a\x00\x1a\x00" /* an unknown field of the entry */
                             "\xca\x04\x02\x08\x01"         /* no message */
                             "\xc2\x04\x02\x08\x01");       /* no string */
    const Kinds *k = (const Kinds *)a.message;
    assert_int_equal(k->n_m_string_int32, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(k->m_string_int32[i]->key, i == 2 ? "k" : "");
    assert_int_equal(k->m_string_int32[1]->value, 7);
    assert_int_equal(k->m_string_int32[2]->value, 0);
    assert_null(k->m_bool_message[0]->value);
    assert_string_equal(k->m_int64_string[0]->value, "");
    attempt_fini(&a);
    REFUSED("\xba\x04\x03\x0a\x01\xff", "field m_string_int32[0].key: is not valid UTF-8");
    REFUSED("\xba\x04\x00\xba\x04\x02\x0a\x05", "field m_string_int32[1]: field number 1 is cut short");
}

/* Asserts that the bytes are refused as a Needs, with TORC_EPARSE and with a text that has `part` in it. */
static void refused_needs(const char *bytes, size_t n, const char *part)
{
    struct attempt a = unpack(&torc__test__other__needs__descriptor, tc_slice_of(bytes, n));
    assert_null(a.message);
    assert_int_equal(torc_error_code(a.error), TORC_EPARSE);
    if (!strstr(torc_error_text(a.error), part))
        fail_msg("\"%s\" does not say \"%s\"", torc_error_text(a.error), part);
    attempt_fini(&a);
}
#define REFUSED_NEEDS(bytes, part) refused_needs(bytes, sizeof(bytes) - 1, part)

static void test_required(void **state)
{
    (void)state;
    REFUSED_NEEDS("", "torc.test.other.Needs: field text: is required, and missing");
    REFUSED_NEEDS("\x0a\x00", "field data: is required, and missing");
    REFUSED_NEEDS("\x0a\x00\x12\x00", "field number: is required, and missing"); /* has a default */
    REFUSED_NEEDS("\x0a\x00\x12\x00\x18\x01", "field word: is required, and missing");
    REFUSED_NEEDS("\x0a\x00\x12\x00\x1a\x00\x22\x00", "field number: is required, and missing"); /* another wire type */
    REFUSED_NEEDS("\x0a\x00\x12\x00\x18\x01\x22\x00", "field old: is required, and missing");
    REFUSED_NEEDS("\x0a\x00\x12\x00\x18\x01\x22\x00\x32\x02\x0a\x00", "field more[0].data: is required, and missing");
    REFUSED("\xda\x05\x00", "torc.test.kinds.Kinds: field old.needed: is required, and missing");
}

/* Every beginning of a message, and the message with one bit flipped, for each bit: the result is either a message or
 * an error. */
static void test_damaged(void **state)
{
    (void)state;
    char bytes[] =
        "\x18\x01\x72\x02xy\x8a\x01\x08\x0a\x01t\x12\x03\x18\x85\x01\xda\x02\x02\x01\x02\xba\x04\x05\x0a\x01k\x10\x07"
        "\xa2\x05\x07\x0a\x05\x0a\x01k\x12\x00\xba\x05\x03\x32\x01\x00";
    size_t n = sizeof(bytes) - 1, refusals = 0;
    for (size_t len = 0; len < n; len++) {
        struct attempt a = unpack(KINDS, tc_slice_of(bytes, len));
        assert_true(!a.message == !!a.error);
        refusals += !a.message;
        attempt_fini(&a);
    }
    for (size_t i = 0; i < n; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
            struct attempt a = unpack(KINDS, tc_slice_of(bytes, n));
            assert_true(!a.message == !!a.error);
            refusals += !a.message;
            attempt_fini(&a);
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
        }
    assert_true(refusals > n);
}

/* A message of two bytes whose type has 10,000 fields: the scan keeps a counter of 4 bytes for each field, so a million
 * such messages would take seconds. Each 64 fields of a message's type count as a value, and 4,194,304 values are
 * allowed. */
static void test_wide_type(void **state)
{
    (void)state;
    enum { FIELDS = 10000, MESSAGES = 1000000 };
    static ProtobufCFieldDescriptor fields[FIELDS];
    static ProtobufCMessageDescriptor wide = {.magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
                                              .name = "Wide",
                                              .n_fields = FIELDS,
                                              .fields = fields,
                                              .n_field_ranges = 1};
    static const ProtobufCIntRange ranges[] = {{1, 0}, {0, FIELDS}};
    wide.field_ranges = ranges;
    wide.sizeof_message = sizeof(ProtobufCMessage) + sizeof(size_t) + sizeof(void *);
    for (unsigned i = 0; i < FIELDS; i++)
        fields[i] = (ProtobufCFieldDescriptor){.name = "more",
                                               .id = i + 1,
                                               .label = PROTOBUF_C_LABEL_REPEATED,
                                               .type = PROTOBUF_C_TYPE_MESSAGE,
                                               .quantifier_offset = sizeof(ProtobufCMessage),
                                               .offset = sizeof(ProtobufCMessage) + sizeof(size_t),
                                               .descriptor = &wide};
    struct tc_buf bytes = {0};
    for (size_t i = 0; i < MESSAGES; i++)
        tc_buf_append(&bytes, "\x0a\x00", 2);
    struct attempt a = unpack(&wide, tc_buf_slice(&bytes));
    assert_int_equal(torc_error_code(a.error), TORC_ELIMIT);
    assert_non_null(strstr(torc_error_text(a.error), "field more: the message has more than 4194304 values"));
    attempt_fini(&a);
    tc_buf_fini(&bytes);
}

int main(void)
{
    static const struct torc_allocator allocator = {.size = sizeof(allocator),
                                                    .malloc = count_malloc,
                                                    .calloc = count_calloc,
                                                    .realloc = count_realloc,
                                                    .free = count_free};
    if (torc_set_allocator(&allocator) != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested),  cmocka_unit_test(test_lengths),   cmocka_unit_test(test_groups),
        cmocka_unit_test(test_varints), cmocka_unit_test(test_packed),    cmocka_unit_test(test_maps),
        cmocka_unit_test(test_damaged), cmocka_unit_test(test_wide_type), cmocka_unit_test(test_required),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
