/* Tells AddressSanitizer about memory that a pool keeps for reuse. A pool hides a use after free, since memory that was
 * given back to it still belongs to the process. So a pool poisons memory when it comes back and unpoisons it when it
 * goes out; a use in between is reported as use-after-poison. Without AddressSanitizer the functions do nothing.
 *
 * Links and arenas that a pool itself reads stay unpoisoned: the leak checker does not follow pointers in poisoned
 * memory. A pool unpoisons memory before it frees it. AddressSanitizer's own free would do that, but an application's
 * allocator (torc_set_allocator) does not. Any thread. */
#ifndef TC_BASE_POISON_H
#define TC_BASE_POISON_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define TC_POISONS true
#elif defined(__has_feature)
#define TC_POISONS __has_feature(address_sanitizer)
#else
#define TC_POISONS false
#endif

#if TC_POISONS
#include <sanitizer/asan_interface.h>
#define TC_POISON_REGION(at, bytes) ASAN_POISON_MEMORY_REGION(at, bytes)
#define TC_UNPOISON_REGION(at, bytes) ASAN_UNPOISON_MEMORY_REGION(at, bytes)
#define TC_IS_POISONED(at) (__asan_address_is_poisoned(at) != 0)
#else
#define TC_POISON_REGION(at, bytes) ((void)(at), (void)(bytes))
#define TC_UNPOISON_REGION(at, bytes) ((void)(at), (void)(bytes))
#define TC_IS_POISONED(at) ((void)(at), false)
#endif

/* Marks bytes that must not be used until they are unpoisoned. `at` is aligned to 8 bytes. */
static inline void tc_poison(const void *at, size_t bytes)
{
    TC_POISON_REGION(at, bytes);
}

/* Marks bytes as in use. Poisoned bytes behind them stay poisoned, to the byte. */
static inline void tc_unpoison(const void *at, size_t bytes)
{
    TC_UNPOISON_REGION(at, bytes);
}

/* Returns whether the byte at `at` is poisoned; false without AddressSanitizer. For tests. */
static inline bool tc_is_poisoned(const void *at)
{
    return TC_IS_POISONED(at);
}

#endif
