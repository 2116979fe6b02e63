/* The pool of call objects: a stack under a mutex, one for each runtime. A call in the pool keeps its lock, the link of
 * the stack, and at most one block of its arena (tc_arena_reset says which). All other members are zeroed, and poisoned
 * under AddressSanitizer. */
#include "api/call_pool.h"

#include "api/call_object.h"
#include "base/mem.h"
#include "base/poison.h"

enum {
    MAX_POOLED = 1024, /* calls in the pool; more are freed. Any number may be in use */
    ARENA_BYTES = 2048,
};

struct tc_call_pool {
    pthread_mutex_t mutex;
    torc_stream *free;
    size_t n;
};

/* Poisons everything but what the pool itself uses: the arena, the link and the lock. */
static void call_poison(torc_stream *call)
{
    const char *arena = (const char *)&call->core.arena, *behind = arena + sizeof(call->core.arena);
    tc_poison(call, (size_t)(arena - (const char *)call));
    tc_poison(behind, (size_t)((const char *)&call->next_free - behind));
    tc_poison(&call->zeroed, sizeof(*call) - offsetof(torc_stream, zeroed));
}

static void call_destroy(torc_stream *call)
{
    tc_unpoison(call, sizeof(*call));
    pthread_mutex_destroy(&call->mutex);
    tc_arena_fini(&call->core.arena);
    tc_free(call);
}

struct tc_call_pool *tc_call_pool_new(void)
{
    struct tc_call_pool *p = TC_NEW(struct tc_call_pool);
    pthread_mutex_init(&p->mutex, NULL);
    return p;
}

void tc_call_pool_free(struct tc_call_pool *p)
{
    while (p->free) {
        torc_stream *next = p->free->next_free;
        call_destroy(p->free);
        p->free = next;
    }
    pthread_mutex_destroy(&p->mutex);
    tc_free(p);
}

static void pool_free(void *value)
{
    tc_call_pool_free(value);
}

/* Several threads may make a pool at once: the first pool that is stored is used. */
static struct tc_call_pool *pool_make(struct tc_runtime_shared *shared)
{
    struct tc_call_pool *p = tc_call_pool_new();
    atomic_store(&shared->destroy, pool_free);
    void *other = NULL;
    if (atomic_compare_exchange_strong(&shared->value, &other, p))
        return p;
    tc_call_pool_free(p);
    return other;
}

struct tc_call_pool *tc_call_pool_of(torc_runtime *rt)
{
    struct tc_runtime_shared *shared = tc_runtime_shared(rt);
    struct tc_call_pool *p = atomic_load_explicit(&shared->value, memory_order_acquire);
    return p ? p : pool_make(shared);
}

torc_stream *tc_call_pool_get(struct tc_call_pool *p)
{
    pthread_mutex_lock(&p->mutex);
    torc_stream *call = p->free;
    if (call) {
        p->free = call->next_free;
        p->n--;
        tc_unpoison(call, sizeof(*call));
    }
    pthread_mutex_unlock(&p->mutex);
    if (!call) {
        call = TC_NEW(torc_stream);
        tc_arena_init(&call->core.arena, ARENA_BYTES, 0);
        pthread_mutex_init(&call->mutex, NULL);
    }
    call->next_free = NULL;
    return call;
}

/* Zeroes before it locks, so that threads wait only for the push. */
void tc_call_pool_put(struct tc_call_pool *p, torc_stream *call)
{
    tc_arena_reset(&call->core.arena);
    struct tc_arena arena = call->core.arena;
    tc_zero(&call->core, sizeof(call->core));
    call->core.arena = arena;
    tc_zero((char *)call + offsetof(torc_stream, zeroed), sizeof(*call) - offsetof(torc_stream, zeroed));
    pthread_mutex_lock(&p->mutex);
    bool keep = p->n < MAX_POOLED;
    if (keep) {
        call_poison(call);
        call->next_free = p->free;
        p->free = call;
        p->n++;
    }
    pthread_mutex_unlock(&p->mutex);
    if (!keep)
        call_destroy(call);
}
