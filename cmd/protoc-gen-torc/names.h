/* Names in C, as protoc-gen-c makes them out of names in a .proto. */
#ifndef PGT_NAMES_H
#define PGT_NAMES_H

#include "base/arena.h"
#include "base/buf.h"

/* Returns true if `s` is a C identifier. */
bool pgt_is_identifier(struct tc_slice s);
/* Returns true if `s` is identifiers with dots between them. */
bool pgt_is_full_name(struct tc_slice s);
/* Returns true if `s` may stand in an #include and in a comment: no quote, backslash or control character, no begin or
 * end of a comment, no trigraph. */
bool pgt_is_file_name(struct tc_slice s);

/* Returns true if `lower` cannot be the name of a member, and protobuf-c does not rename it: a macro ("linux",
 * "errno"), a newer word of C or C++, or the type of other members. */
bool pgt_is_taken_member(const char *lower);

/* A set of names in C, each with its owner; NULL is the empty set. */
struct pgt_name;
/* Adds a name, which is copied into the arena; the owner is borrowed. Returns NULL. If the name is taken already, adds
 * nothing and returns its owner. */
const char *pgt_name_take(struct pgt_name **names, struct tc_arena *arena, const char *name, const char *owner);
/* Empties the set; its memory stays in the arena. */
void pgt_names_clear(struct pgt_name **names);

/* Appends a method's name as a member of the struct of handlers: in lower case, with a '_' behind a word or macro of C
 * or C++ and behind "size". */
void pgt_member(struct tc_buf *out, struct tc_slice name);
/* Appends "barbaz", protobuf-c's member for the field "barBaz". NULL appends nothing. */
void pgt_field_lower(struct tc_buf *out, const char *name);
/* Appends "foo__bar_baz" for "foo.BarBaz". */
void pgt_lower(struct tc_buf *out, struct tc_slice full_name);
/* Appends "Foo__BarBaz" for "foo.BarBaz". */
void pgt_camel(struct tc_buf *out, struct tc_slice full_name);
/* Appends "a__b_proto" for "a/b.proto": '/' becomes "__", other bytes than letters and digits become '_'. `upper`: in
 * capitals. */
void pgt_path(struct tc_buf *out, struct tc_slice path, bool upper);
/* Returns "a/b" for "a/b.proto" and "a/b.protodevel"; a path with another end as it is. Borrowed. */
struct tc_slice pgt_stem(const char *path);

#endif
