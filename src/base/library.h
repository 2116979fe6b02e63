/* Shared libraries that are loaded on first use, so that they cost nothing in programs that never use them. Any
 * thread. */
#ifndef TC_BASE_LIBRARY_H
#define TC_BASE_LIBRARY_H

#include <stddef.h>

/* Loads the first of `files` (as dlopen takes them) that can be loaded, and stores the addresses of `names` in
 * `functions`, in their order. Both lists end with NULL. A loaded library stays loaded. Returns 0 with an empty `why`;
 * or TORC_EIO with the reason in `why`, which calls the library `title`: `functions` must not be used then. If no
 * file can be loaded, the reason is the first file's, or that the process is exiting. */
int tc_library_load(const char *title, const char *const *files, const char *const *names, void **functions, char *why,
                    size_t why_bytes);

#endif
