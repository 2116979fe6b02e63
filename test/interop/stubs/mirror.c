/* Unpacks each message from standard input, packs it again and writes it to standard output, for suite_stubs.py.
 *
 * A frame of the input has a byte for the type (its index in `types`), the length in 4 bytes, little endian, and the
 * message. A frame of the output has a byte (1: a message, 0: the text of an error), the length, and the bytes. Exit 0
 * at the end of standard input. Exit 1 at a frame of an unknown type or with a message that is cut short, and if a
 * frame cannot be written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <torc/protobuf_c.h>

#include "kinds.pb-c.h"
#include "other.pb-c.h"

static const ProtobufCMessageDescriptor *const types[] = {
    &torc__test__kinds__kinds__descriptor, &torc__test__other__old__descriptor, &torc__test__other__needs__descriptor};

/* Writes a frame. Returns 0 if it cannot be written, else 1. */
static int put(unsigned char kind, const void *bytes, size_t n)
{
    unsigned char head[5] = {kind, (unsigned char)n, (unsigned char)(n >> 8), (unsigned char)(n >> 16),
                             (unsigned char)(n >> 24)};
    return fwrite(head, 1, 5, stdout) == 5 && fwrite(bytes, 1, n, stdout) == n && fflush(stdout) == 0;
}

/* Unpacks a message of n bytes and packs it again, in the arena, and writes the frame for it. Returns 0 if the frame
 * cannot be written, else 1. */
static int mirror(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n, torc_arena *arena)
{
    torc_error *error = NULL;
    const ProtobufCMessage *message = torc_protobuf_c_unpack(type, bytes, n, arena, &error);
    const void *back = torc_protobuf_c_pack(message, arena, &n, &error);
    int good = back ? put(1, back, n) : put(0, torc_error_text(error), strlen(torc_error_text(error)));
    torc_error_free(error);
    return good;
}

int main(void)
{
    torc_arena *arena = torc_arena_new(0);
    unsigned char head[5];
    int good = 1;
    while (good && fread(head, 1, 5, stdin) == 5) {
        size_t n = (size_t)head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16 | (size_t)head[4] << 24;
        void *bytes = malloc(n + 1);
        good = bytes && head[0] < 3 && fread(bytes, 1, n, stdin) == n;
        if (good)
            good = mirror(types[head[0]], bytes, n, arena);
        free(bytes);
        torc_arena_reset(arena);
    }
    torc_arena_free(arena);
    return !good;
}
