/* The process of the runtimes: it has a default one, and may refuse runtimes. libtorc-testing and test/sim have a
 * process.c of their own, where a world drives every runtime (testing/process.c). Any thread. */
#ifndef TC_RUNTIME_PROCESS_H
#define TC_RUNTIME_PROCESS_H

#include <stdbool.h>

#include <torc/runtime.h>

/* Called for each new runtime with its complete options, which the function may change. Returns false with an error if
 * the process cannot have the runtime. */
bool tc_process_admit(struct torc_runtime_options *options, torc_error **error);
/* Returns true for the runtime of torc_runtime_default, which torc_runtime_free refuses. */
bool tc_process_keeps(const torc_runtime *rt);
/* Returns the default runtime, made if there is none (or in a child that was forked), as torc_runtime_default does.
 * Returns NULL with an error. */
torc_runtime *tc_process_runtime(torc_error **error);

#endif
