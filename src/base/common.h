/* Small macros that every file may use. */
#ifndef TC_BASE_COMMON_H
#define TC_BASE_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <torc/error.h>

/* Returns the struct of type `type` whose member `member` is at `ptr`. */
#define TC_CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define TC_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define TC_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define TC_UNUSED __attribute__((unused))
#define TC_LIKELY(x) __builtin_expect(!!(x), 1)
#define TC_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Keeps a function that few calls of its caller reach out of line. If it has an array, or a variable whose address is
 * taken, and is inlined, then every call of its caller pays for a stack-protector check. */
#define TC_APART __attribute__((noinline))
/* The smaller and the larger value. One of the arguments is evaluated twice. */
#define TC_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TC_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Puts the variable into .tdata. With .tbss, mold 1.10 may make a program that does not start: it may lay out .tbss in
 * front of the first page that can be protected. */
#define TC_THREAD_LOCAL __attribute__((section(".tdata"))) _Thread_local

#endif
