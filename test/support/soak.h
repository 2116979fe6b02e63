/* The duration of a randomised test: TORC_SOAK_SECONDS if set, otherwise `usual`, some seconds for `make check`. */
#ifndef TC_SUPPORT_SOAK_H
#define TC_SUPPORT_SOAK_H

#include <stdlib.h>

static inline unsigned soak_seconds(unsigned usual)
{
    const char *text = getenv("TORC_SOAK_SECONDS");
    unsigned long seconds = text ? strtoul(text, NULL, 10) : 0;
    return seconds ? (unsigned)seconds : usual;
}

#endif
