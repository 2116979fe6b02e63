/* Memory. Out of memory ends the process here and nowhere else, through a handler that the application can set
 * (torc_set_out_of_memory_handler); so no allocation returns NULL and no caller checks, but for those whose size a peer
 * chooses: they ask by tc_try_realloc, and what wanted them fails. Sizes are multiplied with an overflow check. */
#ifndef TC_BASE_MEM_H
#define TC_BASE_MEM_H

#include "base/common.h"

/* What ends the process; for those who find it out themselves. 0: the size is not known. */
_Noreturn void tc_out_of_memory(size_t size);
void *tc_malloc(size_t size);
void *tc_calloc(size_t n, size_t size);
void *tc_realloc(void *ptr, size_t size);
void *tc_reallocarray(void *ptr, size_t n, size_t size);
/* NULL when the system does not give so much; `ptr` is then as it was. */
void *tc_try_realloc(void *ptr, size_t size);
char *tc_strdup(const char *s);
/* A copy of `len` bytes with a NUL after them. */
char *tc_strndup(const char *s, size_t len);
void tc_free(void *ptr);
/* For a secret: a string, overwritten first. NULL is allowed. */
void tc_free_secret(char *text);

#define TC_NEW(type) ((type *)tc_calloc(1, sizeof(type)))

#endif
