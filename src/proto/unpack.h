/* Unpacks protobuf messages from outside: proto/scan, then protobuf-c into an arena, whose budget bounds what one
 * message may cost. A message is freed with its arena, never in parts. Any thread. */
#ifndef TC_PROTO_UNPACK_H
#define TC_PROTO_UNPACK_H

#include "base/arena.h"
#include "proto/scan.h"

/* Returns the memory of one message, for tc_unpack's arena, when the caller has no better number: a multiple of the
 * size on the wire, with a floor and a ceiling. */
size_t tc_unpack_budget(size_t wire_bytes);

/* Unpacks `bytes` as a message of `type`. The message and all that it points to are in `arena`; `bytes` may go away.
 * Errors are those of tc_scan, TORC_ELIMIT when the arena's budget is exceeded, and TORC_EPARSE also for one valid form
 * that protobuf-c 1.4.1 cannot merge: a singular message field that occurs twice, with the same oneof unset both times.
 * Each adds a validation error and leaves `*out` untouched; memory that was allocated so far stays in the
 * arena. */
int tc_unpack(const ProtobufCMessageDescriptor *type, struct tc_slice bytes, const struct tc_scan_options *options,
              struct tc_arena *arena, ProtobufCMessage **out, struct tc_validation_errors *errors);

/* The second half of tc_unpack, with its contract: `bytes` are the output of tc_scan, or a part of it that is a message
 * of `type`. */
int tc_unpack_scanned(const ProtobufCMessageDescriptor *type, struct tc_slice bytes, struct tc_arena *arena,
                      ProtobufCMessage **out, struct tc_validation_errors *errors);

/* Returns true when a field of `type` stands for a map<key, value>. */
bool tc_proto_is_map(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field);

/* Returns the entry of a map<string, ...> field with this key, of several the one that was sent last, as protobuf
 * wants; NULL: there is none. `entries` and `n` are the two members of the message, as in (void *const *)m->labels,
 * m->n_labels. */
void *tc_proto_map_get(void *const *entries, size_t n, const char *key);

/* Drops the entries of a map<string, ...> field that a later one with the same key replaces, keeping the order of the
 * rest, and returns how many are left. */
size_t tc_proto_map_dedupe(void **entries, size_t n);

/* Returns a borrowed slice of a bytes field. */
static inline struct tc_slice tc_proto_bytes(ProtobufCBinaryData b)
{
    return tc_slice_of(b.data, b.len);
}

#endif
