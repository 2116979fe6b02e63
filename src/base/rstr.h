/* Shared immutable bytes: strings (`tc_rstr`, NUL-terminated) and received messages alike. The count is atomic: any
 * thread, but a function that is given `blocks` (not NULL) is for the thread that takes from them (base/blocks.h). */
#ifndef TC_BASE_RSTR_H
#define TC_BASE_RSTR_H

#include "base/blocks.h"
#include "base/ref.h"
#include "base/slice.h"

struct tc_buf;

struct tc_rstr {
    struct tc_ref ref;
    bool in_block;   /* its memory is a block of base/blocks.h */
    bool compressed; /* a message that came compressed; the bytes are inflated */
    size_t len;
    char data[]; /* len bytes and a NUL */
};

/* Makes a string with one reference. */
struct tc_rstr *tc_rstr_new(const void *data, size_t len);
struct tc_rstr *tc_rstr_str(const char *s);
struct tc_rstr *tc_rstr_printf(const char *fmt, ...) TC_PRINTF(1, 2);
/* Makes a string of a copy of the content, and ends the buffer. */
struct tc_rstr *tc_rstr_of_buf(struct tc_buf *b);
/* Makes a key out of two strings that no other pair of strings makes. NULL reads as the empty string. */
struct tc_rstr *tc_rstr_pair(const struct tc_rstr *a, const struct tc_rstr *b);
/* Makes a string with one reference and room for `capacity` bytes and a NUL. The caller fills in bytes, NUL and `len`.
 * The memory comes from `blocks` (NULL: from the system). Returns NULL if the system does not give the memory. */
struct tc_rstr *tc_rstr_room(struct tc_blocks *blocks, size_t capacity);
/* Return whether tc_rstr_room takes this capacity from blocks that are reused, and whether a block of this capacity
 * lies ready (false if `blocks` is NULL). */
bool tc_rstr_room_is_reused(size_t capacity);
bool tc_rstr_room_is_kept(struct tc_blocks *blocks, size_t capacity);
/* Makes a string (`s` NULL), or resizes a string that this function made with the same `blocks` (NULL: from the system)
 * and that has one reference. The caller fills in the bytes, `len` and NUL. The memory is never reused. Returns NULL,
 * with `s` unchanged, if the system does not give the memory. */
struct tc_rstr *tc_rstr_resize(struct tc_blocks *blocks, struct tc_rstr *s, size_t capacity);
/* NULL stays NULL. */
static inline struct tc_rstr *tc_rstr_ref(struct tc_rstr *s)
{
    if (s)
        tc_ref_inc(&s->ref);
    return s;
}
void tc_rstr_free(struct tc_rstr *s); /* for tc_rstr_unref */
static inline void tc_rstr_unref(struct tc_rstr *s)
{
    if (s && tc_ref_dec(&s->ref))
        tc_rstr_free(s);
}
static inline void tc_rstr_clear(struct tc_rstr **s)
{
    tc_rstr_unref(*s);
    *s = NULL;
}
/* tc_rstr_unref for a secret: overwrites the bytes if this reference is the last. */
void tc_rstr_unref_secret(struct tc_rstr *s);

/* NULL reads as the empty string. */
static inline struct tc_slice tc_rstr_slice(const struct tc_rstr *s)
{
    return s ? tc_slice_of(s->data, s->len) : tc_slice_of(NULL, 0);
}

static inline const char *tc_rstr_cstr(const struct tc_rstr *s)
{
    return s ? s->data : "";
}

static inline bool tc_rstr_eq(const struct tc_rstr *a, const struct tc_rstr *b)
{
    return a == b || tc_slice_eq(tc_rstr_slice(a), tc_rstr_slice(b));
}

#endif
