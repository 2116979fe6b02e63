/* Files of serialised descriptors (google.protobuf.FileDescriptorProto), found by their name, by what they define, and
 * by the extensions that they define. For one thread at a time. */
#ifndef TC_PROTO_DESCRIPTOR_INDEX_H
#define TC_PROTO_DESCRIPTOR_INDEX_H

#include "base/slice.h"
#include "base/status.h"
#include "base/vec.h"

struct tc_descriptor_file {
    size_t index; /* counted from 0, in the order of addition */
    char *name;
    struct tc_slice bytes;           /* owned */
    TC_VEC(struct tc_slice) imports; /* names, in `bytes` */
    size_t memory, entries_before;   /* bytes that the file takes; number of entries that earlier files made */
};

/* Numbers of the extensions of a message, in the order of addition. */
struct tc_descriptor_numbers {
    TC_VEC(int32_t) list;
};

struct tc_descriptor_entry;

/* All zero is an empty index. */
struct tc_descriptor_index {
    struct tc_descriptor_entry *entries;
    TC_VEC(struct tc_descriptor_file *) files; /* in the order of addition */
    size_t memory;                             /* of all files; TC_DESCRIPTOR_INDEX_MAX_BYTES at most */
};

enum { TC_DESCRIPTOR_INDEX_MAX_BYTES = 256 << 20 };

/* Frees all files; the index is empty then. */
void tc_descriptor_index_fini(struct tc_descriptor_index *x);

/* Adds a copy of a file. Its imports need not be in the index. Returns 0, also when the index has the same file
 * already. *why must be an empty status, and stays so on success. On failure nothing is added, and *why says what is
 * wrong (the caller ends the status). TORC_EPARSE: the file is malformed. TORC_EEXIST: another file has its name, or
 * defines one of its symbols or extensions. TORC_ELIMIT: the index would take more than
 * TC_DESCRIPTOR_INDEX_MAX_BYTES. */
int tc_descriptor_index_add(struct tc_descriptor_index *x, struct tc_slice bytes, struct tc_status *why);
/* Removes and frees all files but the first `n`. Does nothing if the index has no more than `n`. */
void tc_descriptor_index_cut(struct tc_descriptor_index *x, size_t n);

/* Finds a file by its name ("a/b.proto"). Returns NULL if there is none. Files are borrowed until they are removed. */
const struct tc_descriptor_file *tc_descriptor_index_file(const struct tc_descriptor_index *x, struct tc_slice name);
/* Finds the file that defines a message, a field, a oneof, an enum, an enum's value, a service, a method or an
 * extension, by the full name ("a.Outer.Inner"). Returns NULL if there is none. */
const struct tc_descriptor_file *tc_descriptor_index_symbol(const struct tc_descriptor_index *x, struct tc_slice name);
/* Finds the file that defines the extension of a message ("a.M") with this number. Returns NULL if there is none. */
const struct tc_descriptor_file *tc_descriptor_index_extension(const struct tc_descriptor_index *x,
                                                               struct tc_slice message, int32_t number);
/* Returns whether the full name is a message's. */
bool tc_descriptor_index_message(const struct tc_descriptor_index *x, struct tc_slice name);
/* Returns the numbers of a message's extensions, or NULL if the index has none. Borrowed until the index changes. */
const struct tc_descriptor_numbers *tc_descriptor_index_extensions(const struct tc_descriptor_index *x,
                                                                   struct tc_slice message);

#endif
