/* torc list and torc describe: the command line that both have, and the types that it leads to. */
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
    uint64_t deadline_ms; /* for all questions to the server; 0: none */
    bool wait_for_ready, json, template;
    const char *symbol; /* NULL: not given */

    torc_runtime *runtime;
    torc_channel **channels;
    torc_metadata *metadata;
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

/* Reads the command line and files, and makes the channel. Returns 0 to go on; otherwise the exit status, with the
 * error printed; -1 if --help was printed. Call inspect_close in any case. */
int inspect_open(struct inspect *a, const char *name, int argc, char **argv, const struct option *options,
                 const char *help);
/* schema_need that prints why a symbol is not there. Returns 0 or an exit status. */
int inspect_need(struct inspect *a, const char *symbol);
/* inspect_need of a symbol that may be a method, a field or a value. Some reflection (grpcio's in Python) knows none of
 * these: if nobody has the symbol, the type or service in front of its last dot is looked for. */
int inspect_need_member(struct inspect *a, const char *symbol);
/* Returns rc; if that is 0, writes the files as the options say and returns the exit status of that. */
int inspect_end(struct inspect *a, int rc);
void inspect_close(struct inspect *a);

/* Prints a text with a line end, and frees it. */
void inspect_put(struct tc_buf *line);

#endif
