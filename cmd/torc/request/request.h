/* The requests of the subcommands that send RPCs (call, bench). options.c reads the command line, types.c finds the
 * types of messages and converts messages, values.c divides a text into requests, placeholders.c fills in
 * placeholders. One thread. Functions that return an int return 0 or an exit status, with the error printed, unless
 * they say otherwise. */
#ifndef TORC_REQUEST_H
#define TORC_REQUEST_H

#include <getopt.h>

#include "base/vec.h"
#include "connect.h"
#include "headers.h"
#include "schema/schema.h"

/* Where the request comes from. */
enum request_kind {
    REQUEST_NONE,
    REQUEST_TEXT,  /* -d, --data-file */
    REQUEST_HEX,   /* --data-hex: never JSON */
    REQUEST_STDIN, /* -d @ */
    REQUEST_LINES, /* -d @FILE of torc bench: several requests; without types, one a line */
};

struct request_args {
    struct headers_args headers;
    struct schema_args from;
    struct tc_buf data; /* the text of -d, the content of a file, or decoded hexadecimal; of REQUEST_STDIN, after
                           request_settle, empty until the subcommand reads standard input into it */
    enum request_kind kind;
    const char *source; /* the file that `data` comes from, for errors; borrowed; NULL: the command line */
    bool lines;         /* set by the subcommand: -d @FILE reads a file */
    /* The options of these names. `format`: --format is given. `text`: with the value text. */
    bool raw, format, text, emit_defaults, allow_unknown;
};

enum {
    REQUEST_DATA_HEX = 720,
    REQUEST_DATA_FILE,
    REQUEST_RAW,
    REQUEST_FORMAT,
    REQUEST_EMIT_DEFAULTS,
    REQUEST_ALLOW_UNKNOWN,
};

/* Entries of a getopt_long table; the short option is 'd'. */

/* clang-format off */
#define REQUEST_OPTIONS \
    {"data", required_argument, NULL, 'd'}, \
    {"data-hex", required_argument, NULL, REQUEST_DATA_HEX}, \
    {"data-file", required_argument, NULL, REQUEST_DATA_FILE}, \
    {"raw", no_argument, NULL, REQUEST_RAW}, \
    {"format", required_argument, NULL, REQUEST_FORMAT}, \
    {"allow-unknown-fields", no_argument, NULL, REQUEST_ALLOW_UNKNOWN}
/* clang-format on */

#define REQUEST_HELP                                                                                                   \
    "      --data-hex HEX         raw bytes in hexadecimal\n"                                                          \
    "      --data-file PATH       what -d takes, from a file (-: standard input)\n"                                    \
    "      --raw                  bytes, whatever they look like\n"                                                    \
    "      --format json|text     messages are JSON, or protobuf's text format, by protoc, which must be installed "   \
    "(the\n"                                                                                                           \
    "                             byte 0x1e between two); asks the server for the types if no file has them\n"         \
    "      --allow-unknown-fields JSON may have fields that the message has not\n"

/* Takes REQUEST_EMIT_DEFAULTS, or an option of REQUEST_OPTIONS, SCHEMA_OPTIONS or HEADERS_OPTIONS, and reads the file
 * that it names for the request. Returns -1 for any other code. The value is borrowed until request_args_fini. */
int request_option(const char *command, struct request_args *a, int code, const char *value);
/* Checks that the options agree, and reads the headers. With --raw, -d @ is the byte '@' from then on. */
int request_settle(const char *command, struct request_args *a);
void request_args_fini(struct request_args *a);
/* Returns true if an option needs types (--protoset, --reflect, --format, ...): then a server without reflection is an
 * error. */
bool request_typed(const struct request_args *a);
/* Returns true if types are looked for: if request_typed is true or, without --raw, if the request comes from standard
 * input (-d @), or begins with '{' and is not that of --data-hex. */
bool request_want_types(const struct request_args *a);
/* Returns true if the data is to be read as JSON or as --format text: not for --raw, --data-hex, and a `method` that is
 * NULL (no types). */
bool request_is_typed_data(const struct request_args *a, const torc_schema_method *method);

/* --- types.c --- */

struct request_types {
    /* Set by the subcommand. */
    const char *command;
    const struct request_args *args;
    const char *path;    /* "package.Service/Method" */
    bool one_line;       /* JSON without line ends */
    int64_t timeout_ms;  /* for all streams of reflection together; 0: 10 s; -1: the deadline has passed */
    bool wait_for_ready; /* of reflection */

    struct schema schema, details;    /* details: the types of google.rpc, made when first needed */
    const torc_schema_method *method; /* NULL: messages are bytes */
    TC_VEC(char *) absent;            /* types that were looked for and not found */
    struct tc_buf set;                /* the FileDescriptorSet of `schema`, for protoc */
    torc_metadata *metadata;          /* of reflection's RPCs */
    uint64_t us;                      /* microseconds that request_find_method took; 0: it looked for no types */
    double cpu_seconds;               /* the CPU time of the process in these microseconds */
};

/* Sets t->method, from files or by reflection on the channel, and does schema_write. t->method stays NULL, without an
 * error, if request_want_types is false, or if request_typed is false and the server has no reflection. Blocks until
 * the server has answered. Borrows the channel: after it was freed, no function that asks the server may be called.
 *
 * Later, request_details and, for JSON, request_show and request_read ask the server for the type of an Any that is not
 * known yet, and block. They must not be called in a callback, unless t->schema.reflect.channel is NULL: then no server
 * is asked. For --format text, request_show and request_read wait for protoc. */
int request_find_method(struct request_types *t, torc_channel *channel);
/* Returns a message as JSON, or as text for --format text, for torc_free. Returns NULL, with the reason appended to
 * *why, if the message cannot be converted. */
char *request_show(struct request_types *t, const torc_schema_message *type, const torc_message *message,
                   struct tc_buf *why);
/* Returns the details of a status as a JSON array, for tc_free; NULL if there are none. */
char *request_details(struct request_types *t, const torc_result *result);
/* Called in on_message with response n of an RPC, counted from 1. For a second response, ends the RPC with INTERNAL and
 * returns false, unless the method is known to stream responses. */
bool request_take_response(const struct request_types *t, torc_stream *stream, uint64_t n);
/* The place of a text in the input: how many lines are before it, and how many characters before it in its line. */
struct request_place {
    size_t lines, characters;
};

/* Converts one JSON value, or a message of --format text, to a request, whose bytes it appends to *out. t->method must
 * not be NULL. `at`: where `text` is in the input; an error names line and column there. */
int request_read(struct request_types *t, struct tc_slice text, struct request_place at, struct tc_buf *out);
void request_types_fini(struct request_types *t);

/* --- values.c --- */

/* Finds the first value (JSON, or --format text) of a text. Stores the value with the white space before it, borrowed
 * from the text, and in *used the number of bytes up to its end, with the separator of --format text. Returns 0,
 * TORC_EAGAIN if the value may go on behind the text, or TORC_ENOTFOUND if there is only white space. `at_end`: nothing
 * follows the text, so that its end also ends the value; TORC_EAGAIN is not returned. */
int request_next_value(const struct request_args *a, struct tc_slice text, bool at_end, size_t *used,
                       struct tc_slice *value);
/* Moves a place past a text. Characters are those of UTF-8. */
void request_pass(struct request_place *at, struct tc_slice text);

#endif
