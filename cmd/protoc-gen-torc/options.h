/* The plugin's options: OPTIONS of --torc_out=OPTIONS:DIR or --torc_opt=OPTIONS, "a,b=c". */
#ifndef PGT_OPTIONS_H
#define PGT_OPTIONS_H

#include "base/slice.h"

enum { PGT_CLIENT = 1, PGT_SERVER = 2 };

struct pgt_options {
    bool messages;                /* runs protoc-gen-c too */
    bool reflection;              /* generates the serialised FileDescriptorProto too */
    bool strict;                  /* servers must have a handler for every method */
    unsigned sides;               /* PGT_CLIENT | PGT_SERVER */
    struct tc_slice prefix;       /* of function names instead of the package; NULL data: the package */
    struct tc_slice protoc_gen_c; /* the program that `messages` runs; NULL data: protoc-gen-c, by PATH */
};

/* Reads the parameter, which the slices borrow. Returns false with the reason (tc_free) in *why for an option that is
 * unknown, that has a malformed value, or that this version does not have. */
bool pgt_options_read(struct pgt_options *options, const char *parameter, char **why);

#endif
