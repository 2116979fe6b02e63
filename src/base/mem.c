/* The allocator, and the one place where running out of memory ends the process.
 *
 * `functions` is `untouched` until the first allocation, which makes it `of_libc`, or until torc_set_allocator, which
 * makes it `of_application`. One compare-exchange decides for good: a block must be freed by the functions that gave
 * it. From then on an allocation costs a load and an indirect call more than malloc itself. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <torc/memory.h>

#include "base/sized.h"

struct functions {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t n, size_t size);
    void *(*realloc)(void *ptr, size_t size);
    void (*free)(void *ptr);
};

static void *first_malloc(size_t size);
static void *first_calloc(size_t n, size_t size);
static void *first_realloc(void *ptr, size_t size);
static void first_free(void *ptr);

static const struct functions of_libc = {malloc, calloc, realloc, free};
static const struct functions untouched = {first_malloc, first_calloc, first_realloc, first_free};
static struct functions of_application;
/* Set by the one call of torc_set_allocator that may write of_application. */
static atomic_flag claimed = ATOMIC_FLAG_INIT;
static _Atomic(const struct functions *) functions = &untouched;

static const struct functions *mem_current(void)
{
    return atomic_load_explicit(&functions, memory_order_acquire);
}

static const struct functions *mem_decide(void)
{
    const struct functions *expected = &untouched;
    atomic_compare_exchange_strong(&functions, &expected, &of_libc);
    return mem_current();
}

static void *first_malloc(size_t size)
{
    return mem_decide()->malloc(size);
}

static void *first_calloc(size_t n, size_t size)
{
    return mem_decide()->calloc(n, size);
}

static void *first_realloc(void *ptr, size_t size)
{
    return mem_decide()->realloc(ptr, size);
}

static void first_free(void *ptr)
{
    if (ptr)
        mem_decide()->free(ptr);
}

int torc_set_allocator(const struct torc_allocator *given)
{
    struct torc_allocator a;
    int rc = given ? tc_sized_take(&a, sizeof(a), given) : TORC_EINVAL;
    if (rc != 0)
        return rc;
    if (!a.malloc || !a.calloc || !a.realloc || !a.free)
        return TORC_EINVAL;
    const struct functions *expected = &untouched;
    if (mem_current() != expected || atomic_flag_test_and_set(&claimed))
        return TORC_ESTATE;
    of_application = (struct functions){a.malloc, a.calloc, a.realloc, a.free};
    return atomic_compare_exchange_strong(&functions, &expected, &of_application) ? 0 : TORC_ESTATE;
}

/* No lock: it is set while no other thread uses Torc. */
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

void tc_zero(void *p, size_t n)
{
    memset(p, 0, n);
}

void *tc_malloc(size_t size)
{
    void *p = mem_current()->malloc(size ? size : 1);
    if (!p)
        tc_out_of_memory(size);
    return p;
}

void *tc_calloc(size_t n, size_t size)
{
    void *p = mem_current()->calloc(n ? n : 1, size ? size : 1);
    if (!p)
        tc_out_of_memory(n > SIZE_MAX / (size ? size : 1) ? SIZE_MAX : n * size);
    return p;
}

void *tc_realloc(void *ptr, size_t size)
{
    void *p = mem_current()->realloc(ptr, size ? size : 1);
    if (!p)
        tc_out_of_memory(size);
    return p;
}

void *torc_realloc(void *ptr, size_t size)
{
    return tc_realloc(ptr, size);
}

void *tc_try_realloc(void *ptr, size_t size)
{
    return mem_current()->realloc(ptr, size ? size : 1);
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
    mem_current()->free(ptr);
}

void torc_free(void *ptr)
{
    tc_free(ptr);
}

void tc_free_secret(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    tc_free(text);
}
