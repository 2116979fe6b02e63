/* Searching, comparing and splitting borrowed bytes. "Any case" means ASCII letters alone, whatever the locale. Slices
 * may contain NUL bytes. An empty slice may have no data, so memcmp, memchr and memmem are called with a length above
 * zero only. */
#include "base/slice.h"

#include "base/mem.h"

enum { SHORT_NEEDLE = 32 }; /* bytes of the longest needle that tc_slice_ifind compares at each place */

static char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Not strncasecmp, which stops at a NUL and depends on the locale. */
static bool equal_any_case(const char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (ascii_lower(a[i]) != ascii_lower(b[i]))
            return false;
    return true;
}

bool tc_slice_ieq(struct tc_slice a, struct tc_slice b)
{
    /* memcmp first: most comparisons are of equal bytes. */
    return a.len == b.len &&
           (a.len == 0 || memcmp(a.data, b.data, a.len) == 0 || equal_any_case(a.data, b.data, a.len));
}

bool tc_slice_istarts(struct tc_slice a, struct tc_slice prefix)
{
    return a.len >= prefix.len && tc_slice_ieq(tc_slice_of(a.data, prefix.len), prefix);
}

bool tc_slice_iends(struct tc_slice a, struct tc_slice suffix)
{
    return a.len >= suffix.len &&
           (suffix.len == 0 || tc_slice_ieq(tc_slice_of(a.data + a.len - suffix.len, suffix.len), suffix));
}

ptrdiff_t tc_slice_find(struct tc_slice a, struct tc_slice needle)
{
    if (needle.len == 0)
        return 0;
    if (a.len < needle.len)
        return -1;
    const char *p = memmem(a.data, a.len, needle.data, needle.len);
    return p ? p - a.data : -1;
}

/* Searches copies in lower case, since memmem takes linear time. */
static ptrdiff_t find_lower(struct tc_slice a, struct tc_slice needle)
{
    char *copy = tc_malloc(a.len + needle.len);
    for (size_t i = 0; i < a.len; i++)
        copy[i] = ascii_lower(a.data[i]);
    for (size_t i = 0; i < needle.len; i++)
        copy[a.len + i] = ascii_lower(needle.data[i]);
    ptrdiff_t at = tc_slice_find(tc_slice_of(copy, a.len), tc_slice_of(copy + a.len, needle.len));
    tc_free(copy);
    return at;
}

ptrdiff_t tc_slice_ifind(struct tc_slice a, struct tc_slice needle)
{
    if (needle.len == 0)
        return 0;
    if (needle.len > SHORT_NEEDLE && a.len >= needle.len)
        return find_lower(a, needle);
    for (size_t i = 0; i + needle.len <= a.len; i++)
        if (equal_any_case(a.data + i, needle.data, needle.len))
            return (ptrdiff_t)i;
    return -1;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct tc_slice tc_slice_trim_blanks(struct tc_slice a)
{
    while (a.len && is_blank(a.data[0])) {
        a.data++;
        a.len--;
    }
    while (a.len && is_blank(a.data[a.len - 1]))
        a.len--;
    return a;
}

bool tc_slice_split(struct tc_slice *rest, bool *more, char sep, struct tc_slice *part)
{
    if (!*more)
        return false;
    const char *p = rest->len ? memchr(rest->data, sep, rest->len) : NULL;
    if (!p) {
        *part = *rest;
        *more = false;
        return true;
    }
    size_t n = (size_t)(p - rest->data);
    *part = tc_slice_of(rest->data, n);
    *rest = tc_slice_of(p + 1, rest->len - n - 1);
    return true;
}

char *tc_slice_dup(struct tc_slice a)
{
    return tc_strndup(a.data, a.len);
}
