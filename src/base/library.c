#include "base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <torc/torc.h>

#include "base/fork.h"

static int library_load(const char *title, const char *const *files, const char *const *names, void **functions,
                        char *why, size_t why_bytes)
{
    void *handle = NULL;
    for (size_t i = 0; !handle && files[i]; i++) {
        handle = dlopen(files[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        const char *reason = handle ? NULL : dlerror(); /* valid until the next dlopen */
        if (!handle && i == 0)
            snprintf(why, why_bytes, "%s cannot be loaded: %s", title, reason ? reason : "");
    }
    if (!handle)
        return TORC_EIO;
    why[0] = '\0';
    for (size_t i = 0; names[i]; i++)
        if (!(functions[i] = dlsym(handle, names[i]))) {
            snprintf(why, why_bytes, "%s is too old: it has no %s", title, names[i]);
            return TORC_EIO;
        }
    return 0;
}

int tc_library_load(const char *title, const char *const *files, const char *const *names, void **functions, char *why,
                    size_t why_bytes)
{
    if (!tc_foreign_enter()) {
        snprintf(why, why_bytes, "%s cannot be loaded: the process is exiting", title);
        return TORC_EIO;
    }
    int rc = library_load(title, files, names, functions, why, why_bytes);
    tc_foreign_leave();
    return rc;
}
