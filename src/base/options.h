/* Options structs of applications. They begin with their size, since a program may be built with older or newer headers
 * than the library. */
#ifndef TC_BASE_OPTIONS_H
#define TC_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"

/* For tc_options_take: the struct has another size than the library's. */
int tc_options_take_other(void *to, size_t known, const void *given, const char *title, const char *init,
                          torc_error **error);

/* Copies `given`, which begins with its size, over the defaults in `to`, which has `known` bytes. NULL copies nothing.
 * Returns TORC_EINVAL when `given` was not filled in by the function named `init`, and TORC_EUNSUPPORTED when it sets
 * fields that only a newer version knows. The text of the error begins with `title`. */
static inline int tc_options_take(void *to, size_t known, const void *given, const char *title, const char *init,
                                  torc_error **error)
{
    if (!given)
        return 0;
    if (*(const size_t *)given != known)
        return tc_options_take_other(to, known, given, title, init, error);
    memcpy(to, given, known);
    return 0;
}

#endif
