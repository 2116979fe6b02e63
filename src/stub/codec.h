/* Messages of protobuf-c in arenas, for torc/protobuf_c.h and for the stubs. Any thread, on an arena that no other
 * thread uses. */
#ifndef TC_STUB_CODEC_H
#define TC_STUB_CODEC_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/validation_errors.h"

/* The first block of an arena for messages: with its header it fits glibc's per-thread cache (1,032 bytes at most); a
 * larger block costs malloc a search each time. */
enum { TC_MESSAGE_BLOCK = 1008 };

/* Unpacks into `arena`, within the arena's budget and what such a message may cost (tc_unpack_budget). `bytes` are
 * borrowed for the call. Returns the message, which lives until the arena is reset or ended, or NULL with an error of
 * TORC_LAYER_CODEC whose text begins with the type: TORC_EPARSE or TORC_ELIMIT, as tc_unpack says. The memory allocated
 * so far stays in the arena then. `type` and `arena` must not be NULL, and *error must not hold an error. */
const ProtobufCMessage *tc_codec_unpack(const ProtobufCMessageDescriptor *type, struct tc_slice bytes,
                                        struct tc_arena *arena, torc_error **error);

enum { TC_PACKED_SMALL_BYTES = 1024 };

/* A message's bytes until tc_packed_fini. Up to TC_PACKED_SMALL_BYTES need no allocation: `bytes` then points into the
 * struct, which must not be moved. */
struct tc_packed {
    uint8_t small[TC_PACKED_SMALL_BYTES];
    uint8_t *large; /* owned; NULL: the bytes are in `small` */
    struct tc_slice bytes;
};

/* Packs a message. Returns 0, or TORC_EINVAL or TORC_ELIMIT with a reason in *why that begins with a verb ("is not an
 * initialised shop.Order"). After an error the caller frees the reason with tc_free, and does not call tc_packed_fini.
 * TORC_EINVAL: the message is NULL or not an initialised message of `type`, or tc_codec_check rejects it. TORC_ELIMIT:
 * tc_codec_check rejects it, or there is no memory. */
int tc_packed_init(struct tc_packed *p, const ProtobufCMessageDescriptor *type, const ProtobufCMessage *message,
                   char **why);
/* Frees the bytes, after tc_packed_init has returned 0. Does nothing to a zeroed struct. */
void tc_packed_fini(struct tc_packed *p);

/* Checks that a message of the application can be packed (check.c). Returns 0, or TORC_EINVAL or TORC_ELIMIT with a
 * validation error at the field's path. The message's descriptor must be set. */
int tc_codec_check(const ProtobufCMessage *message, struct tc_validation_errors *errors);

#endif
