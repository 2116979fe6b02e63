/* The public metadata object, and its copies from and to header lists. Any thread; while one thread adds to an object
 * or frees it, no other thread uses it. */
#ifndef TC_API_METADATA_H
#define TC_API_METADATA_H

#include <torc/metadata.h>

#include "base/blocks.h"
#include "base/headers.h"

/* A field. Its texts are NUL-terminated, and their lengths are without the NUL. */
struct tc_metadata_field {
    char *name;  /* a block of the object's, which also has the value; in a flat copy, a part of the copy */
    char *value; /* behind the name in its block; may have a NUL inside if the name ends in "-bin" */
    size_t name_len, value_len;
};

struct torc_metadata {
    struct tc_metadata_field *fields; /* an array of the object's; in a flat copy, a part of the copy */
    size_t len, cap;
    bool flat; /* lies in the memory of another owner: torc_metadata_add refuses it, torc_metadata_free ignores it */
};

/* Takes a block from `blocks`, on the thread of `blocks`, and returns it. Its first `front` bytes (a multiple of the
 * alignment of pointers) are the caller's to fill in. Copies of both lists lie behind them and live until the caller
 * gives the block back (tc_blocks_give). The copy of NULL is NULL; the copy of an empty list is static. Returns NULL,
 * and stores nothing, if there is no memory. */
void *tc_metadata_copy_behind(struct tc_blocks *blocks, size_t front, const struct tc_headers *headers,
                              const struct tc_headers *trailers, const torc_metadata **headers_copy,
                              const torc_metadata **trailers_copy);
/* Copies a list into an arena, which frees the copy. Returns NULL for NULL, and when the arena's budget is exceeded. */
torc_metadata *tc_metadata_in_arena(struct tc_arena *arena, const struct tc_headers *headers);
/* Adds copies of all fields of `m` (NULL: none) to a list, in the list's arena. Returns 0, or TORC_ELIMIT if the
 * arena's budget is exceeded. */
int tc_metadata_to_headers(const torc_metadata *m, struct tc_headers *out);

#endif
