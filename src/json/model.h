/* The parts of a schema: its files, and the structs of what a file defines, which are in the arena of the file, with
 * their strings and slices. Arrays (TC_VEC, by_number, by_name) are outside the arena. schema.c owns the parts, parse.c
 * makes the structs, link.c connects them; all other files of this folder only read. Sources: descriptor.proto; for
 * features of editions, protobuf.dev's page of them.
 *
 * Threads: a schema is for one thread at a time until it is linked. The look-ups below may then run on any number of
 * threads, as long as nothing is added. */
#ifndef TC_JSON_MODEL_H
#define TC_JSON_MODEL_H

#include <torc/json.h>

#include "base/arena.h"
#include "base/vec.h"

enum {
    TC_SCHEMA_MAX_BYTES = 64 << 20,   /* of the descriptors of all files */
    TC_SCHEMA_MAX_MEMORY = 512 << 20, /* bytes of the arenas of all files */
    TC_SCHEMA_MAX_ITEMS = 1000000,    /* in all files: descriptors, ranges, reserved names, imports */
    TC_SCHEMA_MAX_FILES = 16384,      /* files that were added, and files that are imported and were not added */
    TC_SCHEMA_MAX_NESTING = 64,       /* message types defined within one another */
    TC_SCHEMA_MAX_FIELDS = 65536,     /* of a message, with its extensions */
    TC_SCHEMA_MAX_NAME = 4096,        /* bytes of a name */
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
    TC_TYPE_GROUP, /* also a message with the feature DELIMITED, unless it is a map or in a map entry */
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

/* Features of editions, with the numbers of FeatureSet's enums. They are resolved: a feature that the descriptor does
 * not give is that of its parent. */
struct tc_schema_features {
    uint8_t presence; /* 1 explicit, 2 implicit, 3 required */
    uint8_t enums;    /* 1 open, 2 closed */
    uint8_t lists;    /* 1 packed, 2 expanded */
    uint8_t encoding; /* 1 length-prefixed, 2 delimited */
};

struct tc_schema_file {
    struct tc_arena arena;
    const char *name;
    struct tc_slice bytes; /* its FileDescriptorProto, in the arena */
    size_t first;          /* index of its first symbol in the schema's `added`; its symbols are contiguous there */
    const char *package;   /* "" if there is none */
    int32_t edition;       /* 998 proto2, 999 proto3, 1000 edition 2023, 1001 edition 2024 */
    TC_VEC(const char *) imports;
};

struct tc_schema_oneof {
    const char *name;
    unsigned index;          /* in the message's oneofs */
    bool synthetic;          /* of a proto3 optional field */
    unsigned members;        /* at least one; contiguous in the message's fields */
    size_t first;            /* the index of the first member in the message's fields */
    struct tc_slice options; /* its OneofOptions, serialised */
};

struct tc_schema_field {
    const char *name;
    const char *full_name;
    const char *json_name; /* of an extension "[FULL NAME]" */
    bool has_json_name;    /* the descriptor gave a json_name other than the default; never set for an extension */
    int32_t number;
    uint8_t type; /* enum tc_schema_type, never 0; link.c makes MESSAGE of a map's GROUP */
    /* explicit_packed: the descriptor gives `packed`, and it is not the default of the syntax. */
    bool repeated, required, packed, extension, proto3_optional, explicit_packed;
    bool has_presence; /* absence differs from the default value; false for repeated fields */
    struct tc_schema_file *file;
    struct tc_schema_oneof *oneof;              /* NULL: none */
    const char *type_name, *extendee;           /* full names from the descriptor, without the dot; NULL: none */
    struct tc_slice options;                    /* its FieldOptions, serialised */
    const char *default_value;                  /* as in the descriptor; NULL: none, or one that is not text */
    struct torc_schema_message *scope;          /* the message in which it is written; NULL: none */
    struct torc_schema_message *parent;         /* the message that it is a field of; of an extension set by link.c */
    const struct torc_schema_message *message;  /* of type GROUP and MESSAGE, else NULL; set by link.c */
    const struct torc_schema_enum *enumeration; /* of type ENUM, else NULL; set by link.c */
    unsigned index;                             /* in the parent's by_number; link.c sets it, `map` and `shadowed` */
    bool map;
    bool shadowed; /* json_name is another field's, or is "@type": JSON is written with `name` */
};

/* A name by which JSON may call a field. */
struct tc_schema_alias {
    const char *name;
    struct tc_schema_field *field;
};

struct tc_schema_range {
    int32_t from, to; /* `to` is the first number after the range */
};

struct torc_schema_message {
    const char *full_name, *name;
    struct tc_schema_file *file;
    struct torc_schema_message *scope; /* the message in which it is defined; NULL: none */
    struct tc_slice bytes;             /* its DescriptorProto, serialised */
    bool map_entry, message_set;
    bool changed;                        /* it is in the schema's `changed`, while a link is under way */
    const struct tc_schema_field *owner; /* of a map entry or a proto2 group: the field; else NULL; by link.c */
    enum tc_known known;                 /* set by link.c */
    struct tc_schema_features features;
    TC_VEC(struct tc_schema_field *) fields; /* in the order of the file, without extensions */
    TC_VEC(struct tc_schema_oneof *) oneofs;
    TC_VEC(struct torc_schema_message *) nested;
    TC_VEC(struct torc_schema_enum *) enums;
    TC_VEC(struct tc_schema_field *) extends;    /* extensions that are defined in it, of any message */
    TC_VEC(struct tc_schema_field *) extensions; /* extensions of it, wherever they are defined; set by link.c */
    TC_VEC(struct tc_schema_range) ranges;       /* extension ranges */
    struct tc_schema_field **by_number;          /* with extensions; link.c sets this member and all below */
    struct tc_schema_field **implicit;           /* fields without presence, no extensions; in by_number's block */
    struct tc_schema_alias *by_name;             /* by alias; of equal aliases the first one counts */
    size_t n_by_number, n_implicit, n_by_name, n_required;
};

struct tc_schema_value {
    const char *name;
    int32_t number;
    struct tc_slice options; /* its EnumValueOptions, serialised */
};

struct torc_schema_enum {
    const char *full_name, *name;
    struct tc_schema_file *file;
    struct torc_schema_message *scope; /* the message in which it is defined; NULL: none */
    struct tc_slice bytes;             /* its EnumDescriptorProto, serialised */
    bool closed, null;                 /* null: the enum is google.protobuf.NullValue */
    TC_VEC(struct tc_schema_value) values;
    unsigned *by_number, *by_name; /* indices of `values`, sorted; one block, which by_number owns; set by link.c */
};

struct torc_schema_method {
    const char *name, *path;                              /* "Get", "/shop.Orders/Get" */
    const char *request_name, *response_name;             /* full names, without the dot */
    const struct torc_schema_message *request, *response; /* set by link.c */
    struct torc_schema_service *service;
    struct tc_slice bytes; /* its MethodDescriptorProto, serialised */
    bool client_streams, server_streams;
};

struct torc_schema_service {
    const char *full_name, *name;
    struct tc_schema_file *file;
    struct tc_slice options; /* its ServiceOptions, serialised */
    TC_VEC(struct torc_schema_method *) methods;
};

enum tc_symbol_kind { TC_SYMBOL_MESSAGE, TC_SYMBOL_ENUM, TC_SYMBOL_SERVICE, TC_SYMBOL_EXTENSION };

struct tc_schema_symbol {
    const char *name; /* the full name */
    enum tc_symbol_kind kind;
    union {
        struct torc_schema_message *message;
        struct torc_schema_enum *enumeration;
        struct torc_schema_service *service;
        struct tc_schema_field *extension;
    } of;
    const struct tc_schema_file *file;
};

/* The name of a file that was added, or only imported. */
struct tc_schema_named {
    const char *name;
    struct tc_schema_file *file; /* NULL: it was not added */
};

/* A TC_VEC of symbols, each of which is in the arena of its file. */
struct tc_schema_symbols {
    struct tc_schema_symbol **data;
    size_t len, cap;
};

struct tc_schema_size {
    size_t files, symbols;       /* the lengths of `files` and `added`, without a file whose addition is under way */
    size_t bytes, items, memory; /* what counts against TC_SCHEMA_MAX_BYTES, _ITEMS and _MEMORY */
};

struct torc_schema {
    bool was_linked;                    /* a link has succeeded */
    struct tc_schema_size size, linked; /* now, and after the last link that succeeded */
    TC_VEC(struct tc_schema_file *) files;
    struct tc_schema_symbols added;               /* in the order of addition */
    struct tc_schema_symbols symbols, services;   /* linked symbols, by name; services are in both arrays */
    TC_VEC(struct tc_schema_named) by_name;       /* files and imports, by name */
    TC_VEC(const char *) missing;                 /* imports that were not added, each once, in order of first import */
    TC_VEC(struct torc_schema_message *) changed; /* messages whose tables the link under way builds */
};

/* Returns whether the schema was linked and no file was added since. */
static inline bool tc_schema_is_linked(const torc_schema *s)
{
    return s->was_linked && s->size.files == s->linked.files;
}

/* Returns the file of a name, linked or not; NULL if none was added. */
const struct tc_schema_file *tc_schema_file(const torc_schema *schema, struct tc_slice name);
/* Returns the symbol of a full name, with or without a dot in front; NULL if there is none, or the schema is not
 * linked. */
const struct tc_schema_symbol *tc_schema_find(const torc_schema *schema, struct tc_slice name);
/* Returns the message type of a type URL: the part after the last slash, or the whole text, is the full name. NULL as
 * for tc_schema_find, or if the name is not that of a message. */
const torc_schema_message *tc_schema_message_of_url(const torc_schema *schema, struct tc_slice url);

/* Return a field or an extension; NULL if there is none. by_name takes the name of a field, its name in JSON, or
 * "[FULL NAME]" of an extension. */
const struct tc_schema_field *tc_schema_field_by_number(const torc_schema_message *m, uint64_t number);
const struct tc_schema_field *tc_schema_field_by_name(const torc_schema_message *m, struct tc_slice name);
/* Return the first value of that number or name in the order of the file; NULL if there is none. */
const struct tc_schema_value *tc_schema_value_by_number(const torc_schema_enum *e, int32_t number);
const struct tc_schema_value *tc_schema_value_by_name(const torc_schema_enum *e, struct tc_slice name);

static inline bool tc_schema_is_message(const struct tc_schema_field *f)
{
    return f->type == TC_TYPE_MESSAGE || f->type == TC_TYPE_GROUP;
}

/* Returns the wire type of a value that is not packed: enum tc_wire, or TC_ITEM_GROUP. */
unsigned tc_schema_wire(int type);

/* Returns whether JSON null is a value of the field's type, and not the absence of a value: google.protobuf.Value and
 * NullValue. Of a repeated field this concerns the elements. The field must be linked. */
static inline bool tc_schema_takes_null(const struct tc_schema_field *f)
{
    return tc_schema_is_message(f) ? f->message->known == TC_KNOWN_VALUE
                                   : f->type == TC_TYPE_ENUM && f->enumeration->null;
}

#endif
