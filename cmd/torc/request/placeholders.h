/* Texts with placeholders that are filled in for each RPC: {i}, and in torc bench also {uuid}, {int:A:B}, {str:N}. torc
 * bootstrap fills in a {uuid} once, for the node id. */
#ifndef TORC_PLACEHOLDERS_H
#define TORC_PLACEHOLDERS_H

#include "base/buf.h"
#include "base/random.h"
#include "base/vec.h"

enum placeholder_kind {
    PLACEHOLDER_TEXT,   /* text between placeholders */
    PLACEHOLDER_NUMBER, /* {i}: the RPC's number, counted from 0 */
    PLACEHOLDER_UUID,   /* {uuid}: a random UUID (version 4) */
    PLACEHOLDER_INT,    /* {int:A:B}: a random integer from A to B, both included */
    PLACEHOLDER_STR,    /* {str:N}: N random letters and digits; N is 1 to 65536 */
};

struct placeholder {
    enum placeholder_kind kind;
    struct tc_slice text; /* of PLACEHOLDER_TEXT; borrowed from the text that was parsed */
    int64_t low;          /* A of {int:A:B}, or N of {str:N} */
    uint64_t span;        /* B - A of {int:A:B} */
};

struct placeholders {
    TC_VEC(struct placeholder) parts;
    bool any; /* the text has a placeholder */
};

/* Appends the parts of a text to *out. The caller zeroes *out before, and calls placeholders_fini also after a failure.
 * The text is borrowed until then. `all` false: only {i} is a placeholder, and nothing is an error. `all` true: all
 * four are placeholders; text that only looks like a placeholder, and a template of ghz, are errors. Returns 0, or
 * CLI_USAGE with the error printed, which names `option`. */
int placeholders_parse(const char *command, const char *option, struct tc_slice text, bool all,
                       struct placeholders *out);
/* Appends the text of RPC `i`, counted from 0. `rng` may be NULL if the text was parsed with `all` false. */
void placeholders_append(const struct placeholders *p, uint64_t i, struct tc_rng *rng, struct tc_buf *out);
void placeholders_fini(struct placeholders *p);

#endif
