/* The command line, channel and schema that torc list and torc describe share. Functions that return an int return 0 or
 * an exit status, with the error printed. One thread: a function that asks the server blocks, and drives the runtime
 * meanwhile. */
#ifndef TORC_INSPECT_H
#define TORC_INSPECT_H

#include "connect.h"
#include "headers.h"
#include "schema/schema.h"

struct inspect {
    const char *name; /* of the subcommand */
    struct connect_args connect;
    struct headers_args headers;
    struct schema_args from;
    uint64_t deadline_ms; /* for all questions to the server; 0: no limit */
    bool wait_for_ready, json, template;
    const char *symbol; /* or service; borrowed from argv; NULL: not given */

    torc_runtime *runtime;   /* NULL: no server is asked */
    torc_channel **channels; /* an array of one; NULL: no server is asked */
    torc_metadata *metadata; /* of reflection's RPCs; NULL: none */
    struct schema schema;
};

enum { INSPECT_DEADLINE = 256, INSPECT_WAIT, INSPECT_TEMPLATE };

/* Entries of a getopt_long table. */

/* clang-format off */
#define INSPECT_OPTIONS \
    {"deadline", required_argument, NULL, INSPECT_DEADLINE}, \
    {"wait-for-ready", no_argument, NULL, INSPECT_WAIT}, \
    {"output", required_argument, NULL, 'o'}, \
    {"verbose", no_argument, NULL, 'v'}, \
    {"help", no_argument, NULL, 'h'}
/* clang-format on */

#define INSPECT_HELP                                                                                                   \
    "      --deadline T           for all questions to the server (10s; 0: no limit)\n"                                \
    "      --wait-for-ready       wait through failures of connections\n"                                              \
    "  -o text|json               form of the output (text)\n"                                                         \
    "  -v, -vv                    log to standard error\n"

/* Sets all of *a: reads the command line and the files of --protoset and --proto, and makes a channel to TARGET, if
 * there is one. Returns -1 if --help was printed. Whatever is returned, call inspect_close. */
int inspect_open(struct inspect *a, const char *name, int argc, char **argv, const struct option *options,
                 const char *help);
/* Does schema_need, but prints the error for SCHEMA_ABSENT and SCHEMA_NO_REFLECTION too, and returns CLI_FAILED for
 * both. */
int inspect_need(struct inspect *a, const char *symbol);
/* inspect_need for a symbol that may be a method, a field or an enum's value. Some servers' reflection does not find
 * these. If the symbol is not found, looks for the service or type before its last dot, and returns 0 if that is
 * found. */
int inspect_need_member(struct inspect *a, const char *symbol);
/* If `rc` is 0, does schema_write and returns its result; else returns `rc`. */
int inspect_end(struct inspect *a, int rc);
/* Frees all that *a holds, but not *a. */
void inspect_close(struct inspect *a);

/* Prints a text and a line end, and frees the text. */
void inspect_put(struct tc_buf *line);

#endif
