/* Schemas from bytes. Two bytes have the length of the FileDescriptorSet behind them. The rest of the input is read as
 * a message, and as JSON, of the request types of the first four methods of each service. A set that links can be
 * described and used. The files of the set are also added one by one: to a schema that is linked after each file
 * (link_each), and to an index of descriptors (index_each). */
#include <torc/json.h>

#include "base/mem.h"
#include "base/parse.h"
#include "fuzz.h"
#include "proto/descriptor_index.h"
#include "proto/wire.h"

static void describe_all(torc_schema *schema)
{
    for (size_t i = 0; torc_schema_file_at(schema, i); i++) {
        torc_error *error = NULL;
        char *text = torc_schema_describe(schema, torc_schema_file_at(schema, i), &error);
        TC_FUZZ_CHECK(text ? tc_utf8_valid(tc_slice_str(text)) : error != NULL);
        torc_free(text);
        torc_error_free(error);
        torc_schema_missing_at(schema, i);
    }
}

/* Checks that the JSON of a message can be read again, whatever the names of its fields are, unless that exceeds a
 * limit. */
static void check_names(torc_schema *schema, const torc_schema_message *type, struct tc_slice in)
{
    const struct torc_json_options o = {TORC_SIZE(torc_json_options), .max_bytes = 1 << 20, .allow_partial = TORC_ON};
    char *text = NULL;
    void *bytes = NULL;
    size_t size = 0;
    if (torc_json_from_bytes(schema, type, in.data, in.len, &o, &text, &size, NULL) != 0)
        return;
    int rc = torc_json_to_bytes(schema, type, text, size, &o, &bytes, &size, NULL);
    TC_FUZZ_CHECK(rc == 0 || rc == TORC_ELIMIT);
    torc_free(bytes);
    torc_free(text);
}

/* Reads the template of a type, and `in` as a message and as JSON of the type. */
static void convert(torc_schema *schema, const torc_schema_message *type, struct tc_slice in)
{
    const struct torc_json_options o = {TORC_SIZE(torc_json_options), .max_bytes = 1 << 20, .emit_defaults = TORC_ON};
    char *text = torc_schema_template(type);
    void *bytes = NULL;
    size_t size = 0;
    TC_FUZZ_CHECK(torc_schema_find_message(schema, torc_schema_message_name(type)) == type);
    torc_json_to_bytes(schema, type, text, strlen(text), &o, &bytes, &size, NULL);
    torc_free(bytes);
    torc_free(text);
    bytes = NULL;
    text = NULL;
    if (torc_json_from_bytes(schema, type, in.data, in.len, &o, &text, &size, NULL) == 0)
        TC_FUZZ_CHECK(tc_utf8_valid(tc_slice_of(text, size)));
    if (torc_json_to_bytes(schema, type, in.data, in.len, &o, &bytes, &size, NULL) == 0)
        torc_free(bytes);
    torc_free(text);
    check_names(schema, type, in);
}

/* Adds each file to an index. Removes the file of every third field of the set again. */
static void index_each(struct tc_slice set)
{
    struct tc_descriptor_index x = {0};
    struct tc_wire_field file;
    for (unsigned i = 0; tc_wire_next(&set, &file); i++) {
        struct tc_status why = {0};
        size_t n = x.files.len, memory = x.memory;
        if (!file.is_bytes)
            continue;
        int rc = tc_descriptor_index_add(&x, file.value, &why);
        TC_FUZZ_CHECK((rc == 0) == (why.code == 0) && x.files.len <= n + (rc == 0));
        tc_status_fini(&why);
        if (i % 3 == 1)
            tc_descriptor_index_cut(&x, n);
        TC_FUZZ_CHECK(x.files.len > n || x.memory == memory);
        TC_FUZZ_CHECK(x.files.len == 0 ||
                      tc_descriptor_index_file(&x, tc_slice_str(x.files.data[x.files.len - 1]->name)));
    }
    tc_descriptor_index_fini(&x);
    TC_FUZZ_CHECK(x.memory == 0 && !x.entries);
}

/* Adds and links the files one by one. A file that cannot be linked does not stay. */
static void link_each(struct tc_slice set)
{
    torc_schema *schema = torc_schema_new();
    struct tc_wire_field file;
    size_t n = 0;
    while (tc_wire_next(&set, &file)) {
        if (!file.is_bytes)
            continue;
        torc_schema_add_file(schema, file.value.data, file.value.len, NULL);
        int rc = torc_schema_link(schema, NULL);
        TC_FUZZ_CHECK(!torc_schema_file_at(schema, n + (rc == 0)));
        n += torc_schema_file_at(schema, n) != NULL;
    }
    if (n)
        describe_all(schema);
    torc_schema_free(schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    struct tc_slice set = tc_fuzz_take(&in, (size_t)tc_fuzz_uint(&in, 2));
    torc_schema *schema = torc_schema_new();
    torc_error *error = NULL;
    torc_schema_add_set(schema, set.data, set.len, &error);
    TC_FUZZ_CHECK(tc_utf8_valid(tc_slice_str(torc_error_text(error))));
    torc_error_clear(&error);
    int rc = torc_schema_link(schema, &error);
    TC_FUZZ_CHECK((rc == 0) == (error == NULL) && tc_utf8_valid(tc_slice_str(torc_error_text(error))));
    torc_error_free(error);
    if (rc == 0)
        describe_all(schema);
    const torc_schema_service *service;
    for (size_t i = 0; (service = torc_schema_service_at(schema, i)) != NULL; i++)
        for (size_t k = 0; k < 4 && torc_schema_method_at(service, k); k++)
            convert(schema, torc_schema_method_request(torc_schema_method_at(service, k)),
                    tc_slice_of(in.data, in.len));
    torc_schema_free(schema);
    link_each(set);
    index_each(set);
    return 0;
}
