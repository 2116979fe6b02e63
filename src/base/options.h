/* Options structs of applications, which begin with their size: they may be those of older or newer headers than the
 * library's. */
#ifndef TC_BASE_OPTIONS_H
#define TC_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* For structs of another size than the library's; as tc_options_take. */
int tc_options_take_other(void *to, size_t known, const void *given, const char *title, const char *init, char **why);

/* Copies what was given, NULL or a struct that begins with its size, over the defaults in `to`, which has `known`
 * bytes; the size in `to` becomes what was given's. TORC_EINVAL: it was not filled in by `init`, a function's name;
 * TORC_EUNSUPPORTED: fields are set that a newer version has added. The reason goes to *why (may be NULL), for
 * tc_free; it begins with the title. */
static inline int tc_options_take(void *to, size_t known, const void *given, const char *title, const char *init,
                                  char **why)
{
    if (!given)
        return 0;
    if (*(const size_t *)given != known)
        return tc_options_take_other(to, known, given, title, init, why);
    memcpy(to, given, known);
    return 0;
}

/* False when fields of a struct, which begins with its size, are set beyond the `known` bytes. */
bool tc_options_known(const void *given, size_t known);

#endif
