/* torc_schema_describe on descriptors that a test writes field by field (kit.h): options of each kind of descriptor,
 * keywords and features of the editions, kinds of imports, and groups. Each test makes and frees its own schemas. */
#include "kit.h"

/* Appends an options message as field number `field`. In the message, field number `deprecated` (0: none) is true, and
 * field number `features` has enforce_naming_style = STYLE_LEGACY. */
static void put_options(struct tc_buf *b, unsigned field, unsigned deprecated, unsigned features)
{
    struct tc_buf options = {0}, set = {0};
    if (deprecated)
        put_number(&options, deprecated, 1);
    put_number(&set, 7, 2);
    put_part(&options, features, &set);
    put_part(b, field, &options);
}

/* Returns the exported message m: a field, a oneof with another field, an extension range and a local message. */
static struct tc_buf a_message(void)
{
    struct tc_buf m = {0}, f = field_of("F", 1, OPTIONAL, AN_INT32, NULL), nested = {0}, oneof = {0}, range = {0};
    put_text(&m, 1, "m");
    put_options(&f, 8, 3, 21);
    put_part(&m, 2, &f);
    f = field_of("g", 2, OPTIONAL, AN_INT32, NULL);
    put_number(&f, 9, 0);
    put_part(&m, 2, &f);
    put_text(&nested, 1, "N");
    put_number(&nested, 11, 1);
    put_part(&m, 3, &nested);
    put_number(&range, 1, 10);
    put_number(&range, 2, 20);
    put_options(&range, 3, 0, 50);
    put_part(&m, 5, &range);
    put_options(&m, 7, 3, 12);
    put_text(&oneof, 1, "O");
    put_options(&oneof, 2, 0, 1);
    put_part(&m, 8, &oneof);
    put_number(&m, 11, 2);
    return m;
}

/* Returns a linked schema of one file of the edition, in which each kind of descriptor has options. The file has
 * features and keywords of edition 2024, whatever the edition. */
static torc_schema *schema_of(unsigned edition)
{
    struct tc_buf features = {0}, m = a_message(), e = {0}, value = {0}, service = {0}, method = {0};
    torc_schema *s = torc_schema_new();
    put_number(&features, 7, 2);
    put_number(&features, 8, 4);
    struct tc_buf file = edition_file(edition, &features);
    put_part(&file, 4, &m);
    put_text(&value, 1, "v");
    put_options(&value, 3, 1, 2);
    put_text(&e, 1, "e");
    put_part(&e, 2, &value);
    put_options(&e, 3, 3, 7);
    put_number(&e, 6, 1);
    put_part(&file, 5, &e);
    put_text(&method, 1, "r");
    put_text(&method, 2, ".m");
    put_text(&method, 3, ".m");
    put_options(&method, 4, 33, 35);
    put_text(&service, 1, "s");
    put_part(&service, 2, &method);
    put_options(&service, 3, 33, 34);
    put_part(&file, 6, &service);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    return s;
}

static void edition_2024(void **state)
{
    torc_schema *s = schema_of(1001);
    (void)state;
    described(s, "e.proto",
              "edition = \"2024\";\n\n"
              "option features.enforce_naming_style = STYLE_LEGACY;\n"
              "option features.default_symbol_visibility = STRICT;\n\n"
              "export message m {\n"
              "  option deprecated = true;\n"
              "  option features.enforce_naming_style = STYLE_LEGACY;\n"
              "  int32 F = 1 [deprecated = true, features.enforce_naming_style = STYLE_LEGACY];\n"
              "  oneof O {\n"
              "    option features.enforce_naming_style = STYLE_LEGACY;\n"
              "    int32 g = 2;\n"
              "  }\n"
              "  extensions 10 to 19 [features.enforce_naming_style = STYLE_LEGACY];\n"
              "  local message N {\n"
              "  }\n"
              "}\n\n"
              "local enum e {\n"
              "  option deprecated = true;\n"
              "  option features.enforce_naming_style = STYLE_LEGACY;\n"
              "  v = 0 [deprecated = true, features.enforce_naming_style = STYLE_LEGACY];\n"
              "}\n\n"
              "service s {\n"
              "  option deprecated = true;\n"
              "  option features.enforce_naming_style = STYLE_LEGACY;\n"
              "  rpc r (.m) returns (.m) { option deprecated = true; option features.enforce_naming_style = "
              "STYLE_LEGACY; }\n"
              "}\n");
    described(s, "m.N", "local message N {\n}\n");
    described(s, "e.v", "v = 0 [deprecated = true, features.enforce_naming_style = STYLE_LEGACY];\n");
    torc_schema_free(s);
}

/* Edition 2023 does not have the features and keywords of 2024, and proto3 has no features. The text leaves them out,
 * since protoc would refuse them. */
static void earlier_editions(void **state)
{
    static const char *const heads[] = {"syntax = \"proto3\"", "edition = \"2023\""};
    (void)state;
    for (unsigned i = 0; i < TC_ARRAY_LEN(heads); i++) {
        torc_schema *s = schema_of(999 + i);
        struct tc_buf want = {0};
        tc_buf_printf(&want,
                      "%s;\n\n"
                      "message m {\n"
                      "  option deprecated = true;\n"
                      "  int32 F = 1 [deprecated = true];\n"
                      "  oneof O {\n"
                      "    int32 g = 2;\n"
                      "  }\n"
                      "  extensions 10 to 19;\n"
                      "  message N {\n"
                      "  }\n"
                      "}\n\n"
                      "enum e {\n"
                      "  option deprecated = true;\n"
                      "  v = 0 [deprecated = true];\n"
                      "}\n\n"
                      "service s {\n"
                      "  option deprecated = true;\n"
                      "  rpc r (.m) returns (.m) { option deprecated = true; }\n"
                      "}\n",
                      heads[i]);
        described(s, "e.proto", tc_buf_cstr(&want));
        tc_buf_fini(&want);
        torc_schema_free(s);
    }
}

/* A feature that edition 2023 has (json_format) is written in a file of that edition, and left out in proto2. */
static void features_without_an_edition(void **state)
{
    static const unsigned editions[] = {998, 1000};
    static const char *const texts[] = {"message M {\n}\n", "message M {\n  option features.json_format = ALLOW;\n}\n"};
    (void)state;
    for (size_t i = 0; i < TC_ARRAY_LEN(editions); i++) {
        struct tc_buf none = {0}, m = {0}, options = {0}, set = {0}, file = edition_file(editions[i], &none);
        torc_schema *s = torc_schema_new();
        put_text(&m, 1, "M");
        put_number(&set, 6, 1);
        put_part(&options, 12, &set);
        put_part(&m, 7, &options);
        put_part(&file, 4, &m);
        assert_int_equal(add(s, &file, NULL), 0);
        assert_int_equal(torc_schema_link(s, NULL), 0);
        described(s, "M", texts[i]);
        torc_schema_free(s);
    }
}

/* Fields 10 (public) and 11 (weak) of a file's descriptor hold indices of its imports, one by one or as a packed list.
 * An index without an import is ignored. */
static void kinds_of_imports(void **state)
{
    struct tc_buf file = {0}, packed = {0};
    torc_schema *s = torc_schema_new();
    (void)state;
    put_text(&file, 1, "x.proto");
    for (char name[] = "a.proto"; name[0] < 'e'; name[0]++)
        put_text(&file, 3, name);
    put_number(&file, 10, 1);
    put_number(&file, 10, 4);
    put_number(&file, 11, 2);
    tc_buf_append(&packed, "\3\7", 2);
    put_part(&file, 10, &packed);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    described(s, "x.proto",
              "syntax = \"proto2\";\n\n"
              "import \"a.proto\";\n"
              "import public \"b.proto\";\n"
              "import weak \"c.proto\";\n"
              "import public \"d.proto\";\n");
    torc_schema_free(s);
}

/* The options of a group stand before its fields. */
static void options_of_groups(void **state)
{
    struct tc_buf file = {0}, m = {0}, group = {0}, options = {0}, f = field_of("g", 1, OPTIONAL, A_GROUP, ".M.G");
    torc_schema *s = torc_schema_new();
    (void)state;
    put_number(&options, 3, 1);
    put_part(&f, 8, &options);
    put_text(&f, 10, "other");
    put_text(&group, 1, "G");
    put_field(&group, "x", 1, OPTIONAL, AN_INT32, NULL);
    put_text(&m, 1, "M");
    put_part(&m, 2, &f);
    put_part(&m, 3, &group);
    put_text(&file, 1, "x.proto");
    put_part(&file, 4, &m);
    assert_int_equal(add(s, &file, NULL), 0);
    assert_int_equal(torc_schema_link(s, NULL), 0);
    described(s, "M",
              "message M {\n"
              "  optional group G = 1 [json_name = \"other\", deprecated = true] {\n"
              "    optional int32 x = 1;\n"
              "  }\n"
              "}\n");
    torc_schema_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edition_2024),
        cmocka_unit_test(earlier_editions),
        cmocka_unit_test(features_without_an_edition),
        cmocka_unit_test(kinds_of_imports),
        cmocka_unit_test(options_of_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
