/* The default runtime of a world. The functions are called on the thread of the world. */
#ifndef TC_TESTING_PROCESS_H
#define TC_TESTING_PROCESS_H

#include <stdbool.h>

/* Returns whether the world has a default runtime. */
bool tc_process_has_default(void);
/* Frees the default runtime, if there is one. torc_runtime_new fails inside the call. Not for a callback of that
 * runtime: the runtime would stay. */
void tc_process_end(void);

#endif
