/* The end of the default runtime with its world. The thread of the world. */
#ifndef TC_TESTING_PROCESS_H
#define TC_TESTING_PROCESS_H

#include <stdbool.h>

bool tc_process_has_default(void);
/* Frees the default runtime, if there is one. */
void tc_process_end(void);

#endif
