/* Names in C, as protoc-gen-c makes them out of names in a .proto. */
#ifndef PGT_NAMES_H
#define PGT_NAMES_H

#include "base/buf.h"

/* Returns true if `s` is a C identifier. */
bool pgt_is_identifier(struct tc_slice s);
/* Returns true if `s` is identifiers with dots between them. */
bool pgt_is_full_name(struct tc_slice s);
/* Returns true if `s` may stand in an #include and in a comment: no quote, backslash or control character, no end of
 * the comment. */
bool pgt_is_file_name(struct tc_slice s);

/* Appends a method's name as a member of the struct of handlers: in lower case, with a '_' behind a word of C or C++
 * and behind "size". */
void pgt_member(struct tc_buf *out, struct tc_slice name);
/* Appends "foo__bar_baz" for "foo.BarBaz". */
void pgt_lower(struct tc_buf *out, struct tc_slice full_name);
/* Appends "Foo__BarBaz" for "foo.BarBaz". */
void pgt_camel(struct tc_buf *out, struct tc_slice full_name);
/* Appends "a__b_proto" for "a/b.proto", and for other bytes than letters and digits '_'. */
void pgt_path(struct tc_buf *out, struct tc_slice path, bool upper);
/* "a/b" of "a/b.proto". */
struct tc_slice pgt_stem(const char *path);

#endif
