/* Request metadata from the command line: -H, --rpc-header, --reflect-header. One thread. */
#ifndef TORC_HEADERS_H
#define TORC_HEADERS_H

#include <torc/metadata.h>

#include "base/buf.h"
#include "base/vec.h"
#include "request/placeholders.h"

struct header {
    char *name;                /* in lower case */
    struct tc_buf value;       /* trimmed; of a -bin name, decoded from base64 */
    struct placeholders parts; /* borrow from `value`; empty for a -bin name */
};

struct header_list {
    TC_VEC(struct header) list;
    bool differ; /* a value has a placeholder: each call needs its own metadata */
};

/* An option as it was given. */
struct header_text {
    int code;         /* 'H', HEADERS_RPC or HEADERS_REFLECT */
    const char *text; /* the option's value, borrowed */
};

/* Begins as zero, except for all_placeholders. */
struct headers_args {
    TC_VEC(struct header_text) given;
    bool expand;                     /* --expand-headers */
    bool all_placeholders;           /* set by the subcommand: not only {i} is a placeholder (placeholders_parse) */
    struct header_list rpc, reflect; /* filled by headers_finish */
};

enum { HEADERS_RPC = 640, HEADERS_REFLECT, HEADERS_EXPAND };

/* Entries of a getopt_long table; the short option is 'H'. */

/* clang-format off */
#define HEADERS_OPTIONS \
    {"header", required_argument, NULL, 'H'}, \
    {"rpc-header", required_argument, NULL, HEADERS_RPC}, \
    {"reflect-header", required_argument, NULL, HEADERS_REFLECT}, \
    {"expand-headers", no_argument, NULL, HEADERS_EXPAND}
/* clang-format on */

#define HEADERS_HELP                                                                                                   \
    "  -H, --header 'NAME: VALUE' metadata, repeatable; {i} becomes the call's number; a -bin value is base64\n"       \
    "      --rpc-header, --reflect-header 'NAME: VALUE'   only for the RPC, only for reflection\n"                     \
    "      --expand-headers       ${NAME} in a header becomes the value of that variable of the environment\n"

/* Takes an option with a code of HEADERS_OPTIONS; returns false for any other code. The value is borrowed until
 * headers_finish. */
bool headers_option(struct headers_args *a, int code, const char *value);
/* Fills the lists from the options; -H adds to both. Returns 0, or CLI_USAGE with the error printed. */
int headers_finish(const char *command, struct headers_args *a);
/* Returns the metadata of call `i`, for torc_metadata_free; NULL for an empty list. `rng` may be NULL if the list was
 * filled without all_placeholders. */
torc_metadata *headers_make(const struct header_list *list, uint64_t i, struct tc_rng *rng);
void headers_args_fini(struct headers_args *a);

#endif
