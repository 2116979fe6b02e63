/* The pool of calls: a call that comes out has an empty arena and a lock that is free, and is zeroed otherwise; a call
 * in the pool is poisoned (AddressSanitizer). */
#include "api/call_pool.h"

#include "api/call_object.h"
#include "base/poison.h"
#include "support/cmocka.h"

#define BEHIND_ARENA (offsetof(torc_stream, core.arena) + sizeof(struct tc_arena))

/* The parts of a call that are zeroed: the core without its arena, and the members from torc_stream's `zeroed` on. */
static const struct {
    size_t at, bytes;
} zeroed[] = {
    {0, offsetof(torc_stream, core.arena)},
    {BEHIND_ARENA, offsetof(torc_stream, core) + sizeof(((torc_stream *)0)->core) - BEHIND_ARENA},
    {offsetof(torc_stream, zeroed), sizeof(torc_stream) - offsetof(torc_stream, zeroed)},
};

/* A call of which each byte of the zeroed parts was written comes out of the pool again as it came the first time. */
static void as_new(void **state)
{
    (void)state;
    struct tc_call_pool *p = tc_call_pool_new();
    torc_stream *call = tc_call_pool_get(p);
    for (int round = 0; round < 3; round++) {
        for (size_t part = 0; part < TC_ARRAY_LEN(zeroed); part++)
            for (size_t i = 0; i < zeroed[part].bytes; i++)
                assert_int_equal(((const char *)call)[zeroed[part].at + i], 0);
        assert_int_equal(call->core.arena.used, 0);
        assert_int_equal(pthread_mutex_trylock(&call->mutex), 0);
        pthread_mutex_unlock(&call->mutex);
        memset(tc_arena_alloc(&call->core.arena, 100), 'x', 100);
        for (size_t part = 0; part < TC_ARRAY_LEN(zeroed); part++)
            memset((char *)call + zeroed[part].at, 'x', zeroed[part].bytes);
        tc_call_pool_put(p, call);
        assert_ptr_equal(tc_call_pool_get(p), call);
    }
    tc_call_pool_put(p, call);
    tc_call_pool_free(p);
}

static void poisoned(void **state)
{
    (void)state;
    if (!TC_POISONS)
        skip();
    struct tc_call_pool *p = tc_call_pool_new();
    torc_stream *call = tc_call_pool_get(p);
    const char *in_arena = tc_arena_alloc(&call->core.arena, 100);
    tc_call_pool_put(p, call);
    assert_true(tc_is_poisoned(in_arena));
    assert_true(tc_is_poisoned(call));
    assert_true(tc_is_poisoned(&call->core.attempt.stream));
    assert_true(tc_is_poisoned(&call->kind));
    assert_true(tc_is_poisoned((const char *)(call + 1) - 1));
    assert_ptr_equal(tc_call_pool_get(p), call);
    for (const char *at = (const char *)call; at < (const char *)(call + 1); at++)
        assert_false(tc_is_poisoned(at));
    tc_call_pool_put(p, call);
    tc_call_pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_new),
        cmocka_unit_test(poisoned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
