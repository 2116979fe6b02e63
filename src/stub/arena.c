/* torc_arena: the arena of base/arena.h as an object of the application. */
#include "api/arena.h"

#include "base/mem.h"
#include "stub/codec.h"

torc_arena *torc_arena_new(uint64_t max_bytes)
{
    torc_arena *a = TC_NEW(torc_arena);
    tc_arena_init(&a->arena, TC_MESSAGE_BLOCK, (size_t)TC_MIN(max_bytes, (uint64_t)SIZE_MAX));
    return a;
}

void *torc_arena_alloc(torc_arena *arena, size_t size)
{
    return arena ? tc_arena_alloc(&arena->arena, size) : NULL;
}

void torc_arena_reset(torc_arena *arena)
{
    if (arena)
        tc_arena_reset(&arena->arena);
}

void torc_arena_free(torc_arena *arena)
{
    if (!arena)
        return;
    tc_arena_fini(&arena->arena);
    tc_free(arena);
}
