/* Messages of protobuf-c: packed, and unpacked from bytes that nobody vouches for. SPDX-License-Identifier: Apache-2.0
 *
 * protobuf-c itself recurses as deep as the bytes say, cuts strings at a NUL, takes invalid UTF-8 and keeps what it
 * does not know. torc_protobuf_c_unpack walks the bytes first, as Torc does with those of a control plane.
 *
 * This is the one header that needs protobuf-c's; torc/torc.h leaves it out. Functions may be called on any thread. */
#ifndef TORC_PROTOBUF_C_H
#define TORC_PROTOBUF_C_H

#include <protobuf-c/protobuf-c.h>

#include <torc/arena.h>
#include <torc/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The message of `type` (a NAME__descriptor of generated code) in the bytes, or NULL with an error. The message and all
 * that it points to are in `arena`; the bytes may go away. Do not call its NAME__free_unpacked.
 *
 * Refused with TORC_EPARSE: bytes that are cut short, strings with invalid UTF-8 or with a NUL, groups, a required
 * field that is missing. With TORC_ELIMIT: more than 100 messages within each other, more than 4,194,304 values, more
 * than 4 MiB of fields that the type does not have, and a message that takes more memory than 32 times its bytes, where
 * 1 MiB is always allowed and 512 MiB never exceeded, or than the arena gives. TORC_EINVAL: an argument is NULL. The
 * text names the field. The layer is TORC_LAYER_CODEC.
 *
 * Fields that the type does not have are dropped. Of a map all entries come, also those that a later one with the
 * same key replaces; the message of an entry may be NULL, which stands for an empty one. */
TORC_API const ProtobufCMessage *torc_protobuf_c_unpack(const ProtobufCMessageDescriptor *type, const void *bytes,
                                                        size_t n, torc_arena *arena, torc_error **error);

/* The bytes of a message, in `arena`; their number in *n. NULL with an error: TORC_EINVAL when an argument is NULL,
 * TORC_ELIMIT when the arena's limit would be exceeded. An empty message has no bytes, and an address. The message's
 * strings are taken as they are: make them UTF-8, or receivers refuse the message. */
TORC_API const void *torc_protobuf_c_pack(const ProtobufCMessage *message, torc_arena *arena, size_t *n,
                                          torc_error **error);

#ifdef __cplusplus
}
#endif
#endif
