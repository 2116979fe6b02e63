/* Counts of RPCs by endpoint: when they rise and fall, and in which order an RPC, its endpoint and the policy may end.
 * There is no policy: a test holds the policy's references, and calls the trackers of a pick itself (`finish`). */
#include "lb/active_requests.h"

#include "support/cmocka.h"

#include "base/arena.h"
#include "base/mem.h"

struct fixture {
    struct tc_arena arena;                    /* of the calls */
    struct tc_pick_args args;                 /* of all picks */
    struct tc_active_requests *total, *a, *b; /* a reference each; those of two endpoints, and their total */
};

static int set_up(void **state)
{
    struct fixture *f = TC_NEW(struct fixture);
    tc_arena_init(&f->arena, 0, SIZE_MAX);
    f->args.arena = &f->arena;
    f->total = tc_active_requests_new(NULL);
    f->a = tc_active_requests_new(f->total);
    f->b = tc_active_requests_new(f->total);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tc_active_requests_unref(f->a);
    tc_active_requests_unref(f->b);
    tc_active_requests_unref(f->total);
    tc_arena_fini(&f->arena);
    tc_free(f);
    return 0;
}

/* Ends the RPC of the pick. `status` NULL: the pick led to no RPC. */
static void finish(struct tc_pick *pick, const struct tc_status *status)
{
    for (struct tc_call_tracker *t = pick->trackers, *next; t; t = next) {
        next = t->next;
        t->on_done(t, status, NULL);
    }
    pick->trackers = NULL;
}

static void counts_from_the_pick_to_the_end(void **state)
{
    struct fixture *f = *state;
    struct tc_pick one = {0}, two = {0}, three = {0};
    struct tc_status ok = {0};
    tc_active_requests_track(f->a, &f->args, &one);
    tc_active_requests_track(f->a, &f->args, &two);
    tc_active_requests_track(f->b, &f->args, &three);
    assert_int_equal(f->a->n, 2);
    assert_int_equal(f->b->n, 1);
    assert_int_equal(f->total->n, 3);
    finish(&one, &ok);
    finish(&three, NULL); /* the connection took no RPC */
    assert_int_equal(f->a->n, 1);
    assert_int_equal(f->b->n, 0);
    assert_int_equal(f->total->n, 1);
    finish(&two, &ok);
    assert_int_equal(f->total->n, 0);
}

/* An endpoint leaves, and then the policy ends, while an RPC is under way: the counts live until the RPC ends. */
static void outlives_endpoint_and_policy(void **state)
{
    struct fixture *f = *state;
    struct tc_pick pick = {0}, late = {0};
    struct tc_status ok = {0};
    tc_active_requests_track(f->a, &f->args, &pick);
    tc_active_requests_unref(f->a);
    assert_int_equal(f->total->n, 1);
    f->a = tc_active_requests_new(f->total); /* an endpoint that comes back has a new count */
    assert_int_equal(f->a->n, 0);
    finish(&pick, &ok);
    assert_int_equal(f->a->n, 0);
    assert_int_equal(f->total->n, 0);
    tc_active_requests_track(f->b, &f->args, &late);
    tc_active_requests_unref(f->b);
    tc_active_requests_unref(f->a);
    tc_active_requests_unref(f->total);
    f->a = f->b = f->total = NULL;
    finish(&late, &ok);
}

static void dry_picks_are_not_counted(void **state)
{
    struct fixture *f = *state;
    struct tc_pick pick = {0};
    f->args.dry = true;
    tc_active_requests_track(f->a, &f->args, &pick);
    assert_int_equal(f->a->n, 0);
    assert_int_equal(f->total->n, 0);
    assert_null(pick.trackers);
}

/* An RPC without room for its tracker is not counted, since nothing would tell of its end. */
static void no_memory_of_the_call(void **state)
{
    struct fixture *f = *state;
    struct tc_pick pick = {0};
    tc_arena_fini(&f->arena);
    tc_arena_init(&f->arena, 0, 1);
    tc_active_requests_track(f->a, &f->args, &pick);
    assert_int_equal(f->a->n, 0);
    assert_int_equal(f->total->n, 0);
    assert_null(pick.trackers);
}

static void without_total(void **state)
{
    struct fixture *f = *state;
    struct tc_active_requests *alone = tc_active_requests_new(NULL);
    struct tc_pick pick = {0};
    struct tc_status ok = {0};
    tc_active_requests_track(alone, &f->args, &pick);
    assert_int_equal(alone->n, 1);
    tc_active_requests_unref(alone);
    finish(&pick, &ok);
    tc_active_requests_unref(tc_active_requests_ref(NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(counts_from_the_pick_to_the_end),
        TEST(outlives_endpoint_and_policy),
        TEST(dry_picks_are_not_counted),
        TEST(no_memory_of_the_call),
        TEST(without_total),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
