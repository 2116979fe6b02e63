/* The plugin's options: the text OPTIONS of --torc_out=OPTIONS:DIR and --torc_opt=OPTIONS, such as
 * "messages,side=client". */
#ifndef PGT_OPTIONS_H
#define PGT_OPTIONS_H

#include "base/slice.h"

enum { PGT_CLIENT = 1, PGT_SERVER = 2 };

struct pgt_options {
    bool messages;                /* runs protoc-gen-c too */
    bool reflection;              /* generates the serialised FileDescriptorProto too */
    bool strict;                  /* a server must have a handler for every method of a service that it registers */
    unsigned sides;               /* PGT_CLIENT | PGT_SERVER */
    struct tc_slice prefix;       /* begins names of functions and of handlers' structs; NULL data: the package does,
                                     or the option c_package of the file */
    struct tc_slice protoc_gen_c; /* the program that `messages` runs; NULL data: protoc-gen-c */
};

/* Reads the parameter, which must not be NULL; the slices of *options borrow it. Returns false with the reason
 * (tc_free) in *why for an unknown option or a value that is not accepted; *options is then incomplete. */
bool pgt_options_read(struct pgt_options *options, const char *parameter, char **why);

#endif
