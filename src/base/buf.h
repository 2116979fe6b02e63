/* A growable run of bytes, also the string builder. Embedded; a zero-initialised buffer is empty. Functions that need
 * memory do not fail (base/mem.h), unless a comment says so. One thread at a time. */
#ifndef TC_BASE_BUF_H
#define TC_BASE_BUF_H

#include <stdarg.h>

#include "base/slice.h"

struct tc_buf {
    char *data; /* NULL: the buffer has no memory */
    size_t len;
    size_t cap;
};

/* For tc_buf_fini alone. */
void tc_buf_free(struct tc_buf *b);
/* Frees the memory. The buffer is empty then and may be used again. */
static inline void tc_buf_fini(struct tc_buf *b)
{
    if (b->data)
        tc_buf_free(b);
}
/* tc_buf_fini for a buffer that holds secrets: overwrites the memory first. */
void tc_buf_wipe(struct tc_buf *b);
/* Makes room for `more` bytes behind the content and returns the place, which is good until the next change; len is
 * unchanged. */
char *tc_buf_reserve(struct tc_buf *b, size_t more);
/* Makes room so that `more` bytes can be added without asking for memory. Returns false, with the buffer unchanged, if
 * the system does not give the memory. */
bool tc_buf_try_reserve(struct tc_buf *b, size_t more);
/* Append to the buffer. The data must not lie in the buffer itself. */
void tc_buf_append(struct tc_buf *b, const void *data, size_t len);
void tc_buf_append_str(struct tc_buf *b, const char *s);
void tc_buf_append_slice(struct tc_buf *b, struct tc_slice s);
void tc_buf_append_char(struct tc_buf *b, char c);
void tc_buf_printf(struct tc_buf *b, const char *fmt, ...) TC_PRINTF(2, 3);
void tc_buf_vprintf(struct tc_buf *b, const char *fmt, va_list ap) TC_PRINTF(2, 0);
/* Drops `n` bytes from the front (n <= len). */
void tc_buf_consume(struct tc_buf *b, size_t n);
/* Returns the content with a NUL behind it, which does not count in len; never NULL. Borrowed until the next change. */
const char *tc_buf_cstr(struct tc_buf *b);
/* Returns the content as a string that the caller frees with tc_free; the buffer is empty afterwards. */
char *tc_buf_take(struct tc_buf *b);

static inline struct tc_slice tc_buf_slice(const struct tc_buf *b)
{
    return tc_slice_of(b->data, b->len);
}

static inline void tc_buf_clear(struct tc_buf *b)
{
    b->len = 0;
}

/* Formats into a new string, which the caller frees with tc_free. */
char *tc_asprintf(const char *fmt, ...) TC_PRINTF(1, 2);
/* Stores a formatted text in *why, which the caller frees with tc_free, unless `why` is NULL. Returns false, so that a
 * caller can write `return tc_refuse(...)`. */
bool tc_refuse(char **why, const char *fmt, ...) TC_PRINTF(2, 3);

/* Show a text that a peer or a user chose: TC_SHOWN stands in a printf format, TC_SHOW(text) is its arguments. Shows at
 * most TC_SHOW_MAX bytes, in whole UTF-8 characters, and "..." for the rest. Control characters are not replaced. */
#define TC_SHOW_MAX 256
#define TC_SHOWN "%.*s%s"
#define TC_SHOW(text) tc_show_length(text), (text), tc_show_rest(text)
int tc_show_length(const char *text);
const char *tc_show_rest(const char *text);

#endif
