/* The runtime inside the library: its loop, and what it keeps for all its channels. Threads that block:
 * runtime/blocking.h. */
#ifndef TC_RUNTIME_RUNTIME_H
#define TC_RUNTIME_RUNTIME_H

#include <stdatomic.h>

#include <torc/runtime.h>

#include "io/loop.h"

struct tc_pool;
struct tc_status;

/* Returns the loop on which everything of the runtime runs. Borrowed: valid as long as the runtime's memory. Any
 * thread. */
struct tc_loop *tc_runtime_loop(const torc_runtime *rt);
/* The handle, the channels, their calls and whatever else may outlive the handle hold a reference. tc_runtime_unref
 * allows NULL. Any thread. */
torc_runtime *tc_runtime_ref(torc_runtime *rt);
void tc_runtime_unref(torc_runtime *rt);
/* Returns 0 if the runtime can be used; TORC_EINVAL for NULL; TORC_ECLOSED once torc_runtime_free has begun; TORC_EFORK
 * in a child of the process that made it, and when the process is exiting. Any thread. */
int tc_runtime_check(const torc_runtime *rt);
/* Returns `given`, or for NULL the default runtime, without a new reference. Returns NULL with an error (`error` may be
 * NULL) if the runtime cannot be used, or no default runtime can be made; `name` is the argument that the error names
 * if `given` cannot be used. Any thread. */
torc_runtime *tc_runtime_or_default(torc_runtime *given, const char *name, torc_error **error);

/* Returns the value that a module keeps with a runtime (xds/domain: the xDS clients that its channels share), or NULL
 * if none was set, or its `destroy` was called. `key` is the address of something static. Borrowed. Loop thread. */
void *tc_runtime_extra(torc_runtime *rt, const void *key);
/* Sets the value for the key, once. `destroy` is called when the runtime ends: after its public channels and its
 * servers were shut down, before its private channels. `destroy` may finish asynchronously as long as the loop drives
 * every step. Loop thread. */
void tc_runtime_set_extra(torc_runtime *rt, const void *key, void *value, void (*destroy)(void *value));

/* Returns the xDS domain (runtime/xds_domain.h) that the runtime shares; NULL: none. Borrowed. Any thread. */
torc_xds_domain *tc_runtime_xds_domain(const torc_runtime *rt);
/* Returns the option csds_answer_bytes, at most SIZE_MAX; INT64_MAX: no limit. Any thread. */
size_t tc_runtime_csds_answer_bytes(const torc_runtime *rt);

/* --- for channels, calls and their public functions --- */

/* Returns the pool of subchannels. Borrowed. Loop thread. */
struct tc_pool *tc_runtime_pool(const torc_runtime *rt);

/* Has a task run on the loop: by the serial queue if called inside a turn of the loop, else by a post. A task must not
 * be passed again before it has run. Returns false if the loop has ended since tc_runtime_check, and the task does not
 * run. The caller holds a reference, directly or by a channel or a call, that the task does not give up. Any thread. */
bool tc_runtime_run(torc_runtime *rt, struct tc_task *task);
/* Returns true once the runtime has shut down its channels and connections. The loop still runs posted tasks, but
 * nothing new begins. Loop thread. */
bool tc_runtime_stopped(const torc_runtime *rt);

/* An object that the runtime ends before the runtime itself ends: a channel, or a server's part on the runtime, embeds
 * it. The owner takes it off the list with tc_list_remove. Loop thread. */
struct tc_runtime_member {
    struct tc_link link;
    bool is_private; /* serves public members, which are ended first */
    /* Must take the member off the list. `status` is borrowed for the call. */
    void (*on_shutdown)(struct tc_runtime_member *member, const struct tc_status *status);
};
/* Adds a member, whose `is_private` and `on_shutdown` are set. Loop thread. */
void tc_runtime_join(torc_runtime *rt, struct tc_runtime_member *member);

/* A slot for a value that api/ keeps for the threads that use a runtime (the pool of calls). A thread that finds no
 * value makes one, and the first compare-and-swap stores it; `destroy` is set before. The value is destroyed with the
 * runtime's memory. */
struct tc_runtime_shared {
    _Atomic(void *) value; /* NULL: not made yet */
    void (*_Atomic destroy)(void *value);
};
/* Returns the slot, borrowed from the runtime. Any thread. */
struct tc_runtime_shared *tc_runtime_shared(torc_runtime *rt);

/* Returns the option memory_limit_bytes; 0: none. Any thread. */
uint64_t tc_runtime_memory_limit(const torc_runtime *rt);
/* Returns the bytes that count against the limit. Loop thread. */
uint64_t tc_runtime_memory_held(const torc_runtime *rt);
/* An owner that counted for *counted bytes counts for `bytes` from now on. Loop thread. */
void tc_runtime_count_memory(torc_runtime *rt, size_t *counted, size_t bytes);

#endif
