/* The runtime: what its channels share, and how work gets to its loop. runtime/create.c makes and ends it;
 * runtime/blocking.c is for threads that wait, and decides which thread drives the loop.
 *
 * The memory is reference-counted: the handle, the channels and their calls hold it, among others. torc_runtime_free
 * ends the loop, but an object with a reference may still call tc_runtime_check, which returns TORC_ECLOSED, and may
 * post to the loop, which refuses the post. */
#include "base/blocks.h"
#include "base/heap.h"
#include "base/mem.h"
#include "runtime/runtime_internal.h"

static void runtime_destroy(torc_runtime *rt)
{
    void *shared = atomic_load(&rt->shared.value);
    if (shared)
        rt->shared.destroy(shared);
    pthread_mutex_destroy(&rt->mutex);
    tc_loop_unref(rt->loop);
    tc_free(rt);
}

torc_runtime *tc_runtime_ref(torc_runtime *rt)
{
    tc_ref_inc(&rt->ref);
    return rt;
}

void tc_runtime_unref(torc_runtime *rt)
{
    if (rt && tc_ref_dec(&rt->ref))
        runtime_destroy(rt);
}

struct post {
    struct tc_task task;
    void (*fn)(void *arg);
    void *arg;
};

static void on_post(struct tc_task *task)
{
    struct post *p = TC_CONTAINER_OF(task, struct post, task);
    void (*fn)(void *) = p->fn;
    void *arg = p->arg;
    tc_free(p);
    fn(arg);
}

/* From outside a turn, fn runs behind everything that was posted earlier; from inside a turn, behind the serial queue.
 */
int torc_runtime_post(torc_runtime *rt, void (*fn)(void *arg), void *arg)
{
    int rc = tc_runtime_check(rt);
    if (rc == 0 && !fn)
        rc = TORC_EINVAL;
    if (rc != 0)
        return rc;
    struct post *p = TC_NEW(struct post);
    p->fn = fn;
    p->arg = arg;
    tc_task_init(&p->task, on_post);
    /* fn may let another thread free the runtime before this thread has left tc_runtime_run. */
    tc_runtime_ref(rt);
    if (!tc_runtime_run(rt, &p->task)) {
        tc_free(p);
        rc = TORC_ECLOSED;
    }
    tc_runtime_unref(rt);
    return rc;
}

struct tc_loop *tc_runtime_loop(const torc_runtime *rt)
{
    return rt->loop;
}

struct tc_pool *tc_runtime_pool(const torc_runtime *rt)
{
    return rt->pool;
}

struct tc_runtime_shared *tc_runtime_shared(torc_runtime *rt)
{
    return &rt->shared;
}

void tc_runtime_join(torc_runtime *rt, struct tc_runtime_member *member)
{
    tc_list_append(&rt->members, &member->link);
}

size_t tc_runtime_csds_answer_bytes(const torc_runtime *rt)
{
    return rt->csds_answer_bytes;
}

torc_xds_domain *tc_runtime_xds_domain(const torc_runtime *rt)
{
    return rt->xds_domain;
}

void *tc_runtime_extra(torc_runtime *rt, const void *key)
{
    for (struct tc_runtime_slot *slot = rt->slots; slot; slot = slot->next)
        if (slot->key == key)
            return slot->value;
    return NULL;
}

void tc_runtime_set_extra(torc_runtime *rt, const void *key, void *value, void (*fn)(void *value))
{
    struct tc_runtime_slot *slot = TC_NEW(struct tc_runtime_slot);
    slot->key = key;
    slot->value = value;
    slot->destroy = fn;
    slot->next = rt->slots;
    rt->slots = slot;
}

uint64_t tc_runtime_memory_limit(const torc_runtime *rt)
{
    return rt->memory_limit_bytes;
}

uint64_t tc_runtime_memory_held(const torc_runtime *rt)
{
    return rt->calls_bytes + tc_heap_lent(tc_loop_heap(rt->loop)) + tc_blocks_lent(tc_loop_blocks(rt->loop));
}

void tc_runtime_count_memory(torc_runtime *rt, size_t *counted, size_t bytes)
{
    rt->calls_bytes += bytes - (uint64_t)*counted;
    *counted = bytes;
}

int tc_runtime_check(const torc_runtime *rt)
{
    if (!rt)
        return TORC_EINVAL;
    if (atomic_load_explicit(&rt->closed, memory_order_acquire))
        return TORC_ECLOSED;
    return tc_loop_forked(rt->loop) ? TORC_EFORK : 0;
}

/* Inside a turn the serial queue runs the task behind those that callbacks have queued. */
bool tc_runtime_run(torc_runtime *rt, struct tc_task *task)
{
    if (!tc_loop_in_turn(rt->loop))
        return tc_loop_post(rt->loop, task);
    tc_loop_defer(rt->loop, task);
    return true;
}

bool tc_runtime_stopped(const torc_runtime *rt)
{
    return atomic_load_explicit(&rt->stopped, memory_order_relaxed);
}
