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

/* Unpacks into `arena`, whose budget is lowered for that time to what the message may cost. Returns NULL with an error
 * of TORC_LAYER_CODEC, whose text names the type and the field; memory that was allocated so far stays in the arena. */
const ProtobufCMessage *tc_codec_unpack(const ProtobufCMessageDescriptor *type, struct tc_slice bytes,
                                        struct tc_arena *arena, torc_error **error);

enum { TC_PACKED_SMALL_BYTES = 1024 };

/* A message's bytes until tc_packed_fini; small ones need no allocation. */
struct tc_packed {
    uint8_t small[TC_PACKED_SMALL_BYTES];
    uint8_t *large; /* NULL: in small */
    struct tc_slice bytes;
};

/* Returns 0, or TORC_EINVAL or TORC_ELIMIT with a reason that begins with a verb ("is not an initialised shop.Order")
 * and that the caller frees. TORC_EINVAL: the message is not an initialised one of `type`, or tc_codec_check refuses
 * it. TORC_ELIMIT: tc_codec_check refuses it, or there is no memory. */
int tc_packed_init(struct tc_packed *p, const ProtobufCMessageDescriptor *type, const ProtobufCMessage *message,
                   char **why);
/* Frees the bytes; for what tc_packed_init has filled in, or for zeros. */
void tc_packed_fini(struct tc_packed *p);

/* Checks that a message of the application can be packed (check.c): 0, or TORC_EINVAL or TORC_ELIMIT with a validation
 * error at the field's path. The message's descriptor must be set. */
int tc_codec_check(const ProtobufCMessage *message, struct tc_validation_errors *errors);

#endif
