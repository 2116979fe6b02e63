/* The types that a subcommand knows: the .proto files of --protoset and --proto, and those that a server with
 * reflection sends. options.c reads the command line, protoc.c runs protoc, reflect.c asks servers, write.c writes the
 * files that are known. Functions that return an int return 0, or CLI_FAILED with the error printed, unless they say
 * otherwise. One thread. Functions that ask a server block, and must not be called in a callback. */
#ifndef TORC_SCHEMA_H
#define TORC_SCHEMA_H

#include <torc/json.h>

#include "proto/descriptor_index.h"
#include "schema/options.h"
#include "schema/reflect.h"

struct schema {
    const char *command; /* the subcommand's name, for errors; borrowed */
    struct tc_descriptor_index files;
    torc_schema *types;     /* the files that could be linked */
    size_t n_linked;        /* the first n_linked files of `files` are in `types` */
    struct reflect reflect; /* the caller sets its channel to use reflection */
};

/* Makes a schema without files. It asks no server until the caller sets s->reflect. */
void schema_init(struct schema *s, const char *command);
/* Frees all but what the caller lent: `command`, and the channel and metadata of s->reflect. */
void schema_fini(struct schema *s);

/* Reads the files of the options. */
int schema_load(struct schema *s, const struct schema_args *a);
/* Links the files that were added since the last call. On failure they are dropped; files linked before stay. */
int schema_link(struct schema *s);

/* Makes sure that the definition of a full name is linked: looks in the files, then asks the server. Returns 0,
 * SCHEMA_ABSENT if neither has it, SCHEMA_NO_REFLECTION if the server has no reflection, or CLI_FAILED. Prints the
 * error for CLI_FAILED only; for the other two s->reflect.why has it, if a server was asked. */
enum { SCHEMA_ABSENT = 16, SCHEMA_NO_REFLECTION = 17 };
int schema_need(struct schema *s, const char *symbol);
/* Looks for a file by its name, as schema_need looks for a definition. */
int schema_need_file(struct schema *s, const char *file);

/* Names, owned. */
struct schema_names {
    TC_VEC(char *) list;
};
/* Stores the names of all services of the files and of the server, sorted and without repetition, in *names, which the
 * caller zeroes before, and frees with schema_names_free also after a failure. */
int schema_services(struct schema *s, struct schema_names *names);
void schema_names_free(struct schema_names *names);
/* Called after schema_need returned SCHEMA_ABSENT for a service. Prints that the service is unknown and names up to 16
 * that are known; or, if the server lists the service, that its description is missing; or, if the server does not give
 * its list, the text that s->reflect.why had before. If a server was asked, `hint` follows ("": none). Returns
 * CLI_FAILED. */
int schema_no_service(struct schema *s, const char *service, const char *hint);

/* Appends all files as a google.protobuf.FileDescriptorSet, each after those that it imports. */
void schema_append_set(const struct schema *s, struct tc_buf *set);
/* Writes all files as --protoset-out and --proto-out-dir say. */
int schema_write(const struct schema *s, const struct schema_args *a);

#endif
