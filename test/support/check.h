/* CHECK asserts in code that may run on a thread other than the test's: a handler, a callback of a runtime, a thread
 * that the test made. There cmocka's assertions must not be used: a failure would jump to a frame of the test's thread.
 * CHECK prints the condition and ends the program. */
#ifndef TC_SUPPORT_CHECK_H
#define TC_SUPPORT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                  \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
