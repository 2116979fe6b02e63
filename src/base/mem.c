#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void (*oom_handler)(size_t size);

void tc_out_of_memory(size_t size)
{
    if (oom_handler)
        oom_handler(size);
    if (size)
        fprintf(stderr, "torc: out of memory (%zu bytes)\n", size);
    else
        fputs("torc: out of memory\n", stderr);
    abort();
}

void torc_set_out_of_memory_handler(void (*fn)(size_t size))
{
    oom_handler = fn;
}

void *tc_malloc(size_t size)
{
    void *p = malloc(size ? size : 1);
    if (!p)
        tc_out_of_memory(size);
    return p;
}

void *tc_calloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p)
        tc_out_of_memory(n > SIZE_MAX / (size ? size : 1) ? SIZE_MAX : n * size);
    return p;
}

void *tc_realloc(void *ptr, size_t size)
{
    void *p = realloc(ptr, size ? size : 1);
    if (!p)
        tc_out_of_memory(size);
    return p;
}

void *tc_try_realloc(void *ptr, size_t size)
{
    return realloc(ptr, size ? size : 1);
}

void *tc_reallocarray(void *ptr, size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        tc_out_of_memory(SIZE_MAX);
    return tc_realloc(ptr, total);
}

char *tc_strndup(const char *s, size_t len)
{
    if (len == SIZE_MAX)
        tc_out_of_memory(len);
    char *p = tc_malloc(len + 1);
    if (len)
        memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

char *tc_strdup(const char *s)
{
    return tc_strndup(s, strlen(s));
}

void tc_free(void *ptr)
{
    free(ptr);
}

void tc_free_secret(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}
