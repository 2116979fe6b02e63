/* The types that a subcommand knows: the .proto files of --protoset and --proto, and those that a server with
 * reflection sends. options.c reads the command line, protoc.c runs protoc, reflect.c asks servers, write.c writes what
 * is known. Functions that return an int return 0, or CLI_FAILED with the error printed. One thread. */
#ifndef TORC_SCHEMA_H
#define TORC_SCHEMA_H

#include <torc/json.h>

#include "proto/descriptor_index.h"
#include "schema/options.h"
#include "schema/reflect.h"

struct schema {
    const char *command; /* for messages */
    struct tc_descriptor_index files;
    torc_schema *types;     /* the files that could be linked */
    size_t n_linked;        /* how many files of `files`, from the first on, are in `types` */
    struct reflect reflect; /* without a channel: reflection is not used */
};

void schema_init(struct schema *s, const char *command);
void schema_fini(struct schema *s);

/* Reads the files of the options. */
int schema_load(struct schema *s, const struct schema_args *a);
/* Links the files that were added since the last call. If that fails, these files are dropped, and those that were
 * linked before stay. */
int schema_link(struct schema *s);

/* Looks for the definition of a full name, in the files and then at the server, and links. Returns 0 when it is there,
 * SCHEMA_ABSENT when nobody has it, SCHEMA_NO_REFLECTION when the server has no reflection, or CLI_FAILED. The error is
 * printed for CLI_FAILED alone; for the other two a server's text is in s->reflect.why. */
enum { SCHEMA_ABSENT = 16, SCHEMA_NO_REFLECTION = 17 };
int schema_need(struct schema *s, const char *symbol);
/* Looks for a file by its name, as schema_need looks for a definition. */
int schema_need_file(struct schema *s, const char *file);

/* Stores the names of all services of the files and of the server, sorted and without repetition, in *names; free them
 * with schema_names_free, also after a failure. */
struct schema_names {
    TC_VEC(char *) list;
};
int schema_services(struct schema *s, struct schema_names *names);
void schema_names_free(struct schema_names *names);
/* Prints that nobody has the service, for which schema_need returned SCHEMA_ABSENT, which services there are, and, if a
 * server was asked, the hint ("": none). Of a service that the server lists it prints that its description is missing.
 * Returns CLI_FAILED. */
int schema_no_service(struct schema *s, const char *service, const char *hint);

/* Appends all files as a google.protobuf.FileDescriptorSet, each behind those that it imports. */
void schema_append_set(const struct schema *s, struct tc_buf *set);
/* Writes the files as the options say. */
int schema_write(const struct schema *s, const struct schema_args *a);

#endif
