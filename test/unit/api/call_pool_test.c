/* The pool of calls: a call that comes out has an empty arena and a lock that is free, and is zeroed otherwise; a call
 * in the pool is poisoned (AddressSanitizer). */
#include "api/call_pool.h"

#include "api/call_object.h"
#include "base/poison.h"
#include "support/cmocka.h"

static void assert_zero(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(((const char *)at)[i], 0);
}

/* Looks at the members before the arena, and at those from `zeroed` on. */
static void as_new(void **state)
{
    (void)state;
    struct tc_call_pool *p = tc_call_pool_new();
    torc_stream *call = tc_call_pool_get(p);
    for (int round = 0; round < 3; round++) {
        assert_zero(call, offsetof(torc_stream, core.arena));
        assert_zero(&call->zeroed, sizeof(*call) - offsetof(torc_stream, zeroed));
        assert_int_equal(pthread_mutex_trylock(&call->mutex), 0);
        pthread_mutex_unlock(&call->mutex);
        memset(tc_arena_alloc(&call->core.arena, 100), 'x', 100);
        call->request = tc_slice_of("x", 1);
        tc_call_pool_put(p, call);
        assert_ptr_equal(tc_call_pool_get(p), call);
        assert_int_equal(call->core.arena.used, 0);
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
