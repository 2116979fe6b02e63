/* The public metadata object, and how it is made from header lists. */
#ifndef TC_CHANNEL_METADATA_H
#define TC_CHANNEL_METADATA_H

#include <torc/metadata.h>

#include "base/blocks.h"
#include "base/headers.h"

struct tc_metadata_field {
    char *name;
    char *value; /* NUL-terminated */
    size_t name_len, value_len;
};

struct torc_metadata {
    struct tc_metadata_field *fields;
    size_t len, cap;
    bool flat;   /* in one block of base/blocks.h, never added to: a copy of received fields */
    bool inside; /* of another's block, or of nobody's: torc_metadata_free leaves it alone */
};

/* Copies of two lists in one block, which torc_metadata_free of both gives back; none when there are no fields. NULL
 * stays NULL. */
void tc_metadata_copy_pair(struct tc_blocks *blocks, const struct tc_headers *headers,
                           const struct tc_headers *trailers, torc_metadata **headers_copy,
                           torc_metadata **trailers_copy);
/* The same in an arena; not to be freed. NULL also when the arena's budget ends. */
torc_metadata *tc_metadata_in_arena(struct tc_arena *arena, const struct tc_headers *headers);
/* Adds copies of all fields, in the list's arena. */
int tc_metadata_to_headers(const torc_metadata *m, struct tc_headers *out);
/* True for names that gRPC keeps to itself. */
bool tc_metadata_name_reserved(struct tc_slice name);

#endif
