/* torc/protobuf_c.h. The first byte chooses a type, the rest is the message. An unpacked message packs, and its packed
 * bytes unpack and pack to the same bytes. */
#include <torc/protobuf_c.h>

#include "fuzz.h"
#include "kinds.pb-c.h"
#include "other.pb-c.h"

static const ProtobufCMessageDescriptor *const types[] = {
    &torc__test__kinds__kinds__descriptor, &torc__test__other__old__descriptor, &torc__test__other__needs__descriptor};

/* Unpacks the n bytes and packs the message. Returns the packed bytes, in the arena, and stores their number in *n.
 * Returns NULL if either step failed. */
static const void *again(const ProtobufCMessageDescriptor *type, const void *bytes, size_t *n, torc_arena *arena)
{
    const ProtobufCMessage *message = torc_protobuf_c_unpack(type, bytes, *n, arena, NULL);
    return message ? torc_protobuf_c_pack(message, arena, n, NULL) : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tc_fuzz_input in = {data, size};
    const ProtobufCMessageDescriptor *type = types[tc_fuzz_u8(&in) % TC_ARRAY_LEN(types)];
    torc_arena *arena = torc_arena_new(0);
    torc_error *error = NULL;
    size_t n, twice_n;
    const ProtobufCMessage *message = torc_protobuf_c_unpack(type, in.data, in.len, arena, &error);
    TC_FUZZ_CHECK(!message == !!error);
    if (message) {
        const void *once = torc_protobuf_c_pack(message, arena, &n, &error);
        TC_FUZZ_CHECK(once && !error);
        twice_n = n;
        const void *twice = again(type, once, &twice_n, arena);
        TC_FUZZ_CHECK(twice && twice_n == n && memcmp(once, twice, n) == 0);
    }
    torc_error_free(error);
    torc_arena_free(arena);
    return 0;
}
