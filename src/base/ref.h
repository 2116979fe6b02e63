/* Reference counts. `tc_ref` is atomic, for what several threads hold: immutable snapshots (received bytes, decoded
 * resources, configs, rings, shared strings), and objects that a lock or one loop guards (runtimes, loops, mailboxes).
 * `tc_lref` is plain, for objects that live on one loop thread. */
#ifndef TC_BASE_REF_H
#define TC_BASE_REF_H

#include <stdatomic.h>

#include "base/common.h"

struct tc_ref {
    atomic_uint n;
};

static inline void tc_ref_init(struct tc_ref *r)
{
    atomic_init(&r->n, 1);
}

static inline void tc_ref_inc(struct tc_ref *r)
{
    atomic_fetch_add_explicit(&r->n, 1, memory_order_relaxed);
}

/* Takes a reference for a caller that holds none. Returns false if the last reference has gone. The caller must keep
 * the memory from being freed meanwhile, by a lock that the last owner takes before it frees. */
static inline bool tc_ref_try_inc(struct tc_ref *r)
{
    unsigned n = atomic_load_explicit(&r->n, memory_order_relaxed);
    while (n && !atomic_compare_exchange_weak_explicit(&r->n, &n, n + 1, memory_order_acquire, memory_order_relaxed)) {
    }
    return n != 0;
}

/* Returns true when the last reference is gone: the caller then frees the object. */
static inline bool tc_ref_dec(struct tc_ref *r)
{
    return atomic_fetch_sub_explicit(&r->n, 1, memory_order_acq_rel) == 1;
}

struct tc_lref {
    unsigned n;
};

static inline void tc_lref_init(struct tc_lref *r)
{
    r->n = 1;
}

static inline void tc_lref_inc(struct tc_lref *r)
{
    r->n++;
}

static inline bool tc_lref_dec(struct tc_lref *r)
{
    return --r->n == 0;
}

#endif
