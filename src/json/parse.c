/* Descriptors in wire format into structs.
 *
 * A function NAME_parse reads one kind of descriptor: it takes field after field off the bytes (json/item), checks the
 * values, makes the struct and adds it to its parent if it has one (field_parse leaves the last step to its caller).
 * member_parse and definition_parse only choose the function for a field of a message or file. Messages, enums,
 * services and extensions also become symbols of the schema. References are not resolved here (json/link does that), so
 * a file may come before the files that it imports. Features of editions are inherited on the way down; proto2 and
 * proto3 are two editions with other defaults.
 *
 * Descriptors are not trusted: names must be identifiers, and field numbers must be in range. The depth, the size and
 * the number of descriptors are limited.
 *
 * Structs and strings are in the arena of the file, arrays on the heap, and slices point into the file's own copy of
 * the bytes. When a descriptor is refused, NAME_parse returns false with an error, and tc_schema_parse fails. What was
 * made until then stays in the arena and in the schema's `files` and `added`: json/schema drops the file. */
#include "json/parse.h"

#include "base/parse.h"
#include "json/fail.h"
#include "json/item.h"
#include "json/names.h"

enum { PROTO2 = 998, PROTO3 = 999, EDITION_2023 = 1000, EDITION_2024 = 1001 };
enum { MAX_NUMBER = (1 << 29) - 1, LABEL_REQUIRED = 2, LABEL_REPEATED = 3 };

struct parse {
    torc_schema *schema;
    struct tc_schema_file *file;
    struct tc_schema_features features; /* of the file */
    torc_error **error;
};

/* Stores an error that names the file, if its name is known, and the descriptor. `scope`: the full name of the
 * descriptor, or of what it is in while it has none; "": the file itself. Returns false. */
static bool parse_fail(struct parse *p, int code, const char *scope, const char *fmt, ...) TC_PRINTF(4, 5);

static bool parse_fail(struct parse *p, int code, const char *scope, const char *fmt, ...)
{
    struct tc_buf text = {0};
    va_list ap;
    if (p->file->name)
        tc_buf_printf(&text, "file " TC_SHOWN ": %s%s", TC_SHOW(p->file->name), scope, *scope ? ": " : "");
    else
        tc_buf_append_str(&text, "not a FileDescriptorProto: ");
    va_start(ap, fmt);
    tc_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    tc_json_fail_with(p->error, code, tc_buf_cstr(&text));
    tc_buf_fini(&text);
    return false;
}

/* Returns zeroed memory that lives as long as the file; never NULL. */
static void *make(struct parse *p, size_t size)
{
    void *made = tc_arena_calloc(&p->file->arena, 1, size);
    if (!made)
        tc_out_of_memory(size);
    return made;
}

/* Takes the next field of a descriptor. Returns false at the end. If the field cannot be read, returns false with an
 * error, and *good becomes false. */
static bool parse_next(struct parse *p, struct tc_slice *rest, struct tc_item *item, const char *scope, bool *good)
{
    int rc = tc_item_next(rest, item);
    if (rc < 0)
        *good = parse_fail(p, TORC_EPARSE, scope, "a field that cannot be read");
    return rc > 0;
}

/* Returns a copy of the text in the file's arena, with a NUL behind it. */
static const char *keep(struct parse *p, struct tc_slice text)
{
    char *copy = make(p, text.len + 1);
    if (text.len)
        memcpy(copy, text.data, text.len);
    return copy;
}

/* Returns a copy of the text in the file's arena, with a NUL behind it, and ends the buffer. */
static const char *keep_buf(struct parse *p, struct tc_buf *text)
{
    const char *kept = keep(p, tc_buf_slice(text));
    tc_buf_fini(text);
    return kept;
}

static bool is_text(struct tc_slice text)
{
    return !(text.len && memchr(text.data, 0, text.len)) && tc_utf8_valid(text);
}

/* Stores a copy of a text: UTF-8 without a NUL, of at most TC_SCHEMA_MAX_NAME bytes. */
static bool take_text(struct parse *p, const char *scope, struct tc_slice text, const char *what, const char **out)
{
    if (text.len > TC_SCHEMA_MAX_NAME)
        return parse_fail(p, TORC_ELIMIT, scope, "%s of more than 4096 bytes", what);
    if (!is_text(text))
        return parse_fail(p, TORC_EPARSE, scope, "%s that is not text", what);
    *out = keep(p, text);
    return true;
}

/* Counts one descriptor, range of extensions, reserved range, reserved name or import. Returns false with an error if
 * there are too many of these, or if the schema takes too much memory. */
static bool count(struct parse *p, const char *scope)
{
    if (++p->schema->size.items > TC_SCHEMA_MAX_ITEMS)
        return parse_fail(p, TORC_ELIMIT, scope, "more than 1000000 descriptors");
    return p->schema->size.memory + p->file->arena.used <= TC_SCHEMA_MAX_MEMORY ||
           parse_fail(p, TORC_ELIMIT, scope, "the descriptors of the schema take more than 512 MiB of memory");
}

/* Counts one descriptor. Stores its name (field 1 of all kinds) and, unless full_name is NULL, its full name. */
static bool take_names(struct parse *p, struct tc_slice bytes, const char *scope, const char **name,
                       const char **full_name)
{
    struct tc_slice own = tc_wire_find(bytes, 1);
    if (!count(p, scope))
        return false;
    if (!tc_name_is_good(own, false))
        return parse_fail(p, TORC_EPARSE, scope, "a name that is not an identifier");
    if (strlen(scope) + (*scope ? 1 : 0) + own.len > TC_SCHEMA_MAX_NAME)
        return parse_fail(p, TORC_ELIMIT, "", "a full name of more than 4096 bytes");
    *name = keep(p, own);
    if (!full_name)
        return true;
    struct tc_buf full = {0};
    tc_buf_printf(&full, "%s%s%s", scope, *scope ? "." : "", *name);
    *full_name = keep_buf(p, &full);
    return true;
}

/* Stores the full name of a reference to a type, ".a.M", without the dot. */
static bool take_reference(struct parse *p, const char *scope, struct tc_slice text, const char **out)
{
    if (text.len < 2 || text.data[0] != '.' || !tc_name_is_good(tc_slice_of(text.data + 1, text.len - 1), true))
        return parse_fail(p, TORC_EPARSE, scope, "a reference that is not a full name with a dot in front");
    return take_text(p, scope, tc_slice_of(text.data + 1, text.len - 1), "a reference", out);
}

/* Adds a symbol of that full name, which is in the file's arena. The caller sets `of`. */
static struct tc_schema_symbol *add_symbol(struct parse *p, const char *name, enum tc_symbol_kind kind)
{
    struct tc_schema_symbol *s = make(p, sizeof(*s));
    *tc_vec_push(&p->schema->added) = s;
    s->name = name;
    s->kind = kind;
    s->file = p->file;
    return s;
}

/* --- features --- */

/* Merges a FeatureSet into *f, which has the parent's features. Unknown values and 0 change nothing. */
static void features_merge(struct tc_schema_features *f, struct tc_slice bytes)
{
    struct tc_item item;
    while (tc_item_next(&bytes, &item) > 0) {
        uint8_t v = item.wire == TC_WIRE_VARINT && item.value <= 3 ? (uint8_t)item.value : 0;
        if (v && item.number == 1)
            f->presence = v;
        else if (v && v <= 2 && item.number == 2)
            f->enums = v;
        else if (v && v <= 2 && item.number == 3)
            f->lists = v;
        else if (v && v <= 2 && item.number == 5)
            f->encoding = v;
    }
}

/* Returns the features of a descriptor; `number` is that of `features` in its options. Only editions have features: an
 * option of that number in older files is ignored. */
static struct tc_schema_features features_of(const struct parse *p, struct tc_schema_features parent,
                                             struct tc_slice options, unsigned number)
{
    if (p->file->edition >= EDITION_2023)
        features_merge(&parent, tc_wire_find(options, number));
    return parent;
}

/* Returns the last value of a boolean option, false if it is not given. *given, unless NULL, becomes true if it is. */
static bool option_is_set(struct tc_slice options, uint32_t number, bool *given)
{
    struct tc_item item;
    bool set = false;
    while (tc_item_next(&options, &item) > 0) {
        if (item.number == number && item.wire == TC_WIRE_VARINT) {
            set = item.value != 0;
            if (given)
                *given = true;
        }
    }
    return set;
}

/* --- fields --- */

/* The values of a FieldDescriptorProto that must be checked before a field gets them. */
struct raw_field {
    struct tc_slice json_name;
    uint64_t number, label, type, oneof;
    bool has_oneof;
};

/* Reads a FieldDescriptorProto, without its name, into *f and *raw. */
static bool field_read(struct parse *p, struct tc_schema_field *f, struct tc_slice bytes, struct raw_field *raw)
{
    struct tc_item item;
    bool good = true;
    while (good && parse_next(p, &bytes, &item, f->full_name, &good)) {
        bool small = item.number < 100;
        /* The number of a varint field; of a string or message, the number plus 100; 0 for all others. */
        uint32_t n = small && item.wire == TC_WIRE_LENGTH   ? item.number + 100
                     : small && item.wire == TC_WIRE_VARINT ? item.number
                                                            : 0;
        switch (n) {
        case 3:
            raw->number = item.value;
            break;
        case 4:
            raw->label = item.value;
            break;
        case 5:
            raw->type = item.value;
            break;
        case 9:
            raw->oneof = item.value;
            raw->has_oneof = true;
            break;
        case 17:
            f->proto3_optional = item.value != 0;
            break;
        case 102:
            good = take_reference(p, f->full_name, item.bytes, &f->extendee);
            break;
        case 106:
            good = take_reference(p, f->full_name, item.bytes, &f->type_name);
            break;
        case 107:
            if (is_text(item.bytes))
                f->default_value = keep(p, item.bytes);
            break;
        case 108:
            f->options = item.bytes;
            break;
        case 110:
            raw->json_name = item.bytes;
            break;
        default:
            break;
        }
    }
    return good;
}

/* Sets json_name and has_json_name. `given`: the json_name of the descriptor; empty: none. */
static bool field_name_json(struct parse *p, struct tc_schema_field *f, struct tc_slice given)
{
    struct tc_buf camel = {0};
    if (!f->extension && given.len && given.data[0] == '[' && given.data[given.len - 1] == ']')
        return parse_fail(p, TORC_EPARSE, f->full_name, "a json_name in brackets, as extensions have it");
    if (f->extension)
        tc_buf_printf(&camel, "[%s]", f->full_name);
    else
        tc_name_append_camel(&camel, tc_slice_str(f->name));
    f->has_json_name = !f->extension && given.len && !tc_slice_eq(given, tc_buf_slice(&camel));
    f->json_name = keep_buf(p, &camel);
    return !f->has_json_name || take_text(p, f->full_name, given, "a json_name", &f->json_name);
}

static bool is_packable(int type)
{
    return type != TC_TYPE_STRING && type != TC_TYPE_BYTES && type != TC_TYPE_MESSAGE && type != TC_TYPE_GROUP;
}

/* Sets what follows from the label, the features and the options of a field. */
static void field_resolve(const struct parse *p, struct tc_schema_field *f, const struct raw_field *raw,
                          struct tc_schema_features features, bool map_entry)
{
    features = features_of(p, features, f->options, 21);
    bool given = false, packed = option_is_set(f->options, 2, &given);
    f->repeated = raw->label == LABEL_REPEATED;
    f->required = raw->label == LABEL_REQUIRED || (features.presence == 3 && !f->repeated && !f->oneof);
    /* The fields of a map entry are length-prefixed, whatever the file says. */
    if (features.encoding == 2 && f->type == TC_TYPE_MESSAGE && !map_entry)
        f->type = TC_TYPE_GROUP;
    f->packed = f->repeated && is_packable(f->type) && (given ? packed : features.lists == 1);
    f->explicit_packed = given && f->packed != (p->file->edition >= PROTO3);
    f->has_presence = !f->repeated && (f->oneof || f->extension || tc_schema_is_message(f) || features.presence != 2);
}

/* Stores the field in *out; the caller adds it to its message or to the symbols. `in` is the message in which the field
 * is written; NULL: an extension at the top of the file. `scope` is the full name of `in`, or the package. */
static bool field_parse(struct parse *p, struct tc_slice bytes, const char *scope, torc_schema_message *in,
                        bool extension, struct tc_schema_field **out)
{
    struct tc_schema_field *f = make(p, sizeof(*f));
    struct raw_field raw = {0};
    *f = (struct tc_schema_field){.file = p->file, .scope = in, .extension = extension};
    if (!take_names(p, bytes, scope, &f->name, &f->full_name) || !field_read(p, f, bytes, &raw))
        return false;
    if (raw.number < 1 || raw.number > MAX_NUMBER || (raw.number >= 19000 && raw.number <= 19999))
        return parse_fail(p, TORC_EPARSE, f->full_name, "a number that no field can have");
    if (raw.type < TC_TYPE_DOUBLE || raw.type > TC_TYPE_SINT64 || raw.label > LABEL_REPEATED)
        return parse_fail(p, TORC_EPARSE, f->full_name, "a type or label that does not exist");
    bool refers = raw.type == TC_TYPE_MESSAGE || raw.type == TC_TYPE_GROUP || raw.type == TC_TYPE_ENUM;
    if (refers != (f->type_name != NULL) || extension != (f->extendee != NULL))
        return parse_fail(p, TORC_EPARSE, f->full_name, "a reference is missing, or there is one too many");
    f->number = (int32_t)raw.number;
    f->type = (uint8_t)raw.type;
    if (raw.has_oneof) {
        if (!in || extension || raw.oneof >= in->oneofs.len || raw.label == LABEL_REPEATED)
            return parse_fail(p, TORC_EPARSE, f->full_name, "a oneof that its message does not have");
        f->oneof = in->oneofs.data[raw.oneof];
        f->oneof->synthetic = f->proto3_optional;
        if (f->oneof->members == 0)
            f->oneof->first = in->fields.len;
        if (f->oneof->first + f->oneof->members++ != in->fields.len)
            return parse_fail(p, TORC_EPARSE, f->full_name, "another field is between those of its oneof");
    }
    field_resolve(p, f, &raw, in && !extension ? in->features : p->features, in && in->map_entry);
    if (extension && f->required)
        return parse_fail(p, TORC_EPARSE, f->full_name, "an extension that is required");
    *out = f;
    return field_name_json(p, f, raw.json_name);
}

static bool extension_parse(struct parse *p, struct tc_slice bytes, const char *scope, torc_schema_message *in)
{
    struct tc_schema_field *f;
    if (!field_parse(p, bytes, scope, in, true, &f))
        return false;
    add_symbol(p, f->full_name, TC_SYMBOL_EXTENSION)->of.extension = f;
    if (in)
        *tc_vec_push(&in->extends) = f;
    return true;
}

/* --- enums --- */

static bool value_parse(struct parse *p, torc_schema_enum *e, struct tc_slice bytes)
{
    struct tc_slice options = tc_wire_find(bytes, 3);
    struct tc_item item;
    bool good = true;
    const char *name;
    int32_t number = 0;
    if (!take_names(p, bytes, e->full_name, &name, NULL))
        return false;
    while (parse_next(p, &bytes, &item, e->full_name, &good))
        if (item.number == 2 && item.wire == TC_WIRE_VARINT)
            number = (int32_t)(uint32_t)item.value;
    *tc_vec_push(&e->values) = (struct tc_schema_value){name, number, options};
    return good;
}

static bool enum_parse(struct parse *p, struct tc_slice bytes, const char *scope, torc_schema_message *in)
{
    torc_schema_enum *e = make(p, sizeof(*e));
    struct tc_slice rest = bytes;
    struct tc_item item;
    bool good = true;
    *e = (torc_schema_enum){.file = p->file, .scope = in, .bytes = bytes};
    if (!take_names(p, bytes, scope, &e->name, &e->full_name))
        return false;
    add_symbol(p, e->full_name, TC_SYMBOL_ENUM)->of.enumeration = e; /* before the values: the symbol frees them */
    while (good && parse_next(p, &rest, &item, e->full_name, &good))
        if (item.number == 2 && item.wire == TC_WIRE_LENGTH)
            good = value_parse(p, e, item.bytes);
        else if (item.number == 4 || item.number == 5) /* reserved */
            good = count(p, e->full_name);
    if (!good)
        return false;
    if (e->values.len == 0)
        return parse_fail(p, TORC_EPARSE, e->full_name, "an enum without values");
    struct tc_schema_features parent = in ? in->features : p->features;
    e->closed = features_of(p, parent, tc_wire_find(bytes, 3), 7).enums == 2;
    e->null = strcmp(e->full_name, "google.protobuf.NullValue") == 0;
    if (in)
        *tc_vec_push(&in->enums) = e;
    return true;
}

/* --- messages --- */

static bool message_parse(struct parse *p, struct tc_slice bytes, const char *scope, torc_schema_message *in,
                          unsigned depth);

static bool oneof_parse(struct parse *p, struct tc_slice bytes, torc_schema_message *m)
{
    struct tc_schema_oneof *o = make(p, sizeof(*o));
    *o = (struct tc_schema_oneof){.index = (unsigned)m->oneofs.len, .options = tc_wire_find(bytes, 2)};
    *tc_vec_push(&m->oneofs) = o;
    return take_names(p, bytes, m->full_name, &o->name, NULL);
}

static bool range_parse(struct parse *p, torc_schema_message *m, struct tc_slice bytes)
{
    struct tc_schema_range range = {0};
    struct tc_item item;
    bool good = count(p, m->full_name);
    while (good && parse_next(p, &bytes, &item, m->full_name, &good)) {
        if (item.wire == TC_WIRE_VARINT && item.number == 1)
            range.from = (int32_t)(uint32_t)item.value;
        else if (item.wire == TC_WIRE_VARINT && item.number == 2)
            range.to = (int32_t)(uint32_t)item.value;
    }
    *tc_vec_push(&m->ranges) = range;
    return good;
}

static bool member_parse(struct parse *p, torc_schema_message *m, const struct tc_item *item, unsigned depth)
{
    struct tc_schema_field *f;
    switch (item->number) {
    case 2:
        if (!field_parse(p, item->bytes, m->full_name, m, false, &f))
            return false;
        f->parent = m;
        *tc_vec_push(&m->fields) = f;
        return true;
    case 3:
        return message_parse(p, item->bytes, m->full_name, m, depth + 1);
    case 4:
        return enum_parse(p, item->bytes, m->full_name, m);
    case 5:
        return range_parse(p, m, item->bytes);
    case 6:
        return extension_parse(p, item->bytes, m->full_name, m);
    case 9: /* reserved */
    case 10:
        return count(p, m->full_name);
    default:
        return true;
    }
}

/* Walks twice: fields refer to oneofs, which may come after the fields. */
static bool message_parse(struct parse *p, struct tc_slice bytes, const char *scope, torc_schema_message *in,
                          unsigned depth)
{
    torc_schema_message *m = make(p, sizeof(*m));
    struct tc_slice rest = bytes, options;
    struct tc_item item;
    bool good = true;
    *m = (torc_schema_message){.file = p->file, .scope = in, .bytes = bytes};
    if (depth > TC_SCHEMA_MAX_NESTING)
        return parse_fail(p, TORC_ELIMIT, "", "messages nested more than 64 deep");
    if (!take_names(p, bytes, scope, &m->name, &m->full_name))
        return false;
    add_symbol(p, m->full_name, TC_SYMBOL_MESSAGE)->of.message = m;
    options = tc_wire_find(bytes, 7);
    m->message_set = option_is_set(options, 1, NULL);
    m->map_entry = option_is_set(options, 7, NULL);
    m->features = features_of(p, in ? in->features : p->features, options, 12);
    while (good && parse_next(p, &rest, &item, m->full_name, &good))
        if (item.number == 8 && item.wire == TC_WIRE_LENGTH)
            good = oneof_parse(p, item.bytes, m);
    for (rest = bytes; good && parse_next(p, &rest, &item, m->full_name, &good);)
        if (item.wire == TC_WIRE_LENGTH)
            good = member_parse(p, m, &item, depth);
    for (size_t i = 0; good && i < m->oneofs.len; i++)
        good = m->oneofs.data[i]->members ||
               parse_fail(p, TORC_EPARSE, m->full_name, "the oneof %s has no field", m->oneofs.data[i]->name);
    if (good && in)
        *tc_vec_push(&in->nested) = m;
    return good;
}

/* --- services --- */

static bool method_parse(struct parse *p, torc_schema_service *s, struct tc_slice bytes)
{
    torc_schema_method *m = make(p, sizeof(*m));
    struct tc_item item;
    struct tc_buf path = {0};
    bool good = true;
    const char *full;
    *m = (torc_schema_method){.service = s, .bytes = bytes};
    if (!take_names(p, bytes, s->full_name, &m->name, &full))
        return false;
    while (good && parse_next(p, &bytes, &item, full, &good)) {
        if (item.wire == TC_WIRE_LENGTH && (item.number == 2 || item.number == 3))
            good = take_reference(p, full, item.bytes, item.number == 2 ? &m->request_name : &m->response_name);
        else if (item.wire == TC_WIRE_VARINT && item.number == 5)
            m->client_streams = item.value != 0;
        else if (item.wire == TC_WIRE_VARINT && item.number == 6)
            m->server_streams = item.value != 0;
    }
    if (!good)
        return false;
    if (!m->request_name || !m->response_name)
        return parse_fail(p, TORC_EPARSE, full, "a method without the types of its messages");
    tc_buf_printf(&path, "/%s/%s", s->full_name, m->name);
    m->path = keep_buf(p, &path);
    *tc_vec_push(&s->methods) = m;
    return true;
}

static bool service_parse(struct parse *p, struct tc_slice bytes, const char *scope)
{
    torc_schema_service *s = make(p, sizeof(*s));
    struct tc_slice rest = bytes;
    struct tc_item item;
    bool good = true;
    *s = (torc_schema_service){.file = p->file, .options = tc_wire_find(bytes, 3)};
    if (!take_names(p, bytes, scope, &s->name, &s->full_name))
        return false;
    add_symbol(p, s->full_name, TC_SYMBOL_SERVICE)->of.service = s;
    while (good && parse_next(p, &rest, &item, s->full_name, &good))
        if (item.number == 2 && item.wire == TC_WIRE_LENGTH)
            good = method_parse(p, s, item.bytes);
    return good;
}

/* --- files --- */

/* Reads the syntax and the edition of the file, and its features. */
static bool file_read_edition(struct parse *p)
{
    static const struct tc_schema_features defaults[] = {{1, 2, 2, 1}, {2, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}};
    struct tc_slice rest = p->file->bytes, syntax = tc_wire_find(rest, 12);
    struct tc_item item;
    uint64_t edition = 0;
    while (tc_item_next(&rest, &item) > 0)
        if (item.number == 14 && item.wire == TC_WIRE_VARINT)
            edition = item.value;
    if (syntax.len == 0 || tc_slice_eq_str(syntax, "proto2"))
        edition = edition ? edition : PROTO2;
    else if (tc_slice_eq_str(syntax, "proto3"))
        edition = PROTO3;
    else if (!tc_slice_eq_str(syntax, "editions"))
        return parse_fail(p, TORC_EUNSUPPORTED, "", "a syntax that is not known");
    if (edition < PROTO2 || edition > EDITION_2024)
        return parse_fail(p, TORC_EUNSUPPORTED, "", "edition %llu of descriptor.proto is not supported",
                          (unsigned long long)edition);
    p->file->edition = (int32_t)edition;
    p->features = features_of(p, defaults[edition - PROTO2], tc_wire_find(p->file->bytes, 8), 50);
    return true;
}

static bool definition_parse(struct parse *p, const struct tc_item *item)
{
    const char *package = p->file->package, *import;
    switch (item->number) {
    case 3:
        if (!count(p, "") || !take_text(p, "", item->bytes, "an import", &import))
            return false;
        *tc_vec_push(&p->file->imports) = import;
        return true;
    case 4:
        return message_parse(p, item->bytes, package, NULL, 1);
    case 5:
        return enum_parse(p, item->bytes, package, NULL);
    case 6:
        return service_parse(p, item->bytes, package);
    case 7:
        return extension_parse(p, item->bytes, package, NULL);
    default:
        return true;
    }
}

bool tc_schema_parse(torc_schema *schema, struct tc_slice bytes, torc_error **error)
{
    struct tc_schema_file *file = TC_NEW(struct tc_schema_file);
    struct parse p = {.schema = schema, .file = file, .error = error};
    struct tc_item item;
    bool good = true;
    *tc_vec_push(&schema->files) = file;
    file->first = schema->added.len;
    tc_arena_init(&file->arena, 0, 0);
    file->bytes = bytes = tc_arena_copy(&file->arena, bytes);
    struct tc_slice name = tc_wire_find(bytes, 1), package = tc_wire_find(bytes, 2), rest = bytes;
    if (!name.len)
        return parse_fail(&p, TORC_EPARSE, "", "it has no name");
    if (!take_text(&p, "", name, "a name", &file->name))
        return false;
    if (package.len && !tc_name_is_good(package, true))
        return parse_fail(&p, TORC_EPARSE, "", "a package that is not a name");
    if (!take_text(&p, "", package, "a package", &file->package) || !file_read_edition(&p))
        return false;
    while (good && parse_next(&p, &rest, &item, "", &good))
        if (item.wire == TC_WIRE_LENGTH)
            good = definition_parse(&p, &item);
    schema->size.memory += good ? file->arena.used : 0;
    return good;
}
