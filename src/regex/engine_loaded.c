/* Finds the regex engine at run time, for builds with TORC_LATE_LOADING (regex/engine.h says why). */
#include <dlfcn.h>
#include <string.h>

#include "base/buf.h"
#include "base/dlopen_note.h"
#include "base/library.h"
#include "base/mem.h"
#include "regex/engine.h"

#define FILE_NAME "libtorc-regex.so." TC_REGEX_SOVERSION /* of the same version as libtorc.so */

TC_DLOPEN_NOTE("xds-regex", "Regular expressions in xDS resources: RE2 behind a library of Torc's", "recommended",
               "\"" FILE_NAME "\"");

/* Loads the library that was installed beside libtorc.so. If that fails, asks the dynamic linker for the library by
 * name: so a library that the program loaded before a chroot is still found. */
tc_regex_engine_fn tc_regex_engine_find(char *why, size_t why_bytes)
{
    static const char *const names[] = {"torc_regex_engine", NULL};
    Dl_info own;
    char *beside = NULL;
    union {
        tc_regex_engine_fn fn;
        void *address;
    } found;
    if (dladdr((void *)names, &own) && own.dli_fname && strchr(own.dli_fname, '/'))
        beside = tc_asprintf("%.*s" FILE_NAME, (int)(strrchr(own.dli_fname, '/') + 1 - own.dli_fname), own.dli_fname);
    const char *const files[] = {beside ? beside : FILE_NAME, FILE_NAME, NULL};
    int rc = tc_library_load("Torc's library of regular expressions", files, names, &found.address, why, why_bytes);
    tc_free(beside);
    return rc == 0 ? found.fn : NULL;
}
