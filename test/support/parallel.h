/* Runs tests side by side, each in a process of its own; for tests that wait most of the time. */
#ifndef TC_SUPPORT_PARALLEL_H
#define TC_SUPPORT_PARALLEL_H

#include "support/cmocka.h"

/* Forks a process for each test and waits for all. Call it before the program has threads. Returns how many tests
 * failed. */
int parallel_run(const struct CMUnitTest *tests, size_t n);

#endif
