/* The files of one request: finds files by name and by the types they define, gives types their names in C, and refuses
 * what cannot be generated. */
#ifndef PGT_SCHEMA_H
#define PGT_SCHEMA_H

#include "base/arena.h"
#include "base/buf.h"
#include "google/protobuf/compiler/plugin.pb-c.h"

typedef Google__Protobuf__FileDescriptorProto pgt_file;
typedef Google__Protobuf__DescriptorProto pgt_message;
typedef Google__Protobuf__FieldDescriptorProto pgt_field;
typedef Google__Protobuf__ServiceDescriptorProto pgt_service;
typedef Google__Protobuf__MethodDescriptorProto pgt_method;

struct pgt_type;
struct pgt_known_file;

struct pgt_schema {
    struct pgt_type *types;       /* messages and enums by full name */
    struct pgt_known_file *files; /* by name */
    struct tc_arena arena;        /* of the entries of both, and of the new names that messages.h gives to fields */
};

/* Reads all files of the request, which the schema borrows until pgt_schema_fini. Returns false with the reason
 * (tc_free) in *why if the name of a file, package (c_package too), message, oneof or enum is malformed, or a file or
 * type is defined twice. The caller calls pgt_schema_fini in any case. */
bool pgt_schema_init(struct pgt_schema *schema, const Google__Protobuf__Compiler__CodeGeneratorRequest *request,
                     char **why);
void pgt_schema_fini(struct pgt_schema *schema);

/* Returns the file, borrowed from the request, or NULL when the request has none of that name. */
pgt_file *pgt_schema_file(const struct pgt_schema *schema, const char *name);
/* Returns the file that defines a type (".pkg.Name"), borrowed from the request. Returns NULL for NULL, an unknown type
 * or a name without the leading dot. */
const pgt_file *pgt_schema_home(const struct pgt_schema *schema, const char *type);

/* Append protobuf-c's name for a full name of `file` ("pkg.Name" or ".pkg.Name"): "pkg__name" for functions (lower),
 * "Pkg__Name" for structs (camel). The option c_package, which may be empty, replaces the package; in a file without a
 * package, it comes in front of the name. */
void pgt_schema_lower(const pgt_file *file, const char *full_name, struct tc_buf *out);
void pgt_schema_camel(const pgt_file *file, const char *full_name, struct tc_buf *out);

/* Returns false with the reason (tc_free) in *why if protobuf-c cannot generate the file: it has a syntax other than
 * proto2 and proto3, groups, extensions (other than of options), defaults of inf or nan, or two types of one C name.
 * The file is one of a schema, whose pgt_schema_init has checked the names of the types. */
bool pgt_schema_accepts(const pgt_file *file, char **why);
/* Returns true for an extension of google.protobuf.*Options. Such extensions are for compilers and never sent. */
bool pgt_is_custom_option(const pgt_field *extension);

#endif
