/* Messages of protobuf-c in arenas, for torc/protobuf_c.h and for the stubs. Any thread, on an arena that no other
 * thread uses. */
#ifndef TC_STUB_CODEC_H
#define TC_STUB_CODEC_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/status.h"

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

/* Returns TORC_EINVAL if the message is not an initialised one of `type`, TORC_ELIMIT if there is no memory. */
int tc_packed_init(struct tc_packed *p, const ProtobufCMessageDescriptor *type, const ProtobufCMessage *message);
void tc_packed_fini(struct tc_packed *p);

#endif
