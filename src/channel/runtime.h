/* The runtime inside the library: its loop, what it keeps for all its channels, and how threads wait for it. */
#ifndef TC_CHANNEL_RUNTIME_H
#define TC_CHANNEL_RUNTIME_H

#include <pthread.h>

#include <torc/runtime.h>

#include "io/loop.h"

struct tc_pool;
struct tc_call_pool;

/* The loop on which everything of the runtime runs. Any thread. */
struct tc_loop *tc_runtime_loop(const torc_runtime *rt);

/* A slot for what another module shares among the channels of a runtime (mesh: its xDS clients). `key` is the address
 * of something static. NULL when nothing was set. Loop thread. */
void *tc_runtime_extra(torc_runtime *rt, const void *key);
/* Sets it once; `destroy` is called on the loop thread when the runtime ends: after its public channels were shut down,
 * before the connections close. It may finish asynchronously as long as every step is driven by the loop. */
void tc_runtime_set_extra(torc_runtime *rt, const void *key, void *value, void (*destroy)(void *value));

/* Counted by the handle, the channels, the calls and what else outlives the handle. Any thread. */
torc_runtime *tc_runtime_ref(torc_runtime *rt);
void tc_runtime_unref(torc_runtime *rt);
/* 0 when the runtime can be used; TORC_EFORK in a child of the process that made it, TORC_ECLOSED after
 * torc_runtime_free. Any thread. */
int tc_runtime_check(const torc_runtime *rt);
/* Runs fn on the loop and waits until it has run; at once when the caller is inside a callback of the runtime. What
 * tc_runtime_check says, and fn is not called when that is not 0. Any thread. */
int tc_runtime_do(torc_runtime *rt, void (*fn)(void *arg), void *arg);

/* Inside src/channel from here on. */

/* A runtime that runs on a loop of the test's own (manual mode); the loop stays the test's, which frees it after
 * torc_runtime_free. */
torc_runtime *tc_runtime_new_on(struct tc_loop *loop, const struct torc_runtime_options *options);

struct tc_pool *tc_runtime_pool(const torc_runtime *rt);
struct tc_call_pool *tc_runtime_calls(const torc_runtime *rt);
/* Channels that live, so that the runtime can shut them down. Loop thread. */
struct tc_link *tc_runtime_channels(torc_runtime *rt);

/* As tc_runtime_check, for a call that blocks: TORC_EDEADLK as well when the calling thread is inside a callback of the
 * runtime. */
int tc_runtime_check_blocking(const torc_runtime *rt);
/* Gets a task to run on the loop: by the serial queue from the loop's own turn, else by a post. A task must not be
 * given twice before it ran. Any thread. */
void tc_runtime_run(torc_runtime *rt, struct tc_task *task);

/* Do threads that wait drive the loop? Any thread. */
bool tc_runtime_caller_drives(const torc_runtime *rt);
/* Does one of them just now? With the lock held. */
bool tc_runtime_driven(const torc_runtime *rt);
/* Guards all that threads which block share with the loop. */
void tc_runtime_lock(torc_runtime *rt);
void tc_runtime_unlock(torc_runtime *rt);

/* A thread that waits; on its stack. */
struct tc_wait {
    struct tc_link link;  /* among the runtime's waiters */
    struct tc_link owner; /* on a list of whoever wakes it */
    pthread_cond_t cond;
    bool woken; /* under the lock */
};

void tc_wait_init(struct tc_wait *w);
void tc_wait_fini(struct tc_wait *w);
/* Wakes it; the lock is held. */
void tc_wait_wake(struct tc_wait *w);
/* With the lock held: waits until woken (0, and resets the mark) or until the clock is at until_ns (TORC_ETIMEDOUT;
 * UINT64_MAX: never). A runtime without a thread is driven meanwhile, by one of its waiters at a time. */
int tc_runtime_wait(torc_runtime *rt, struct tc_wait *w, uint64_t until_ns);

#endif
