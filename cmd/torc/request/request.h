/* The requests of the subcommands that send RPCs (call, bench). options.c reads the command line, types.c finds the
 * types of messages and makes bytes of JSON, values.c divides a text into requests, placeholders.c fills in numbers.
 * One thread. Functions that return an int return 0 or an exit status, with the error printed. */
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
    REQUEST_LINES, /* -d @FILE of torc bench: several requests, one a line where they are bytes */
};

struct request_args {
    struct headers_args headers;
    struct schema_args from;
    struct tc_buf data; /* the request as given; with REQUEST_STDIN empty */
    enum request_kind kind;
    const char *source; /* the file that `data` comes from, in words; NULL: the command line */
    bool lines;         /* set by the subcommand: -d @FILE is a file */
    bool raw, format, text, emit_defaults, allow_unknown;
};

enum {
    REQUEST_DATA_HEX = 720,
    REQUEST_DATA_FILE,
    REQUEST_RAW,
    REQUEST_FORMAT,
    REQUEST_EMIT_DEFAULTS,
    REQUEST_ALLOW_UNKNOWN,
    REQUEST_END,
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

/* Takes an option of REQUEST_OPTIONS, SCHEMA_OPTIONS or HEADERS_OPTIONS; -1: `code` is none of them. */
int request_option(const char *command, struct request_args *a, int code, const char *value);
/* Checks that the options agree, and reads the headers. */
int request_settle(const char *command, struct request_args *a);
void request_args_fini(struct request_args *a);
/* Returns true if an option asks for types (--protoset, --reflect, --format, ...): a server without them is an error
 * then. */
bool request_typed(const struct request_args *a);
/* Returns true if types are looked for: request_typed, or without --raw, if the request begins with { or comes from
 * standard input (-d @). */
bool request_want_types(const struct request_args *a);
/* Returns true if the data is JSON or --format text. `method` NULL: nobody has types. */
bool request_is_typed_data(const struct request_args *a, const torc_schema_method *method);

/* --- types.c --- */

struct request_types {
    /* Set by the subcommand. */
    const char *command;
    const struct request_args *args;
    const char *path;    /* "package.Service/Method" */
    bool one_line;       /* JSON without line ends */
    int64_t timeout_ms;  /* of reflection; 0: 10 s; -1: it is over already */
    bool wait_for_ready; /* of reflection */

    struct schema schema, details;    /* details: google.rpc, made when first needed */
    const torc_schema_method *method; /* NULL: messages are bytes */
    TC_VEC(char *) absent;            /* types that the server was asked for and does not have */
    struct tc_buf set;                /* the types, as protoc reads them */
    torc_metadata *metadata;          /* of reflection's RPCs */
    uint64_t us;                      /* the time that request_find_method took */
    double cpu_seconds;               /* and its CPU time */
};

/* Finds the method, in files or by reflection on this channel. t->method stays NULL, without an error, if no types are
 * looked for, or if the command line does not ask for types by name and the server has no reflection. */
int request_find_method(struct request_types *t, torc_channel *channel);
/* Returns a message as JSON, or as --format text, for torc_free; NULL with the reason in *why. */
char *request_show(struct request_types *t, const torc_schema_message *type, const torc_message *message,
                   struct tc_buf *why);
/* Returns the details of a status as a JSON array, for tc_free; NULL if there are none. */
char *request_details(struct request_types *t, const torc_result *result);
/* Called in on_message with response n of an RPC, counted from 1. If the method has one response and this is a second
 * one, ends the RPC with INTERNAL and returns false. */
bool request_take_response(const struct request_types *t, torc_stream *stream, uint64_t n);
/* The place of a text in the whole input: how many lines are before it, and how many characters of its own line. */
struct request_place {
    size_t lines, characters;
};

/* Reads one JSON value, or a message of --format text, as a request. `at` is for the error, which has the line and
 * column of the whole text. */
int request_read(struct request_types *t, struct tc_slice text, struct request_place at, struct tc_buf *out);
void request_types_fini(struct request_types *t);

/* --- values.c --- */

/* Finds the first value (JSON, or --format text) of a text, *used bytes of it. Returns 0, TORC_EAGAIN when the text
 * ends before the value does, or TORC_ENOTFOUND when there is none. `at_end`: no further text comes, and the rest is a
 * value. */
int request_next_value(const struct request_args *a, struct tc_slice text, bool at_end, size_t *used,
                       struct tc_slice *value);
/* Moves a place behind a text. */
void request_pass(struct request_place *at, struct tc_slice text);

#endif
