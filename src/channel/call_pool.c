#include "channel/call_pool.h"

#include "base/mem.h"
#include "channel/call_api.h"

/* Beyond it calls are freed; as many may be outstanding as the application likes. */
#define MAX_POOLED 1024
#define ARENA_BYTES 2048

struct tc_call_pool {
    pthread_mutex_t mutex;
    torc_call *free;
    size_t n;
};

struct tc_call_pool *tc_call_pool_new(void)
{
    struct tc_call_pool *p = TC_NEW(struct tc_call_pool);
    pthread_mutex_init(&p->mutex, NULL);
    return p;
}

static void destroy(torc_call *call)
{
    pthread_mutex_destroy(&call->mutex);
    tc_arena_fini(&call->core.arena);
    tc_free(call);
}

void tc_call_pool_free(struct tc_call_pool *p)
{
    while (p->free) {
        torc_call *next = p->free->next_free;
        destroy(p->free);
        p->free = next;
    }
    pthread_mutex_destroy(&p->mutex);
    tc_free(p);
}

torc_call *tc_call_pool_get(struct tc_call_pool *p)
{
    pthread_mutex_lock(&p->mutex);
    torc_call *call = p->free;
    if (call) {
        p->free = call->next_free;
        p->n--;
    }
    pthread_mutex_unlock(&p->mutex);
    if (!call) {
        call = TC_NEW(torc_call);
        tc_arena_init(&call->core.arena, ARENA_BYTES, 0);
        pthread_mutex_init(&call->mutex, NULL);
    }
    call->next_free = NULL;
    return call;
}

void tc_call_pool_put(struct tc_call_pool *p, torc_call *call)
{
    /* A new one but for its arena's first block and its lock. */
    tc_arena_reset(&call->core.arena);
    struct tc_arena arena = call->core.arena;
    memset(&call->core, 0, sizeof(call->core));
    call->core.arena = arena;
    memset((char *)call + offsetof(torc_call, zeroed), 0, sizeof(*call) - offsetof(torc_call, zeroed));
    pthread_mutex_lock(&p->mutex);
    bool keep = p->n < MAX_POOLED;
    if (keep) {
        call->next_free = p->free;
        p->free = call;
        p->n++;
    }
    pthread_mutex_unlock(&p->mutex);
    if (!keep)
        destroy(call);
}
