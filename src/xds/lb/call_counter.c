/* One table for the process, by cluster and EDS service, under one lock. A counter stays in the table while it has
 * users. A forked child begins with an empty table. */
#include "xds/lb/call_counter.h"

#include "base/fork.h"
#include "base/mem.h"

/* Guarded by the process's lock of rank TC_RANK_COUNTERS. */
static struct tc_call_counter *table;
static unsigned generation; /* tc_fork_generation of the process whose counters `table` has */

/* Takes the lock. The first call in a forked child forgets the parent's table. A counter of the parent that the child
 * still holds lives until the child gives it up. */
static void counters_lock(void)
{
    tc_lock_take(tc_lock_of_process(TC_RANK_COUNTERS));
    if (generation == tc_fork_generation())
        return;
    generation = tc_fork_generation();
    table = NULL;
}

static void counters_unlock(void)
{
    tc_lock_give(tc_lock_of_process(TC_RANK_COUNTERS));
}

struct tc_call_counter *tc_call_counter_get(const struct tc_rstr *cluster, const struct tc_rstr *service)
{
    struct tc_rstr *key = tc_rstr_pair(cluster, service);
    struct tc_call_counter *c = NULL;
    counters_lock();
    HASH_FIND(hh, table, key->data, key->len, c);
    if (!c) {
        c = TC_NEW(struct tc_call_counter);
        c->key = tc_rstr_ref(key);
        c->generation = generation;
        HASH_ADD_KEYPTR(hh, table, c->key->data, c->key->len, c);
    }
    c->users++;
    counters_unlock();
    tc_rstr_unref(key);
    return c;
}

void tc_call_counter_unref(struct tc_call_counter *c)
{
    if (!c)
        return;
    counters_lock();
    bool last = --c->users == 0;
    if (last && c->generation == generation)
        HASH_DEL(table, c);
    counters_unlock();
    if (!last)
        return;
    tc_rstr_unref(c->key);
    tc_free(c);
}
