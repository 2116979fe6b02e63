/* The schema of test/json, and descriptors that a test writes field by field. Buffers and arguments are not NULL unless
 * a function says so. A buffer that a function frees is empty afterwards and may be used again. */
#ifndef TEST_UNIT_JSON_KIT_H
#define TEST_UNIT_JSON_KIT_H

#include <stdio.h>
#include <stdlib.h>
#include <torc/json.h>

#include "base/file.h"
#include "base/mem.h"
#include "support/cmocka.h"
#include "json/item.h"
#include "json/model.h"

#define ALL "torc.test.json.All"
#define OLD "torc.test.json.Old"

/* Labels and types of fields. */
enum { OPTIONAL = 1, REQUIRED = 2, REPEATED = 3 };
enum { AN_INT32 = 5, A_STRING = 9, A_GROUP = 10, A_MESSAGE = 11, A_BYTES = 12, AN_ENUM = 14 };

/* Returns the FileDescriptorSet that protoc made of the files in test/json and their imports. The caller frees it. */
static inline struct tc_buf kit_set(void)
{
    struct tc_buf bytes = {0};
    const char *reason;
    char scratch[128], path[4096];
    snprintf(path, sizeof(path), "%s/test/json.pb", getenv("TORC_BINARY_DIR"));
    if (tc_file_read(path, 1 << 20, &bytes, &reason, scratch) != 0)
        fail_msg("%s: %s", path, reason);
    return bytes;
}

/* Returns the schema of kit_set, linked. The caller frees it. */
static inline torc_schema *kit_schema(void)
{
    torc_schema *schema = torc_schema_new();
    torc_error *error = NULL;
    struct tc_buf set = kit_set();
    torc_schema_add_set(schema, set.data, set.len, &error);
    if (torc_schema_link(schema, &error) != 0)
        fail_msg("%s", torc_error_text(error));
    tc_buf_fini(&set);
    return schema;
}

/* --- descriptors that are written field by field --- */

static inline void put_text(struct tc_buf *b, unsigned number, const char *text)
{
    tc_wire_append(b, number, tc_slice_str(text));
}

static inline void put_number(struct tc_buf *b, unsigned number, uint64_t value)
{
    tc_wire_append_varint(b, number << 3 | TC_WIRE_VARINT);
    tc_wire_append_varint(b, value);
}

/* Appends the content of `part` as a field. Frees `part`. */
static inline void put_part(struct tc_buf *b, unsigned number, struct tc_buf *part)
{
    tc_wire_append(b, number, tc_buf_slice(part));
    tc_buf_fini(part);
}

/* Returns a FieldDescriptorProto, which the caller frees. `type_name`: NULL for none. */
static inline struct tc_buf field_of(const char *name, unsigned number, unsigned label, unsigned type,
                                     const char *type_name)
{
    struct tc_buf f = {0};
    put_text(&f, 1, name);
    put_number(&f, 3, number);
    put_number(&f, 4, label);
    put_number(&f, 5, type);
    if (type_name)
        put_text(&f, 6, type_name);
    return f;
}

/* Appends a field to the content of a DescriptorProto. `type_name`: NULL for none. */
static inline void put_field(struct tc_buf *message, const char *name, unsigned number, unsigned label, unsigned type,
                             const char *type_name)
{
    struct tc_buf f = field_of(name, number, label, type, type_name);
    put_part(message, 2, &f);
}

/* Returns a FileDescriptorProto of proto3, which the caller frees. `package`: NULL for none. */
static inline struct tc_buf file_of(const char *name, const char *package)
{
    struct tc_buf f = {0};
    put_text(&f, 1, name);
    if (package)
        put_text(&f, 2, package);
    put_text(&f, 12, "proto3");
    return f;
}

/* Adds the file to the schema. Frees `file`. Returns the code. Unless `text` is NULL, stores the error's text, or "",
 * in *text, which the caller frees. */
static inline int add(torc_schema *schema, struct tc_buf *file, char **text)
{
    torc_error *error = NULL;
    int rc = torc_schema_add_file(schema, file->data, file->len, &error);
    if (text)
        *text = tc_strdup(torc_error_text(error));
    torc_error_free(error);
    tc_buf_fini(file);
    return rc;
}

/* Adds the file to a new schema and links the schema. Asserts that one of these fails with the code and the text. Frees
 * `file`. */
static inline void refused(struct tc_buf *file, int code, const char *want)
{
    torc_schema *schema = torc_schema_new();
    torc_error *error = NULL;
    int rc = torc_schema_add_file(schema, file->data, file->len, &error);
    if (rc == 0)
        rc = torc_schema_link(schema, &error);
    assert_string_equal(torc_error_text(error), want);
    assert_int_equal(rc, code);
    torc_error_free(error);
    torc_schema_free(schema);
    tc_buf_fini(file);
}

/* Returns a file "x.proto" of package p with the message M. `fields` is the content of M after its name. Frees
 * `fields`. The caller frees the file. */
static inline struct tc_buf file_with(struct tc_buf *fields)
{
    struct tc_buf file = file_of("x.proto", "p"), m = {0};
    put_text(&m, 1, "M");
    tc_buf_append_slice(&m, tc_buf_slice(fields));
    tc_buf_fini(fields);
    put_part(&file, 4, &m);
    return file;
}

/* Returns a file "e.proto" of the edition, a number of descriptor.proto (1000: 2023), with these features. Frees
 * `features`. The caller frees the file. */
static inline struct tc_buf edition_file(unsigned edition, struct tc_buf *features)
{
    struct tc_buf file = {0}, options = {0};
    put_text(&file, 1, "e.proto");
    put_text(&file, 12, "editions");
    put_number(&file, 14, edition);
    put_part(&options, 50, features);
    put_part(&file, 8, &options);
    return file;
}

/* --- text of a schema --- */

/* Asserts the text of what the name stands for; if there is none, the text of the error. */
static inline void described(const torc_schema *s, const char *name, const char *want)
{
    torc_error *error = NULL;
    char *text = torc_schema_describe(s, name, &error);
    assert_string_equal(text ? text : torc_error_text(error), want);
    torc_free(text);
    torc_error_free(error);
}

#endif
