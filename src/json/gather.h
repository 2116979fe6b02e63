/* The fields of a message in wire format, in the order of their numbers. For one thread at a time. */
#ifndef TC_JSON_GATHER_H
#define TC_JSON_GATHER_H

#include "base/vec.h"
#include "json/item.h"
#include "json/model.h"

/* A run of items of one field, one behind the other in the message. A run of a field that is not repeated is one
 * item. */
struct tc_entry {
    const struct tc_schema_field *field;
    const char *data; /* the first tag */
    size_t len;       /* to the end of the last item */
};

/* The content of a message: `bytes`, or the items of `n` entries of its field together, since a sender may send a
 * message in pieces. All lie in one buffer, in order: places in the message are compared by address. */
struct tc_content {
    struct tc_slice bytes;
    const struct tc_entry *pieces; /* NULL: `bytes` */
    size_t n;
};

/* All zero is empty. Ended by tc_gathered_fini. The data of all entries is that of the content, which is not copied. */
struct tc_gathered {
    TC_VEC(struct tc_entry) entries; /* by field; those of one field in the order of the message */
};

/* Takes the known fields of a message into *out, which is empty. Left out are items whose wire type is neither that of
 * their field nor that of a packed list of a repeated field, members of a oneof that a later member replaces, and
 * values that a closed enum does not have, unless the field is repeated: those stay for the caller. Returns false if
 * the bytes cannot be read; *out must then be ended, too. */
bool tc_gather(const torc_schema_message *type, const struct tc_content *content, struct tc_gathered *out);
void tc_gathered_fini(struct tc_gathered *g);

/* Returns the item of an entry of a field that is not repeated. */
struct tc_item tc_entry_item(const struct tc_entry *e);

#endif
