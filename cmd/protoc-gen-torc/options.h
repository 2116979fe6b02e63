/* The plugin's options, "a,b=c": OPTIONS of --torc_out=OPTIONS:DIR or --torc_opt=OPTIONS. */
#ifndef PGT_OPTIONS_H
#define PGT_OPTIONS_H

#include "base/slice.h"

enum { PGT_CLIENT = 1, PGT_SERVER = 2 };

struct pgt_options {
    bool messages;                /* runs protoc-gen-c too */
    bool reflection;              /* generates the serialised FileDescriptorProto too */
    bool strict;                  /* servers must have a handler for every method */
    unsigned sides;               /* PGT_CLIENT | PGT_SERVER */
    struct tc_slice prefix;       /* begins names of functions and of handlers' structs; NULL data: the package does */
    struct tc_slice protoc_gen_c; /* the program that `messages` runs; NULL data: protoc-gen-c */
};

/* Reads the parameter, which must not be NULL; the slices borrow it. Returns false with the reason (tc_free) in *why
 * for an unknown option or a value that is not accepted. */
bool pgt_options_read(struct pgt_options *options, const char *parameter, char **why);

#endif
