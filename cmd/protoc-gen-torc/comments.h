/* The comments of a .proto as comments in C. */
#ifndef PGT_COMMENTS_H
#define PGT_COMMENTS_H

#include "schema.h"

/* Returns the comment before the element at `path` (numbers of fields and indices, as SourceCodeInfo has them), or else
 * the comment behind it; NULL if there is none. Borrowed from the file. */
const char *pgt_comment_of(const pgt_file *file, const int32_t *path, size_t n);

/* Appends the text as lines that begin with " *", without what would end the comment, and without characters that no
 * reader sees. */
void pgt_comment_write(struct tc_buf *out, const char *text);

#endif
