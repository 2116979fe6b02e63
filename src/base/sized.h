/* Structs of applications that begin with their size (torc/size.h): a program may be built with older or newer headers
 * than the library. Pure functions, any thread. */
#ifndef TC_BASE_SIZED_H
#define TC_BASE_SIZED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <torc/error.h>

/* No struct is as large: a larger size means that the struct was not initialised. */
enum { TC_SIZED_MAX = 4096 };

/* Copies `given`, which must not be NULL, to `to`, which has `known` bytes: fields that an older program does not know
 * become zero, and the size stays that of `given`. Returns 0; or, with `to` untouched, TORC_EINVAL for a size that is
 * out of range, or TORC_EUNSUPPORTED if a field beyond `known` bytes is set. */
static inline int tc_sized_take(void *to, size_t known, const void *given)
{
    uint64_t size;
    const unsigned char *bytes = given;
    memcpy(&size, given, sizeof(size));
    if (size < sizeof(size) || size > TC_SIZED_MAX)
        return TORC_EINVAL;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return TORC_EUNSUPPORTED;
    size_t n = size < known ? (size_t)size : known;
    memcpy(to, given, n);
    memset((char *)to + n, 0, known - n);
    return 0;
}

#endif
