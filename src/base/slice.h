/* A borrowed run of bytes. The function that hands it out says how long it lives. No function here keeps or changes the
 * bytes. Any thread. */
#ifndef TC_BASE_SLICE_H
#define TC_BASE_SLICE_H

#include <string.h>

#include "base/common.h"

struct tc_slice {
    const char *data; /* need not be NUL-terminated; may be NULL when len is 0 */
    size_t len;
};

static inline struct tc_slice tc_slice_of(const void *data, size_t len)
{
    return (struct tc_slice){(const char *)data, len};
}

static inline struct tc_slice tc_slice_str(const char *s)
{
    return (struct tc_slice){s, strlen(s)};
}

static inline bool tc_slice_eq(struct tc_slice a, struct tc_slice b)
{
    return a.len == b.len && (b.len == 0 || memcmp(a.data, b.data, b.len) == 0);
}

static inline bool tc_slice_eq_str(struct tc_slice a, const char *s)
{
    return tc_slice_eq(a, tc_slice_str(s));
}

/* Order by bytes, as memcmp; a prefix comes first. */
static inline int tc_slice_cmp(struct tc_slice a, struct tc_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.data, b.data, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

static inline bool tc_slice_starts(struct tc_slice a, struct tc_slice prefix)
{
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.data, prefix.data, prefix.len) == 0);
}

static inline bool tc_slice_ends(struct tc_slice a, struct tc_slice suffix)
{
    return a.len >= suffix.len &&
           (suffix.len == 0 || memcmp(a.data + a.len - suffix.len, suffix.data, suffix.len) == 0);
}

/* ASCII case-insensitive. */
bool tc_slice_ieq(struct tc_slice a, struct tc_slice b);
bool tc_slice_istarts(struct tc_slice a, struct tc_slice prefix);
bool tc_slice_iends(struct tc_slice a, struct tc_slice suffix);
/* Return the offset of the first `needle` (0 for an empty one), or -1. tc_slice_ifind ignores the case of ASCII
 * letters; with a needle of more than 32 bytes it allocates memory meanwhile. */
ptrdiff_t tc_slice_find(struct tc_slice a, struct tc_slice needle);
ptrdiff_t tc_slice_ifind(struct tc_slice a, struct tc_slice needle);
struct tc_slice tc_slice_trim_blanks(struct tc_slice a); /* for tc_slice_trim */
/* Returns the part without leading and trailing spaces and tabs. */
static inline struct tc_slice tc_slice_trim(struct tc_slice a)
{
    bool maybe = a.len && (a.data[0] <= ' ' || a.data[a.len - 1] <= ' ');
    return TC_UNLIKELY(maybe) ? tc_slice_trim_blanks(a) : a;
}
/* Cuts the part before the next `sep`, and the `sep`, off the front of `*rest`, and stores the part in `*part`. Without
 * a `sep` the part is all of `*rest`, which stays as it is, and the next call returns false. An empty input gives one
 * empty part. Start with `*rest` as the whole and `*more` as true. */
bool tc_slice_split(struct tc_slice *rest, bool *more, char sep, struct tc_slice *part);
/* Returns a copy with a NUL behind it, which the caller frees with tc_free. */
char *tc_slice_dup(struct tc_slice a);

#endif
