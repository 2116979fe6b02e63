/* strerror_r, of which the systems have two kinds: GNU's returns the text, that of POSIX an int. Any thread. */
#ifndef TC_BASE_STRERROR_H
#define TC_BASE_STRERROR_H

#include <string.h>

static inline const char *tc_strerror_of_gnu(const char *text, const char *scratch)
{
    (void)scratch;
    return text;
}

static inline const char *tc_strerror_of_posix(int rc, const char *scratch)
{
    return rc == 0 ? scratch : "unknown error";
}

/* Returns the text of an errno. `scratch` must live as long as the text is used. */
static inline const char *tc_strerror(int err, char scratch[128])
{
    return _Generic(strerror_r(err, scratch, 128), int
                    : tc_strerror_of_posix, default
                    : tc_strerror_of_gnu)(strerror_r(err, scratch, 128), scratch);
}

#endif
