/* fork: the locks and the library calls that a fork waits for, so that the child finds none of them half done.
 *
 * Data that a child may use again is under a `struct tc_lock`: the registries and caches of the process, and
 * credentials, which belong to no runtime. A fork takes all locks in the order of their ranks. Then it waits until no
 * thread is in a foreign section: inside a library that has locks of its own (tc_foreign_enter). A fork by a thread in
 * a foreign section skips this wait. Parent and child release everything. A plain pthread_mutex_t is for data that a
 * child has no use for: the runtimes, servers, pools and xDS domains of its parent.
 *
 * Rules for a thread that holds a lock: it takes only locks of a higher rank, does not call tc_lock_init and
 * tc_lock_fini, and calls no function of the application but its allocator, which must not call Torc. It may enter a
 * foreign section. A thread in a foreign section takes no lock: a fork holds the locks while it waits for sections. */
#ifndef TC_BASE_FORK_H
#define TC_BASE_FORK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"

/* A fork, and a thread that needs several locks, takes them in this order. */
enum tc_lock_rank {
    TC_RANK_TLS_SOURCE,
    TC_RANK_CERT_FILES,
    TC_RANK_TOKEN,
    TC_RANK_SERVICE_ACCOUNT,
    TC_RANK_HTTP,       /* one for the process: the requests that run */
    TC_RANK_RESOLVERS,  /* one for the process: the registry of schemes */
    TC_RANK_RINGS,      /* one for the process: the cache of rings */
    TC_RANK_COUNTERS,   /* one for the process: the counters of calls */
    TC_RANK_BACKGROUND, /* one for the process: the jobs of the background thread */
    TC_RANK_LOOPS,      /* one for the process: the loops that there are */
    TC_RANK_LOG,        /* one for the process: the levels and sinks of the log */
    TC_RANKS,
};

struct tc_lock {
    pthread_mutex_t mutex;
    struct tc_link link; /* among the locks of its rank */
};

/* Add a lock to those that a fork takes, and take it off. In between the lock stays at its address. The caller holds no
 * lock. Any thread. */
void tc_lock_init(struct tc_lock *l, enum tc_lock_rank rank);
void tc_lock_fini(struct tc_lock *l);

/* Take and release a lock. The thread is not cancelled while it holds one. */
void tc_lock_take(struct tc_lock *l);
void tc_lock_give(struct tc_lock *l);

/* Returns the process's one lock of that rank. */
struct tc_lock *tc_lock_of_process(enum tc_lock_rank rank);

/* Enters a foreign section: work in a library that has locks of its own and does not reset them in a child (OpenSSL,
 * libcurl, RE2's compiler, and of the C library dlopen and atexit). Returns false once an exit has closed foreign
 * libraries (tc_foreign_close): the caller must then call neither the library nor tc_foreign_leave. Sections nest; a
 * nested call returns true. The work must not wait for another thread, since fork and exit wait for the end of the
 * section. The thread is not cancelled in a section. */
bool tc_foreign_enter(void);
void tc_foreign_leave(void);
/* Sets the cleanup of threads, which frees OpenSSL's state of the thread. Each thread that was in a foreign section
 * runs it at its end, in a section, unless foreign libraries are closed by then. Every call must pass the same `fn`.
 * Any thread. */
void tc_foreign_set_thread_cleanup(void (*fn)(void));
/* Runs the cleanup for the calling thread, which is about to end. Returns false if foreign libraries are closed and a
 * cleanup is set: a thread of base/thread must not end then. */
bool tc_foreign_thread_ends(void);
/* Closes foreign libraries: every later tc_foreign_enter that is not nested returns false. Waits until `until_ns`
 * (monotonic) at the latest for the threads in a section, or not at all if the calling thread is in one. */
void tc_foreign_close(uint64_t until_ns);

/* Only the handler of a fork's child writes it. */
extern atomic_uint tc_fork_generation_now;
/* Returns how many forks lie between the process that loaded Torc and this one. */
static inline unsigned tc_fork_generation(void)
{
    return atomic_load_explicit(&tc_fork_generation_now, memory_order_relaxed);
}

#endif
