/* Makes runtimes for tests; applications use torc/runtime.h. Any thread. */
#ifndef TC_RUNTIME_CREATE_H
#define TC_RUNTIME_CREATE_H

#include "runtime/runtime.h"

/* Returns a runtime, which torc_runtime_free frees, on a manual loop that the test drives; never NULL. The options must
 * be valid (NULL: the defaults); their mode does not count. The loop stays the test's, which frees it after
 * torc_runtime_free. */
torc_runtime *tc_runtime_new_on(struct tc_loop *loop, const struct torc_runtime_options *options);

#endif
