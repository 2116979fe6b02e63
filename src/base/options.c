#include "base/options.h"

#include <torc/torc.h>

#include "base/buf.h"
#include "base/common.h"

/* No struct will ever be larger: such a size was never set. */
#define MAX_BYTES 4096u

bool tc_options_known(const void *given, size_t known)
{
    const unsigned char *bytes = given;
    size_t size = *(const size_t *)given;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

int tc_options_take_other(void *to, size_t known, const void *given, const char *title, const char *init, char **why)
{
    size_t size = *(const size_t *)given;
    if (size < sizeof(size) || size > MAX_BYTES) {
        if (why)
            *why = tc_asprintf("%s: size is %zu: call %s first", title, size, init);
        return TORC_EINVAL;
    }
    if (!tc_options_known(given, known)) {
        if (why)
            *why = tc_asprintf(
                "%s: fields are set that this library, Torc %s, does not know: the program was built with the "
                "headers of a newer version (%zu bytes from %s, %zu known)",
                title, torc_version(), size, init, known);
        return TORC_EUNSUPPORTED;
    }
    memcpy(to, given, TC_MIN(size, known));
    return 0;
}
