/* Shared libraries that are loaded on first use, so that they cost nothing in the many programs that never use them.
 * Any thread. */
#ifndef TC_BASE_LIBRARY_H
#define TC_BASE_LIBRARY_H

#include <stddef.h>

/* Loads the first of `files` (as dlopen takes them) that can be loaded, and puts the addresses of `names` into
 * `functions`, in their order; both lists end with NULL. A loaded library stays loaded. Returns 0; or TORC_EIO with the
 * reason in `why`, which names the library as `title`: `functions` must not be used then. */
int tc_library_load(const char *title, const char *const *files, const char *const *names, void **functions, char *why,
                    size_t why_bytes);

#endif
