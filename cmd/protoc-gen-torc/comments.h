/* The comments of a .proto as comments in C. */
#ifndef PGT_COMMENTS_H
#define PGT_COMMENTS_H

#include "schema.h"

/* Returns the comment before the element at `path` (field numbers and indexes, as in SourceCodeInfo), or else the
 * comment after the element; NULL if there is neither. Borrowed from the file. */
const char *pgt_comment_of(const pgt_file *file, const int32_t *path, size_t n);

/* Appends the text as lines that begin with " *", changed so that it is harmless within a comment (comments.c). The
 * caller begins and ends the comment. */
void pgt_comment_write(struct tc_buf *out, const char *text);

#endif
