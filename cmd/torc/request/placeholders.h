/* Texts with numbers that each RPC fills in: {i}, and for load {uuid}, {int:A:B} and {str:N}. */
#ifndef TORC_PLACEHOLDERS_H
#define TORC_PLACEHOLDERS_H

#include "base/buf.h"
#include "base/random.h"
#include "base/vec.h"

enum placeholder_kind {
    PLACEHOLDER_TEXT,   /* no placeholder: the text itself */
    PLACEHOLDER_NUMBER, /* {i}: the RPC's number from 0 */
    PLACEHOLDER_UUID,   /* {uuid}: of version 4 */
    PLACEHOLDER_INT,    /* {int:A:B}: from A to B, both included */
    PLACEHOLDER_STR,    /* {str:N}: N letters and digits */
};

struct placeholder {
    enum placeholder_kind kind;
    struct tc_slice text; /* borrowed */
    int64_t low;          /* A; of {str:N}: N */
    uint64_t span;        /* B - A */
};

struct placeholders {
    TC_VEC(struct placeholder) parts;
    bool any; /* the text differs from RPC to RPC */
};

/* Reads a text, which is borrowed. `all` false: {i} alone is a placeholder. True: a name in braces, such as {int:1:6},
 * must be one of the four, else the error names `option`. Returns 0 or CLI_USAGE. */
int placeholders_parse(const char *command, const char *option, struct tc_slice text, bool all,
                       struct placeholders *out);
/* Appends the text of RPC `i`. `rng` may be NULL if {i} is the only placeholder. */
void placeholders_append(const struct placeholders *p, uint64_t i, struct tc_rng *rng, struct tc_buf *out);
void placeholders_fini(struct placeholders *p);

#endif
