/* Unpacks protobuf messages from outside: proto/scan, then protobuf-c into an arena, whose budget bounds what one
 * message may cost. A message is freed with its arena, never in parts. Any thread. */
#ifndef TC_PROTO_UNPACK_H
#define TC_PROTO_UNPACK_H

#include "base/arena.h"
#include "proto/scan.h"

/* Returns a budget for tc_unpack's arena, for callers without a better number: 32 bytes for each byte on the wire, but
 * at least 1 MiB and at most 512 MiB. */
size_t tc_unpack_budget(size_t wire_bytes);

/* Unpacks `bytes` as a message of `type`, and returns 0. The message and all that it points to live as long as
 * `arena`; `bytes` may be freed afterwards. NULL options are the defaults (proto/scan.h).
 *
 * Errors are those of tc_scan; TORC_ELIMIT also when the arena's budget is exceeded or memory runs out; TORC_EPARSE
 * also for one valid form that protobuf-c 1.4.1 cannot merge: a singular message field that occurs twice, with the same
 * oneof unset both times. An error adds a validation error and leaves `*out` untouched. Memory that was allocated so
 * far stays in the arena. */
int tc_unpack(const ProtobufCMessageDescriptor *type, struct tc_slice bytes, const struct tc_scan_options *options,
              struct tc_arena *arena, ProtobufCMessage **out, struct tc_validation_errors *errors);

/* Unpacks bytes that have passed tc_scan: its output, or a part of it that is a message of `type`. Otherwise the
 * contract is that of tc_unpack. */
int tc_unpack_scanned(const ProtobufCMessageDescriptor *type, struct tc_slice bytes, struct tc_arena *arena,
                      ProtobufCMessage **out, struct tc_validation_errors *errors);

/* Returns true when a field of `type` stands for a map<key, value>. */
bool tc_proto_is_map(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field);

/* Returns the entry of a map<string, ...> field with this key, or NULL if there is none. Of several entries with the
 * key, the last counts, as protobuf demands. `entries` and `n` are the two members of the message, as in
 * (void *const *)m->labels, m->n_labels. */
void *tc_proto_map_get(void *const *entries, size_t n, const char *key);

/* Drops each entry of a map<string, ...> field that a later entry with the same key replaces. The rest keeps its order.
 * Returns how many are left; the caller stores the number in the message. */
size_t tc_proto_map_dedupe(void **entries, size_t n);

/* Returns a borrowed slice of a bytes field. */
static inline struct tc_slice tc_proto_bytes(ProtobufCBinaryData b)
{
    return tc_slice_of(b.data, b.len);
}

#endif
