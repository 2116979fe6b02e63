/* Shared libraries that are loaded when something first needs them: what most programs never use costs them nothing. */
#ifndef TC_BASE_LIBRARY_H
#define TC_BASE_LIBRARY_H

#include <stddef.h>

/* Loads the first of `files` (as dlopen takes them) that can be had and puts the addresses of `names` into `functions`,
 * in their order; both lists end with NULL. What was loaded stays. TORC_EIO with the reason in `why`, which names
 * the library as `title`; `functions` is not to be used then. */
int tc_library_load(const char *title, const char *const *files, const char *const *names, void **functions, char *why,
                    size_t why_bytes);

#endif
