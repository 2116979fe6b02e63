/* Two decisions of the process: which runtime is the default one, and whether a new runtime may be made.
 * libtorc-testing and test/sim use testing/process.c instead of process.c: there a world drives every runtime. Any
 * thread; in a world, any thread of the world (testing/threads.h), of which one runs at a time. */
#ifndef TC_RUNTIME_PROCESS_H
#define TC_RUNTIME_PROCESS_H

#include <stdbool.h>

#include <torc/runtime.h>

/* Called by torc_runtime_new with the complete options, which the function may change. Returns false with an error if
 * the process cannot have the runtime. tc_runtime_new_on does not call it. */
bool tc_process_admit(struct torc_runtime_options *options, torc_error **error);
/* Returns true for the runtime of torc_runtime_default, which torc_runtime_free refuses. */
bool tc_process_keeps(const torc_runtime *rt);
/* Returns the default runtime, as torc_runtime_default does. Makes one if there is none, or if the loop of the present
 * one no longer turns (tc_loop_forked: in a forked child, and when the process is exiting); the old runtime is then not
 * freed. In a world, makes one only if there is none. Returns NULL with an error (`error` may be NULL) if none can be
 * made. The runtime is borrowed. */
torc_runtime *tc_process_runtime(torc_error **error);

#endif
