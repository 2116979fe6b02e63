/* Options of the subcommands that know the types of messages: where the types come from, and where to write them.
 * Main thread only. */
#ifndef TORC_SCHEMA_OPTIONS_H
#define TORC_SCHEMA_OPTIONS_H

#include "base/vec.h"

/* Zero-initialised: no option was given. The lists are owned; all strings are borrowed from the command line. */
struct schema_args {
    TC_VEC(const char *) protosets, protos, import_paths;
    bool reflect;
    const char *protoset_out, *proto_out_dir; /* NULL: not given */
};

enum {
    SCHEMA_PROTOSET = 680,
    SCHEMA_PROTO,
    SCHEMA_IMPORT_PATH,
    SCHEMA_REFLECT,
    SCHEMA_PROTOSET_OUT,
    SCHEMA_PROTO_OUT_DIR,
};

/* Entries of a getopt_long table. */

/* clang-format off */
#define SCHEMA_OPTIONS \
    {"protoset", required_argument, NULL, SCHEMA_PROTOSET}, \
    {"proto", required_argument, NULL, SCHEMA_PROTO}, \
    {"import-path", required_argument, NULL, SCHEMA_IMPORT_PATH}, \
    {"reflect", no_argument, NULL, SCHEMA_REFLECT}, \
    {"protoset-out", required_argument, NULL, SCHEMA_PROTOSET_OUT}, \
    {"proto-out-dir", required_argument, NULL, SCHEMA_PROTO_OUT_DIR}
/* clang-format on */

#define SCHEMA_HELP                                                                                                    \
    "      --protoset FILE        types of messages: what protoc --include_imports --descriptor_set_out wrote\n"       \
    "      --proto FILE           types of messages: a .proto file, read by protoc, which must be installed\n"         \
    "      --import-path FOLDER   where --proto and its imports are looked for, repeatable (the present folder)\n"     \
    "      --reflect              types of messages: asks the server (grpc.reflection.v1, else v1alpha)\n"             \
    "      --protoset-out FILE    writes the types that were found, as --protoset reads them\n"                        \
    "      --proto-out-dir FOLDER writes the types that were found, as .proto files\n"

/* Takes an option with a code of SCHEMA_OPTIONS; returns false for any other code. The value is borrowed until
 * schema_args_fini. */
bool schema_option(struct schema_args *a, int code, const char *value);
/* Checks that no path is empty, and that the options agree. Returns 0, or CLI_USAGE with the error printed. */
int schema_args_check(const char *command, const struct schema_args *a);
/* Returns true if --protoset or --proto is given. Without --reflect no server is asked then. */
bool schema_args_offline(const struct schema_args *a);
/* Frees the lists, not the strings. */
void schema_args_fini(struct schema_args *a);

#endif
