/* fork: the locks and the library calls that a fork waits for, so that the child finds none of them half done.
 *
 * Everything that a child may use again is under a `struct tc_lock`: the registries and caches of the process, and
 * credentials, which belong to no runtime. A fork takes all locks in the order of their ranks, then waits until no
 * thread is inside a library that has locks of its own (`tc_foreign_enter`; a fork from inside of such a library does
 * not wait), and gives everything back in the parent and in the child. A plain pthread_mutex_t is for what a child
 * never touches: the runtimes, pools and xDS domains of its parent.
 *
 * Rules: a thread that holds a lock takes only locks of a higher rank, neither initialises nor ends a lock, and calls
 * no function of the application but its allocator, which must not call Torc. A thread that holds a lock may enter a
 * foreign section; a thread inside one takes no lock, since a fork holds the locks while it waits for the section. */
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

void tc_lock_init(struct tc_lock *l, enum tc_lock_rank rank);
void tc_lock_fini(struct tc_lock *l);

/* The calling thread is not cancelled while it holds a lock. */
void tc_lock_take(struct tc_lock *l);
void tc_lock_give(struct tc_lock *l);

/* Returns the process's one lock of that rank. */
struct tc_lock *tc_lock_of_process(enum tc_lock_rank rank);

/* Begins a piece of work in a library that has locks of its own and does not reset them in a child: OpenSSL, libcurl,
 * RE2, and of the C library dlopen and atexit. Returns false once an exit has closed foreign libraries
 * (tc_foreign_close): the library must not be called. Nests on one thread; a nested call returns true. The work must
 * not wait for another thread, since fork and exit wait for its end. The thread is not cancelled before it leaves. */
bool tc_foreign_enter(void);
void tc_foreign_leave(void);
/* Sets the function that each thread which was in a foreign section runs last, in a section of its own: it frees
 * OpenSSL's state of the thread. Every call must pass the same `fn`. Any thread. */
void tc_foreign_set_thread_cleanup(void (*fn)(void));
/* For base/thread, and for the end of any other thread that was in a foreign section: runs the cleanup for the calling
 * thread. Returns false, and a thread of base/thread must not end, when foreign libraries are closed and a cleanup is
 * set. */
bool tc_foreign_thread_ends(void);
/* Refuses every later tc_foreign_enter that is not nested. Waits until `until_ns` (monotonic) for the threads that are
 * inside, unless the calling thread is inside itself. */
void tc_foreign_close(uint64_t until_ns);

/* Written by the handler of a fork's child alone. */
extern atomic_uint tc_fork_generation_now;
/* Returns how many forks lie between the process that loaded Torc and this one. */
static inline unsigned tc_fork_generation(void)
{
    return atomic_load_explicit(&tc_fork_generation_now, memory_order_relaxed);
}

#endif
