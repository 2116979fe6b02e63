/* Public functions of schemas: adding files, and look-ups. json/parse reads files, json/link connects them.
 *
 * Definitions are found only while the schema is linked, names of files always. Look-ups write nothing, so any number
 * of threads may look while nothing is added. A file's definitions are in its arena, which is freed with the schema or
 * when the file is dropped. Dropped are a file that is refused, all files of a set or merge of which one is refused,
 * and, if a link fails, all files that were added since the last successful link.
 *
 * Between calls `size` has the lengths of `files` and `added`, and by_name is sorted and has each file and each import
 * once. by_name and `missing` borrow their names from the arenas: if one of their files is dropped, both are built
 * again. */
#include <stdlib.h>

#include "json/fail.h"
#include "json/item.h"
#include "json/link.h"
#include "json/model.h"
#include "json/parse.h"

torc_schema *torc_schema_new(void)
{
    return TC_NEW(torc_schema);
}

/* Frees the arrays of the definition that a symbol names. The definition itself is in the arena of its file. */
static void symbol_fini(struct tc_schema_symbol *symbol)
{
    if (symbol->kind == TC_SYMBOL_MESSAGE) {
        torc_schema_message *m = symbol->of.message;
        tc_vec_fini(&m->fields);
        tc_vec_fini(&m->oneofs);
        tc_vec_fini(&m->nested);
        tc_vec_fini(&m->enums);
        tc_vec_fini(&m->extends);
        tc_vec_fini(&m->extensions);
        tc_vec_fini(&m->ranges);
        tc_free(m->by_number);
        tc_free(m->by_name);
    } else if (symbol->kind == TC_SYMBOL_ENUM) {
        tc_vec_fini(&symbol->of.enumeration->values);
        tc_free(symbol->of.enumeration->by_number);
    } else if (symbol->kind == TC_SYMBOL_SERVICE) {
        tc_vec_fini(&symbol->of.service->methods);
    }
}

/* Drops the files and symbols that were added since the schema had `size`. by_name, `missing` and the arrays of linked
 * symbols stay as they are. */
static void schema_cut(torc_schema *s, struct tc_schema_size size)
{
    s->size = size;
    while (s->added.len > size.symbols)
        symbol_fini(s->added.data[--s->added.len]);
    while (s->files.len > size.files) {
        struct tc_schema_file *file = s->files.data[--s->files.len];
        tc_vec_fini(&file->imports);
        tc_arena_fini(&file->arena);
        tc_free(file);
    }
}

void torc_schema_free(torc_schema *s)
{
    if (!s)
        return;
    schema_cut(s, (struct tc_schema_size){0});
    tc_vec_fini(&s->files);
    tc_vec_fini(&s->added);
    tc_vec_fini(&s->symbols);
    tc_vec_fini(&s->by_name);
    tc_vec_fini(&s->missing);
    tc_vec_fini(&s->services);
    tc_vec_fini(&s->changed);
    tc_free(s);
}

/* --- adding --- */

/* Returns false with an error if the schema is NULL, or if `bytes` is NULL and size is not 0. Also returns false if
 * *error already has an error, which stays. */
static bool may_add(const torc_schema *s, const void *bytes, size_t size, torc_error **error)
{
    if (error && *error)
        return false;
    return (s && (bytes || !size)) || tc_json_fail(error, TORC_EINVAL, "the schema or the bytes are NULL");
}

/* Returns the code of the error, or `otherwise` if there is none. */
static int code_of(torc_error *const *error, int otherwise)
{
    return error && *error ? torc_error_code(*error) : otherwise;
}

/* Returns the index of a file's name in by_name, or the index at which to insert it. */
static size_t file_place(const torc_schema *s, struct tc_slice name)
{
    size_t low = 0, high = s->by_name.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tc_slice_cmp(tc_slice_str(s->by_name.data[middle].name), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the element of a name in by_name, valid until the next insertion; NULL if the name is not there. */
static struct tc_schema_named *file_named(const torc_schema *s, struct tc_slice name)
{
    size_t at = file_place(s, name);
    return at < s->by_name.len && tc_slice_eq_str(name, s->by_name.data[at].name) ? &s->by_name.data[at] : NULL;
}

const struct tc_schema_file *tc_schema_file(const torc_schema *s, struct tc_slice name)
{
    const struct tc_schema_named *found = file_named(s, name);
    return found ? found->file : NULL;
}

/* Returns the element of a name in by_name, valid until the next insertion. Inserts the name, borrowed, if it is not
 * there. */
static struct tc_schema_named *name_put(torc_schema *s, const char *name)
{
    struct tc_schema_named *found = file_named(s, tc_slice_str(name));
    if (found)
        return found;
    size_t at = file_place(s, tc_slice_str(name));
    tc_vec_push(&s->by_name);
    found = &s->by_name.data[at];
    memmove(found + 1, found, (s->by_name.len - 1 - at) * sizeof(*found));
    *found = (struct tc_schema_named){.name = name};
    return found;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns how many names by_name gets from a parsed file: its own and those of its imports, each once. */
static size_t names_count(const torc_schema *s, const struct tc_schema_file *file)
{
    size_t n = file->imports.len + 1, added = 0;
    const char **names = tc_reallocarray(NULL, n, sizeof(*names));
    names[0] = file->name;
    for (size_t i = 1; i < n; i++)
        names[i] = file->imports.data[i - 1];
    qsort(names, n, sizeof(*names), name_compare);
    for (size_t i = 0; i < n; i++)
        added += (i == 0 || strcmp(names[i - 1], names[i]) != 0) && !file_named(s, tc_slice_str(names[i]));
    tc_free(names);
    return added;
}

/* Puts a parsed file and its imports into by_name, and updates `missing`. Returns false with an error, and changes
 * nothing, if there are too many names. */
static bool names_put(torc_schema *s, struct tc_schema_file *file, torc_error **error)
{
    if (s->by_name.len + names_count(s, file) > TC_SCHEMA_MAX_FILES)
        return tc_json_fail(error, TORC_ELIMIT, "the schema has more than 16384 files, with those that are imported");
    struct tc_schema_named *own = name_put(s, file->name);
    own->file = file;
    for (size_t i = 0; i < s->missing.len; i++) {
        if (s->missing.data[i] == own->name) {
            tc_vec_remove(&s->missing, i);
            break;
        }
    }
    for (size_t i = 0; i < file->imports.len; i++) {
        size_t n = s->by_name.len;
        const char *name = name_put(s, file->imports.data[i])->name;
        if (s->by_name.len > n)
            *tc_vec_push(&s->missing) = name;
    }
    return true;
}

/* Adds a file; does nothing if the schema has the same file. Returns TORC_OK; or the code of the error that it stores,
 * with the schema unchanged. */
static int add_file(torc_schema *s, struct tc_slice bytes, torc_error **error)
{
    const struct tc_schema_size before = s->size;
    const struct tc_schema_file *other = tc_schema_file(s, bytes.len ? tc_wire_find(bytes, 1) : bytes);
    if (other && tc_slice_eq(other->bytes, bytes))
        return TORC_OK;
    if (other)
        tc_json_fail(error, TORC_EEXIST, "another file has the name " TC_SHOWN, TC_SHOW(other->name));
    else if (bytes.len > TC_SCHEMA_MAX_BYTES - s->size.bytes)
        tc_json_fail(error, TORC_ELIMIT, "the files of the schema have more than 64 MiB");
    else if (tc_schema_parse(s, bytes, error) && names_put(s, s->files.data[before.files], error)) {
        s->size.files = s->files.len;
        s->size.symbols = s->added.len;
        s->size.bytes += bytes.len;
        return TORC_OK;
    }
    schema_cut(s, before);
    return code_of(error, TORC_EPARSE);
}

/* Drops the files that were added since the schema had `size`, and builds by_name and `missing` again. */
static void schema_restore(torc_schema *s, struct tc_schema_size size)
{
    schema_cut(s, size);
    s->by_name.len = s->missing.len = 0;
    for (size_t i = 0; i < s->files.len; i++)
        names_put(s, s->files.data[i], NULL);
}

/* Returns rc. Where the caller passed no `error`, frees `own`, which took the error instead: its code is rc. */
static int finish(int rc, torc_error **own, torc_error **error)
{
    if (!error)
        torc_error_free(*own);
    return rc;
}

int torc_schema_add_file(torc_schema *schema, const void *bytes, size_t size, torc_error **error)
{
    torc_error *own = NULL, **e = error ? error : &own;
    bool may = may_add(schema, bytes, size, e);
    return finish(may ? add_file(schema, tc_slice_of(bytes, size), e) : code_of(e, TORC_EINVAL), &own, error);
}

int torc_schema_add_set(torc_schema *schema, const void *bytes, size_t size, torc_error **error)
{
    torc_error *own = NULL, **e = error ? error : &own;
    struct tc_slice rest = tc_slice_of(bytes, size);
    struct tc_item item;
    int rc = TORC_OK, more = 0;
    if (!may_add(schema, bytes, size, e))
        return finish(code_of(e, TORC_EINVAL), &own, error);
    const struct tc_schema_size before = schema->size;
    while (rc == TORC_OK && (more = tc_item_next(&rest, &item)) > 0)
        if (item.number == 1 && item.wire == TC_WIRE_LENGTH)
            rc = add_file(schema, item.bytes, e);
    if (rc == TORC_OK && more < 0) {
        rc = TORC_EPARSE;
        tc_json_fail(e, rc, "not a FileDescriptorSet: a field that cannot be read");
    }
    if (rc != TORC_OK)
        schema_restore(schema, before);
    return finish(rc, &own, error);
}

int torc_schema_merge(torc_schema *schema, const torc_schema *from, torc_error **error)
{
    torc_error *own = NULL, **e = error ? error : &own;
    int rc = TORC_OK;
    if (!may_add(schema, from, 1, e))
        return finish(code_of(e, TORC_EINVAL), &own, error);
    const struct tc_schema_size before = schema->size;
    for (size_t i = 0; rc == TORC_OK && i < from->files.len; i++)
        rc = add_file(schema, from->files.data[i]->bytes, e);
    if (rc != TORC_OK)
        schema_restore(schema, before);
    return finish(rc, &own, error);
}

int torc_schema_link(torc_schema *schema, torc_error **error)
{
    torc_error *own = NULL, **e = error ? error : &own;
    int rc = TORC_OK;
    if (!may_add(schema, NULL, 0, e)) {
        rc = code_of(e, TORC_EINVAL);
    } else if (tc_schema_resolve(schema, e)) {
        schema->was_linked = true;
        schema->linked = schema->size;
    } else {
        rc = code_of(e, TORC_EPARSE);
        schema_restore(schema, schema->linked);
    }
    return finish(rc, &own, error);
}

const char *torc_schema_file_at(const torc_schema *schema, size_t i)
{
    return schema && i < schema->files.len ? schema->files.data[i]->name : NULL;
}

const char *torc_schema_missing_at(const torc_schema *schema, size_t i)
{
    return schema && i < schema->missing.len ? schema->missing.data[i] : NULL;
}

/* --- look-ups --- */

static int name_of_slice_compare(const void *key, const char *name)
{
    return tc_slice_cmp(*(const struct tc_slice *)key, tc_slice_str(name));
}

static int symbol_find_compare(const void *key, const void *element)
{
    return name_of_slice_compare(key, (*(struct tc_schema_symbol *const *)element)->name);
}

const struct tc_schema_symbol *tc_schema_find(const torc_schema *s, struct tc_slice name)
{
    if (!tc_schema_is_linked(s) || s->symbols.len == 0)
        return NULL;
    if (name.len && *name.data == '.')
        name = tc_slice_of(name.data + 1, name.len - 1);
    struct tc_schema_symbol *const *found =
        bsearch(&name, s->symbols.data, s->symbols.len, sizeof(s->symbols.data[0]), symbol_find_compare);
    return found ? *found : NULL;
}

const torc_schema_message *tc_schema_message_of_url(const torc_schema *s, struct tc_slice url)
{
    size_t at = url.len;
    while (at && url.data[at - 1] != '/')
        at--;
    /* The URL of an Any may be empty; url.data may be NULL then. */
    const struct tc_schema_symbol *found = url.len ? tc_schema_find(s, tc_slice_of(url.data + at, url.len - at)) : NULL;
    return found && found->kind == TC_SYMBOL_MESSAGE ? found->of.message : NULL;
}

const struct tc_schema_field *tc_schema_field_by_number(const torc_schema_message *m, uint64_t number)
{
    size_t low = 0, high = m->n_by_number;
    if (number && number <= high && m->by_number[number - 1]->number == (int32_t)number)
        return m->by_number[number - 1]; /* the fields 1 to `number` have no gaps */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t n = (uint64_t)m->by_number[middle]->number;
        if (n == number)
            return m->by_number[middle];
        if (n < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct tc_schema_field *tc_schema_field_by_name(const torc_schema_message *m, struct tc_slice name)
{
    size_t low = 0, high = m->n_by_name;
    while (low < high) { /* finds the first alias that is not less than `name` */
        size_t middle = low + (high - low) / 2;
        if (tc_slice_cmp(tc_slice_str(m->by_name[middle].name), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->n_by_name && tc_slice_eq_str(name, m->by_name[low].name) ? m->by_name[low].field : NULL;
}

const struct tc_schema_value *tc_schema_value_by_number(const torc_schema_enum *e, int32_t number)
{
    size_t low = 0, high = e->values.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->values.data[e->by_number[middle]].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    const struct tc_schema_value *v = low < e->values.len ? &e->values.data[e->by_number[low]] : NULL;
    return v && v->number == number ? v : NULL;
}

const struct tc_schema_value *tc_schema_value_by_name(const torc_schema_enum *e, struct tc_slice name)
{
    size_t low = 0, high = e->values.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tc_slice_cmp(tc_slice_str(e->values.data[e->by_name[middle]].name), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct tc_schema_value *v = low < e->values.len ? &e->values.data[e->by_name[low]] : NULL;
    return v && tc_slice_eq_str(name, v->name) ? v : NULL;
}

unsigned tc_schema_wire(int type)
{
    switch (type) {
    case TC_TYPE_DOUBLE:
    case TC_TYPE_FIXED64:
    case TC_TYPE_SFIXED64:
        return TC_WIRE_64BIT;
    case TC_TYPE_FLOAT:
    case TC_TYPE_FIXED32:
    case TC_TYPE_SFIXED32:
        return TC_WIRE_32BIT;
    case TC_TYPE_STRING:
    case TC_TYPE_BYTES:
    case TC_TYPE_MESSAGE:
        return TC_WIRE_LENGTH;
    case TC_TYPE_GROUP:
        return TC_ITEM_GROUP;
    default:
        return TC_WIRE_VARINT;
    }
}

static const struct tc_schema_symbol *find_kind(const torc_schema *s, struct tc_slice name, enum tc_symbol_kind kind)
{
    const struct tc_schema_symbol *found = s ? tc_schema_find(s, name) : NULL;
    return found && found->kind == kind ? found : NULL;
}

const torc_schema_message *torc_schema_find_message(const torc_schema *schema, const char *name)
{
    if (schema && name && strchr(name, '/'))
        return tc_schema_message_of_url(schema, tc_slice_str(name));
    const struct tc_schema_symbol *found = name ? find_kind(schema, tc_slice_str(name), TC_SYMBOL_MESSAGE) : NULL;
    return found ? found->of.message : NULL;
}

const char *torc_schema_message_name(const torc_schema_message *message)
{
    return message->full_name;
}

const torc_schema_enum *torc_schema_find_enum(const torc_schema *schema, const char *name)
{
    const struct tc_schema_symbol *found = name ? find_kind(schema, tc_slice_str(name), TC_SYMBOL_ENUM) : NULL;
    return found ? found->of.enumeration : NULL;
}

const char *torc_schema_enum_name(const torc_schema_enum *type)
{
    return type->full_name;
}

const char *torc_schema_enum_value(const torc_schema_enum *type, int32_t number)
{
    const struct tc_schema_value *v = tc_schema_value_by_number(type, number);
    return v ? v->name : NULL;
}

int torc_schema_enum_number(const torc_schema_enum *type, const char *name, int32_t *number)
{
    const struct tc_schema_value *v = name ? tc_schema_value_by_name(type, tc_slice_str(name)) : NULL;
    if (!v)
        return TORC_ENOTFOUND;
    *number = v->number;
    return TORC_OK;
}

const torc_schema_service *torc_schema_find_service(const torc_schema *schema, const char *name)
{
    const struct tc_schema_symbol *found = name ? find_kind(schema, tc_slice_str(name), TC_SYMBOL_SERVICE) : NULL;
    return found ? found->of.service : NULL;
}

const torc_schema_service *torc_schema_service_at(const torc_schema *schema, size_t i)
{
    return schema && tc_schema_is_linked(schema) && i < schema->services.len ? schema->services.data[i]->of.service
                                                                             : NULL;
}

const char *torc_schema_service_name(const torc_schema_service *service)
{
    return service->full_name;
}

const torc_schema_method *torc_schema_method_at(const torc_schema_service *service, size_t i)
{
    return i < service->methods.len ? service->methods.data[i] : NULL;
}

const torc_schema_method *torc_schema_find_method(const torc_schema *schema, const char *name)
{
    if (name && *name == '/')
        name++;
    const char *cut = name ? strchr(name, '/') : NULL;
    if (name && !cut)
        cut = strrchr(name, '.');
    if (!cut)
        return NULL;
    const struct tc_schema_symbol *found =
        find_kind(schema, tc_slice_of(name, (size_t)(cut - name)), TC_SYMBOL_SERVICE);
    const torc_schema_service *s = found ? found->of.service : NULL;
    for (size_t i = 0; s && i < s->methods.len; i++)
        if (strcmp(s->methods.data[i]->name, cut + 1) == 0)
            return s->methods.data[i];
    return NULL;
}

const char *torc_schema_method_name(const torc_schema_method *method)
{
    return method->name;
}

const char *torc_schema_method_path(const torc_schema_method *method)
{
    return method->path;
}

const torc_schema_message *torc_schema_method_request(const torc_schema_method *method)
{
    return method->request;
}

const torc_schema_message *torc_schema_method_response(const torc_schema_method *method)
{
    return method->response;
}

int torc_schema_method_client_streams(const torc_schema_method *method)
{
    return method->client_streams;
}

int torc_schema_method_server_streams(const torc_schema_method *method)
{
    return method->server_streams;
}
