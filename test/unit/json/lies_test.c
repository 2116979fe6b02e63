/* Descriptors that lie are refused, mostly with a text that names the place: they are malformed, look like what they
 * are not, or are longer than allowed. Most scenes write a FileDescriptorProto field by field (kit.h), and `refused`
 * adds it to a schema of its own, links the schema, asserts code and text, and frees the file. Fields that claim one
 * JSON name are accepted (names_in_json). A buffer is empty again after put_part has put it into another. */
#include "kit.h"

static void malformed_files(void **state)
{
    struct tc_buf b = {0}, part = {0};
    (void)state;
    refused(&b, TORC_EPARSE, "not a FileDescriptorProto: it has no name");
    tc_buf_append(&b,
                  "\x0a\x05"
                  "ab",
                  4);
    refused(&b, TORC_EPARSE, "not a FileDescriptorProto: it has no name");
    b = file_of("x.proto", "a..b");
    refused(&b, TORC_EPARSE, "file x.proto: a package that is not a name");
    b = file_of("x.proto", "p");
    tc_buf_append(&b, "\x22\x05", 2);
    refused(&b, TORC_EPARSE, "file x.proto: a field that cannot be read");
    b = file_of("x.proto", "p");
    put_text(&part, 1, "M {} message Evil");
    put_part(&b, 4, &part);
    refused(&b, TORC_EPARSE, "file x.proto: p: a name that is not an identifier");
    b = file_of("x.proto", NULL);
    put_text(&part, 1, "E");
    put_part(&b, 5, &part);
    refused(&b, TORC_EPARSE, "file x.proto: E: an enum without values");
    b = (struct tc_buf){0};
    put_text(&b, 1, "x.proto");
    put_text(&b, 12, "proto4");
    refused(&b, TORC_EUNSUPPORTED, "file x.proto: a syntax that is not known");
    torc_schema *s = torc_schema_new();
    assert_int_equal(torc_schema_add_set(s, "\x0a\x7f", 2, NULL), TORC_EPARSE);
    assert_int_equal(torc_schema_add_file(NULL, "", 0, NULL), TORC_EINVAL);
    assert_int_equal(torc_schema_add_file(s, NULL, 5, NULL), TORC_EINVAL);
    assert_int_equal(torc_schema_link(NULL, NULL), TORC_EINVAL);
    torc_schema_free(s);
}

static void malformed_fields(void **state)
{
    static const struct {
        unsigned number, label, type;
        const char *type_name, *want;
        int code;
    } rows[] = {
        {0, OPTIONAL, AN_INT32, NULL, "p.M.f: a number that no field can have", TORC_EPARSE},
        {1u << 29, OPTIONAL, AN_INT32, NULL, "p.M.f: a number that no field can have", TORC_EPARSE},
        {19500, OPTIONAL, AN_INT32, NULL, "p.M.f: a number that no field can have", TORC_EPARSE},
        {1, OPTIONAL, 0, NULL, "p.M.f: a type or label that does not exist", TORC_EPARSE},
        {1, OPTIONAL, 19, NULL, "p.M.f: a type or label that does not exist", TORC_EPARSE},
        {1, 4, AN_INT32, NULL, "p.M.f: a type or label that does not exist", TORC_EPARSE},
        {1, OPTIONAL, A_MESSAGE, NULL, "p.M.f: a reference is missing, or there is one too many", TORC_EPARSE},
        {1, OPTIONAL, AN_INT32, ".p.M", "p.M.f: a reference is missing, or there is one too many", TORC_EPARSE},
        {1, OPTIONAL, A_MESSAGE, "p.M", "p.M.f: a reference that is not a full name with a dot in front", TORC_EPARSE},
        {1, OPTIONAL, A_MESSAGE, ".p.N", "p.M.f: p.N is not defined", TORC_ENOTFOUND},
        {1, OPTIONAL, AN_ENUM, ".p.M", "p.M.f: refers to what is not a type of that kind", TORC_EPARSE},
    };
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct tc_buf fields = {0}, want = {0};
        put_field(&fields, "f", rows[i].number, rows[i].label, rows[i].type, rows[i].type_name);
        struct tc_buf file = file_with(&fields);
        tc_buf_printf(&want, "file x.proto: %s", rows[i].want);
        refused(&file, rows[i].code, tc_buf_cstr(&want));
        tc_buf_fini(&want);
    }
    struct tc_buf fields = {0}, f = field_of("f", 1, OPTIONAL, AN_INT32, NULL);
    put_number(&f, 9, 3);
    put_part(&fields, 2, &f);
    struct tc_buf file = file_with(&fields);
    refused(&file, TORC_EPARSE, "file x.proto: p.M.f: a oneof that its message does not have");
    put_field(&fields, "f", 1, OPTIONAL, AN_INT32, NULL);
    put_field(&fields, "g", 1, OPTIONAL, AN_INT32, NULL);
    file = file_with(&fields);
    refused(&file, TORC_EEXIST, "file x.proto: p.M: fields f and g have one number");
    put_field(&fields, "f", 1, OPTIONAL, AN_INT32, NULL);
    put_field(&fields, "f", 2, OPTIONAL, AN_INT32, NULL);
    file = file_with(&fields);
    refused(&file, TORC_EEXIST, "file x.proto: p.M.f: is defined twice");
}

/* A type that looks like a map or a well-known type must be one: the readers and writers of its JSON rely on that. */
static void false_forms(void **state)
{
    struct tc_buf m = {0}, options = {0}, outer = {0};
    (void)state;
    put_text(&m, 1, "Entry");
    put_field(&m, "key", 1, OPTIONAL, A_STRING, NULL);
    put_number(&options, 7, 1);
    put_part(&m, 7, &options);
    put_part(&outer, 3, &m);
    put_field(&outer, "map", 1, REPEATED, A_MESSAGE, ".p.M.Entry");
    struct tc_buf file = file_with(&outer);
    refused(&file, TORC_EPARSE, "file x.proto: p.M.Entry: is not an entry of a map");
    put_text(&m, 1, "Entry");
    put_field(&m, "key", 1, OPTIONAL, A_STRING, NULL);
    put_field(&m, "value", 2, OPTIONAL, A_STRING, NULL);
    put_number(&options, 7, 1);
    put_part(&m, 7, &options);
    put_part(&outer, 3, &m);
    put_field(&outer, "map", 1, OPTIONAL, A_MESSAGE, ".p.M.Entry");
    file = file_with(&outer);
    refused(&file, TORC_EPARSE, "file x.proto: p.M.map: uses the map entry of another field");
    put_text(&m, 1, "Entry");
    put_field(&m, "key", 1, OPTIONAL, A_STRING, NULL);
    put_field(&m, "value", 2, OPTIONAL, A_STRING, NULL);
    put_number(&options, 7, 1);
    put_part(&m, 7, &options);
    put_part(&outer, 3, &m);
    put_field(&outer, "map", 1, REPEATED, A_MESSAGE, ".p.M.Entry");
    put_field(&outer, "other", 2, REPEATED, A_MESSAGE, ".p.M.Entry");
    file = file_with(&outer);
    refused(&file, TORC_EPARSE, "file x.proto: p.M.other: uses the map entry of another field");
    static const char *const names[] = {"Any", "Duration", "Struct", "Value", "ListValue", "StringValue", "FieldMask"};
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++) {
        struct tc_buf want = {0};
        file = file_of("x.proto", "google.protobuf");
        put_text(&m, 1, names[i]);
        put_field(&m, "f", 1, REPEATED, AN_INT32, NULL);
        put_part(&file, 4, &m);
        tc_buf_printf(&want, "file x.proto: google.protobuf.%s: does not have the fields of that well-known type",
                      names[i]);
        refused(&file, TORC_EPARSE, tc_buf_cstr(&want));
        tc_buf_fini(&want);
    }
}

/* Of two fields that claim one JSON name, one keeps it. The JSON name of the other is its name in the .proto file, and
 * so is the JSON name of a field that claims "@type". A json_name in brackets is refused. */
static void names_in_json(void **state)
{
    static const struct {
        const char *name, *json_name;
    } rows[] = {{"foo_bar", NULL}, {"fooBar", NULL}, {"a", "b"}, {"b", NULL}, {"c", "x"}, {"d", "x"}, {"e", "@type"}};
    static const char json[] = "{\"foo_bar\":1,\"fooBar\":2,\"a\":3,\"b\":4,\"x\":5,\"d\":6,\"e\":7}";
    torc_schema *s = torc_schema_new();
    struct tc_buf fields = {0};
    void *bytes;
    char *text;
    size_t size;
    (void)state;
    for (unsigned i = 0; i < TC_ARRAY_LEN(rows); i++) {
        struct tc_buf f = field_of(rows[i].name, i + 1, OPTIONAL, AN_INT32, NULL);
        if (rows[i].json_name)
            put_text(&f, 10, rows[i].json_name);
        put_part(&fields, 2, &f);
    }
    struct tc_buf file = file_with(&fields);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    const torc_schema_message *m = torc_schema_find_message(s, "p.M");
    assert_int_equal(torc_json_to_bytes(s, m, json, strlen(json), NULL, &bytes, &size, NULL), 0);
    static const char want[] = "\x08\x01\x10\x02\x18\x03\x20\x04\x28\x05\x30\x06\x38\x07";
    assert_int_equal(size, sizeof(want) - 1);
    assert_memory_equal(bytes, want, size);
    assert_int_equal(torc_json_from_bytes(s, m, bytes, size, NULL, &text, NULL, NULL), 0);
    assert_string_equal(text, json);
    torc_free(text);
    torc_free(bytes);
    text = torc_schema_template(m);
    assert_int_equal(torc_json_to_bytes(s, m, text, strlen(text), NULL, &bytes, &size, NULL), 0);
    torc_free(bytes);
    torc_free(text);
    struct tc_buf f = field_of("f", 1, OPTIONAL, AN_INT32, NULL);
    put_text(&f, 10, "[p.x]");
    put_part(&fields, 2, &f);
    file = file_with(&fields);
    refused(&file, TORC_EPARSE, "file x.proto: p.M.f: a json_name in brackets, as extensions have it");
    torc_schema_free(s);
}

/* Returns a file of proto2 with M, which leaves the numbers 5 and 10 to 199 to extensions, and with an extension of M
 * that has this number and label. The caller frees the file. */
static struct tc_buf extended(unsigned number, unsigned label)
{
    static const unsigned ranges[][2] = {{100, 200}, {10, 150}, {5, 6}};
    struct tc_buf file = {0}, m = {0}, f = field_of("e", number, label, AN_INT32, NULL);
    put_text(&file, 1, "x.proto");
    put_text(&m, 1, "M");
    for (size_t i = 0; i < TC_ARRAY_LEN(ranges); i++) {
        struct tc_buf range = {0};
        put_number(&range, 1, ranges[i][0]);
        put_number(&range, 2, ranges[i][1]);
        put_part(&m, 5, &range);
    }
    put_field(&m, "own", 1000, OPTIONAL, AN_INT32, NULL);
    put_part(&file, 4, &m);
    put_text(&f, 2, ".M");
    put_part(&file, 7, &f);
    return file;
}

static void extensions(void **state)
{
    static const unsigned good[] = {5, 10, 99, 100, 149, 150, 199}, bad[] = {4, 6, 9, 200, 1001};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(good); i++) {
        torc_schema *s = torc_schema_new();
        struct tc_buf file = extended(good[i], OPTIONAL);
        assert_int_equal(add(s, &file, NULL), 0);
        assert_int_equal(torc_schema_link(s, NULL), 0);
        torc_schema_free(s);
    }
    for (size_t i = 0; i < TC_ARRAY_LEN(bad); i++) {
        struct tc_buf file = extended(bad[i], OPTIONAL);
        refused(&file, TORC_EPARSE, "file x.proto: e: has a number that its message does not leave to extensions");
    }
    struct tc_buf file = extended(100, REQUIRED);
    refused(&file, TORC_EPARSE, "file x.proto: e: an extension that is required");
}

static void oneofs(void **state)
{
    struct tc_buf fields = {0}, oneof = {0}, f;
    (void)state;
    put_text(&oneof, 1, "o");
    put_part(&fields, 8, &oneof);
    struct tc_buf file = file_with(&fields);
    refused(&file, TORC_EPARSE, "file x.proto: p.M: the oneof o has no field");
    put_text(&oneof, 1, "o");
    put_part(&fields, 8, &oneof);
    for (unsigned i = 0; i < 3; i++) {
        f = field_of(i == 0 ? "a" : i == 1 ? "b" : "c", i + 1, OPTIONAL, AN_INT32, NULL);
        if (i != 1)
            put_number(&f, 9, 0);
        put_part(&fields, 2, &f);
    }
    file = file_with(&fields);
    refused(&file, TORC_EPARSE, "file x.proto: p.M.c: another field is between those of its oneof");
}

/* The name of a file, a package, an import, a json_name or a reference of more than 4096 bytes is TORC_ELIMIT. A
 * json_name that is not UTF-8 is TORC_EPARSE. Errors show '?' for a control character. */
static void long_texts(void **state)
{
    char text[4200];
    struct tc_buf file, m = {0}, f;
    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    file = file_of(text, NULL);
    refused(&file, TORC_ELIMIT, "not a FileDescriptorProto: a name of more than 4096 bytes");
    file = file_of("x.proto", text);
    refused(&file, TORC_ELIMIT, "file x.proto: a package of more than 4096 bytes");
    file = file_of("x.proto", NULL);
    put_text(&file, 3, text);
    refused(&file, TORC_ELIMIT, "file x.proto: an import of more than 4096 bytes");
    f = field_of("f", 1, OPTIONAL, AN_INT32, NULL);
    put_text(&f, 10, text);
    put_part(&m, 2, &f);
    file = file_with(&m);
    refused(&file, TORC_ELIMIT, "file x.proto: p.M.f: a json_name of more than 4096 bytes");
    text[0] = '.';
    put_field(&m, "f", 1, OPTIONAL, A_MESSAGE, text);
    file = file_with(&m);
    refused(&file, TORC_ELIMIT, "file x.proto: p.M.f: a reference of more than 4096 bytes");
    f = field_of("f", 1, OPTIONAL, AN_INT32, NULL);
    put_text(&f, 10, "\xff");
    put_part(&m, 2, &f);
    file = file_with(&m);
    refused(&file, TORC_EPARSE, "file x.proto: p.M.f: a json_name that is not text");
    file = file_of("a\x1b[2J\n", "p..q");
    refused(&file, TORC_EPARSE, "file a?[2J?: a package that is not a name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_files), cmocka_unit_test(malformed_fields), cmocka_unit_test(false_forms),
        cmocka_unit_test(names_in_json),   cmocka_unit_test(extensions),       cmocka_unit_test(oneofs),
        cmocka_unit_test(long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
