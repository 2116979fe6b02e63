/* libtorc-json with types of test/json and well-known types. The first byte has the options, the second chooses the
 * type. The rest is JSON if it begins with a brace, bracket or quote, else a message. The message of an accepted JSON
 * input converts to JSON. JSON that the library wrote is accepted, and comes back the same (check_text has an
 * exception). */
#include <string.h>

#include <torc/json.h>

#include "base/mem.h"
#include "base/parse.h"
#include "fuzz.h"
#include "json_set.h" /* generated: json_set, a FileDescriptorSet */

static const char *const types[] = {"torc.test.json.All",        "torc.test.json.Old",       "torc.test.json.Demanding",
                                    "torc.test.json.Set",        "google.protobuf.Any",      "google.protobuf.Value",
                                    "google.protobuf.Timestamp", "google.protobuf.FieldMask"};

/* Returns the schema of all inputs. It is made once, and lives until the process ends. */
static torc_schema *the_schema(void)
{
    static torc_schema *schema;
    if (!schema) {
        schema = torc_schema_new();
        TC_FUZZ_CHECK(torc_schema_add_set(schema, json_set, sizeof(json_set), NULL) == 0);
        TC_FUZZ_CHECK(torc_schema_link(schema, NULL) == 0);
    }
    return schema;
}

/* Checks the error of a call that returned `rc`, and frees it. */
static void check_error(int rc, torc_error *error)
{
    TC_FUZZ_CHECK((rc != 0) == (error != NULL) && rc == torc_error_code(error));
    TC_FUZZ_CHECK(tc_utf8_valid(tc_slice_str(torc_error_text(error))));
    torc_error_free(error);
}

/* Returns the JSON of a message, to be freed with torc_free; NULL: there is none. */
static char *text_of(const torc_schema_message *type, struct tc_slice bytes, const struct torc_json_options *o,
                     size_t *size)
{
    torc_error *error = NULL;
    char *text = NULL;
    int rc = torc_json_from_bytes(the_schema(), type, bytes.data, bytes.len, o, &text, size, &error);
    check_error(rc, error);
    return text;
}

/* Returns the message of a text, to be freed with torc_free; NULL: the text is refused. */
static void *bytes_of(const torc_schema_message *type, struct tc_slice text, const struct torc_json_options *o,
                      size_t *size)
{
    torc_error *error = NULL;
    void *bytes = NULL;
    int rc = torc_json_to_bytes(the_schema(), type, text.data, text.len, o, &bytes, size, &error);
    check_error(rc, error);
    return bytes;
}

/* Checks that JSON which the library wrote is read, and comes back the same. Exception: a NullValue of any number is
 * written as null, and null is read as 0. So a text with null may come back without it; both texts then read as the
 * same bytes. */
static void check_text(const torc_schema_message *type, struct tc_slice text, const struct torc_json_options *o)
{
    size_t size = 0, again_size = 0, read_size = 0;
    void *bytes = bytes_of(type, text, o, &size);
    TC_FUZZ_CHECK(bytes);
    char *again = text_of(type, tc_slice_of(bytes, size), o, &again_size);
    TC_FUZZ_CHECK(again);
    void *read = bytes_of(type, tc_slice_of(again, again_size), o, &read_size);
    TC_FUZZ_CHECK(read && tc_slice_eq(tc_slice_of(bytes, size), tc_slice_of(read, read_size)));
    TC_FUZZ_CHECK(strstr(text.data, "null") || tc_slice_eq(text, tc_slice_of(again, again_size)));
    torc_free(bytes);
    torc_free(again);
    torc_free(read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    uint8_t bits = tc_fuzz_u8(&in);
    const torc_schema_message *type =
        torc_schema_find_message(the_schema(), types[tc_fuzz_u8(&in) % TC_ARRAY_LEN(types)]);
    struct torc_json_options o = {
        TORC_SIZE(torc_json_options), .emit_defaults = bits & 1,     .allow_unknown = bits >> 1 & 1,
        .proto_names = bits >> 2 & 1, .enum_numbers = bits >> 3 & 1, .unknown_any = bits >> 4 & 1,
        .allow_partial = 1,           .indent = bits >> 5 & 3};
    struct tc_slice rest = tc_slice_of(in.data, in.len);
    size_t n = 0, used;
    void *bytes = NULL;
    torc_json_split(rest.len ? rest.data : "", rest.len, &used);
    if (rest.len && strchr("{[\"", rest.data[0]) && rest.data[0]) {
        bytes = bytes_of(type, rest, &o, &n);
        if (!bytes)
            return 0;
        rest = tc_slice_of(bytes, n);
    }
    char *text = text_of(type, rest, &o, &n);
    TC_FUZZ_CHECK(text || !bytes);
    if (text)
        check_text(type, tc_slice_of(text, n), &o);
    torc_free(text);
    torc_free(bytes);
    return 0;
}
