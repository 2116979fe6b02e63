#include "api/wait.h"

int tc_wait_check(const torc_runtime *rt, int64_t timeout_ms)
{
    if (timeout_ms < -1)
        return TORC_EINVAL;
    if (tc_runtime_check(rt) == TORC_EFORK)
        return TORC_EFORK;
    return timeout_ms != 0 && tc_loop_in_turn(tc_runtime_loop(rt)) ? TORC_EDEADLK : 0;
}

void tc_timed_wait_begin(struct tc_timed_wait *w, torc_runtime *rt, struct tc_link *waits, int64_t timeout_ms)
{
    uint64_t now_ns = timeout_ms > 0 ? tc_loop_clock_ns(tc_runtime_loop(rt)) : 0;
    w->rt = rt;
    w->timeout_ms = timeout_ms;
    w->until_ns = UINT64_MAX;
    if (timeout_ms > 0 && (uint64_t)timeout_ms < (UINT64_MAX - now_ns) / TC_NS_PER_MS)
        w->until_ns = now_ns + (uint64_t)timeout_ms * TC_NS_PER_MS;
    w->quietly = timeout_ms != 0 && tc_runtime_caller_drives(rt);
    tc_wait_init(&w->wait);
    tc_runtime_lock(rt);
    tc_list_append(waits, &w->wait.owner);
}

void tc_timed_wait_end(struct tc_timed_wait *w)
{
    tc_list_remove(&w->wait.owner);
    tc_runtime_unlock(w->rt);
    tc_wait_fini(&w->wait);
}

int tc_timed_wait_once(struct tc_timed_wait *w)
{
    return w->timeout_ms == 0 ? TORC_EAGAIN : tc_runtime_wait(w->rt, &w->wait, w->until_ns);
}

void tc_timed_wait_posted(const struct tc_timed_wait *w)
{
    if (w->quietly && tc_runtime_driven(w->rt))
        tc_loop_wake(tc_runtime_loop(w->rt));
}

void tc_wait_wake_all(struct tc_link *waits)
{
    TC_LIST_FOREACH(it, waits)
    tc_wait_wake(TC_CONTAINER_OF(it, struct tc_wait, owner));
}
