/* Schemas: look-ups, files in any order and later ones, texts and templates, editions, imports, links that fail,
 * limits. Each test makes its own schemas: that of test/json (kit_schema), or empty ones. A test that adds files writes
 * them field by field (kit.h); only `files` adds those of test/json, one by one. A schema takes files
 * (torc_schema_add_file), and look-ups find nothing until torc_schema_link has linked them. One thread runs all tests.
 * Tests look inside the schema (json/model.h): failed_links and sets compare its sizes, and links_of_new_files spoils
 * the tables that a link must not walk. */
#include "kit.h"

/* --- look-ups --- */

static void look_ups(void **state)
{
    torc_schema *s = kit_schema();
    int32_t number = 0;
    (void)state;
    const torc_schema_message *m = torc_schema_find_message(s, ALL);
    assert_string_equal(torc_schema_message_name(m), ALL);
    assert_ptr_equal(torc_schema_find_message(s, "." ALL), m);
    assert_ptr_equal(torc_schema_find_message(s, "type.googleapis.com/" ALL), m);
    assert_null(torc_schema_find_message(s, "type.googleapis.com/"));
    assert_null(torc_schema_find_message(s, "torc.test.json"));
    assert_null(torc_schema_find_message(s, NULL));
    assert_null(torc_schema_find_message(s, "torc.test.json.Color"));
    const torc_schema_enum *e = torc_schema_find_enum(s, "torc.test.json.Color");
    assert_string_equal(torc_schema_enum_name(e), "torc.test.json.Color");
    assert_string_equal(torc_schema_enum_value(e, 1), "COLOR_RED");
    assert_null(torc_schema_enum_value(e, 2));
    assert_int_equal(torc_schema_enum_number(e, "COLOR_NEGATIVE", &number), 0);
    assert_int_equal(number, -5);
    assert_int_equal(torc_schema_enum_number(e, "BLUE", &number), TORC_ENOTFOUND);
    const torc_schema_service *service = torc_schema_service_at(s, 0);
    assert_ptr_equal(torc_schema_find_service(s, "torc.test.json.Store"), service);
    assert_string_equal(torc_schema_service_name(service), "torc.test.json.Store");
    assert_null(torc_schema_service_at(s, 1));
    assert_null(torc_schema_service_at(NULL, 0));
    assert_null(torc_schema_file_at(NULL, 0));
    assert_null(torc_schema_missing_at(NULL, 0));
    const torc_schema_method *watch = torc_schema_method_at(service, 1);
    assert_ptr_equal(torc_schema_find_method(s, "torc.test.json.Store/Watch"), watch);
    assert_ptr_equal(torc_schema_find_method(s, "/torc.test.json.Store/Watch"), watch);
    assert_ptr_equal(torc_schema_find_method(s, "torc.test.json.Store.Watch"), watch);
    assert_null(torc_schema_find_method(s, "torc.test.json.Store/watch"));
    assert_null(torc_schema_find_method(s, "Store"));
    assert_null(torc_schema_method_at(service, 4));
    assert_string_equal(torc_schema_method_name(watch), "Watch");
    assert_string_equal(torc_schema_method_path(watch), "/torc.test.json.Store/Watch");
    assert_string_equal(torc_schema_message_name(torc_schema_method_request(watch)), "torc.test.json.All.Inner");
    assert_ptr_equal(torc_schema_method_response(watch), m);
    assert_int_equal(torc_schema_method_client_streams(watch), 0);
    assert_int_equal(torc_schema_method_server_streams(watch), 1);
    torc_schema_free(s);
}

static void files(void **state)
{
    struct tc_buf set = kit_set();
    torc_schema *backwards = torc_schema_new(), *merged = torc_schema_new();
    struct tc_slice rest = tc_buf_slice(&set), parts[32];
    struct tc_item item;
    size_t n = 0;
    (void)state;
    while (tc_item_next(&rest, &item) > 0 && n < TC_ARRAY_LEN(parts))
        parts[n++] = item.bytes;
    assert_true(n > 5);
    for (size_t i = n; i-- > 0;) {
        assert_int_equal(torc_schema_add_file(backwards, parts[i].data, parts[i].len, NULL), 0);
        assert_int_equal(torc_schema_add_file(backwards, parts[i].data, parts[i].len, NULL), 0); /* known already */
        assert_null(torc_schema_find_message(backwards, ALL));
        if (i > 0)
            assert_non_null(torc_schema_missing_at(backwards, 0));
    }
    assert_null(torc_schema_missing_at(backwards, 0));
    assert_null(torc_schema_file_at(backwards, n));
    assert_non_null(torc_schema_file_at(backwards, n - 1));
    assert_int_equal(torc_schema_link(backwards, NULL), 0);
    assert_non_null(torc_schema_find_message(backwards, ALL));
    assert_int_equal(torc_schema_merge(merged, backwards, NULL), 0);
    assert_int_equal(torc_schema_merge(merged, backwards, NULL), 0);
    assert_int_equal(torc_schema_link(merged, NULL), 0);
    assert_non_null(torc_schema_find_service(merged, "torc.test.json.Store"));
    torc_schema_free(merged);
    torc_schema_free(backwards);
    tc_buf_fini(&set);
    torc_schema_free(NULL);
}

/* A file that is added after a link extends a message that is linked already. */
static void later_files(void **state)
{
    torc_schema *s = kit_schema();
    const torc_schema_message *old = torc_schema_find_message(s, OLD);
    struct tc_buf file = file_of("late.proto", "late"), f = field_of("more", 150, OPTIONAL, AN_INT32, NULL);
    char *text = NULL;
    (void)state;
    put_text(&f, 2, "." OLD);
    put_part(&file, 7, &f);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_json_from_bytes(s, old, "", 0, NULL, &text, NULL, NULL), TORC_ESTATE);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    assert_ptr_equal(torc_schema_find_message(s, OLD), old);
    assert_int_equal(torc_json_from_bytes(s, old, "\xb0\x09\x05", 3, NULL, &text, NULL, NULL), 0);
    assert_string_equal(text, "{\"[late.more]\":5}");
    torc_free(text);
    torc_schema_free(s);
}

/* --- text --- */

static void describe(void **state)
{
    torc_schema *s = kit_schema();
    (void)state;
    described(s, OLD,
              "message Old {\n"
              "  optional int32 o_int32 = 1 [default = 7];\n"
              "  optional string o_string = 2 [default = \"a \\\"text\\\"\\012\"];\n"
              "  optional .torc.test.json.Closed o_closed = 3;\n"
              "  repeated .torc.test.json.Closed r_closed = 4;\n"
              "  repeated sint64 r_unpacked = 5;\n"
              "  repeated fixed32 r_packed = 6 [packed = true];\n"
              "  optional group Pair = 7 {\n"
              "    optional string left = 1;\n"
              "    optional .torc.test.json.Old right = 2;\n"
              "  }\n"
              "  repeated group Item = 8 {\n"
              "    optional double value = 1 [deprecated = true];\n"
              "  }\n"
              "  map<sint32, .torc.test.json.Closed> m_closed = 9;\n"
              "  oneof choice {\n"
              "    string c_string = 10;\n"
              "    bool c_bool = 11;\n"
              "    .torc.test.json.Old c_old = 12;\n"
              "  }\n"
              "  optional bytes o_bytes = 13;\n"
              "  optional string renamed = 14 [json_name = \"other name\"];\n"
              "  extensions 100 to 199;\n"
              "  extensions 500 to max;\n"
              "  reserved 90 to 99;\n"
              "  reserved 400;\n"
              "  reserved \"gone\";\n"
              "  extend .torc.test.json.Old {\n"
              "    optional .torc.test.json.Old nested_extension = 101;\n"
              "  }\n"
              "}\n");
    described(s, "torc.test.json.Color",
              "enum Color {\n  option allow_alias = true;\n  COLOR_NONE = 0;\n  COLOR_RED = 1;\n  COLOR_CRIMSON = 1;\n"
              "  COLOR_NEGATIVE = -5;\n}\n");
    described(s, "torc.test.json.Store",
              "service Store {\n"
              "  rpc Get (.torc.test.json.All) returns (.torc.test.json.Old);\n"
              "  rpc Watch (.torc.test.json.All.Inner) returns (stream .torc.test.json.All);\n"
              "  rpc Load (stream .torc.test.json.All) returns (.torc.test.json.Old) { option deprecated = true; }\n"
              "  rpc Chat (stream .torc.test.json.All) returns (stream .google.protobuf.Empty);\n"
              "}\n");
    described(s, ".torc.test.json.Store.Get", "rpc Get (.torc.test.json.All) returns (.torc.test.json.Old);\n");
    described(s, "torc.test.json.Store/Get", "rpc Get (.torc.test.json.All) returns (.torc.test.json.Old);\n");
    described(s, "torc.test.json.All.o_int32", "optional int32 o_int32 = 23;\n");
    described(s, "torc.test.json.All.r_unpacked", "repeated int32 r_unpacked = 58 [packed = false];\n");
    described(s, "torc.test.json.Old.choice",
              "oneof choice {\n  string c_string = 10;\n  bool c_bool = 11;\n  .torc.test.json.Old c_old = 12;\n}\n");
    described(s, "torc.test.json.Color.COLOR_NEGATIVE", "COLOR_NEGATIVE = -5;\n");
    described(s, "torc.test.json.text_extension",
              "extend .torc.test.json.Old {\n  optional string text_extension = 100;\n}\n");
    described(
        s, "google/protobuf/field_mask.proto",
        "syntax = \"proto3\";\n\npackage google.protobuf;\n\nmessage FieldMask {\n  repeated string paths = 1;\n}\n");
    described(s, "torc.test.json.Nobody", "nothing is defined as torc.test.json.Nobody");
    described(s, "", "nothing is defined as ");
    torc_schema_free(s);
}

/* A message that is a group within itself is not written as a group: the text would not end. */
static void group_within_itself(void **state)
{
    struct tc_buf file = {0}, m = {0};
    torc_schema *s = torc_schema_new();
    (void)state;
    put_text(&file, 1, "x.proto");
    put_text(&m, 1, "M");
    put_field(&m, "m", 1, OPTIONAL, A_GROUP, ".M");
    put_part(&file, 4, &m);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    described(s, "M", "message M {\n  optional .M m = 1;\n}\n");
    torc_schema_free(s);
}

/* A group that two fields share is written at the first of them. The group of an extension is written at the extension
 * alone. The default value of a bytes field comes with escapes, which stay as they are; a quote, a control character or
 * a backslash that is not part of an escape gets one. In an edition a reserved name that is not an identifier is
 * written as a string. */
static void texts_that_lie(void **state)
{
    struct tc_buf file = {0}, m = {0}, group = {0}, f, none = {0}, range = {0};
    torc_schema *s = torc_schema_new();
    (void)state;
    put_text(&file, 1, "x.proto");
    put_text(&m, 1, "M");
    put_text(&group, 1, "G");
    put_field(&group, "x", 1, OPTIONAL, AN_INT32, NULL);
    tc_wire_append(&m, 3, tc_buf_slice(&group));
    put_field(&m, "g", 1, OPTIONAL, A_GROUP, ".M.G");
    put_field(&m, "h", 2, OPTIONAL, A_GROUP, ".M.G");
    f = field_of("b", 3, OPTIONAL, A_BYTES, NULL);
    put_text(&f, 7, "\\001\\\"\\\\\"; evil\n\\");
    put_part(&m, 2, &f);
    put_number(&range, 1, 10);
    put_number(&range, 2, 20);
    put_part(&m, 5, &range);
    put_part(&file, 4, &m);
    put_part(&file, 4, &group);
    f = field_of("g", 10, OPTIONAL, A_GROUP, ".G");
    put_text(&f, 2, ".M");
    put_part(&file, 7, &f);
    assert_int_equal(add(s, &file, NULL), 0);
    file = edition_file(1000, &none);
    put_text(&m, 1, "N");
    put_text(&m, 10, "name");
    put_text(&m, 10, "x; } message Evil {");
    put_text(&m, 10, "\xff\x1b");
    put_part(&file, 4, &m);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    described(
        s, "x.proto",
        "syntax = \"proto2\";\n\nmessage M {\n  optional group G = 1 {\n    optional int32 x = 1;\n  }\n"
        "  optional .M.G h = 2;\n  optional bytes b = 3 [default = \"\\001\\\"\\\\\\\"; evil\\012\\\\\"];\n"
        "  extensions 10 to 19;\n}\n\nextend .M {\n  optional group G = 10 {\n    optional int32 x = 1;\n  }\n}\n");
    described(s, "N",
              "message N {\n  reserved name;\n  reserved \"x; } message Evil {\";\n  reserved \"\\377\\033\";\n}\n");
    torc_schema_free(s);
}

static void templates(void **state)
{
    torc_schema *s = kit_schema();
    static const char *const names[] = {ALL, OLD, "torc.test.json.Demanding", "google.protobuf.Value"};
    (void)state;
    char *text = torc_schema_template(torc_schema_find_message(s, "torc.test.json.All.Inner"));
    assert_non_null(strstr(text, "\"text\": \"\",\n  \"back\": [\n    {\n      \"fDouble\": 0,"));
    torc_free(text);
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++) {
        const torc_schema_message *m = torc_schema_find_message(s, names[i]);
        torc_error *error = NULL;
        void *bytes = NULL;
        size_t size;
        /* A message within itself is {} in a template, without its required fields. */
        const struct torc_json_options o = {TORC_SIZE(torc_json_options), .allow_partial = TORC_ON};
        text = torc_schema_template(m);
        if (torc_json_to_bytes(s, m, text, strlen(text), &o, &bytes, &size, &error) != 0)
            fail_msg("%s: %s\n%s", names[i], torc_error_text(error), text);
        torc_free(bytes);
        torc_free(text);
    }
    torc_schema_free(s);
}

/* --- editions --- */

static void editions(void **state)
{
    struct tc_buf none = {0}, features = {0}, own = {0}, options = {0}, m = {0}, f;
    struct tc_buf future = edition_file(1002, &none);
    (void)state;
    refused(&future, TORC_EUNSUPPORTED, "file e.proto: edition 1002 of descriptor.proto is not supported");
    put_number(&features, 1, 2); /* IMPLICIT */
    put_number(&features, 5, 2); /* DELIMITED */
    struct tc_buf file = edition_file(1000, &features);
    put_text(&m, 1, "M");
    put_field(&m, "implicit", 1, OPTIONAL, AN_INT32, NULL);
    put_number(&own, 1, 1); /* EXPLICIT */
    put_part(&options, 21, &own);
    f = field_of("explicit", 2, OPTIONAL, AN_INT32, NULL);
    put_part(&f, 8, &options);
    put_part(&m, 2, &f);
    put_field(&m, "delimited", 3, OPTIONAL, A_MESSAGE, ".M");
    put_field(&m, "packed", 4, REPEATED, AN_INT32, NULL);
    put_part(&file, 4, &m);
    torc_schema *s = torc_schema_new();
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    const torc_schema_message *type = torc_schema_find_message(s, "M");
    static const char json[] = "{\"implicit\":0,\"explicit\":0,\"delimited\":{\"implicit\":1},\"packed\":[1,2]}";
    void *bytes;
    size_t size;
    assert_int_equal(torc_json_to_bytes(s, type, json, strlen(json), NULL, &bytes, &size, NULL), 0);
    static const char want[] = "\x10\x00\x1b\x08\x01\x1c\x22\x02\x01\x02";
    assert_int_equal(size, sizeof(want) - 1);
    assert_memory_equal(bytes, want, size);
    torc_free(bytes);
    described(s, "e.proto",
              "edition = \"2023\";\n\noption features.field_presence = IMPLICIT;\n"
              "option features.message_encoding = DELIMITED;\n\nmessage M {\n  int32 implicit = 1;\n"
              "  int32 explicit = 2 [features.field_presence = EXPLICIT];\n  .M delimited = 3;\n"
              "  repeated int32 packed = 4;\n}\n");
    torc_schema_free(s);
}

/* --- several files --- */

static void two_files(void **state)
{
    torc_schema *s = torc_schema_new();
    struct tc_buf fields = {0}, file = file_with(&fields), other = file_of("y.proto", "p"), m = {0};
    torc_error *error = NULL;
    char *text;
    (void)state;
    assert_int_equal(add(s, &file, NULL), 0);
    file = file_of("x.proto", "q");
    assert_int_equal(add(s, &file, &text), TORC_EEXIST);
    assert_string_equal(text, "another file has the name x.proto");
    tc_free(text);
    put_text(&m, 1, "M");
    put_part(&other, 4, &m);
    assert_int_equal(add(s, &other, NULL), 0);
    assert_int_equal(torc_schema_link(s, &error), TORC_EEXIST);
    assert_string_equal(torc_error_text(error), "p.M is defined by file x.proto and by file y.proto");
    torc_error_clear(&error);
    assert_null(torc_schema_file_at(s, 0)); /* both files are gone */
    assert_null(torc_schema_find_message(s, "p.M"));
    assert_null(torc_schema_describe(s, "p.M", &error));
    assert_int_equal(torc_error_code(error), TORC_ESTATE);
    torc_error_free(error);
    torc_schema_free(s);
}

/* Imports in a circle, imports that were not added, and a reference to a type of such an import. */
static void imports(void **state)
{
    torc_schema *s = torc_schema_new();
    struct tc_buf a = file_of("a.proto", NULL), b = file_of("b.proto", NULL), c = file_of("c.proto", "p"), m = {0};
    torc_error *error = NULL;
    (void)state;
    put_text(&a, 3, "b.proto");
    put_text(&a, 3, "gone.proto");
    put_text(&b, 3, "a.proto");
    put_text(&b, 3, "gone.proto");
    put_text(&b, 3, "also_gone.proto");
    assert_int_equal(add(s, &a, NULL), 0);
    assert_string_equal(torc_schema_missing_at(s, 0), "b.proto");
    assert_int_equal(add(s, &b, NULL), 0);
    assert_string_equal(torc_schema_missing_at(s, 0), "gone.proto");
    assert_string_equal(torc_schema_missing_at(s, 1), "also_gone.proto");
    assert_null(torc_schema_missing_at(s, 2));
    assert_int_equal(torc_schema_link(s, NULL), 0);
    put_text(&m, 1, "M");
    put_field(&m, "f", 1, OPTIONAL, A_MESSAGE, ".gone.G");
    put_part(&c, 4, &m);
    put_text(&c, 3, "gone.proto");
    assert_int_equal(add(s, &c, NULL), 0);
    assert_int_equal(torc_schema_link(s, &error), TORC_ENOTFOUND);
    assert_string_equal(torc_error_text(error),
                        "file c.proto: p.M.f: gone.G is not defined, and its import gone.proto was not added");
    torc_error_free(error);
    torc_schema_free(s);
}

/* --- links and sets --- */

/* Appends the extension `more` of Old, with number 150. */
static void put_extension(struct tc_buf *file)
{
    struct tc_buf f = field_of("more", 150, OPTIONAL, AN_INT32, NULL);
    put_text(&f, 2, "." OLD);
    put_part(file, 7, &f);
}

/* Returns a file of package `late` with the message M, the service S, an extension of Old, and an import. M has a field
 * of the message type `type`; NULL: M has no field. The caller frees the file. */
static struct tc_buf late_file(const char *type)
{
    struct tc_buf file = file_of("late.proto", "late"), m = {0}, service = {0};
    put_extension(&file);
    put_text(&m, 1, "M");
    if (type)
        put_field(&m, "f", 1, OPTIONAL, A_MESSAGE, type);
    put_part(&file, 4, &m);
    put_text(&service, 1, "S");
    put_part(&file, 6, &service);
    put_text(&file, 3, "nobody.proto");
    return file;
}

/* Asserts the JSON of an Old whose bytes have field 150. The field is unknown, and left out, unless a file with
 * put_extension was linked. */
static void converted(const torc_schema *s, const char *want)
{
    char *text = NULL;
    assert_int_equal(
        torc_json_from_bytes(s, torc_schema_find_message(s, OLD), "\xb0\x09\x05", 3, NULL, &text, NULL, NULL), 0);
    assert_string_equal(text, want);
    torc_free(text);
}

/* A link that fails drops the files that were added since the last successful link, and nothing else. */
static void failed_links(void **state)
{
    torc_schema *s = kit_schema();
    const torc_schema_message *old = torc_schema_find_message(s, OLD);
    struct tc_schema_size size = s->size;
    struct tc_buf file, twice;
    (void)state;
    for (int i = 0; i < 3; i++) {
        file = late_file(i == 0 ? ".late.Lost" : NULL);
        assert_int_equal(add(s, &file, NULL), 0);
        if (i > 0) { /* 1: two services have one name; 2: two extensions have one number */
            twice = file_of("twice.proto", i == 1 ? "torc.test.json" : "twice");
            tc_buf_append_str(&twice, "\x32\x07\x0a\x05Store");
            if (i == 2)
                put_extension(&twice);
            assert_int_equal(add(s, &twice, NULL), 0);
        }
        assert_null(torc_schema_find_message(s, OLD)); /* not linked */
        assert_string_equal(torc_schema_missing_at(s, 0), "nobody.proto");
        assert_int_equal(torc_schema_link(s, NULL), i == 0 ? TORC_ENOTFOUND : TORC_EEXIST);
        assert_memory_equal(&s->size, &size, sizeof(size));
        assert_null(torc_schema_missing_at(s, 0));
        assert_null(torc_schema_file_at(s, size.files));
        assert_null(torc_schema_find_message(s, "late.M"));
        assert_null(torc_schema_service_at(s, 1));
        assert_non_null(torc_schema_find_service(s, "torc.test.json.Store"));
        assert_ptr_equal(torc_schema_find_message(s, OLD), old);
        converted(s, "{}");
    }
    file = late_file(NULL);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    assert_string_equal(torc_schema_service_name(torc_schema_service_at(s, 0)), "late.S");
    assert_string_equal(torc_schema_missing_at(s, 0), "nobody.proto");
    assert_ptr_equal(torc_schema_find_message(s, OLD), old);
    converted(s, "{\"[late.more]\":5}");
    torc_schema_free(s);
}

/* A set is added as a whole or not at all. */
static void sets(void **state)
{
    torc_schema *s = kit_schema();
    struct tc_schema_size size = s->size;
    struct tc_buf set = {0}, file = late_file(NULL), bad = file_of("bad.proto", "1");
    torc_error *error = NULL;
    (void)state;
    put_part(&set, 1, &file);
    put_part(&set, 1, &bad);
    assert_int_equal(torc_schema_add_set(s, set.data, set.len, &error), TORC_EPARSE);
    assert_string_equal(torc_error_text(error), "file bad.proto: a package that is not a name");
    assert_memory_equal(&s->size, &size, sizeof(size));
    assert_null(torc_schema_missing_at(s, 0));
    converted(s, "{}"); /* still linked */
    torc_error_free(error);
    tc_buf_fini(&set);
    torc_schema_free(s);
}

/* A link walks new symbols alone: old symbols are not sorted or linked again. */
static void links_of_new_files(void **state)
{
    torc_schema *s = kit_schema();
    size_t n = s->added.len;
    struct tc_schema_symbol *first = s->symbols.data[0], *second = s->symbols.data[1];
    struct tc_schema_symbol **added = tc_calloc(n, sizeof(*added));
    struct tc_buf file = late_file(NULL);
    (void)state;
    assert_int_equal(add(s, &file, NULL), 0);
    memcpy(added, s->added.data, n * sizeof(*added));
    memset(s->added.data, 0, n * sizeof(*added));
    s->symbols.data[0] = second;
    s->symbols.data[1] = first;
    assert_int_equal(torc_schema_link(s, NULL), 0);
    size_t i = 0;
    while (s->symbols.data[i] != second)
        i++;
    assert_ptr_equal(s->symbols.data[i + 1], first);
    s->symbols.data[i] = first;
    s->symbols.data[i + 1] = second;
    memcpy(s->added.data, added, n * sizeof(*added));
    tc_free(added);
    converted(s, "{\"[late.more]\":5}");
    assert_non_null(torc_schema_find_message(s, "late.M"));
    torc_schema_free(s);
}

/* --- names and limits --- */

/* Where a file and a type have one name, a name that ends in .proto means the file, and any other the type. A name with
 * a dot in front means the type. */
static void files_and_types_of_one_name(void **state)
{
    static const char *const names[][2] = {{"proto", "p.proto"}, {"M", "p.M"}};
    torc_schema *s = torc_schema_new();
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(names); i++) {
        struct tc_buf file = file_of(names[i][1], "p"), m = {0};
        put_text(&m, 1, names[i][0]);
        put_part(&file, 4, &m);
        assert_int_equal(add(s, &file, NULL), 0);
    }
    assert_int_equal(torc_schema_link(s, NULL), 0);
    described(s, "p.proto", "syntax = \"proto3\";\n\npackage p;\n\nmessage proto {\n}\n");
    described(s, ".p.proto", "message proto {\n}\n");
    described(s, "p.M", "message M {\n}\n");
    torc_schema_free(s);
}

static void limits(void **state)
{
    torc_schema *s = torc_schema_new();
    struct tc_buf m = {0}, file, large = {0};
    char *text;
    (void)state;
    put_text(&m, 1, "M");
    for (int i = 1; i < 64; i++) {
        struct tc_buf outer = {0};
        put_text(&outer, 1, "M");
        put_part(&outer, 3, &m);
        m = outer;
    }
    file = file_of("deep.proto", NULL);
    tc_wire_append(&file, 4, tc_buf_slice(&m));
    assert_int_equal(add(s, &file, NULL), 0);
    struct tc_buf outer = {0};
    put_text(&outer, 1, "M");
    put_part(&outer, 3, &m);
    file = file_of("deeper.proto", "q");
    put_part(&file, 4, &outer);
    assert_int_equal(add(s, &file, &text), TORC_ELIMIT);
    assert_string_equal(text, "file deeper.proto: messages nested more than 64 deep");
    tc_free(text);
    assert_int_equal(torc_schema_link(s, NULL), 0); /* as if the file had not been there */
    file = file_of("wide.proto", "w");
    put_text(&m, 1, "M");
    for (unsigned i = 0; i <= 65536; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%u", i);
        put_field(&m, name, i < 18999 ? i + 1 : i + 1002, OPTIONAL, AN_INT32, NULL);
    }
    put_part(&file, 4, &m);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), TORC_ELIMIT);
    torc_schema_free(s);
    s = torc_schema_new();
    put_text(&large, 1, "large.proto");
    memset(tc_buf_reserve(&large, 65 << 20), 0, 65 << 20);
    large.len += 65 << 20;
    assert_int_equal(add(s, &large, &text), TORC_ELIMIT);
    assert_string_equal(text, "the files of the schema have more than 64 MiB");
    tc_free(text);
    file = file_of("values.proto", "v");
    put_text(&m, 1, "E");
    for (int i = 0; i < 1000000; i++)
        tc_wire_append(&m, 2, tc_slice_of("\x0a\x01V", 3));
    put_part(&file, 5, &m);
    assert_int_equal(add(s, &file, &text), TORC_ELIMIT);
    assert_string_equal(text, "file values.proto: v.E: more than 1000000 descriptors");
    tc_free(text);
    /* Reserved ranges and names, of a message and of an enum. */
    static const unsigned reserved[][2] = {{4, 9}, {4, 10}, {5, 4}, {5, 5}};
    for (size_t i = 0; i < TC_ARRAY_LEN(reserved); i++) {
        file = file_of("reserved.proto", "r");
        put_text(&m, 1, "M");
        for (int k = 0; k < 1000000; k++)
            put_text(&m, reserved[i][1], "");
        put_part(&file, reserved[i][0], &m);
        assert_int_equal(add(s, &file, &text), TORC_ELIMIT);
        assert_string_equal(text, "file reserved.proto: r.M: more than 1000000 descriptors");
        tc_free(text);
    }
    for (int i = 0; i <= 16384; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i);
        file = file_of(name, NULL);
        assert_int_equal(add(s, &file, NULL), i < 16384 ? 0 : TORC_ELIMIT);
    }
    torc_schema_free(s);
}

/* A full name may have 4096 bytes, with or without a package. */
static void long_names(void **state)
{
    static const char *const packages[] = {NULL, "p"};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(packages); i++) {
        for (size_t n = 4096; n <= 4097; n++) {
            struct tc_buf name = {0}, m = {0}, file = file_of("x.proto", packages[i]);
            memset(tc_buf_reserve(&name, 4097), 'a', 4097);
            name.len = n - (packages[i] ? strlen("p.") : 0);
            put_part(&m, 1, &name);
            put_part(&file, 4, &m);
            if (n > 4096) {
                refused(&file, TORC_ELIMIT, "file x.proto: a full name of more than 4096 bytes");
                continue;
            }
            torc_schema *s = torc_schema_new();
            assert_int_equal(add(s, &file, NULL), 0);
            assert_int_equal(torc_schema_link(s, NULL), 0);
            torc_schema_free(s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(look_ups),
        cmocka_unit_test(files),
        cmocka_unit_test(later_files),
        cmocka_unit_test(describe),
        cmocka_unit_test(group_within_itself),
        cmocka_unit_test(texts_that_lie),
        cmocka_unit_test(templates),
        cmocka_unit_test(editions),
        cmocka_unit_test(two_files),
        cmocka_unit_test(imports),
        cmocka_unit_test(failed_links),
        cmocka_unit_test(sets),
        cmocka_unit_test(links_of_new_files),
        cmocka_unit_test(files_and_types_of_one_name),
        cmocka_unit_test(limits),
        cmocka_unit_test(long_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
