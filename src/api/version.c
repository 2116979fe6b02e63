#include <torc/version.h>

const char *torc_version(void)
{
    return TORC_VERSION;
}
