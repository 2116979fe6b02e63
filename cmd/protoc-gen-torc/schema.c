/* The files of one request, by name and by the types they define.
 *
 * protoc has checked all names, but the request need not come from protoc. So a name is checked before it becomes a
 * part of C code: names of files, packages, messages, oneofs and enums here, of services and methods in emit.c. The
 * names of fields and enum values are left to protoc-gen-c.
 *
 * What protobuf-c cannot generate (pgt_schema_accepts) is refused only in the files that are to be generated, not in
 * their imports.
 *
 * A schema borrows the files from the request. Its entries and the full names of types live in its arena. */
#include "schema.h"

#include "base/table.h"
#include "names.h"

struct pgt_type {
    UT_hash_handle hh; /* by `name` */
    const pgt_file *file;
    const char *name; /* "pkg.Name" */
};

struct pgt_known_file {
    UT_hash_handle hh; /* by the file's name */
    pgt_file *file;
};

/* Adds a message or an enum. `scope` is the full name of the message around it, or else the package; "": none. `name`
 * may be NULL, which is refused. Stores the full name, which the arena owns, in *full_name. */
static bool type_add(struct pgt_schema *schema, const pgt_file *file, const char *scope, const char *name, char **why,
                     const char **full_name)
{
    if (!name || !pgt_is_identifier(tc_slice_str(name)))
        return tc_refuse(why, "%s: '" TC_SHOWN "' is not a name", file->name, TC_SHOW(name ? name : ""));
    struct tc_buf text = {0};
    tc_buf_printf(&text, "%s%s%s", scope, *scope ? "." : "", name);
    struct pgt_type *type = tc_arena_calloc(&schema->arena, 1, sizeof(*type)), *other;
    type->file = file;
    type->name = *full_name = tc_arena_dup(&schema->arena, tc_buf_slice(&text));
    HASH_FIND(hh, schema->types, type->name, text.len, other);
    if (!other)
        HASH_ADD_KEYPTR(hh, schema->types, type->name, text.len, type);
    tc_buf_fini(&text);
    return !other || tc_refuse(why, "%s: %s is defined twice", file->name, type->name);
}

static bool enums_add(struct pgt_schema *schema, const pgt_file *file, const char *scope,
                      Google__Protobuf__EnumDescriptorProto *const *enums, size_t n, char **why)
{
    const char *name;
    for (size_t i = 0; i < n; i++)
        if (!type_add(schema, file, scope, enums[i]->name, why, &name))
            return false;
    return true;
}

static bool oneofs_check(const pgt_file *file, const pgt_message *m, char **why)
{
    for (size_t i = 0; i < m->n_oneof_decl; i++) {
        const char *name = m->oneof_decl[i]->name;
        if (!name || !pgt_is_identifier(tc_slice_str(name)))
            return tc_refuse(why, "%s: '" TC_SHOWN "' is not a oneof's name", file->name, TC_SHOW(name ? name : ""));
    }
    return true;
}

/* Recurses as deep as messages are nested, which the scan of the request bounds. */
static bool messages_add(struct pgt_schema *schema, const pgt_file *file, const char *scope,
                         pgt_message *const *messages, size_t n, char **why)
{
    for (size_t i = 0; i < n; i++) {
        const pgt_message *m = messages[i];
        const char *name;
        if (!type_add(schema, file, scope, m->name, why, &name) || !oneofs_check(file, m, why) ||
            !enums_add(schema, file, name, m->enum_type, m->n_enum_type, why) ||
            !messages_add(schema, file, name, m->nested_type, m->n_nested_type, why))
            return false;
    }
    return true;
}

/* Returns protobuf-c's option c_package, or NULL if the file does not set it. */
static const char *c_package_of(const pgt_file *file)
{
    return file->options && file->options->pb_c_file ? file->options->pb_c_file->c_package : NULL;
}

static bool file_add(struct pgt_schema *schema, pgt_file *file, char **why)
{
    if (!file->name || !pgt_is_file_name(tc_slice_str(file->name)))
        return tc_refuse(why, "'" TC_SHOWN "' is not a file's name that C can include",
                         TC_SHOW(file->name ? file->name : ""));
    const char *package = file->package ? file->package : "";
    if (*package && !pgt_is_full_name(tc_slice_str(package)))
        return tc_refuse(why, "%s: '" TC_SHOWN "' is not a package", file->name, TC_SHOW(package));
    const char *c_package = c_package_of(file);
    if (c_package && *c_package && !pgt_is_full_name(tc_slice_str(c_package)))
        return tc_refuse(why, "%s: c_package: '" TC_SHOWN "' is not a package", file->name, TC_SHOW(c_package));
    if (pgt_schema_file(schema, file->name))
        return tc_refuse(why, "%s is twice in the request", file->name);
    struct pgt_known_file *known = tc_arena_calloc(&schema->arena, 1, sizeof(*known));
    known->file = file;
    HASH_ADD_KEYPTR(hh, schema->files, file->name, strlen(file->name), known);
    return enums_add(schema, file, package, file->enum_type, file->n_enum_type, why) &&
           messages_add(schema, file, package, file->message_type, file->n_message_type, why);
}

bool pgt_schema_init(struct pgt_schema *schema, const Google__Protobuf__Compiler__CodeGeneratorRequest *request,
                     char **why)
{
    *schema = (struct pgt_schema){0};
    tc_arena_init(&schema->arena, 0, 0);
    for (size_t i = 0; i < request->n_proto_file; i++)
        if (!file_add(schema, request->proto_file[i], why))
            return false;
    return true;
}

void pgt_schema_fini(struct pgt_schema *schema)
{
    HASH_CLEAR(hh, schema->types);
    HASH_CLEAR(hh, schema->files);
    tc_arena_fini(&schema->arena);
}

pgt_file *pgt_schema_file(const struct pgt_schema *schema, const char *name)
{
    struct pgt_known_file *found;
    HASH_FIND(hh, schema->files, name, strlen(name), found);
    return found ? found->file : NULL;
}

const pgt_file *pgt_schema_home(const struct pgt_schema *schema, const char *type)
{
    struct pgt_type *found = NULL;
    if (type && *type == '.')
        HASH_FIND(hh, schema->types, type + 1, strlen(type + 1), found);
    return found ? found->file : NULL;
}

/* Appends full_name without a leading dot. The option c_package, if set, replaces the package at the front of the name,
 * also if it is empty. In a file without a package it comes in front of the name. */
static void name_override(const pgt_file *file, const char *full_name, struct tc_buf *out)
{
    const char *package = file->package ? file->package : "";
    const char *other = c_package_of(file);
    size_t n = strlen(package);
    full_name += *full_name == '.';
    bool inside = n && strncmp(full_name, package, n) == 0 && full_name[n] == '.';
    if (other && (inside || !n))
        tc_buf_printf(out, "%s%s%s", other, *other ? "." : "", full_name + n + inside);
    else
        tc_buf_append_str(out, full_name);
}

void pgt_schema_lower(const pgt_file *file, const char *full_name, struct tc_buf *out)
{
    struct tc_buf name = {0};
    name_override(file, full_name, &name);
    pgt_lower(out, tc_buf_slice(&name));
    tc_buf_fini(&name);
}

void pgt_schema_camel(const pgt_file *file, const char *full_name, struct tc_buf *out)
{
    struct tc_buf name = {0};
    name_override(file, full_name, &name);
    pgt_camel(out, tc_buf_slice(&name));
    tc_buf_fini(&name);
}

bool pgt_is_custom_option(const pgt_field *extension)
{
    struct tc_slice extendee = tc_slice_str(extension->extendee ? extension->extendee : "");
    return tc_slice_starts(extendee, tc_slice_str(".google.protobuf.")) &&
           tc_slice_ends(extendee, tc_slice_str("Options"));
}

static bool extensions_accepted(const pgt_file *file, pgt_field *const *extensions, size_t n, char **why)
{
    for (size_t i = 0; i < n; i++)
        if (!pgt_is_custom_option(extensions[i]))
            return tc_refuse(why, "%s: " TC_SHOWN " extends " TC_SHOWN ": protobuf-c has no extensions", file->name,
                             TC_SHOW(extensions[i]->name ? extensions[i]->name : "?"),
                             TC_SHOW(extensions[i]->extendee ? extensions[i]->extendee : "?"));
    return true;
}

/* Returns false for infinity and NaN: the C that protoc-gen-c writes for them does not compile. */
static bool is_number(const char *value)
{
    return strcmp(value, "inf") != 0 && strcmp(value, "-inf") != 0 && strcmp(value, "nan") != 0 &&
           strcmp(value, "-nan") != 0;
}

static bool field_accepted(const pgt_file *file, const pgt_message *m, const pgt_field *f, char **why)
{
    const char *name = f->name ? f->name : "?";
    if (f->has_type && f->type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_GROUP)
        return tc_refuse(why, "%s: %s." TC_SHOWN " is a group: protobuf-c has no groups", file->name, m->name,
                         TC_SHOW(name));
    if (f->has_type && f->default_value && !is_number(f->default_value) &&
        (f->type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_DOUBLE ||
         f->type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_FLOAT))
        return tc_refuse(why, "%s: %s." TC_SHOWN ": protobuf-c has no default that is %s", file->name, m->name,
                         TC_SHOW(name), f->default_value);
    return true;
}

static bool message_accepted(const pgt_file *file, const pgt_message *m, char **why)
{
    for (size_t i = 0; i < m->n_field; i++)
        if (!field_accepted(file, m, m->field[i], why))
            return false;
    for (size_t i = 0; i < m->n_nested_type; i++)
        if (!message_accepted(file, m->nested_type[i], why))
            return false;
    return extensions_accepted(file, m->extension, m->n_extension, why);
}

/* The names in C of a file's types: `camel` of structs, `lower` of functions. */
struct type_names {
    const pgt_file *file;
    struct tc_arena arena;
    struct pgt_name *camel, *lower;
    char **why;
};

/* Adds both names of a type to the sets. Returns false with the reason in *t->why if another type has one of them. */
static bool type_name_check(struct type_names *t, const char *full_name)
{
    struct tc_buf camel = {0}, lower = {0};
    pgt_schema_camel(t->file, full_name, &camel);
    pgt_schema_lower(t->file, full_name, &lower);
    const char *owner = tc_arena_dup(&t->arena, tc_slice_str(full_name));
    const char *name = tc_buf_cstr(&camel), *other = pgt_name_take(&t->camel, &t->arena, name, owner);
    if (!other) {
        name = tc_buf_cstr(&lower);
        other = pgt_name_take(&t->lower, &t->arena, name, owner);
    }
    if (other)
        tc_refuse(t->why, "%s: %s and %s are one name in C, %s", t->file->name, other, full_name, name);
    tc_buf_fini(&camel);
    tc_buf_fini(&lower);
    return !other;
}

/* Checks messages, enums and, by recursion, the types in each message. pgt_schema_init has checked that all have names.
 */
static bool types_check(struct type_names *t, const char *scope, pgt_message *const *messages, size_t n_messages,
                        Google__Protobuf__EnumDescriptorProto *const *enums, size_t n_enums)
{
    bool good = true;
    for (size_t i = 0; good && i < n_messages + n_enums; i++) {
        const pgt_message *m = i < n_messages ? messages[i] : NULL;
        struct tc_buf name = {0};
        tc_buf_printf(&name, "%s%s%s", scope, *scope ? "." : "", m ? m->name : enums[i - n_messages]->name);
        good =
            type_name_check(t, tc_buf_cstr(&name)) &&
            (!m || types_check(t, tc_buf_cstr(&name), m->nested_type, m->n_nested_type, m->enum_type, m->n_enum_type));
        tc_buf_fini(&name);
    }
    return good;
}

static bool type_names_accepted(const pgt_file *file, char **why)
{
    struct type_names t = {.file = file, .why = why};
    tc_arena_init(&t.arena, 0, 0);
    bool good = types_check(&t, file->package ? file->package : "", file->message_type, file->n_message_type,
                            file->enum_type, file->n_enum_type);
    pgt_names_clear(&t.camel);
    pgt_names_clear(&t.lower);
    tc_arena_fini(&t.arena);
    return good;
}

bool pgt_schema_accepts(const pgt_file *file, char **why)
{
    if (file->syntax && *file->syntax && strcmp(file->syntax, "proto2") != 0 && strcmp(file->syntax, "proto3") != 0)
        return tc_refuse(why, "%s: syntax '" TC_SHOWN "': protobuf-c knows proto2 and proto3", file->name,
                         TC_SHOW(file->syntax));
    for (size_t i = 0; i < file->n_message_type; i++)
        if (!message_accepted(file, file->message_type[i], why))
            return false;
    return extensions_accepted(file, file->extension, file->n_extension, why) && type_names_accepted(file, why);
}
