/* Memory. Out of memory ends the process here and nowhere else, through a handler that the application can set; so no
 * allocation returns NULL and no caller checks. Sizes are multiplied with an overflow check. */
#ifndef TC_BASE_MEM_H
#define TC_BASE_MEM_H

#include "base/common.h"

void *tc_malloc(size_t size);
void *tc_calloc(size_t n, size_t size);
void *tc_realloc(void *ptr, size_t size);
void *tc_reallocarray(void *ptr, size_t n, size_t size);
char *tc_strdup(const char *s);
/* A copy of `len` bytes with a NUL after them. */
char *tc_strndup(const char *s, size_t len);
void tc_free(void *ptr);
/* For a secret: a string, overwritten first. NULL is allowed. */
void tc_free_secret(char *text);

/* Called with the size that could not be had; must not return. NULL restores the default (a line on stderr, abort). */
void tc_set_oom_handler(void (*fn)(size_t size));

#define TC_NEW(type) ((type *)tc_calloc(1, sizeof(type)))

#endif
