/* Memory, from the allocator of the application if it set one (torc_set_allocator). Out of memory ends the process here
 * and nowhere else, through a handler that the application can set (torc_set_out_of_memory_handler); so no allocation
 * returns NULL and no caller checks. Where a peer chooses the size, tc_try_realloc may return NULL, and the operation
 * that needed the memory fails. Sizes are multiplied with an overflow check. Any thread. */
#ifndef TC_BASE_MEM_H
#define TC_BASE_MEM_H

#include "base/common.h"

/* Ends the process. For code that finds out by itself that memory is out; size 0: not known. */
_Noreturn void tc_out_of_memory(size_t size);
/* Zeroes by a call of libc's memset, which is faster from some hundred bytes on than the instruction that compilers
 * inline for a known size. */
void tc_zero(void *p, size_t n);
void *tc_malloc(size_t size);
void *tc_calloc(size_t n, size_t size);
void *tc_realloc(void *ptr, size_t size);
void *tc_reallocarray(void *ptr, size_t n, size_t size);
/* Returns NULL, with `ptr` unchanged, if the system does not have the memory. */
void *tc_try_realloc(void *ptr, size_t size);
char *tc_strdup(const char *s);
/* Returns a copy of `len` bytes with a NUL after them. */
char *tc_strndup(const char *s, size_t len);
void tc_free(void *ptr);
/* Overwrites a secret string, then frees it. NULL is allowed. */
void tc_free_secret(char *text);

#define TC_NEW(type) ((type *)tc_calloc(1, sizeof(type)))

#endif
