/* base/mem.h over libtorc's public functions, without tc_free_secret, which libtorc-json does not call. libtorc-json
 * has this file instead of base/mem.c: the application frees texts and bytes of libtorc-json by torc_free, and only
 * libtorc knows the application's allocator. */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <torc/memory.h>

void *tc_realloc(void *ptr, size_t size)
{
    return torc_realloc(ptr, size);
}

void *tc_malloc(size_t size)
{
    return torc_realloc(NULL, size);
}

void *tc_reallocarray(void *ptr, size_t n, size_t size)
{
    size_t bytes;
    return torc_realloc(ptr, __builtin_mul_overflow(n, size, &bytes) ? SIZE_MAX : bytes);
}

void *tc_calloc(size_t n, size_t size)
{
    void *p = tc_reallocarray(NULL, n, size);
    return memset(p, 0, n * size);
}

/* If memory runs out, ends the process instead of returning NULL: no code of libtorc-json relies on the NULL. */
void *tc_try_realloc(void *ptr, size_t size)
{
    return torc_realloc(ptr, size);
}

char *tc_strndup(const char *s, size_t len)
{
    char *copy = tc_malloc(len + 1);
    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *tc_strdup(const char *s)
{
    return tc_strndup(s, strlen(s));
}

void tc_free(void *ptr)
{
    torc_free(ptr);
}

void tc_zero(void *p, size_t n)
{
    memset(p, 0, n);
}

/* Asks for what no allocator has, so that libtorc calls the out-of-memory handler, with SIZE_MAX. */
void tc_out_of_memory(size_t size)
{
    torc_realloc(NULL, SIZE_MAX);
    (void)size;
    abort();
}
