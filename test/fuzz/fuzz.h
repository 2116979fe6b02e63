/* The kit of the fuzz targets: an input consumed from the front, and checks that NDEBUG does not remove. A target
 * defines LLVMFuzzerTestOneInput. With TORC_FUZZ a fuzzing engine (libFuzzer by default) calls it; in other builds
 * replay.c calls it with the committed corpus. */
#ifndef TC_FUZZ_FUZZ_H
#define TC_FUZZ_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

/* Runs the target on one input, which is borrowed for the call. Returns 0; a failed check aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TC_FUZZ_CHECK(condition)                                                                                       \
    do {                                                                                                               \
        if (TC_UNLIKELY(!(condition))) {                                                                               \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                             \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Slices taken from an input point into it. */
struct tc_fuzz_input {
    const uint8_t *data;
    size_t len;
};

/* Takes a byte; 0 if the input is exhausted. */
static inline uint8_t tc_fuzz_u8(struct tc_fuzz_input *in)
{
    if (in->len == 0)
        return 0;
    in->len--;
    return *in->data++;
}

/* Takes a big-endian number of up to 8 bytes; bytes past the end of the input are 0. */
static inline uint64_t tc_fuzz_uint(struct tc_fuzz_input *in, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v = v << 8 | tc_fuzz_u8(in);
    return v;
}

/* Takes `len` bytes, or all that are left if fewer. */
static inline struct tc_slice tc_fuzz_take(struct tc_fuzz_input *in, size_t len)
{
    struct tc_slice s = tc_slice_of(in->data, TC_MIN(len, in->len));
    in->data += s.len;
    in->len -= s.len;
    return s;
}

/* Takes a byte n, then n bytes, or all that are left if fewer. */
static inline struct tc_slice tc_fuzz_short(struct tc_fuzz_input *in)
{
    size_t len = tc_fuzz_u8(in);
    return tc_fuzz_take(in, len);
}

/* Takes the bytes up to a newline or the end, and drops the newline. */
static inline struct tc_slice tc_fuzz_line(struct tc_fuzz_input *in)
{
    const uint8_t *end = in->len ? memchr(in->data, '\n', in->len) : NULL;
    struct tc_slice s = tc_fuzz_take(in, end ? (size_t)(end - in->data) : in->len);
    if (end)
        tc_fuzz_u8(in);
    return s;
}

#endif
