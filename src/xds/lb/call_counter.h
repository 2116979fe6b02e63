/* Counts the RPCs in flight to one {cluster, EDS service} over all channels and runtimes of the process, for circuit
 * breaking (A32). Any thread. */
#ifndef TC_XDS_LB_CALL_COUNTER_H
#define TC_XDS_LB_CALL_COUNTER_H

#include <stdatomic.h>

#include "base/rstr.h"
#include "base/table.h"

struct tc_call_counter {
    atomic_uint calls;
    /* For call_counter.c alone. */
    unsigned users;      /* references; guarded by the lock of call_counter.c */
    unsigned generation; /* tc_fork_generation of the process whose table has it */
    struct tc_rstr *key; /* of cluster and service; a reference */
    UT_hash_handle hh;
};

/* Returns the counter with one more reference, never NULL, after making it if need be. service may be NULL. A forked
 * process has counters of its own, since the parent's RPCs are not the child's. */
struct tc_call_counter *tc_call_counter_get(const struct tc_rstr *cluster, const struct tc_rstr *service);
/* Gives up a reference; the last one frees the counter. NULL is allowed. */
void tc_call_counter_unref(struct tc_call_counter *c);

/* Counts one more RPC. Returns false, and counts nothing, if `max` or more are in flight, however many threads count at
 * the same time. A refused call adds one for a moment; meanwhile another thread may be refused although a place has
 * just become free.
 *
 * *full belongs to the caller and is false at first. While it is true (the last call was refused) the counter is read
 * before it is written, so that threads under overload do not contend for its cache line. */
static inline bool tc_call_counter_begin(struct tc_call_counter *c, uint32_t max, bool *full)
{
    if (*full && atomic_load_explicit(&c->calls, memory_order_relaxed) >= max)
        return false;
    *full = atomic_fetch_add_explicit(&c->calls, 1, memory_order_relaxed) >= max;
    if (*full)
        atomic_fetch_sub_explicit(&c->calls, 1, memory_order_relaxed);
    return !*full;
}

/* Subtracts an RPC that tc_call_counter_begin counted. */
static inline void tc_call_counter_end(struct tc_call_counter *c)
{
    atomic_fetch_sub_explicit(&c->calls, 1, memory_order_relaxed);
}

#endif
