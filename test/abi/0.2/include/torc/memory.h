/* Torc's allocator, and the reaction to an allocation that fails. SPDX-License-Identifier: Apache-2.0
 *
 * Both are settings of the whole process, made while no other thread uses Torc:
 *
 *     int main(void)
 *     {
 *         static const struct torc_allocator pool = {TORC_SIZE(torc_allocator), .malloc = pool_malloc,
 *                                                    .calloc = pool_calloc, .realloc = pool_realloc,
 *                                                    .free = pool_free};
 *         if (torc_set_allocator(&pool) != 0)
 *             abort(); // Torc has allocated already
 *         torc_set_out_of_memory_handler(write_a_report_and_exit);
 *         ...
 *     }
 */
#ifndef TORC_MEMORY_H
#define TORC_MEMORY_H

#include <stddef.h>

#include <torc/export.h>
#include <torc/size.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions to use instead of libc's, with the contracts that the C standard gives to libc's: alignment for any type,
 * free of NULL does nothing. Torc asks for no block of 0 bytes. Each may be called on any thread, several at once, and
 * must not call Torc. All four are required. */
struct torc_allocator {
    uint64_t size;
    void *(*malloc)(size_t size);             /* as libc's */
    void *(*calloc)(size_t n, size_t size);   /* as libc's */
    void *(*realloc)(void *ptr, size_t size); /* as libc's */
    void (*free)(void *ptr);                  /* as libc's */
};

/* Makes Torc allocate with these functions until the process ends; the struct is copied. To be called once, before any
 * other function of Torc and while no other thread uses Torc. Returns 0; or an error, and nothing changes: TORC_ESTATE
 * if Torc has allocated already, an allocator was set before, or another thread is setting one; TORC_EINVAL if
 * `allocator` or a function is NULL, or the struct's size is out of range; TORC_EUNSUPPORTED if fields are set that a
 * newer version has added.
 *
 * The allocator also serves HTTP/2 sessions (nghttp2), decoded xDS messages (protobuf-c), hash tables and message
 * compression (zlib). It does not serve jansson, libuv, c-ares, OpenSSL, libcurl and RE2, because each of them has one
 * allocator for the whole process, and the program may use the same library; nor libc, stacks of threads, and the
 * options from which nghttp2 makes a session. Memory that Torc gives to the application goes back by torc_free, also
 * with an allocator of the application's own. Torc keeps some blocks until the process ends. */
TORC_API int torc_set_allocator(const struct torc_allocator *allocator);

/* Frees a string or bytes that a function of Torc has given to the application, as torc_channel_describe does: the
 * comment of each such function says so. Not for borrowed memory, objects that have a free function of their own, and
 * memory of the application's own malloc; and the application's free is not for Torc's memory. NULL is allowed. Works
 * also after all channels and runtimes have ended. Any thread. */
TORC_API void torc_free(void *ptr);

/* Returns memory of `size` bytes, which torc_free frees: for libraries on top of Torc (such as libtorc-json) whose
 * functions give out memory as Torc's do. ptr: memory of Torc, which is resized and may move, or NULL for new memory,
 * which is not zeroed. Never NULL: if the system has no memory, the program ends as torc_set_out_of_memory_handler
 * says. Any thread. */
TORC_API void *torc_realloc(void *ptr, size_t size);

/* Sets the function that is called when an allocation fails: fn gets the size in bytes that was asked for (0: not
 * known), on the thread that asked. fn must not return (a longjmp out of Torc is a return) and must not call Torc, and
 * it should allocate nothing. It may write a log, and end the process by abort, _exit, quick_exit, exec, or exit, which
 * waits for Torc's threads for one second at most. NULL restores the default: a line on standard error that names the
 * size if it is known, and abort.
 *
 * fn is not called for memory whose size a peer announces: a message and its inflated form, bytes that wait to be read,
 * a response of a control plane and its decoding. If that memory cannot be had, the RPC, the stream or the resource
 * fails. fn is called for all other memory of Torc, also for data of peers that Torc keeps: headers, accepted resources
 * and their endpoints, rings, regular expressions. docs/operations/limits.md has the bounds; see also
 * memory_limit_bytes of struct torc_runtime_options. Libraries with allocators of their own handle failures themselves
 * (libuv aborts), except RE2, whose failures call fn. Not safe while another thread uses Torc. */
TORC_API void torc_set_out_of_memory_handler(void (*fn)(size_t size));

#ifdef __cplusplus
}
#endif
#endif
