/* The fields of a message in wire format, in the order of their numbers. For one thread at a time. */
#ifndef TC_JSON_GATHER_H
#define TC_JSON_GATHER_H

#include "base/vec.h"
#include "json/item.h"
#include "json/model.h"

/* A run: items of one field that follow one another in the message. A run of a field that is not repeated has one
 * item. */
struct tc_entry {
    const struct tc_schema_field *field;
    const char *data; /* the first tag */
    size_t len;       /* to the end of the last item */
};

/* The content of a message: `bytes`; or `n` entries of the field that has the message, since a sender may send a
 * message in pieces. All entries lie in one buffer, in order: their places are compared by address. */
struct tc_content {
    struct tc_slice bytes;
    const struct tc_entry *pieces; /* NULL: `bytes` */
    size_t n;
};

/* All zero is empty. Freed by tc_gathered_fini. The entries point into the content, which is not copied. */
struct tc_gathered {
    TC_VEC(struct tc_entry) entries; /* by field; those of one field in the order of the message */
};

/* Stores the known fields of a message in *out, which is empty. Left out are
 *
 *   - items whose wire type is neither that of their field nor, for a repeated field that is not a group, that of a
 *     packed list;
 *   - members of a oneof that a later member replaced;
 *   - values that a closed enum does not have, except in a repeated field, where the caller must look for them.
 *
 * Returns false if the bytes cannot be read; *out must be freed then, too. */
bool tc_gather(const torc_schema_message *type, const struct tc_content *content, struct tc_gathered *out);
void tc_gathered_fini(struct tc_gathered *g);

/* Returns the item of an entry whose field is not repeated. */
struct tc_item tc_entry_item(const struct tc_entry *e);

#endif
