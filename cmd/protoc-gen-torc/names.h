/* Names in C, as protoc-gen-c makes them out of names in a .proto. */
#ifndef PGT_NAMES_H
#define PGT_NAMES_H

#include "base/arena.h"
#include "base/buf.h"

/* Returns true if `s` is a C identifier. */
bool pgt_is_identifier(struct tc_slice s);
/* Returns true if `s` is one or more identifiers with dots between them. */
bool pgt_is_full_name(struct tc_slice s);
/* Returns true if `s` may stand in an #include and in a comment: it is not empty and has no double quote, backslash or
 * control character, no begin or end of a comment, and no two question marks in a row (trigraphs begin with them). */
bool pgt_is_file_name(struct tc_slice s);

/* Returns true if `lower` cannot be the name of a member although protobuf-c does not rename it: a macro ("linux",
 * "errno"), a keyword of C or C++ that protobuf-c does not know, or the type of other members. */
bool pgt_is_taken_member(const char *lower);

/* A set of names in C, each with its owner: a text of the caller, not NULL. A null pointer is an empty set. */
struct pgt_name;
/* Adds a name and returns NULL; or returns the owner of the name if the set has it already. The name is copied into the
 * arena; the owner is borrowed. */
const char *pgt_name_take(struct pgt_name **names, struct tc_arena *arena, const char *name, const char *owner);
/* Empties the set. Called before the arena is freed. */
void pgt_names_clear(struct pgt_name **names);

/* Appends a method's name as a member of the struct of handlers: "say_hello" for "SayHello", and with a '_' behind it
 * for "size", keywords of C and C++ and words of pgt_is_taken_member. */
void pgt_member(struct tc_buf *out, struct tc_slice name);
/* Appends "barbaz" for the field "barBaz". NULL appends nothing. */
void pgt_field_lower(struct tc_buf *out, const char *name);
/* Appends the field's name as protobuf-c names the member: "barbaz", or "class_" for the keyword "class". NULL appends
 * nothing. */
void pgt_field_member(struct tc_buf *out, const char *name);
/* Appends "foo__bar_baz" for "foo.BarBaz". */
void pgt_lower(struct tc_buf *out, struct tc_slice full_name);
/* Appends "Foo__BarBaz" for "foo.BarBaz". */
void pgt_camel(struct tc_buf *out, struct tc_slice full_name);
/* Appends "a__b_proto" for "a/b.proto", or "A__B_PROTO" if `upper`: '/' becomes "__", other bytes than letters and
 * digits become '_'. */
void pgt_path(struct tc_buf *out, struct tc_slice path, bool upper);
/* Returns "a/b" for "a/b.proto" and "a/b.protodevel", and any other path whole. Borrowed from `path`. */
struct tc_slice pgt_stem(const char *path);

#endif
