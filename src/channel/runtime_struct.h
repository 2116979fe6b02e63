/* The runtime's insides, for runtime.c and wait.c alone. */
#ifndef TC_CHANNEL_RUNTIME_STRUCT_H
#define TC_CHANNEL_RUNTIME_STRUCT_H

#include "base/ref.h"
#include "channel/runtime.h"

struct tc_runtime_slot {
    struct tc_runtime_slot *next;
    const void *key;
    void *value;
    void (*destroy)(void *value);
};

struct torc_runtime {
    struct tc_ref ref;
    struct tc_loop *loop;
    enum torc_runtime_mode mode;
    bool own_loop;
    struct tc_pool *pool;
    struct tc_call_pool *calls;
    struct tc_link channels;
    struct tc_runtime_slot *slots;
    torc_xds_domain *xds_domain; /* NULL: none is shared */

    pthread_t thread; /* TORC_RUNTIME_THREAD */
    struct tc_task shutdown;
    atomic_bool closed;  /* torc_runtime_free was called */
    atomic_bool stopped; /* the shutdown ran on the loop */

    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct tc_link waiters;
    struct tc_link pollers; /* torc_runtime_poll while another thread drives; by tc_wait.owner */
    struct tc_wait *freer;  /* the thread in torc_runtime_free */
    bool driven;            /* by one of the waiters, or by a poll */
    pthread_t driver;
};

#endif
