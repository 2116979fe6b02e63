/* Descriptors as text of a .proto file.
 *
 * No string of a descriptor can add definitions to the text: names have been checked, by json/parse or here (reserved
 * names), and are written as they are; a default value that is a number or a name loses all characters that neither
 * has; all other strings are written as string literals.
 *
 * Read from the bytes of the descriptor are extension ranges, reserved ranges and names, `public` and `weak` of
 * imports, `deprecated`, `local` and `export`, and the features that the edition has, as they were given. Options that
 * say nothing of the types (java_package, custom options) are left out. References to types are full names with a dot
 * in front, so that protoc takes the text of a file. If the file is of edition 2024, protoc may refuse a name or a
 * reference in the text: descriptors have enforce_naming_style and default_symbol_visibility only if protoc wrote them
 * with --retain_options.
 *
 * The schema is only read and must be linked. The text grows in `struct text`; torc_schema_describe gives it to the
 * caller. Start at name_write. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/parse.h"
#include "json/fail.h"
#include "json/item.h"
#include "json/model.h"
#include "json/names.h"

enum { PROTO3 = 999, EDITION_2023 = 1000, EDITION_2024 = 1001, END_OF_NUMBERS = 1 << 29 };

struct text {
    struct tc_buf out;
    unsigned level; /* of indentation: how many braces are open */
};

static void line_begin(struct text *t)
{
    tc_buf_printf(&t->out, "%*s", (int)(2 * t->level), "");
}

/* Writes a string literal. `escaped`: the text already has escapes, as the default value of a bytes field has. */
static void literal(struct text *t, struct tc_slice s, bool escaped)
{
    bool utf8 = tc_utf8_valid(s);
    tc_buf_append_char(&t->out, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (escaped && c == '\\' && i + 1 < s.len && s.data[i + 1] > ' ' && s.data[i + 1] < 0x7f)
            tc_buf_append(&t->out, &s.data[i++], 2);
        else if (c == '"' || c == '\\')
            tc_buf_printf(&t->out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
            tc_buf_printf(&t->out, "\\%03o", c);
        else
            tc_buf_append_char(&t->out, (char)c);
    }
    tc_buf_append_char(&t->out, '"');
}

/* --- options --- */

/* A list of options: the text before the first one, the text before each other one, and the text behind each. */
struct list {
    const char *first, *next, *after;
    bool lines; /* each option has a line of its own */
    unsigned n; /* how many were written */
};

static const struct list in_lines = {"option ", "option ", ";\n", true, 0}, in_brackets = {" [", ", ", "", false, 0},
                         in_braces = {" { option ", " option ", ";", false, 0};

/* Writes an option up to its "=". The caller writes the value and list->after (empty in brackets), and closes the
 * list. */
static void option_begin(struct text *t, struct list *list, const char *name)
{
    if (list->lines)
        line_begin(t);
    tc_buf_printf(&t->out, "%s%s = ", list->n++ ? list->next : list->first, name);
}

static void option_write(struct text *t, struct list *list, const char *name, const char *value)
{
    option_begin(t, list, name);
    tc_buf_printf(&t->out, "%s%s", value, list->after);
}

/* Returns the last value of a varint field, 0 if it is not given. */
static uint64_t number_of(struct tc_slice message, uint32_t number)
{
    struct tc_item item;
    uint64_t value = 0;
    while (tc_item_next(&message, &item) > 0)
        if (item.number == number && item.wire == TC_WIRE_VARINT)
            value = item.value;
    return value;
}

/* Writes each feature of a FeatureSet that the edition has, as it was given. */
static void features_write(struct text *t, struct list *list, int32_t edition, struct tc_slice set)
{
    static const struct {
        const char *name, *values[5];
    } known[] = {
        {"features.field_presence", {NULL, "EXPLICIT", "IMPLICIT", "LEGACY_REQUIRED"}},
        {"features.enum_type", {NULL, "OPEN", "CLOSED"}},
        {"features.repeated_field_encoding", {NULL, "PACKED", "EXPANDED"}},
        {"features.utf8_validation", {NULL, NULL, "VERIFY", "NONE"}},
        {"features.message_encoding", {NULL, "LENGTH_PREFIXED", "DELIMITED"}},
        {"features.json_format", {NULL, "ALLOW", "LEGACY_BEST_EFFORT"}},
        {"features.enforce_naming_style", {NULL, "STYLE2024", "STYLE_LEGACY", "STYLE2026"}},
        {"features.default_symbol_visibility", {NULL, "EXPORT_ALL", "EXPORT_TOP_LEVEL", "LOCAL_ALL", "STRICT"}},
    };
    uint8_t given[TC_ARRAY_LEN(known)] = {0};
    size_t n = edition >= EDITION_2024 ? TC_ARRAY_LEN(known) : edition >= EDITION_2023 ? 6 : 0;
    struct tc_item item;
    while (tc_item_next(&set, &item) > 0)
        if (item.number <= n && item.wire == TC_WIRE_VARINT && item.value < TC_ARRAY_LEN(known[0].values))
            given[item.number - 1] = (uint8_t)item.value;
    for (size_t i = 0; i < n; i++)
        if (known[i].values[given[i]])
            option_write(t, list, known[i].name, known[i].values[given[i]]);
}

/* Writes `deprecated` and the features of an options message. `deprecated` and `features` are the numbers of these
 * fields in the message; 0: it has no `deprecated`. */
static void options_write(struct text *t, struct list *list, int32_t edition, struct tc_slice options,
                          uint32_t deprecated, uint32_t features)
{
    if (deprecated && number_of(options, deprecated))
        option_write(t, list, "deprecated", "true");
    features_write(t, list, edition, tc_wire_find(options, features));
}

/* Writes what options_write writes, each option on a line of its own. */
static void option_lines(struct text *t, int32_t edition, struct tc_slice options, uint32_t deprecated,
                         uint32_t features)
{
    struct list list = in_lines;
    options_write(t, &list, edition, options, deprecated, features);
}

/* Writes the keyword `local` or `export` if the descriptor has it; nothing before edition 2024. `number`: of the field
 * `visibility` of the descriptor. */
static void visibility_write(struct text *t, int32_t edition, struct tc_slice descriptor, uint32_t number)
{
    uint64_t visibility = edition >= EDITION_2024 ? number_of(descriptor, number) : 0;
    tc_buf_append_str(&t->out, visibility == 1 ? "local " : visibility == 2 ? "export " : "");
}

/* --- fields --- */

static const char *const scalar_names[] = {"",        "double",   "float",    "int64",  "uint64", "int32", "fixed64",
                                           "fixed32", "bool",     "string",   "",       "",       "bytes", "uint32",
                                           "",        "sfixed32", "sfixed64", "sint32", "sint64"};

static void type_write(struct text *t, const struct tc_schema_field *f)
{
    if (f->map) {
        tc_buf_printf(&t->out, "map<%s, ", scalar_names[f->message->by_number[0]->type]);
        type_write(t, f->message->by_number[1]);
        tc_buf_append_char(&t->out, '>');
    } else if (f->message || f->enumeration) {
        tc_buf_printf(&t->out, ".%s", f->message ? f->message->full_name : f->enumeration->full_name);
    } else {
        tc_buf_append_str(&t->out, scalar_names[f->type]);
    }
}

static const char *label_of(const struct tc_schema_field *f)
{
    bool proto2 = f->file->edition < PROTO3;
    if (f->map)
        return "";
    if (f->repeated)
        return "repeated ";
    if (proto2 && f->required)
        return "required ";
    if (f->proto3_optional || (proto2 && !f->oneof))
        return "optional ";
    return "";
}

static void default_write(struct text *t, const struct tc_schema_field *f, struct list *list)
{
    option_begin(t, list, "default");
    if (f->type == TC_TYPE_STRING || f->type == TC_TYPE_BYTES)
        literal(t, tc_slice_str(f->default_value), f->type == TC_TYPE_BYTES);
    else
        for (const char *p = f->default_value; *p; p++) /* a number or a name; nothing else belongs here */
            if (strchr("+-._", *p) || (*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z'))
                tc_buf_append_char(&t->out, *p);
}

static void message_body(struct text *t, const torc_schema_message *m);

static void field_write(struct text *t, const struct tc_schema_field *f)
{
    struct list list = in_brackets;
    bool group = f->message && f->message->owner == f && !f->map;
    line_begin(t);
    tc_buf_append_str(&t->out, label_of(f));
    if (group)
        tc_buf_append_str(&t->out, "group");
    else
        type_write(t, f);
    tc_buf_printf(&t->out, " %s = %" PRId32, group ? f->message->name : f->name, f->number);
    if (f->default_value && !group)
        default_write(t, f, &list);
    if (f->has_json_name) {
        option_begin(t, &list, "json_name");
        literal(t, tc_slice_str(f->json_name), false);
    }
    if (f->explicit_packed)
        option_write(t, &list, "packed", f->packed ? "true" : "false");
    options_write(t, &list, f->file->edition, f->options, 3, 21);
    tc_buf_append_str(&t->out, list.n ? "]" : "");
    tc_buf_append_str(&t->out, group ? " " : ";\n");
    if (group)
        message_body(t, f->message);
}

static void extension_write(struct text *t, const struct tc_schema_field *f)
{
    line_begin(t);
    tc_buf_printf(&t->out, "extend .%s {\n", f->extendee);
    t->level++;
    field_write(t, f);
    t->level--;
    line_begin(t);
    tc_buf_append_str(&t->out, "}\n");
}

static void oneof_write(struct text *t, const torc_schema_message *m, const struct tc_schema_oneof *o)
{
    line_begin(t);
    tc_buf_printf(&t->out, "oneof %s {\n", o->name);
    t->level++;
    option_lines(t, m->file->edition, o->options, 0, 1);
    for (size_t i = 0; i < o->members; i++)
        field_write(t, m->fields.data[o->first + i]);
    t->level--;
    line_begin(t);
    tc_buf_append_str(&t->out, "}\n");
}

/* --- enums --- */

static void value_write(struct text *t, const torc_schema_enum *e, const struct tc_schema_value *v)
{
    struct list list = in_brackets;
    line_begin(t);
    tc_buf_printf(&t->out, "%s = %" PRId32, v->name, v->number);
    options_write(t, &list, e->file->edition, v->options, 1, 2);
    tc_buf_append_str(&t->out, list.n ? "];\n" : ";\n");
}

static bool has_alias(const torc_schema_enum *e)
{
    for (size_t i = 1; i < e->values.len; i++)
        if (e->values.data[e->by_number[i]].number == e->values.data[e->by_number[i - 1]].number)
            return true;
    return false;
}

/* Writes a range of numbers up to its end; the caller closes the line. `what` is "reserved" or "extensions";
 * `inclusive`: `to` is part of the range (enums). */
static void range_write(struct text *t, struct tc_slice range, const char *what, bool inclusive)
{
    int64_t from = (int32_t)(uint32_t)number_of(range, 1), to = (int32_t)(uint32_t)number_of(range, 2);
    int64_t most = inclusive ? INT32_MAX : END_OF_NUMBERS - 1;
    to -= !inclusive;
    line_begin(t);
    tc_buf_printf(&t->out, "%s %" PRId64, what, from);
    if (to >= most)
        tc_buf_append_str(&t->out, " to max");
    else if (to != from)
        tc_buf_printf(&t->out, " to %" PRId64, to);
}

static void reserved_range_write(struct text *t, struct tc_slice range, bool inclusive)
{
    range_write(t, range, "reserved", inclusive);
    tc_buf_append_str(&t->out, ";\n");
}

/* Writes a reserved name: as a string literal if `quoted` is set, as in proto2 and proto3, or if the name is not an
 * identifier. */
static void reserved_name_write(struct text *t, struct tc_slice name, bool quoted)
{
    line_begin(t);
    tc_buf_append_str(&t->out, "reserved ");
    if (quoted || !tc_name_is_good(name, false))
        literal(t, name, false);
    else
        tc_buf_append_slice(&t->out, name);
    tc_buf_append_str(&t->out, ";\n");
}

static void enum_write(struct text *t, const torc_schema_enum *e)
{
    struct tc_slice rest = e->bytes;
    struct tc_item item;
    line_begin(t);
    visibility_write(t, e->file->edition, e->bytes, 6);
    tc_buf_printf(&t->out, "enum %s {\n", e->name);
    t->level++;
    if (has_alias(e)) {
        line_begin(t);
        tc_buf_append_str(&t->out, "option allow_alias = true;\n");
    }
    option_lines(t, e->file->edition, tc_wire_find(e->bytes, 3), 3, 7);
    for (size_t i = 0; i < e->values.len; i++)
        value_write(t, e, &e->values.data[i]);
    while (tc_item_next(&rest, &item) > 0) {
        if (item.wire == TC_WIRE_LENGTH && item.number == 4)
            reserved_range_write(t, item.bytes, true);
        else if (item.wire == TC_WIRE_LENGTH && item.number == 5)
            reserved_name_write(t, item.bytes, e->file->edition < EDITION_2023);
    }
    t->level--;
    line_begin(t);
    tc_buf_append_str(&t->out, "}\n");
}

/* --- messages --- */

static void message_write(struct text *t, const torc_schema_message *m)
{
    line_begin(t);
    visibility_write(t, m->file->edition, m->bytes, 11);
    tc_buf_printf(&t->out, "message %s ", m->name);
    message_body(t, m);
}

static void extension_range_write(struct text *t, struct tc_slice range, int32_t edition)
{
    struct list list = in_brackets;
    range_write(t, range, "extensions", false);
    options_write(t, &list, edition, tc_wire_find(range, 3), 0, 50);
    tc_buf_append_str(&t->out, list.n ? "];\n" : ";\n");
}

static void members_write(struct text *t, const torc_schema_message *m)
{
    for (size_t i = 0; i < m->fields.len; i++) {
        const struct tc_schema_field *f = m->fields.data[i];
        if (!f->oneof || f->oneof->synthetic)
            field_write(t, f);
        else if (f->oneof->first == i)
            oneof_write(t, m, f->oneof);
    }
}

static void message_body(struct text *t, const torc_schema_message *m)
{
    struct tc_slice rest = m->bytes;
    struct tc_item item;
    tc_buf_append_str(&t->out, "{\n");
    t->level++;
    if (m->message_set) {
        line_begin(t);
        tc_buf_append_str(&t->out, "option message_set_wire_format = true;\n");
    }
    option_lines(t, m->file->edition, tc_wire_find(m->bytes, 7), 3, 12);
    members_write(t, m);
    while (tc_item_next(&rest, &item) > 0) {
        if (item.wire == TC_WIRE_LENGTH && item.number == 5)
            extension_range_write(t, item.bytes, m->file->edition);
        else if (item.wire == TC_WIRE_LENGTH && item.number == 9)
            reserved_range_write(t, item.bytes, false);
        else if (item.wire == TC_WIRE_LENGTH && item.number == 10)
            reserved_name_write(t, item.bytes, m->file->edition < EDITION_2023);
    }
    for (size_t i = 0; i < m->extends.len; i++)
        extension_write(t, m->extends.data[i]);
    for (size_t i = 0; i < m->enums.len; i++)
        enum_write(t, m->enums.data[i]);
    for (size_t i = 0; i < m->nested.len; i++)
        if (!m->nested.data[i]->map_entry && !m->nested.data[i]->owner)
            message_write(t, m->nested.data[i]);
    t->level--;
    line_begin(t);
    tc_buf_append_str(&t->out, "}\n");
}

/* --- services and files --- */

static void method_write(struct text *t, const torc_schema_method *m)
{
    struct list list = in_braces;
    line_begin(t);
    tc_buf_printf(&t->out, "rpc %s (%s.%s) returns (%s.%s)", m->name, m->client_streams ? "stream " : "",
                  m->request->full_name, m->server_streams ? "stream " : "", m->response->full_name);
    options_write(t, &list, m->service->file->edition, tc_wire_find(m->bytes, 4), 33, 35);
    tc_buf_append_str(&t->out, list.n ? " }\n" : ";\n");
}

static void service_write(struct text *t, const torc_schema_service *s)
{
    tc_buf_printf(&t->out, "service %s {\n", s->name);
    t->level++;
    option_lines(t, s->file->edition, s->options, 33, 34);
    for (size_t i = 0; i < s->methods.len; i++)
        method_write(t, s->methods.data[i]);
    t->level--;
    tc_buf_append_str(&t->out, "}\n");
}

static void symbol_write(struct text *t, const struct tc_schema_symbol *symbol)
{
    switch (symbol->kind) {
    case TC_SYMBOL_MESSAGE:
        message_write(t, symbol->of.message);
        break;
    case TC_SYMBOL_ENUM:
        enum_write(t, symbol->of.enumeration);
        break;
    case TC_SYMBOL_SERVICE:
        service_write(t, symbol->of.service);
        break;
    case TC_SYMBOL_EXTENSION:
        extension_write(t, symbol->of.extension);
        break;
    }
}

/* Returns whether a symbol is written at the top level of its file, and not as part of another definition. */
static bool is_at_the_top(const struct tc_schema_symbol *symbol)
{
    switch (symbol->kind) {
    case TC_SYMBOL_MESSAGE:
        return !symbol->of.message->scope && !symbol->of.message->owner;
    case TC_SYMBOL_ENUM:
        return !symbol->of.enumeration->scope;
    case TC_SYMBOL_EXTENSION:
        return !symbol->of.extension->scope;
    case TC_SYMBOL_SERVICE:
        break;
    }
    return true;
}

/* Stores `word` for each import whose index is among the values of field `number` of the file's descriptor. */
static void imports_mark(const struct tc_schema_file *file, uint32_t number, const char *word, const char **words)
{
    struct tc_slice rest = file->bytes;
    struct tc_item item;
    uint64_t index;
    while (tc_item_next(&rest, &item) > 0) {
        if (item.number != number)
            continue;
        if (item.wire == TC_WIRE_VARINT && item.value < file->imports.len)
            words[item.value] = word;
        while (item.wire == TC_WIRE_LENGTH && tc_item_take_varint(&item.bytes, &index)) /* packed */
            if (index < file->imports.len)
                words[index] = word;
    }
}

static void imports_write(struct text *t, const struct tc_schema_file *file)
{
    size_t n = file->imports.len;
    if (n == 0)
        return;
    const char **words = tc_calloc(n, sizeof(*words));
    imports_mark(file, 10, "public ", words);
    imports_mark(file, 11, "weak ", words);
    for (size_t i = 0; i < n; i++) {
        tc_buf_printf(&t->out, "%simport %s", i ? "" : "\n", words[i] ? words[i] : "");
        literal(t, tc_slice_str(file->imports.data[i]), false);
        tc_buf_append_str(&t->out, ";\n");
    }
    tc_free(words);
}

static void file_write(struct text *t, const torc_schema *schema, const struct tc_schema_file *file)
{
    static const char *const editions[] = {"syntax = \"proto2\";\n", "syntax = \"proto3\";\n", "edition = \"2023\";\n",
                                           "edition = \"2024\";\n"};
    tc_buf_append_str(&t->out, editions[file->edition - 998]);
    if (*file->package)
        tc_buf_printf(&t->out, "\npackage %s;\n", file->package);
    imports_write(t, file);
    struct tc_slice options = tc_wire_find(file->bytes, 8);
    size_t before = t->out.len;
    tc_buf_append_char(&t->out, '\n');
    option_lines(t, file->edition, options, 23, 50);
    if (t->out.len == before + 1)
        t->out.len = before;
    for (size_t i = file->first; i < schema->added.len && schema->added.data[i]->file == file; i++) {
        const struct tc_schema_symbol *symbol = schema->added.data[i];
        if (!is_at_the_top(symbol))
            continue;
        tc_buf_append_char(&t->out, '\n');
        symbol_write(t, symbol);
    }
}

/* Writes a member of `scope` that has no symbol of its own: a field, a oneof, a value of an enum or a method. Returns
 * false if `scope` has none of that name. */
static bool member_write(struct text *t, const struct tc_schema_symbol *scope, const char *name)
{
    if (scope->kind == TC_SYMBOL_SERVICE) {
        const torc_schema_service *s = scope->of.service;
        for (size_t i = 0; i < s->methods.len; i++)
            if (strcmp(s->methods.data[i]->name, name) == 0)
                return method_write(t, s->methods.data[i]), true;
    } else if (scope->kind == TC_SYMBOL_ENUM) {
        const struct tc_schema_value *v = tc_schema_value_by_name(scope->of.enumeration, tc_slice_str(name));
        return v && (value_write(t, scope->of.enumeration, v), true);
    } else if (scope->kind == TC_SYMBOL_MESSAGE) {
        const torc_schema_message *m = scope->of.message;
        for (size_t i = 0; i < m->fields.len; i++)
            if (strcmp(m->fields.data[i]->name, name) == 0)
                return field_write(t, m->fields.data[i]), true;
        for (size_t i = 0; i < m->oneofs.len; i++)
            if (strcmp(m->oneofs.data[i]->name, name) == 0 && !m->oneofs.data[i]->synthetic)
                return oneof_write(t, m, m->oneofs.data[i]), true;
    }
    return false;
}

/* Writes what a name stands for: a file, a symbol, or a member of a symbol. Returns false if nothing has the name. */
static bool name_write(struct text *t, const torc_schema *schema, const char *name)
{
    const struct tc_schema_symbol *symbol = tc_schema_find(schema, tc_slice_str(name));
    const struct tc_schema_file *file = tc_schema_file(schema, tc_slice_str(name));
    const char *dot = strrchr(name, strchr(name, '/') ? '/' : '.');
    if (file && (!symbol || tc_slice_ends(tc_slice_str(name), tc_slice_str(".proto"))))
        return file_write(t, schema, file), true;
    if (symbol)
        return symbol_write(t, symbol), true;
    symbol = dot ? tc_schema_find(schema, tc_slice_of(name, (size_t)(dot - name))) : NULL;
    return symbol && member_write(t, symbol, dot + 1);
}

char *torc_schema_describe(const torc_schema *schema, const char *name, torc_error **error)
{
    struct text t = {0};
    if (error && *error)
        return NULL;
    if (!schema || !name || !tc_schema_is_linked(schema)) {
        if (!schema || !name)
            tc_json_fail(error, TORC_EINVAL, "the schema or the name is NULL");
        else
            tc_json_fail(error, TORC_ESTATE, "the schema is not linked");
        return NULL;
    }
    if (name_write(&t, schema, name))
        return tc_buf_take(&t.out);
    tc_buf_fini(&t.out);
    tc_json_fail(error, TORC_ENOTFOUND, "nothing is defined as " TC_SHOWN, TC_SHOW(name));
    return NULL;
}
