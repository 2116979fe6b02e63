/* Growable bytes.
 *
 * The capacity doubles, so that n appends of one byte copy O(n) bytes. A buffer never shrinks before it ends.
 * tc_buf_vprintf formats into the free room first, and a second time only if the room was too small.
 *
 * TC_SHOWN keeps texts for people short: the name that a peer chose may be very long. */
#include "base/buf.h"

#include <stdio.h>

#include "base/mem.h"

void tc_buf_free(struct tc_buf *b)
{
    tc_free(b->data);
    *b = (struct tc_buf){0};
}

void tc_buf_wipe(struct tc_buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->cap);
    tc_buf_fini(b);
}

/* Returns the capacity that has room for `more` bytes: the present one (64 if none), doubled until it suffices. */
static size_t buf_capacity_for(const struct tc_buf *b, size_t more)
{
    size_t need, cap = b->cap ? b->cap : 64;
    if (__builtin_add_overflow(b->len, more, &need))
        need = SIZE_MAX;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    return cap;
}

char *tc_buf_reserve(struct tc_buf *b, size_t more)
{
    if (!b->data || more > b->cap - b->len) {
        size_t cap = buf_capacity_for(b, more);
        b->data = tc_realloc(b->data, cap);
        b->cap = cap;
    }
    return b->data + b->len;
}

bool tc_buf_try_reserve(struct tc_buf *b, size_t more)
{
    if (b->data && more <= b->cap - b->len)
        return true;
    size_t cap = buf_capacity_for(b, more);
    char *data = tc_try_realloc(b->data, cap);
    if (!data)
        return false;
    b->data = data;
    b->cap = cap;
    return true;
}

void tc_buf_append(struct tc_buf *b, const void *data, size_t len)
{
    if (len == 0)
        return;
    memcpy(tc_buf_reserve(b, len), data, len);
    b->len += len;
}

void tc_buf_append_str(struct tc_buf *b, const char *s)
{
    tc_buf_append(b, s, strlen(s));
}

void tc_buf_append_slice(struct tc_buf *b, struct tc_slice s)
{
    tc_buf_append(b, s.data, s.len);
}

void tc_buf_append_char(struct tc_buf *b, char c)
{
    tc_buf_append(b, &c, 1);
}

void tc_buf_vprintf(struct tc_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    char *at = tc_buf_reserve(b, 64);
    size_t room = b->cap - b->len;
    int n = vsnprintf(at, room, fmt, ap);
    if (n > 0 && (size_t)n >= room) {
        at = tc_buf_reserve(b, (size_t)n + 1);
        vsnprintf(at, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    if (n > 0)
        b->len += (size_t)n;
}

void tc_buf_printf(struct tc_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void tc_buf_consume(struct tc_buf *b, size_t n)
{
    b->len -= n;
    if (b->len)
        memmove(b->data, b->data + n, b->len);
}

const char *tc_buf_cstr(struct tc_buf *b)
{
    *tc_buf_reserve(b, 1) = '\0';
    return b->data;
}

char *tc_buf_take(struct tc_buf *b)
{
    tc_buf_cstr(b);
    char *s = b->data;
    *b = (struct tc_buf){0};
    return s;
}

char *tc_asprintf(const char *fmt, ...)
{
    struct tc_buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    tc_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    return tc_buf_take(&b);
}

bool tc_refuse(char **why, const char *fmt, ...)
{
    struct tc_buf b = {0};
    va_list ap;
    if (!why)
        return false;
    va_start(ap, fmt);
    tc_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    *why = tc_buf_take(&b);
    return false;
}

int tc_show_length(const char *text)
{
    size_t len = strnlen(text, TC_SHOW_MAX + 1);
    if (len <= TC_SHOW_MAX)
        return (int)len;
    len = TC_SHOW_MAX;
    for (size_t i = 0; i < 3 && ((unsigned char)text[len] & 0xc0) == 0x80; i++)
        len--;
    return (int)len;
}

const char *tc_show_rest(const char *text)
{
    return strnlen(text, TC_SHOW_MAX + 1) > TC_SHOW_MAX ? "..." : "";
}
