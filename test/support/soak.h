/* The duration of a randomised test. */
#ifndef TC_SUPPORT_SOAK_H
#define TC_SUPPORT_SOAK_H

#include <stdlib.h>

/* Returns TORC_SOAK_SECONDS of the environment, or `usual` if it is unset or 0. */
static inline unsigned soak_seconds(unsigned usual)
{
    const char *text = getenv("TORC_SOAK_SECONDS");
    unsigned long seconds = text ? strtoul(text, NULL, 10) : 0;
    return seconds ? (unsigned)seconds : usual;
}

#endif
