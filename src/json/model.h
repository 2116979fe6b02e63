/* The parts of a schema: the files, and what they define, as structs in the arena of the file. schema.c owns them,
 * parse.c makes the structs, link.c connects them; all other files of this folder only read. Sources: descriptor.proto;
 * for features of editions, protobuf.dev's page of them. */
#ifndef TC_JSON_MODEL_H
#define TC_JSON_MODEL_H

#include <torc/json.h>

#include "base/arena.h"
#include "base/vec.h"

enum {
    TC_SCHEMA_MAX_BYTES = 64 << 20,
    TC_SCHEMA_MAX_MEMORY = 512 << 20, /* of the arenas of all files */
    TC_SCHEMA_MAX_ITEMS = 1000000,
    TC_SCHEMA_MAX_FILES = 16384,
    TC_SCHEMA_MAX_NESTING = 64,
    TC_SCHEMA_MAX_FIELDS = 65536,
    TC_SCHEMA_MAX_NAME = 4096,
};

/* FieldDescriptorProto.Type. */
enum tc_schema_type {
    TC_TYPE_DOUBLE = 1,
    TC_TYPE_FLOAT,
    TC_TYPE_INT64,
    TC_TYPE_UINT64,
    TC_TYPE_INT32,
    TC_TYPE_FIXED64,
    TC_TYPE_FIXED32,
    TC_TYPE_BOOL,
    TC_TYPE_STRING,
    TC_TYPE_GROUP, /* also a message with the feature DELIMITED */
    TC_TYPE_MESSAGE,
    TC_TYPE_BYTES,
    TC_TYPE_UINT32,
    TC_TYPE_ENUM,
    TC_TYPE_SFIXED32,
    TC_TYPE_SFIXED64,
    TC_TYPE_SINT32,
    TC_TYPE_SINT64,
};

/* Message types with a JSON form of their own. */
enum tc_known {
    TC_KNOWN_NONE,
    TC_KNOWN_ANY,
    TC_KNOWN_DURATION,
    TC_KNOWN_TIMESTAMP,
    TC_KNOWN_FIELD_MASK,
    TC_KNOWN_STRUCT,
    TC_KNOWN_VALUE,
    TC_KNOWN_LIST,
    TC_KNOWN_WRAPPER,
};

/* Features of editions, with the numbers of FeatureSet; 0 in what a descriptor says stands for its parent's. */
struct tc_schema_features {
    uint8_t presence; /* 1 explicit, 2 implicit, 3 required */
    uint8_t enums;    /* 1 open, 2 closed */
    uint8_t lists;    /* 1 packed, 2 expanded */
    uint8_t encoding; /* 1 length-prefixed, 2 delimited */
};

struct tc_schema_file {
    struct tc_arena arena;
    const char *name;
    struct tc_slice bytes;
    size_t first;        /* of its symbols in the schema's `added`, where they are next to one another */
    const char *package; /* "" if there is none */
    int32_t edition;     /* 998 proto2, 999 proto3, 1000 edition 2023, 1001 edition 2024 */
    TC_VEC(const char *) imports;
};

struct tc_schema_oneof {
    const char *name;
    unsigned index;
    bool synthetic;   /* of a proto3 optional field */
    unsigned members; /* one at least; they are next to one another in the message's fields */
    size_t first;     /* the index of the first one */
};

struct tc_schema_field {
    const char *name;
    const char *full_name;
    const char *json_name; /* of an extension "[FULL NAME]" */
    bool has_json_name;    /* the descriptor gave json_name, and it is not the name in lowerCamelCase */
    int32_t number;
    uint8_t type; /* enum tc_schema_type; 0 in descriptors that leave it to type_name */
    bool repeated, required, packed, extension, proto3_optional, explicit_packed;
    bool has_presence; /* false: the default value is not told from absence */
    struct tc_schema_file *file;
    struct tc_schema_oneof *oneof;             /* NULL: none */
    const char *type_name, *extendee;          /* full names as in the descriptor, without the dot; NULL: none */
    struct tc_slice options;                   /* its FieldOptions */
    const char *default_value;                 /* as in the descriptor; NULL: none */
    struct torc_schema_message *scope;         /* in which an extension or a field is written; NULL: the file */
    struct torc_schema_message *parent;        /* whose field it is: for an extension what it extends; set by link.c */
    const struct torc_schema_message *message; /* type GROUP and MESSAGE; set by link.c */
    const struct torc_schema_enum *enumeration;
    unsigned index; /* in the parent's by_number; set by link.c as the next two */
    bool map;
    bool shadowed; /* json_name means another field, so that JSON has `name` */
};

/* A name by which JSON may call a field. */
struct tc_schema_alias {
    const char *name;
    struct tc_schema_field *field;
};

struct tc_schema_range {
    int32_t from, to; /* `to` is the first number behind it */
};

struct torc_schema_message {
    const char *full_name, *name;
    struct tc_schema_file *file;
    struct torc_schema_message *scope; /* within which it is defined, or NULL */
    struct tc_slice bytes;             /* its DescriptorProto */
    bool map_entry, message_set;
    bool changed;                        /* its tables are not sorted yet, while a link is under way */
    const struct tc_schema_field *owner; /* that defines it, of a group of proto2 and a map entry; set by link.c */
    enum tc_known known;
    struct tc_schema_features features;
    TC_VEC(struct tc_schema_field *) fields; /* in the order of the file, without extensions */
    TC_VEC(struct tc_schema_oneof *) oneofs;
    TC_VEC(struct torc_schema_message *) nested;
    TC_VEC(struct torc_schema_enum *) enums;
    TC_VEC(struct tc_schema_field *) extends;    /* extensions that it defines */
    TC_VEC(struct tc_schema_field *) extensions; /* of it, which others define */
    TC_VEC(struct tc_schema_range) ranges;       /* numbers that it leaves to extensions */
    struct tc_schema_field **by_number;          /* with extensions; set by link.c as all that follow */
    struct tc_schema_field **implicit;           /* without extensions and fields with presence, in that order */
    struct tc_schema_alias *by_name;
    size_t n_by_number, n_implicit, n_by_name, n_required;
};

struct tc_schema_value {
    const char *name;
    int32_t number;
};

struct torc_schema_enum {
    const char *full_name, *name;
    struct tc_schema_file *file;
    struct torc_schema_message *scope;
    struct tc_slice bytes;
    bool closed, null; /* null: google.protobuf.NullValue */
    TC_VEC(struct tc_schema_value) values;
    unsigned *by_number, *by_name; /* indices of values, in order, one behind the other; set by link.c */
};

struct torc_schema_method {
    const char *name, *path;
    const char *request_name, *response_name;
    const struct torc_schema_message *request, *response; /* set by link.c */
    struct torc_schema_service *service;
    struct tc_slice bytes;
    bool client_streams, server_streams;
};

struct torc_schema_service {
    const char *full_name, *name;
    struct tc_schema_file *file;
    TC_VEC(struct torc_schema_method *) methods;
};

enum tc_symbol_kind { TC_SYMBOL_MESSAGE, TC_SYMBOL_ENUM, TC_SYMBOL_SERVICE, TC_SYMBOL_EXTENSION };

struct tc_schema_symbol {
    const char *name;
    enum tc_symbol_kind kind;
    union {
        struct torc_schema_message *message;
        struct torc_schema_enum *enumeration;
        struct torc_schema_service *service;
        struct tc_schema_field *extension;
    } of;
    const struct tc_schema_file *file;
};

/* A file, or one that is imported and was not added. */
struct tc_schema_named {
    const char *name;
    struct tc_schema_file *file; /* NULL: it was not added */
};

/* A TC_VEC of symbols, each in the arena of its file. */
struct tc_schema_symbols {
    struct tc_schema_symbol **data;
    size_t len, cap;
};

struct tc_schema_size {
    size_t files, symbols;
    size_t bytes, items, memory; /* of TC_SCHEMA_MAX_BYTES, _ITEMS and _MEMORY */
};

struct torc_schema {
    bool was_linked;
    struct tc_schema_size size, linked; /* now, and when it was linked last */
    TC_VEC(struct tc_schema_file *) files;
    struct tc_schema_symbols added;               /* in the order of addition */
    struct tc_schema_symbols symbols, services;   /* of the last link, by name; the latter are in both */
    TC_VEC(struct tc_schema_named) by_name;       /* in the order of names */
    TC_VEC(const char *) missing;                 /* what by_name has without a file, in the order of the imports */
    TC_VEC(struct torc_schema_message *) changed; /* of the link that is under way */
};

static inline bool tc_schema_is_linked(const torc_schema *s)
{
    return s->was_linked && s->size.files == s->linked.files;
}

/* Returns the file of a name, NULL if there is none. */
const struct tc_schema_file *tc_schema_file(const torc_schema *schema, struct tc_slice name);
/* Returns the symbol of a full name; NULL if there is none, or the schema is not linked. */
const struct tc_schema_symbol *tc_schema_find(const torc_schema *schema, struct tc_slice name);
/* Returns the message type of a type URL, by what stands behind the last slash, or of a full name; NULL when it is
 * unknown. */
const torc_schema_message *tc_schema_message_of_url(const torc_schema *schema, struct tc_slice url);

/* Return a field, extensions included; NULL if there is none. by_name takes both names of a field. */
const struct tc_schema_field *tc_schema_field_by_number(const torc_schema_message *m, uint64_t number);
const struct tc_schema_field *tc_schema_field_by_name(const torc_schema_message *m, struct tc_slice name);
/* Return a value, the first one of that number or name; NULL if there is none. */
const struct tc_schema_value *tc_schema_value_by_number(const torc_schema_enum *e, int32_t number);
const struct tc_schema_value *tc_schema_value_by_name(const torc_schema_enum *e, struct tc_slice name);

static inline bool tc_schema_is_message(const struct tc_schema_field *f)
{
    return f->type == TC_TYPE_MESSAGE || f->type == TC_TYPE_GROUP;
}

/* The wire type of a value that is not packed. */
unsigned tc_schema_wire(int type);

/* Returns whether null is a value of the field, not its absence: google.protobuf.Value and NullValue. */
static inline bool tc_schema_takes_null(const struct tc_schema_field *f)
{
    return tc_schema_is_message(f) ? f->message->known == TC_KNOWN_VALUE
                                   : f->type == TC_TYPE_ENUM && f->enumeration->null;
}

#endif
