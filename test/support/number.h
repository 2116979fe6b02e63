/* Numbers that the environment may set for a test, such as a number of rounds or a seed. */
#ifndef TC_SUPPORT_NUMBER_H
#define TC_SUPPORT_NUMBER_H

#include <stdint.h>
#include <stdlib.h>

/* Returns the decimal number in the environment variable, or `otherwise` if it is unset or empty. */
static inline uint64_t tc_env_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && text[0] ? strtoull(text, NULL, 10) : otherwise;
}

#endif
