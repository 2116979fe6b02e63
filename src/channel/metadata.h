/* The public metadata object, and how it is made from header lists. */
#ifndef TC_CHANNEL_METADATA_H
#define TC_CHANNEL_METADATA_H

#include <torc/metadata.h>

#include "base/headers.h"

struct tc_metadata_field {
    char *name;
    char *value; /* NUL-terminated */
    size_t name_len, value_len;
};

struct torc_metadata {
    struct tc_metadata_field *fields;
    size_t len, cap;
    bool flat; /* one allocation, never added to: a copy of received fields */
};

/* A copy in one allocation; NULL stays NULL. Ends with torc_metadata_free. */
torc_metadata *tc_metadata_copy(const struct tc_headers *headers);
/* The same in an arena; not to be freed. NULL also when the arena's budget ends. */
torc_metadata *tc_metadata_in_arena(struct tc_arena *arena, const struct tc_headers *headers);
/* Adds copies of all fields, in the list's arena. */
int tc_metadata_to_headers(const torc_metadata *m, struct tc_headers *out);
/* True for names that gRPC keeps to itself. */
bool tc_metadata_name_reserved(struct tc_slice name);

#endif
