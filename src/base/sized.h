/* Structs of applications that begin with their size: they may come from headers newer than the library. */
#ifndef TC_BASE_SIZED_H
#define TC_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>

/* Returns false when a field beyond the first `known` bytes of `given` is set: the library does not know that field. */
static inline bool tc_sized_known(const void *given, size_t known)
{
    const unsigned char *bytes = given;
    size_t size = *(const size_t *)given;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

#endif
