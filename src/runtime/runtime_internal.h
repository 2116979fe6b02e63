/* The inside of a runtime, for the files of src/runtime and one test. Members are set when the runtime is made, and any
 * thread may read them, unless they are marked as the loop's, atomic, or under the mutex. torc_runtime_free clears
 * pool, xds_domain and log_sink. */
#ifndef TC_RUNTIME_RUNTIME_INTERNAL_H
#define TC_RUNTIME_RUNTIME_INTERNAL_H

#include <pthread.h>

#include "base/ref.h"
#include "runtime/runtime.h"

/* A value of tc_runtime_set_extra. */
struct tc_runtime_slot {
    struct tc_runtime_slot *next;
    const void *key;
    void *value;
    void (*destroy)(void *value);
};

struct torc_runtime {
    struct tc_ref ref;
    struct tc_loop *loop; /* a reference */
    enum torc_runtime_mode mode;
    bool own_loop; /* torc_runtime_free frees the loop */
    struct tc_pool *pool;
    struct tc_runtime_shared shared;
    torc_xds_domain *xds_domain;  /* a reference; NULL: none is shared */
    struct tc_log_sink *log_sink; /* owned; NULL: the process's */
    size_t csds_answer_bytes;     /* the option, at most SIZE_MAX; INT64_MAX: no limit */
    uint64_t memory_limit_bytes;  /* 0: none, and calls are not counted */

    /* The loop's: */
    struct tc_link members; /* of struct tc_runtime_member */
    struct tc_runtime_slot *slots;
    uint64_t calls_bytes; /* the sum of tc_runtime_count_memory */

    struct tc_thread *thread; /* the runtime's own, in TORC_RUNTIME_THREAD mode */
    int fd;                   /* the loop's; -1: a manual loop */
    atomic_bool fd_given;     /* torc_runtime_fd was called */
    struct tc_task shutdown;
    atomic_bool closed;  /* torc_runtime_free was called */
    atomic_bool stopped; /* the shutdown ran on the loop */

    unsigned generation; /* tc_fork_generation when the runtime was made */
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct tc_link waiters; /* tc_wait.link of the threads in tc_runtime_wait */
    struct tc_link pollers; /* tc_wait.owner of the threads in torc_runtime_poll while another thread drives */
    struct tc_wait *freer;  /* the thread in torc_runtime_free; NULL: none */
    bool driven;            /* a waiter, a poll or the runtime's own thread turns the loop */
    pthread_t driver; /* the waiter or poll that turns the loop; valid while `driven` in TORC_RUNTIME_CALLER mode */
    /* When the application's wait for the descriptor ends, as the last torc_runtime_timeout_ms told it (in the time of
     * tc_loop_next_ms); UINT64_MAX: never, or the application got the descriptor and has not asked yet; 0: it does not
     * wait, or asks again before it waits. */
    uint64_t told_ms;
    bool asks;       /* the application has called torc_runtime_timeout_ms */
    pthread_t asker; /* the thread that called it last; valid if `asks` */
};

#endif
