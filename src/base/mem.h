/* Memory, from the allocator of the application if it set one (torc_set_allocator); tc_free frees it. A size of 0 gives
 * a block too. If memory runs out, tc_out_of_memory ends the process, after a call of the application's handler
 * (torc_set_out_of_memory_handler). So no function but tc_try_realloc returns NULL, and no caller checks. Sizes are
 * multiplied with an overflow check. Any thread.
 *
 * Memory whose size a peer announces comes from tc_try_realloc, and the operation fails if memory runs out: a message
 * and its inflated form, bytes that wait to be read, a response of a control plane and its decoding. What Torc keeps of
 * a peer's data (headers, accepted resources) is bounded by limits, and comes from the other functions.
 *
 * base/mem.c has the functions. libtorc-json has json/memory.c instead, whose tc_try_realloc does not return NULL. */
#ifndef TC_BASE_MEM_H
#define TC_BASE_MEM_H

#include "base/common.h"

/* Ends the process. `size`: the bytes that were asked for; 0: not known. */
_Noreturn void tc_out_of_memory(size_t size);
/* Zeroes by a call of libc's memset. From some hundred bytes on, that is faster than the instructions that compilers
 * inline for a size they know. */
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
/* NULL is allowed. */
void tc_free(void *ptr);
/* Overwrites a secret string, then frees it. NULL is allowed. */
void tc_free_secret(char *text);

#define TC_NEW(type) ((type *)tc_calloc(1, sizeof(type)))

#endif
