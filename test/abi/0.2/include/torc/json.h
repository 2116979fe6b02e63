/* Messages without generated code: types from descriptors, and proto3 JSON. SPDX-License-Identifier: Apache-2.0
 *
 * These functions are in libtorc-json, which stands on libtorc (pkg-config torc-json, CMake target torc::json).
 *
 *     torc_error *error = NULL;
 *     torc_schema *schema = torc_schema_new();
 *     torc_schema_add_set(schema, bytes, size, &error); // protoc --include_imports --descriptor_set_out=FILE
 *     torc_schema_link(schema, &error);
 *     const torc_schema_method *method = torc_schema_find_method(schema, "shop.Orders/Get");
 *     if (!method)
 *         ...
 *     void *request;
 *     size_t request_size;
 *     torc_json_to_bytes(schema, torc_schema_method_request(method), "{\"id\": \"7\"}", 11, NULL, &request,
 *                        &request_size, &error);
 *     torc_result *result = torc_unary(channel, torc_schema_method_path(method), request, request_size, NULL);
 *     ...
 *     char *text;
 *     torc_json_from_bytes(schema, torc_schema_method_response(method), response, response_size, NULL, &text, NULL,
 *                          &error);
 *     puts(text);
 *     torc_free(text);
 *     torc_free(request);
 *     torc_schema_free(schema);
 *
 * A schema is a pool of .proto files in their serialised form, google.protobuf.FileDescriptorProto: as protoc writes
 * it, as generated code has it, as servers with reflection send it. Files are added in any order; torc_schema_link then
 * resolves the names in them. Descriptors are input like any other and may come from a server that lies: each number,
 * name and reference is checked before it is used. Syntax proto2, proto3 and editions 2023 and 2024 are known; a file
 * of a later edition is refused.
 *
 * The JSON is that of protobuf.dev's ProtoJSON page: well-known types in their own form, Any with its message,
 * extensions as "[pkg.name]", 64-bit integers as strings, bytes as base64, the fewest digits that read back as the same
 * float. Readers take both names of a field, numbers as strings, integers as 1e3 or 1.0, both alphabets of base64; they
 * refuse unknown fields, a key or a oneof that is given twice, numbers out of range, text that is not UTF-8, and a
 * message without a required field (of proto2, and of editions with LEGACY_REQUIRED).
 *
 * Limits: a schema has 16,384 files, counted with those that are imported and were not added. All files together have
 * 64 MiB. They have 1,000,000 of these, counted together: descriptors (messages, fields, oneofs, enums, values,
 * services, methods), ranges of extensions, reserved ranges, reserved names, and imports. Messages are nested 64 deep
 * in one another; a message has 65,536 fields with its extensions; a name has 4,096 bytes. What the descriptors say
 * takes 512 MiB of memory at most; the tables for look-ups come on top, some 300 bytes for each descriptor. Beyond one
 * of these limits torc_schema_add_file and torc_schema_link return TORC_ELIMIT. struct torc_json_options has the limits
 * of a conversion.
 *
 * Threads: a schema is for one thread at a time until torc_schema_link has succeeded. From then on any number of
 * threads may look things up and convert, as long as nothing is added. What the look-ups return belongs to the schema
 * and lives until torc_schema_free. Nothing here blocks or calls back. The layer of errors is TORC_LAYER_CODEC; of
 * TORC_EINVAL and TORC_ESTATE it is TORC_LAYER_API. */
#ifndef TORC_JSON_H
#define TORC_JSON_H

#include <stddef.h>
#include <stdint.h>

#include <torc/error.h>
#include <torc/size.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stands before each function that libtorc-json has and libtorc has not. */
#if defined(__GNUC__)
#define TORC_JSON_API __attribute__((visibility("default")))
#else
#define TORC_JSON_API
#endif

/* --- schemas --- */

/* A pool of .proto files. */
typedef struct torc_schema torc_schema;

/* A message type. It does not change once the schema is linked, but for extensions that files add later. */
typedef struct torc_schema_message torc_schema_message;

/* An enum type. */
typedef struct torc_schema_enum torc_schema_enum;

/* A service. */
typedef struct torc_schema_service torc_schema_service;

/* A method of a service. */
typedef struct torc_schema_method torc_schema_method;

/* Returns an empty schema, which the caller frees with torc_schema_free; never NULL. Any thread. */
TORC_JSON_API torc_schema *torc_schema_new(void);

/* Frees the schema and all that its look-ups returned. NULL is allowed. */
TORC_JSON_API void torc_schema_free(torc_schema *schema);

/* Adds a serialised google.protobuf.FileDescriptorProto, which is copied. Files come in any order: what a file imports
 * may come before or after it. Its types are found after torc_schema_link. Returns 0, also when the schema has the same
 * file already, byte for byte; or an error, and nothing is added: TORC_EINVAL (NULL), TORC_EPARSE (the bytes are not a
 * descriptor; the text names the file and the place), TORC_EEXIST (another file has its name), TORC_EUNSUPPORTED (a
 * syntax or an edition that is not known), TORC_ELIMIT. */
TORC_JSON_API int torc_schema_add_file(torc_schema *schema, const void *bytes, size_t size, torc_error **error);

/* Adds the files of a serialised google.protobuf.FileDescriptorSet. Returns what torc_schema_add_file returns; after an
 * error none of the files is added. */
TORC_JSON_API int torc_schema_add_set(torc_schema *schema, const void *bytes, size_t size, torc_error **error);

/* Adds the files of another schema, which stays as it is and need not be linked. Returns what torc_schema_add_file
 * returns; after an error none of the files is added. */
TORC_JSON_API int torc_schema_merge(torc_schema *schema, const torc_schema *from, torc_error **error);

/* Resolves the type names in the files that were added since the last call. Returns 0; TORC_EINVAL (NULL);
 * TORC_ENOTFOUND when a type is not defined: the text names who refers to it, and the first import that was not added;
 * TORC_EEXIST when a name is defined twice, or a message has two fields of one number or name; TORC_EPARSE for types
 * that cannot be what they are used for (a map entry without a key, a google.protobuf.Timestamp with other fields) and
 * extensions whose number their message does not leave to extensions; TORC_ELIMIT. After an error the schema is as the
 * last call that succeeded left it: the files that were added since are gone, and may be added again with others.
 *
 * Files may be added and linked again later; the cost depends on the new files, hardly on the size of the schema. Types
 * that were found before stay valid, and messages get the new extensions. A file may import what nobody added, as long
 * as it uses no type of it; imports may go in a circle.
 *
 * If two fields of a message have the same JSON name, which protoc refuses, the field with this name in the .proto file
 * keeps it, else the field with the lower number. The other field has its .proto name in JSON. */
TORC_JSON_API int torc_schema_link(torc_schema *schema, torc_error **error);

/* Returns the name of file i in the order of addition, NULL beyond the last. The name belongs to the schema, and lives
 * until torc_schema_free, or until a torc_schema_link that fails takes the file away. */
TORC_JSON_API const char *torc_schema_file_at(const torc_schema *schema, size_t i);

/* Returns the name of import i that was not added, counted from 0 in the order of the files that import them and
 * without repetition; NULL beyond the last. The name belongs to the schema, and lives until torc_schema_free, or until
 * a torc_schema_link that fails takes the file that imports it away. A client of reflection takes index 0, adds that
 * file, and asks again. */
TORC_JSON_API const char *torc_schema_missing_at(const torc_schema *schema, size_t i);

/* --- look-ups ---
 *
 * Names are full names, as "shop.Order.Item"; a dot in front is allowed. The functions that take a schema return NULL
 * for what is not there, for a NULL schema or name, and for everything while the schema is not linked: before the
 * first torc_schema_link, and between the addition of a file and the next torc_schema_link. The functions that take a
 * message, an enum, a service or a method work meanwhile, and must not be given NULL for it. */

/* Returns a message type; of a type URL ("type.googleapis.com/shop.Order") the part behind the last slash counts. */
TORC_JSON_API const torc_schema_message *torc_schema_find_message(const torc_schema *schema, const char *name);

/* Returns the full name of a message type. */
TORC_JSON_API const char *torc_schema_message_name(const torc_schema_message *message);

/* Returns an enum type. */
TORC_JSON_API const torc_schema_enum *torc_schema_find_enum(const torc_schema *schema, const char *name);

/* Returns the full name of an enum type. */
TORC_JSON_API const char *torc_schema_enum_name(const torc_schema_enum *type);

/* Returns the name of the first value with that number; NULL if the enum has none. */
TORC_JSON_API const char *torc_schema_enum_value(const torc_schema_enum *type, int32_t number);

/* Stores the number of a value in *number, which must not be NULL. Returns 0, or TORC_ENOTFOUND. */
TORC_JSON_API int torc_schema_enum_number(const torc_schema_enum *type, const char *name, int32_t *number);

/* Returns a service. */
TORC_JSON_API const torc_schema_service *torc_schema_find_service(const torc_schema *schema, const char *name);

/* Returns service i in the order of full names, NULL beyond the last. */
TORC_JSON_API const torc_schema_service *torc_schema_service_at(const torc_schema *schema, size_t i);

/* Returns the full name of a service. */
TORC_JSON_API const char *torc_schema_service_name(const torc_schema_service *service);

/* Returns method i of a service in the order of its .proto file, NULL beyond the last. */
TORC_JSON_API const torc_schema_method *torc_schema_method_at(const torc_schema_service *service, size_t i);

/* Returns a method, named "shop.Orders/Get", "/shop.Orders/Get" or "shop.Orders.Get". */
TORC_JSON_API const torc_schema_method *torc_schema_find_method(const torc_schema *schema, const char *name);

/* Returns the name of a method within its service, "Get". */
TORC_JSON_API const char *torc_schema_method_name(const torc_schema_method *method);

/* Returns the path of a method, "/shop.Orders/Get", which torc_unary and torc_stream_open take. */
TORC_JSON_API const char *torc_schema_method_path(const torc_schema_method *method);

/* Returns the type of the messages that a client sends. */
TORC_JSON_API const torc_schema_message *torc_schema_method_request(const torc_schema_method *method);

/* Returns the type of the messages that a server sends. */
TORC_JSON_API const torc_schema_message *torc_schema_method_response(const torc_schema_method *method);

/* Returns 1 if the client sends a stream of messages, else 0. */
TORC_JSON_API int torc_schema_method_client_streams(const torc_schema_method *method);

/* Returns 1 if the server sends a stream of messages, else 0. */
TORC_JSON_API int torc_schema_method_server_streams(const torc_schema_method *method);

/* --- text for people --- */

/* Returns what a name stands for as text of a .proto file: a message, an enum, a service, a method, a field, a oneof, a
 * value of an enum ("shop.Colour.RED", with the enum's name), an extension, or a file ("shop/orders.proto"). If a file
 * and a type have the same name, a name that ends in ".proto" means the file. References to types have full names.
 * Comments, custom options, and options that do not concern the types (java_package) are left out. The caller frees the
 * text with torc_free. NULL with an error: TORC_EINVAL, TORC_ENOTFOUND, TORC_ESTATE (not linked). */
TORC_JSON_API char *torc_schema_describe(const torc_schema *schema, const char *name, torc_error **error);

/* Returns JSON of a message with all its fields but extensions, to be filled in: 0, "" and the like, one element of
 * each list and map, the first field of each oneof. The text is indented by two spaces. torc_json_to_bytes takes it,
 * unless a message in it lacks a required field or is a message set. A message is {} within a message of its own type,
 * more than 32 deep, behind the first 64 KiB, and if it is a message set of proto2; fields behind the first MiB are
 * left out. `message` must not be NULL. The caller frees the text with torc_free; never NULL. */
TORC_JSON_API char *torc_schema_template(const torc_schema_message *message);

/* --- conversion --- */

/* How to convert. Zeros, and NULL for the whole struct, are the defaults. */
struct torc_json_options {
    uint64_t size;         /* TORC_SIZE(torc_json_options) */
    int32_t emit_defaults; /* writing: TORC_ON also writes default values of fields without presence, [] and {} */
    int32_t allow_unknown; /* reading: TORC_ON passes over unknown fields and unknown values of enums: names, and
                              numbers that a closed enum does not have */
    int32_t proto_names;   /* writing: TORC_ON writes the names of the .proto file, not those in lowerCamelCase */
    int32_t enum_numbers;  /* writing: TORC_ON writes enum values as numbers */
    int32_t unknown_any;   /* both ways: TORC_ON: an Any whose type the schema does not have is {"@type": URL, "@value":
                              BASE64}; else such an Any is an error */
    int32_t allow_partial; /* reading: TORC_ON does not ask for required fields */
    int64_t indent;        /* writing: spaces for each level, 1 to 16; 0: all in one line without spaces */
    int64_t max_depth;     /* of messages within one another; an entry of a map and an Any count as one each; 0: 100;
                              1 to 100 */
    int64_t max_bytes;     /* of the input, and of the output; 0: 64 MiB; 1 to 2 GiB less one byte */
};

/* Reads one JSON value as a message of the type and stores its wire format in *bytes, which the caller frees with
 * torc_free (an empty message has *size 0 and bytes that must be freed as well). Fields are in the order of the text.
 * The types of Any and extensions are looked up in the schema. text: UTF-8, need not end in a NUL.
 *
 * Returns 0; or an error, and *bytes and *size are untouched: TORC_EINVAL (NULL, an option out of range), TORC_ESTATE
 * (not linked), TORC_EPARSE (not JSON, or not of the type: the text has line, column and field, as in "line 3, column
 * 14: field items[2].price: must be a number"), TORC_ENOTFOUND (an Any of unknown type), TORC_EUNSUPPORTED (a message
 * set of proto2, options of a newer version), TORC_ELIMIT (too deep or too large). Takes memory of up to 20 times
 * `text_size`, and 2 MiB, besides up to three times the bytes. */
TORC_JSON_API int torc_json_to_bytes(const torc_schema *schema, const torc_schema_message *type, const char *text,
                                     size_t text_size, const struct torc_json_options *options, void **bytes,
                                     size_t *size, torc_error **error);

/* Writes a message in wire format as JSON. Stores the text in *text, which ends in a NUL and which the caller frees
 * with torc_free, and its length in *text_size unless that is NULL. Fields are in the order of their numbers, maps in
 * the order of their keys: equal messages have equal texts. Unknown fields are left out.
 *
 * Returns 0; or an error, and the outputs are untouched: TORC_EINVAL, TORC_ESTATE, TORC_ENOTFOUND, TORC_EUNSUPPORTED
 * and TORC_ELIMIT as for torc_json_to_bytes; TORC_EPARSE: the bytes cannot be read, or have no JSON form (text that is
 * not UTF-8, a Timestamp out of range, NaN in a google.protobuf.Value, a path of a google.protobuf.FieldMask with a
 * comma). The text of the error names the field. Takes memory of up to 40 times `size`, and 64 KiB, besides up to three
 * times the text; the worst are bytes with nothing but fields of two bytes, out of order. */
TORC_JSON_API int torc_json_from_bytes(const torc_schema *schema, const torc_schema_message *type, const void *bytes,
                                       size_t size, const struct torc_json_options *options, char **text,
                                       size_t *text_size, torc_error **error);

/* Finds where the first JSON value of a text ends, for texts with one message after another: stores in *used the number
 * of its bytes, with the white space before it. Does not check the value: text that cannot be a value counts as a value
 * too, and torc_json_to_bytes refuses it. A comma, a colon or a closing bracket where a value should begin counts as a
 * value of one byte. Returns 0; or an error, and *used is untouched: TORC_EAGAIN (the text ends before the value does,
 * or in a number or a word that may go on: after the last text the caller appends a line end and calls again),
 * TORC_ENOTFOUND (the text is only white space), TORC_EINVAL (NULL). Each call reads the text from its beginning. */
TORC_JSON_API int torc_json_split(const char *text, size_t size, size_t *used);

#ifdef __cplusplus
}
#endif
#endif
