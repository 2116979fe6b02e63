#include "base/options.h"

#include <torc/torc.h>

#include "base/common.h"
#include "base/sized.h"

/* A larger size was never set by an init function: the struct is uninitialised. */
enum { MAX_BYTES = 4096 };

int tc_options_take_other(void *to, size_t known, const void *given, const char *title, const char *init,
                          torc_error **error)
{
    size_t size = *(const size_t *)given;
    if (size < sizeof(size) || size > MAX_BYTES) {
        tc_error_set(error, TORC_EINVAL, TORC_LAYER_API, "%s: size is %zu: call %s first", title, size, init);
        return TORC_EINVAL;
    }
    if (!tc_sized_known(given, known)) {
        tc_error_set(error, TORC_EUNSUPPORTED, TORC_LAYER_API,
                     "%s: fields are set that this library, Torc %s, does not know: the program was built with "
                     "the headers of a newer version (%zu bytes from %s, %zu known)",
                     title, TORC_VERSION, size, init, known);
        return TORC_EUNSUPPORTED;
    }
    memcpy(to, given, TC_MIN(size, known));
    return 0;
}
