/* Tests that wait most of the time, run side by side: each in a process of its own. */
#ifndef TC_SUPPORT_PARALLEL_H
#define TC_SUPPORT_PARALLEL_H

#include "support/cmocka.h"

/* Forks a process for each test; call it before the program has threads. Returns how many failed. */
int parallel_run(const struct CMUnitTest *tests, size_t n);

#endif
